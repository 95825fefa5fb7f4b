/* The data of a launch configuration that `top` reads, once for all its totals. One thread. */
#pragma once

#include "query.h"

/* The columns of OCC_SQL_TOP_CONFIGS. */
enum {
#define X(name, expression) OCC_TOP_##name,
    OCC_SQL_TOP(X)
#undef X
        OCC_TOP_CAUSES
};

struct occ_top_config {
    sqlite3_stmt *stmt; /* positioned on the configuration's row, for names */
    int64_t id, kernel;
    bool is_analysed, is_simulated;
    bool is_estimated;        /* the model uses estimated limits for the device */
    struct occ_result result; /* only the members that the waterfall needs */
    double warps;             /* maximum number of warps on its device */
    struct occ_dominant_config dominant;
    double all_ns;                     /* sum over all its totals, occ_totals_all_ns() */
    struct occ_measured_rows measured; /* measured values, if the filter has units of time */
    /* values for the launches being added, not set by occ_top_config_read(): */
    struct occ_measurement means; /* errors cover all launches of the configuration */
    struct occ_waterfall waterfall;
    unsigned main_part; /* part with the largest loss; OCC_PART_COUNT: none */
};

/* Reads the configuration in the current row of `stmt`, an OCC_SQL_TOP_CONFIGS statement, which *ret_config
 * refers to. all_ns stays 0. */
int occ_top_config_read(struct occ_store *s, const struct occ_resolved_filter *f, sqlite3_stmt *stmt,
                        struct occ_top_config *ret_config, struct occ_error *err);
