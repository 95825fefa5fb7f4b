/* Trends of launches by units of time: the points of occ_store_top() by minute, hour or day, and their
 * changes (compare/changes.h). One thread. */
#pragma once

#include <stdio.h>

#include "cli/json.h"
#include "draw/svg.h"
#include "store/store.h"

/* A unit of time with launches. */
struct trend_point {
    int64_t start_ns;
    uint64_t launches, total_ns, p50_ns, p95_ns;
    double mean_ns;
    double elapsed; /* mean by time: measured, else the low end of the expected range; NaN: unknown */
    double elapsed_low, elapsed_high;    /* range: 95 % interval of measured values, and the expected range */
    double measured;                     /* measured part of the time */
    double waste, waste_low, waste_high; /* warp-seconds; the ends are from elapsed_high and elapsed_low */
};
extern const struct cli_column trend_point_columns[];

/* The series with their bands. Changes are searched in the series before WASTE, which depends on the number
 * of launches. X(NAME, key, name, source, member, low end, high end, band, unit) */
#define TREND_SERIES(X)                                                                                      \
    X(MEAN, "mean_duration_ns", "mean time of a launch", "", mean_ns, p50_ns, p95_ns,                        \
      "; band: median to 95th percentile", CLI_DURATION)                                                     \
    X(ELAPSED, "elapsed", "elapsed occupancy", " (measured, else the low end of the expected range)",        \
      elapsed, elapsed_low, elapsed_high, "; band: 95 % confidence interval, expected range", CLI_RATIO)     \
    X(WASTE, "waste_warp_seconds", "wasted warp-seconds", "", waste, waste_low, waste_high,                  \
      "; band: as that of elapsed occupancy", CLI_AMOUNT)
#define TREND_ENUMERATOR(name, ...) TREND_##name,
enum trend_series { TREND_SERIES(TREND_ENUMERATOR) TREND_SERIES_COUNT };
struct trend_series_text {
    const char *key, *name, *source, *band;
    enum cli_unit unit;
};
extern const struct trend_series_text trend_series[TREND_SERIES_COUNT];

/* Parts of the ratio of two means, less 1: from changes of kernels, and from their mix. */
struct trend_split {
    double kernels, mix;
};

struct trend_change {
    enum trend_series in;
    const char *series;             /* key of the series */
    int64_t start_ns;               /* start of the first unit after the change */
    double before, after, ratio, p; /* ratio: after / before - 1; p: NaN: only possible */
    bool possible;                  /* a change of the newest points, too few for a decision */
    bool is_drift;                  /* no step: a slow change from start_ns to the last point */
    /* Between the launches before and after the step, up to the neighbouring steps or 50 points; NaN for a
     * drift. */
    struct trend_split split;
    double run;      /* last run that began in this unit or in the unit before; NaN: none */
    char began[160]; /* the run's label and program, safe to print */
};

/* The time when runs begin with another label than the run before. */
struct trend_label {
    int64_t start_ns;
    char label[128]; /* safe to print */
};

struct trend {
    int64_t unit_ns;
    const char *unit;           /* one of trend_units */
    bool simulated;             /* launches of a simulated device exist */
    size_t n_kernels;           /* kernels matching KERNEL (0: no KERNEL); 1: mixes are of configurations */
    struct trend_point *points; /* sorted by time */
    size_t n;
    struct trend_change *changes;
    size_t n_changes, allocated;
    struct trend_label *labels;
    size_t n_labels, labels_allocated;
};
void trend_release(struct trend *trend);

extern const char *const trend_units[]; /* "minute", "hour", "day"; ends with NULL */

/* True for days, which are UTC's: they begin at the same time everywhere and never have 23 or 25 hours. All
 * times beside them are in UTC too; minutes and hours are in local time. */
bool trend_is_utc(const struct trend *trend);
/* Formats "2026-01-31 12:00:00 CET". */
const char *trend_time_text(const struct trend *trend, int64_t ns, char *buffer, size_t size);
/* Changes trend_point_columns in `selection` to show the start in the trend's zone. */
void trend_name_zone(const struct trend *trend, struct cli_selection *selection);

/* Loads the trend. `unit`: one of trend_units; NULL: minutes for up to two days, hours up to 10 000, else
 * days. `min_change`: the smallest change to report, as a ratio. No launches: no points. */
int trend_load(struct occ_store *store, const struct occ_filter *filter, const char *unit, double min_change,
               struct trend *ret_trend, struct occ_error *err);

struct trend_value {
    double mean, low, high; /* NaN: unknown */
};
struct trend_value trend_value(const struct trend_point *point, enum trend_series series);
/* Format a value or a change as text. Return `buffer`. */
const char *trend_value_text(enum trend_series series, double value, char *buffer, size_t size);
const char *trend_change_text(const struct trend *trend, const struct trend_change *change, char *buffer,
                              size_t size);

/* Splits the change of a series' mean between the launches of two filters. */
int trend_split(struct occ_store *store, const struct occ_filter sides[2], enum occ_top_by by,
                enum trend_series series, struct trend_split *ret_split, struct occ_error *err);

/* Draws a series in the area of `plot`, with axes, changes and labels. */
void trend_plot(const struct draw_svg_plot *plot, const struct trend *trend, enum trend_series series);

/* Draws all series as an SVG picture. `what` is a name for the launches. */
void trend_svg(const struct trend *trend, const char *what, FILE *out);

/* Writes members of the open object for `occq history --json`. */
void trend_json(struct occ_json *json, const struct trend *trend);
