/* Measured values of launches and samples of devices that wait for the next commit. For internal.h and
 * store/write/. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "store/codec/codes.h"
#include "store/measured.h"
#include "support/error.h"

struct occ_store;

#define OCC_SERIES_MAX_ROWS (UINT32_C(1) << 16) /* maximum rows of a chunk */

enum occ_series_kind { OCC_SERIES_VALUES, OCC_SERIES_SAMPLES };

/* A launch's measured values, or a sample of a device. */
struct occ_series_row {
    int64_t start_ns;
    union {
        uint64_t duration_ns; /* only for a sample */
        struct {
            uint32_t correlation, config; /* only for a launch */
        };
    };
    uint16_t code[OCC_SAMPLE_NUMBER_COUNT]; /* OCC_VALUE_... for a launch, OCC_SAMPLE_... for a sample */
};

/* A series; only chunks of the same series are merged. */
struct occ_series_key {
    enum occ_series_kind kind;
    int64_t run, device; /* run 0: samples */
};

struct occ_pending_row {
    int64_t run, device;
    struct occ_series_row row;
};

struct occ_pending_series {
    struct occ_pending_row *rows;
    size_t n, allocated;
};

struct occ_unexplained {
    int64_t device, second;
    double ratio;
};

struct occ_series {
    struct occ_pending_series values, samples;
    struct occ_unexplained *unexplained;
    size_t n_unexplained, unexplained_allocated;
    struct occ_device_energy *energies;
    size_t n_energies, energies_allocated;
    struct occ_series_row *scratch; /* OCC_SERIES_MAX_ROWS rows, allocated when first needed */
};

/* series_chunks.c; call both inside a transaction. Writes the scratch's first `n` rows, which are sorted by
 * start, as a chunk. */
int occ_series_write_chunk(struct occ_store *s, const struct occ_series_key *key, uint32_t n,
                           struct occ_error *err);
/* Merges the series' chunks that are not full, if there are enough chunks or rows. Overwrites the scratch. */
int occ_series_merge(struct occ_store *s, const struct occ_series_key *key, struct occ_error *err);

/* seconds.c; call inside a transaction: computes the seconds of the sorted rows of one device. */
int occ_seconds_write(struct occ_store *s, const struct occ_pending_row *rows, size_t n,
                      struct occ_error *err);
int occ_unexplained_write(struct occ_store *s, const struct occ_unexplained *u, struct occ_error *err);
int occ_energy_write(struct occ_store *s, const struct occ_device_energy *e, struct occ_error *err);
