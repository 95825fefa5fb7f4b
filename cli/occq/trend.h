/*
 * How launches went by units of time, and when that changed: the points of occ_store_top() by minute, hour or
 * day, and the changes of diff/changes.h in them. One thread.
 */
#ifndef OCC_OCCQ_TREND_H
#define OCC_OCCQ_TREND_H

#include "cli/json.h"
#include "store/store.h"

/* A unit of time in which there are launches. */
struct trend_point {
    int64_t start_ns;
    uint64_t launches, total_ns, p50_ns, p95_ns;
    double mean_ns;
    double elapsed;  /* mean by time: measured, else the low end of what is expected; NaN: not known */
    double measured; /* part of the time that is measured */
    double waste;    /* warp-seconds */
};
extern const struct cli_column trend_point_columns[];

/* The series that are drawn. Changes are looked for in those before WASTE, which goes with the number of
 * launches. X(NAME, key, title, member, unit) */
#define TREND_SERIES(X)                                                                                      \
    X(MEAN, "mean_duration_ns", "mean time of a launch", mean_ns, CLI_DURATION)                              \
    X(ELAPSED, "elapsed", "elapsed occupancy (measured, else the low end of what is expected)", elapsed,     \
      CLI_RATIO)                                                                                             \
    X(WASTE, "waste_warp_seconds", "wasted warp-seconds", waste, CLI_AMOUNT)
#define TREND_ENUMERATOR(name, key, title, member, unit) TREND_##name,
enum trend_series { TREND_SERIES(TREND_ENUMERATOR) TREND_SERIES_COUNT };

struct trend_change {
    enum trend_series in;
    const char *series;             /* its key */
    int64_t start_ns;               /* of the first unit of time after it */
    double before, after, ratio, p; /* ratio: after / before - 1; p: NaN: only possible */
    bool possible;                  /* of the newest points, too few to tell */
    double run;                     /* the last that began then or one unit before; NaN: none */
    char began[160];                /* its label and program, safe to print */
};
extern const struct cli_column trend_change_columns[];

/* Runs with another label than those before begin here. */
struct trend_label {
    int64_t start_ns;
    char label[128]; /* safe to print */
};
extern const struct cli_column trend_label_columns[];

struct trend {
    int64_t unit_ns;
    struct trend_point *points; /* in the order of time */
    size_t n;
    struct trend_change *changes;
    size_t n_changes, allocated;
    struct trend_label *labels;
    size_t n_labels, labels_allocated;
};
void trend_release(struct trend *trend);

extern const char *const trend_units[]; /* "minute", "hour", "day"; NULL ends them */

/* `unit`: one of trend_units; NULL: minutes for up to two days, hours up to 10 000, else days. `min_change`:
 * the smallest that counts. No launches: no points. */
int trend_load(struct occ_store *store, const struct occ_filter *filter, const char *unit, double min_change,
               struct trend *ret_trend, struct occ_error *err);

/* Members of the open object: what `occq history --json` prints. */
void trend_json(struct cli_json *json, const struct trend *trend);

double trend_value(const struct trend_point *point, enum trend_series series);

#endif
