/* Prints the model's result for one launch configuration in text and JSON: limits, waves, occupancies and the
 * parts of lost occupancy, with hardware counters' values if there are any. Needs no history. One thread
 * (stdio). */
#pragma once

#include <stdbool.h>

#include "cli/json.h"
#include "names/owners.h"
#include "occupancy/advice.h"
#include "occupancy/occupancy.h"
#include "occupancy/suggest.h"
#include "occupancy/waterfall.h"
#include "support/error.h"

/* The data to print; `result` is the result of occ_analyse() for `device` and `launch`. */
struct analysis {
    const struct occ_device *device;
    const struct occ_launch *launch;
    const struct occ_result *result;
    const struct occ_measurement *measured; /* NULL: no launches to measure */
    bool has_grid;                          /* false: no grid is given, `result` is for one full wave */
    const char *name;                       /* the kernel's name; NULL: unknown */
    double duration_ns;                     /* mean over the launches; NaN or 0: unknown */
    int64_t spill_bytes;                    /* per thread, by the compiler's report; -1: unknown */
    uint32_t local_bytes;                   /* per thread: spills, arrays, stack; 0: none, or unknown */
    /* from the gaps between kernels (store/gaps.h) */
    double alone_ratio;   /* part of the kernel's time without another kernel of the program; NaN: unknown */
    double launch_gap_ns; /* mean gap before a launch; NaN: unknown, or too small for advice */
    uint32_t independent; /* independent instructions of a warp; 0: unknown */
};

/* Prints marks, limits, waves and occupancies. */
int analysis_print(const struct analysis *a, struct occ_error *err);
/* Prints the used occupancy and the lost parts, which add up to 100 %. The used occupancy is the measured
 * elapsed occupancy, without elapsed cycles the achieved occupancy, without counters the expected occupancy.
 * Prints sources and help unless `measured` is NULL. */
int analysis_print_waterfall(const struct analysis *a, struct occ_error *err);

/* Reports if more warps would help: they help latency-bound kernels, not throughput-bound kernels. */
enum occ_bound analysis_bound(const struct analysis *a);
void analysis_print_bound(const struct analysis *a);
void analysis_json_bound(struct occ_json *json, const struct analysis *a);
/* Returns the measured throughput of the busiest unit, 0 ... 1; NaN: not measured. */
double analysis_throughput(const struct analysis *a);
/* Prints a line about the warps that hide latency; nothing if no latency is known, or if more warps do not
 * help the kernel. */
void analysis_print_latency(const struct analysis *a, const char *indent);
void analysis_json_latency(struct occ_json *json, const struct analysis *a);

/* Write members of the open JSON object. */
void analysis_json(struct occ_json *json, const struct analysis *a);
void analysis_json_waterfall(struct occ_json *json, const struct analysis *a);
void analysis_json_stalls(struct occ_json *json, const struct occ_measurement *measured);
/* Opens the member "configuration"; the caller closes it. */
void analysis_json_configuration(struct occ_json *json, const struct occ_launch *launch, bool has_grid);
/* Writes null if `number` is `unknown`. */
void analysis_json_known(struct occ_json *json, const char *key, uint64_t number, uint64_t unknown);

/* True if the launch of warps stalled clearly more for `stalled` than for any of the model's limiters. */
bool analysis_stall_disagrees(const struct occ_result *result, const struct occ_measurement *measured,
                              enum occ_limit stalled);

/* Formats dimensions: "432x1x1". */
const char *analysis_dimensions(const uint32_t dimensions[3], char *buffer, size_t size);

/* ---- advice ---- */

/* A change of one parameter with its predicted time. The maximum saving is the share of time by which the
 * elapsed occupancy grows, 1 - now / then. */
struct analysis_advice {
    struct occ_advice change;     /* elapsed_*_now: measured if possible; elapsed_*_then in proportion */
    enum occ_value_source source; /* source of elapsed_*_now */
    double saves_most;            /* 0 ... 1, an upper bound; NaN without a grid, or without more occupancy */
    struct occ_prediction prediction;
    bool is_unlikely;      /* no promise: the SM has enough warps */
    bool is_below_unknown; /* saves less than analysis_unknown_saves() */
    bool is_indirect;      /* not the kernel's code, but a caller changes it: a library's shapes, algorithm */
    char knob[256];        /* the change in the owner's terms */
};
/* Describes the change as the kernel's owner makes it: in CUDA's terms, or by parameters of Triton, arguments
 * of a library call. */
void analysis_knob(const struct analysis *a, enum occ_owner owner, const struct occ_advice *change,
                   char *knob, size_t size);
/* Lists the changes that the kernel's owner can make, in the order of occ_suggest(), but changes below
 * analysis_unknown_saves() last. */
size_t analysis_advise(const struct analysis *a, struct analysis_advice ret_advice[OCC_ADVICE_MAX]);
/* Predicts the time of another launch of the same kernel. False: the launch is impossible. */
bool analysis_predict(const struct analysis *a, const struct occ_launch *after,
                      struct occ_prediction *ret_prediction);
/* Returns the saving, 0 ... 1, if the loss without a known cause and the error of the measurement vanished.
 * Smaller savings are not certain. 0: nothing was measured. `ret_lost`: the loss without a known cause. */
double analysis_unknown_saves(const struct analysis *a, double *ret_lost);
/* True if item `i` is the first with a smaller saving; analysis_unknown_text() is the line above it. */
bool analysis_begins_below_unknown(const struct analysis_advice *advice, size_t i);
const char *analysis_unknown_text(const struct analysis *a, char *text, size_t size);
/* Formats "fewer registers per thread: 71 -> 64". */
const char *analysis_advice_change(const struct occ_advice *change, char *text, size_t size);
/* Formats "predicted time x0.84 (80% interval x0.57 to x1.03)". */
const char *analysis_prediction_text(const struct occ_prediction *prediction, char *text, size_t size);
/* Formats the prediction of an item with a promise, "measure it" and the reason for other items. */
const char *analysis_expectation_text(const struct analysis_advice *item, char *text, size_t size);
/* The kernel's owner and traits by its name. */
struct occ_kernel_owner analysis_owner(const struct analysis *a);
/* True if more warps do not help: the kernel is throughput-bound, or a communication kernel by its name. */
bool analysis_needs_no_advice(const struct analysis *a);
/* Formats the reason why more warps may not help; "": no reason. */
const char *analysis_advice_note(const struct analysis *a, char *text, size_t size);
/* `total_ns`: total duration of the launches; 0: unknown. */
void analysis_print_advice(const struct analysis *a, uint64_t total_ns);
void analysis_json_advice(struct occ_json *json, const struct analysis *a, uint64_t total_ns);

/* ---- shared by the two forms of the waterfall (analysis_waterfall.c) ---- */

#define ANALYSIS_HELP_BYTES 128

struct analysis_part {
    double ratio;  /* NaN: unknown */
    double spread; /* `ratio` may be smaller by this */
    enum occ_value_source source;
    bool is_shown; /* false: nothing to report */
    bool is_within_error;
    char help[ANALYSIS_HELP_BYTES]; /* possible change, with the model's values if any; "": none */
};

struct analysis_waterfall {
    double used;           /* as in struct occ_waterfall */
    const char *used_text; /* name of `used` */
    double spread;         /* `used` may be larger by this: the model's range */
    double uneven_grid;    /* as in struct occ_waterfall */
    bool is_of_active_cycles;
    enum occ_value_source source;
    struct analysis_part parts[OCC_PART_COUNT];
};
void analysis_explain(const struct analysis *a, struct analysis_waterfall *ret_waterfall);
