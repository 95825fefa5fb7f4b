/*
 * Adds up the launches that fit a filter, per configuration, exactly, reading as little as possible.
 */
#ifndef OCC_STORE_GATHER_H
#define OCC_STORE_GATHER_H

#include "store/internal.h"

/* Which runs and configurations a filter lets through. */
struct occ_scope {
    int64_t since_ns, until_ns; /* since <= start < until */
    bool any_config;
    struct occ_map configs; /* allowed, unless any_config */
    struct occ_scope_run *runs;
    uint32_t n_runs;
    struct occ_map run_index; /* id -> index in runs */
    int64_t minutes_from;
};

struct occ_span {
    int64_t low, high; /* low <= start < high */
};

#define OCC_SCOPE_SPANS 4

struct occ_scope_run {
    int64_t id, first_ns, last_ns, rolled_minute_ns, rolled_hour_ns, retired_ns;
    struct occ_span minutes[OCC_SCOPE_SPANS]; /* to be taken from rollup_minute */
    uint32_t n_minutes;
};

/* Inside a read transaction, so that everything is of one moment. OCC_E_INVALID: the regular expression is none. */
int occ_scope_open(struct occ_store *s, const struct occ_filter *filter, struct occ_scope *scope,
                   struct occ_error *err);
void occ_scope_close(struct occ_scope *scope);

static inline bool occ_scope_has_config(const struct occ_scope *scope, uint64_t config)
{
    return scope->any_config || occ_map_get(&scope->configs, config) != OCC_MAP_NONE;
}

/* Totals by configuration. `detailed`: with histograms and first and last start; else without (quicker). */
int occ_gather(struct occ_store *s, struct occ_scope *scope, bool detailed, struct occ_totals_table *table,
               struct occ_error *err);

/* measured.c: a configuration's sums in the runs of a scope, by whole minutes. */
int occ_measured_prepare(struct occ_store *s, sqlite3_stmt **ret_stmt, struct occ_error *err);
int occ_measured_read(struct occ_store *s, const struct occ_scope *scope, int64_t config, sqlite3_stmt *stmt,
                      struct occ_measured_sums *ret_sums, struct occ_error *err);

#endif
