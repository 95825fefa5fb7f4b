/* How launches went by units of time, and when that changed: the points of occ_store_top() by minute, hour or
 * day, and the changes of diff/changes.h in them. One thread. */
#pragma once

#include <stdio.h>

#include "cli/json.h"
#include "draw/svg.h"
#include "store/store.h"

/* A unit of time in which there are launches. */
struct trend_point {
    int64_t start_ns;
    uint64_t launches, total_ns, p50_ns, p95_ns;
    double mean_ns;
    double elapsed; /* mean by time: measured, else the low end of what is expected; NaN: not known */
    double elapsed_low, elapsed_high;    /* 95 % of what is measured, and the range of what is expected */
    double measured;                     /* part of the time that is measured */
    double waste, waste_low, waste_high; /* warp-seconds; the ends: of all less what is used */
};
extern const struct cli_column trend_point_columns[];

/* The series that are drawn, with their bands. Changes are looked for in those before WASTE, which goes with
 * the number of launches. X(NAME, key, name, source, member, low end, high end, band, unit) */
#define TREND_SERIES(X)                                                                                      \
    X(MEAN, "mean_duration_ns", "mean time of a launch", "", mean_ns, p50_ns, p95_ns,                        \
      "; band: median to 95th percentile", CLI_DURATION)                                                     \
    X(ELAPSED, "elapsed", "elapsed occupancy", " (measured, else the low end of what is expected)", elapsed, \
      elapsed_low, elapsed_high, "; band: 95 % confidence interval, range of what is expected", CLI_RATIO)   \
    X(WASTE, "waste_warp_seconds", "wasted warp-seconds", "", waste, waste_low, waste_high,                  \
      "; band: as that of elapsed occupancy", CLI_AMOUNT)
#define TREND_ENUMERATOR(name, ...) TREND_##name,
enum trend_series { TREND_SERIES(TREND_ENUMERATOR) TREND_SERIES_COUNT };
struct trend_series_text {
    const char *key, *name, *source, *band;
    enum cli_unit unit;
};
extern const struct trend_series_text trend_series[TREND_SERIES_COUNT];

/* What of the ratio of two means, less 1, comes from kernels and from their mix. */
struct trend_split {
    double kernels, mix;
};

struct trend_change {
    enum trend_series in;
    const char *series;             /* its key */
    int64_t start_ns;               /* of the first unit of time after it */
    double before, after, ratio, p; /* ratio: after / before - 1; p: NaN: only possible */
    bool possible;                  /* of the newest points, too few to tell */
    bool is_drift;                  /* no step, but a slow rise or fall from then to the last point */
    /* Of the launches up to the changes beside it or 50 units of time; NaN: of a drift. */
    struct trend_split split;
    double run;      /* the last that began then or one unit before; NaN: none */
    char began[160]; /* its label and program, safe to print */
};

/* Runs with another label than those before begin here. */
struct trend_label {
    int64_t start_ns;
    char label[128]; /* safe to print */
};

struct trend {
    int64_t unit_ns;
    const char *unit;           /* of trend_units */
    bool simulated;             /* some launches are of a simulated device */
    size_t n_kernels;           /* that the filter's KERNEL matches; 0: none is asked for. 1: mixes are of its
                                   configurations, else of kernels */
    struct trend_point *points; /* in the order of time */
    size_t n;
    struct trend_change *changes;
    size_t n_changes, allocated;
    struct trend_label *labels;
    size_t n_labels, labels_allocated;
};
void trend_release(struct trend *trend);

extern const char *const trend_units[]; /* "minute", "hour", "day"; NULL ends them */

/* Days are UTC's: they are equal everywhere, also where local time is no whole hours from UTC, and none has
 * 23 or 25 hours. Everything beside them is in UTC too; minutes and hours are in local time. */
bool trend_is_utc(const struct trend *trend);
/* "2026-01-31 12:00:00 CET". */
const char *trend_time_text(const struct trend *trend, int64_t ns, char *buffer, size_t size);
/* trend_point_columns, with the start in that zone. */
void trend_name_zone(const struct trend *trend, struct cli_selection *selection);

/* `unit`: one of trend_units; NULL: minutes for up to two days, hours up to 10 000, else days. `min_change`:
 * the smallest that counts. No launches: no points. */
int trend_load(struct occ_store *store, const struct occ_filter *filter, const char *unit, double min_change,
               struct trend *ret_trend, struct occ_error *err);

struct trend_value {
    double mean, low, high; /* NaN: not known */
};
struct trend_value trend_value(const struct trend_point *point, enum trend_series series);
/* For people. Return `buffer`. */
const char *trend_value_text(enum trend_series series, double value, char *buffer, size_t size);
const char *trend_change_text(const struct trend *trend, const struct trend_change *change, char *buffer,
                              size_t size);

/* How the mean of a series goes from the launches of one filter to another's. */
int trend_split(struct occ_store *store, const struct occ_filter sides[2], enum occ_top_by by,
                enum trend_series series, struct trend_split *ret_split, struct occ_error *err);

/* A series in the area of `plot`, with its axes, changes and labels. */
void trend_plot(const struct draw_svg_plot *plot, const struct trend *trend, enum trend_series series);

/* A picture of all series in SVG; `what`: what the launches are. */
void trend_svg(const struct trend *trend, const char *what, FILE *out);

/* Members of the open object: what `occq history --json` prints. */
void trend_json(struct occ_json *json, const struct trend *trend);
