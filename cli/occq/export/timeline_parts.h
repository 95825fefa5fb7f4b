/* Parts of a timeline that is being written; for the files timeline*.c only. */
#pragma once

#include <sqlite3.h>

#include "lanes.h"
#include "layers.h"
#include "timeline.h"

struct timeline_device {
    int64_t id;
    uint32_t track;
};
struct timeline_config {
    struct export_config shared;
    int64_t device;
    uint32_t gpu; /* track */
};

struct timeline {
    const struct export_format *format;
    struct export_writer writer;
    struct occ_store *store;
    sqlite3 *db;
    sqlite3_stmt *config_statement;
    struct export_lanes lanes;
    struct export_ranges ranges;
    struct timeline_device *devices;
    size_t n_devices, devices_allocated;
    struct timeline_config *configs;
    size_t n_configs, configs_allocated;
    struct occ_map config_index;
    uint32_t tracks;
    int64_t end_ns; /* the last end */
    uint64_t launches, left_out;
};

/* Numbers the track and adds it. Returns its number. */
uint32_t timeline_add_track(struct timeline *t, struct export_track track);
int timeline_sql_failed(struct timeline *t, struct occ_error *err);
int timeline_prepare(struct timeline *t, const char *sql, sqlite3_stmt **ret_statement,
                     struct occ_error *err);

/* ---- timeline_config.c ---- */

int timeline_prepare_configs(struct timeline *t, struct occ_error *err);
/* Finds or adds a launch configuration, which lives until the next call. */
int timeline_find_config(struct timeline *t, int64_t id, const struct timeline_config **ret_config,
                         struct occ_error *err);
void timeline_drop_configs(struct timeline *t);

/* ---- timeline_samples.c ---- */

/* Adds samples from the first start to the last end; clips a sample that is running at the first start. */
int timeline_add_samples(struct timeline *t, struct occ_error *err);
