/* The model's answer for one launch configuration, in text and JSON: limits, waves, occupancies, and the
 * parts of lost occupancy; with what hardware counters measured of it, if anything. Needs no history. One
 * thread (stdio). */
#pragma once

#include <stdbool.h>

#include "cli/json.h"
#include "occupancy/advice.h"
#include "occupancy/occupancy.h"
#include "occupancy/suggest.h"
#include "occupancy/waterfall.h"
#include "support/error.h"

/* What is printed; `result` is occ_analyse()'s for `device` and `launch`. */
struct analysis {
    const struct occ_device *device;
    const struct occ_launch *launch;
    const struct occ_result *result;
    const struct occ_measurement *measured; /* NULL: no launches that could have been measured */
    bool has_grid;                          /* false: no grid is given, and `result` is one full wave's */
    const char *name;                       /* of the kernel; NULL: unknown */
    double duration_ns; /* mean over the launches; NaN or 0: unknown */
    /* by the gaps between kernels (store/gaps.h) */
    double alone_ratio;   /* of its time: no other kernel of the program ran; NaN: not known */
    double launch_gap_ns; /* mean, before a launch of a launch-bound program; NaN: not known, or it is not */
};

/* Marks, limits, waves, occupancies. */
int analysis_print(const struct analysis *a, struct occ_error *err);
/* From 100 % down to the measured elapsed occupancy; without elapsed cycles to the achieved one, without
 * counters to the expected one. With sources and help, unless nothing could have been measured. */
int analysis_print_waterfall(const struct analysis *a, struct occ_error *err);

/* Whether more warps would help. */
enum occ_bound analysis_bound(const struct analysis *a);
void analysis_print_bound(const struct analysis *a);
void analysis_json_bound(struct occ_json *json, const struct analysis *a);
/* Of the busiest unit, 0 ... 1; NaN: not measured. */
double analysis_throughput(const struct analysis *a);

/* Members of the open JSON object. */
void analysis_json(struct occ_json *json, const struct analysis *a);
void analysis_json_waterfall(struct occ_json *json, const struct analysis *a);
void analysis_json_stalls(struct occ_json *json, const struct occ_measurement *measured);
/* Opens the member "configuration", which the caller closes. */
void analysis_json_configuration(struct occ_json *json, const struct occ_launch *launch, bool has_grid);
/* null if `number` is `unknown`. */
void analysis_json_known(struct occ_json *json, const char *key, uint64_t number, uint64_t unknown);

/* True if the launch of warps stalled clearly more for `stalled` than for any of the model's limiters. */
bool analysis_stall_disagrees(const struct occ_result *result, const struct occ_measurement *measured,
                              enum occ_limit stalled);

/* "432x1x1" */
const char *analysis_dimensions(const uint32_t dimensions[3], char *buffer, size_t size);

/* ---- advice ---- */

/* A change of one parameter, its predicted time, and the share of the time by which the elapsed occupancy
 * grows, 1 - now / then. */
struct analysis_advice {
    struct occ_advice change;     /* elapsed_* now: measured where it was, and then in proportion to it */
    enum occ_value_source source; /* of elapsed_* now */
    double saves_most;            /* 0 ... 1, by the growth of occupancy alone; 0 without a grid */
    struct occ_prediction prediction;
    bool is_unlikely;      /* no promise, because the SM has enough warps */
    bool is_below_unknown; /* saves less than analysis_unknown_saves() */
    char knob[192];        /* what CUDA calls the change */
};
/* What CUDA calls the change. */
void analysis_knob(const struct analysis *a, const struct occ_advice *change, char *knob, size_t size);
/* In the order of occ_suggest(); changes below analysis_unknown_saves() last. */
size_t analysis_advise(const struct analysis *a, struct analysis_advice ret_advice[OCC_ADVICE_MAX]);
/* The saving, 0 ... 1, if the loss without a known cause and the error of the measurement vanished. Smaller
 * savings are not sure. 0: nothing was measured. `ret_lost`: that loss. */
double analysis_unknown_saves(const struct analysis *a, double *ret_lost);
/* Item `i` is the first with a smaller saving; analysis_unknown_text() is the line before it. */
bool analysis_begins_below_unknown(const struct analysis_advice *advice, size_t i);
const char *analysis_unknown_text(const struct analysis *a, char *text, size_t size);
/* "fewer registers per thread: 71 -> 64" */
const char *analysis_advice_change(const struct occ_advice *change, char *text, size_t size);
/* "predicted time x0.84 (80% interval x0.57 to x1.03)" */
const char *analysis_prediction_text(const struct occ_prediction *prediction, char *text, size_t size);
/* Why more warps may not help; "" no reason. True of the first: they do not. */
bool analysis_needs_no_advice(const struct analysis *a);
/* True for names as tensor-core kernels have them, by whole words. `name`: demangled; NULL: false. */
bool analysis_names_tensor_cores(const char *name);
const char *analysis_advice_note(const struct analysis *a, char *text, size_t size);
/* `total_ns`: of the launches; 0: unknown. */
void analysis_print_advice(const struct analysis *a, uint64_t total_ns);
void analysis_json_advice(struct occ_json *json, const struct analysis *a, uint64_t total_ns);

/* ---- shared by the two forms of the waterfall (waterfall_parts.c) ---- */

#define ANALYSIS_HELP_BYTES 128

struct analysis_part {
    double ratio;  /* NaN: unknown */
    double spread; /* it may be smaller by this */
    enum occ_value_source source;
    bool is_shown; /* false: nothing to report */
    bool is_within_error;
    char help[ANALYSIS_HELP_BYTES]; /* what may help, with values where the model has them; "" nothing */
};

struct analysis_waterfall {
    double used;           /* as in struct occ_waterfall */
    const char *used_text; /* its name */
    double spread;         /* `used` may be larger by this: the model's range */
    double uneven_grid;    /* as in struct occ_waterfall */
    bool is_of_active_cycles;
    enum occ_value_source source;
    struct analysis_part parts[OCC_PART_COUNT];
};
void analysis_explain(const struct analysis *a, struct analysis_waterfall *ret_waterfall);
