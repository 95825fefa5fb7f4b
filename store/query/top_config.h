/* What `top` reads of a launch configuration, once for all its totals. One thread. */
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
    sqlite3_stmt *stmt; /* on its row, for names */
    int64_t id, kernel;
    bool is_analysed, is_simulated, is_estimated;
    struct occ_result result;
    double warps; /* that its device can hold */
    struct occ_dominant_config dominant;
    double all_ns;                     /* of all its totals, occ_totals_all_ns() */
    struct occ_measured_rows measured; /* by units of time */
    /* of the launches that are added: */
    struct occ_measurement means; /* with errors that cover all of them */
    struct occ_waterfall waterfall;
    unsigned main_part; /* what they lose most to; OCC_PART_COUNT: nothing */
};

int occ_top_config_read(struct occ_store *s, const struct occ_resolved_filter *f, sqlite3_stmt *stmt,
                        struct occ_top_config *ret_config, struct occ_error *err);
