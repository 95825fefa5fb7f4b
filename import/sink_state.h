/* The sink's state, from its creation by import.c to load.c, which brings it into the history. Internal to
 * import/. */
#pragma once

#include <assert.h>

#include "catalog.h"
#include "import.h"
#include "ranges.h"

/* ---- the stage: a recording until it was read whole, an unlinked temporary file (in TMPDIR, else /tmp) of
 * records, written once, then read once ---- */

struct occ_stage;

enum occ_stage_kind { OCC_STAGE_KERNEL = 1, OCC_STAGE_CONFIG, OCC_STAGE_LAUNCH, OCC_STAGE_MEASURED };

#define OCC_STAGE_RECORD_MAX (64u * 1024u)
static_assert(sizeof(struct occ_import_measured) <= OCC_STAGE_RECORD_MAX, "a record");

int occ_stage_new(struct occ_stage **ret_stage, struct occ_error *err);
/* NULL is fine. */
void occ_stage_free(struct occ_stage *stage);

/* `size` at most OCC_STAGE_RECORD_MAX. */
int occ_stage_put(struct occ_stage *stage, enum occ_stage_kind kind, const void *data, size_t size,
                  struct occ_error *err);

/* Goes back to the first record, for reading. */
int occ_stage_rewind(struct occ_stage *stage, struct occ_error *err);

/* The next record, valid until the next call. *ret_size SIZE_MAX: no more. */
int occ_stage_next(struct occ_stage *stage, enum occ_stage_kind *ret_kind, const void **ret_data,
                   size_t *ret_size, struct occ_error *err);

/* ---- the sink ---- */

#define DEVICES_MAX 1024u
/* kernels, and configurations, kept in memory; further ones are in a database */
#define IN_MEMORY       (1u << 16)
#define NAME_KEPT_BYTES 16384u /* bytes of a name that the history keeps; the hash covers the whole name */

struct device {
    uint64_t number; /* the recording's number */
    struct occ_store_device device;
    char name[256];
};

/* The history's id is known when the configuration is loaded. */
struct config_record {
    uint32_t id, device;
    struct occ_reported_occupancy reported; /* `mean` is the sum */
};

struct occ_import_sink {
    struct occ_import_options options;
    uint64_t seed; /* seed of the hashes: a file cannot choose names that collide */
    struct occ_stage *stage;
    struct occ_ranges *ranges;
    struct occ_store_device named_gpu;
    struct occ_import_recording recording;
    struct device devices[DEVICES_MAX];
    uint32_t n_devices;
    struct occ_catalog *kernels; /* -> int64_t, the history's id once loaded */
    struct occ_catalog *configs; /* -> struct config_record */
    uint64_t skipped[OCC_IMPORT_SKIP_COUNT];
};

/* A record OCC_STAGE_KERNEL is the history's 64-bit hash of the whole name, and the kept part of the name. */

/* OCC_STAGE_CONFIG; `kernel` and `device` are indices. */
struct staged_config {
    uint32_t kernel, device;
    struct occ_launch_config config;
};

/* OCC_STAGE_LAUNCH; times without the recording's shift. */
struct staged_launch {
    uint32_t config, stream, context, correlation;
    int64_t start_ns;
    uint64_t duration_ns, graph_node;
};

/* OCC_STAGE_MEASURED, for the launch before it: struct occ_import_measured without unused metrics. */

/* `options` are copied, their strings borrowed. OCC_E_INVALID: options->gpu is unknown. */
int occ_import_sink_new(const struct occ_import_options *options, struct occ_import_sink **ret_sink,
                        struct occ_error *err);
/* NULL is fine. */
void occ_import_sink_free(struct occ_import_sink *sink);

struct occ_import_source {
    const char *tool; /* "nsys", "kineto", "ncu" */
    const char *path;
    const char *hash; /* hash of the file */
};

/* OCC_E_INVALID: no launch was staged that could be loaded. */
int occ_import_check_launches(const struct occ_import_sink *sink, struct occ_error *err);
/* Loads everything into the store, in one transaction. */
int occ_import_load(struct occ_import_sink *sink, struct occ_store *store,
                    const struct occ_import_source *source, struct occ_import_result *ret_result,
                    struct occ_error *err);
