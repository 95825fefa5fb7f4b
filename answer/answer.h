/*
 * Answers questions about a history with the structs of explain/. All commands and agent tools that report
 * GPU time call these functions, so that their numbers agree. A reader of another source (a warehouse) can
 * fill the same structs.
 *
 * The time for an overview does not grow with the number of launches: sums of durations are exact and come
 * from rollups; the overlap of kernels and the waits for launches are estimated from at most
 * OCC_GPU_ESTIMATE_LAUNCHES launches (store/gaps.h).
 *
 * One thread at a time, like the store. Errors: support/error.h.
 */
#pragma once

#include <stdint.h>

#include "explain/verdict.h"
#include "store/store.h"
#include "support/arena.h"
#include "support/json.h"
#include "support/map.h"

/* Texts and data of a kernel on a device. Item i describes row i of the totals' kernels. A small kernel
 * beyond the limit for names has no texts: NULL, and the label "". */
struct occ_answer_kernel {
    const char *name, *demangled; /* short and full name */
    const char *label;            /* family and tile in words: "GEMM 128x64"; "": no rule knows the kernel */
    size_t row; /* the kernel's row in the answer of occ_store_top(); its part without a model has the same */
    int64_t device;
    const char *device_name;
    struct occ_dominant_config config; /* the configuration with the longest time; changes are for it */
    uint64_t total_ns;                 /* durations of all configurations */
};

/* Uses of the GPU time, and the changes that save most of it. All texts and arrays belong to the overview. */
struct occ_overview {
    /* a row for each device, and for each kernel and device; a kernel's time in configurations without a
     * model has a row of its own after these */
    struct occ_totals totals;
    const struct occ_answer_kernel *kernels;
    const double *duration_s;           /* sum of durations on each of totals.gpus */
    const double *communication_s;      /* the part of communication kernels in duration_s */
    struct occ_gpu_time time;           /* all GPUs together; window_s 0: unknown */
    const struct occ_finding *findings; /* the largest predicted saving first */
    size_t n_findings;
    uint64_t launches;
    double kernel_s;   /* sum of durations, with communication */
    double read_ratio; /* share of the launches read for busy time and waits; NaN: no launches */
    /* True if no launch of any GPU could be read, or if programs shared a GPU at the same time: the overlap
     * of kernels is unknown, and busy time is an upper bound. */
    bool is_busy_most;
    /* Launches of the runs that were lost, at any time. Their times are not known: busy time is a lower
     * bound, and kernels may have run in waits and pauses. */
    uint64_t lost;
    double lost_ratio;     /* `lost` / recorded launches of the same runs; 0: none was lost */
    double measured_ratio; /* share of kernel_s with measured occupancy */
    bool is_simulated;
    void *memory;
};

/* Makes an overview of the filter's runs, time and GPU. Ignores the filter's conditions on kernels, ranges
 * and streams, since GPU time is shared by all kernels. Without launches the overview has `launches` 0. Free
 * it with occ_overview_free(). */
int occ_overview_ask(struct occ_store *store, const struct occ_filter *filter,
                     struct occ_overview *ret_overview, struct occ_error *err);
/* Makes an overview from `kernels`, the answer of occ_store_top() by kernel to the filter of
 * occ_overview_filter(). The caller may free `kernels` before the overview. */
int occ_overview_make(struct occ_store *store, const struct occ_filter *filter, const struct occ_top *kernels,
                      struct occ_overview *ret_overview, struct occ_error *err);
/* The same without findings, which takes less time. */
int occ_overview_make_times(struct occ_store *store, const struct occ_filter *filter,
                            const struct occ_top *kernels, struct occ_overview *ret_overview,
                            struct occ_error *err);
/* Makes an overview of `kernels` alone, without GPU time and findings: for answers about kernels where GPU
 * time is not known. */
int occ_overview_make_kernels(struct occ_store *store, const struct occ_filter *filter,
                              const struct occ_top *kernels, struct occ_overview *ret_overview,
                              struct occ_error *err);
void occ_overview_free(struct occ_overview *overview);

/* Returns the filter without its conditions on kernels, ranges and streams. */
struct occ_filter occ_overview_filter(const struct occ_filter *filter);
/* Returns true if the filter has conditions on kernels, ranges or streams. */
bool occ_overview_is_partial(const struct occ_filter *filter);

/* Shares of the GPU time for people, as integers that add up to `steps` (100: percent). */
struct occ_gpu_steps {
    unsigned launch_wait, pause, communication, copies, used, unknown, lost[OCC_PART_COUNT];
};
struct occ_gpu_steps occ_overview_steps(const struct occ_gpu_time *time, unsigned steps);

/* The kernels of a sum of durations. */
enum occ_share_of { OCC_SHARE_OF_ALL, OCC_SHARE_OF_COMMUNICATION, OCC_SHARE_OF_OTHERS };
/* Converts `total_ns`, a sum of kernel durations on a device (0: on all), to a share of the GPU time. Overlap
 * of kernels is deducted in proportion to durations. Time in which communication overlaps other kernels
 * belongs to the others, as in `time`: the shares of all communication kernels add up to
 * time.communication. Returns NaN if the GPU time is unknown. */
double occ_overview_share(const struct occ_overview *overview, enum occ_share_of of, int64_t device,
                          double total_ns);
/* Returns the kind of row `kernel`. */
enum occ_share_of occ_overview_share_of(const struct occ_overview *overview, size_t kernel);

/* A kernel that loses GPU time, on all its devices. */
struct occ_worst_kernel {
    size_t kernel; /* index of its row with the largest loss */
    double share;  /* share of the GPU time */
    double used;   /* part of its warp slots that held a warp */
};
/* Finds at most `max` kernels with a loss of at least OCC_FINDING_MIN, the largest loss first. None if the
 * GPU time is unknown. Returns 0 or OCC_E_NO_MEMORY. */
int occ_overview_worst(const struct occ_overview *overview, size_t max, struct occ_worst_kernel *ret_worst,
                       size_t *ret_n);
/* Describes the cause (enum occ_part; OCC_PART_COUNT: none) of a kernel's loss by its configuration. */
struct occ_why occ_why_of(const struct occ_dominant_config *config, unsigned cause, bool is_communication);
/* Formats the largest cause of row `kernel` of the totals in words, like occ_why_text(). Returns `text`. */
const char *occ_overview_why(const struct occ_overview *overview, size_t kernel, char text[OCC_WHY_BYTES]);

/* ---- one kernel ---- */

/* The answer about a kernel on a device: its finding, also if the loss is too small for the overview. It has
 * no pointer into the judge or the overview. */
struct occ_kernel_answer {
    struct occ_finding finding; /* finding.kernel: index in the overview's totals */
    struct occ_kernel_owner owner;
    double used;        /* elapsed occupancy: measured, else the low end of the expected range */
    double cause_ratio; /* part of the occupancy that finding.cause takes */
    double rest_ratio;  /* part of the kernel's time in configurations without a predicted saving */
    int64_t config;     /* the launch configuration with most time, for which the saving is predicted */
    double gpu_share;   /* share of its durations in the GPU time, as in `occq top`; NaN: not known */
    struct occ_why why;
    bool is_known;       /* false: the model rejects all launch configurations; `finding` has no cause */
    bool is_of_gpu_time; /* true: shares are of the GPU time; false: of the kernel's own time */
};

/* Judges kernels of an overview, which outlives the judge. */
struct occ_kernel_judge {
    const struct occ_overview *overview;
    double *shares;      /* from occ_share_kernels() */
    struct occ_map rows; /* kernel and device -> row of the totals */
    struct occ_arena memory;
};
/* Prepares a judge; occ_judge_close() frees its memory. Returns 0 or OCC_E_NO_MEMORY; then nothing is to be
 * closed, but a close does no harm. */
int occ_judge_open(const struct occ_overview *overview, struct occ_kernel_judge *ret_judge,
                   struct occ_error *err);
/* Judges a kernel on a device. `dominant`: its configuration with the longest time, read with the filter of
 * the overview. The answers for all devices of a kernel add up to the overview's findings about the kernel,
 * but the overview predicts savings only for kernels with large losses. OCC_E_NOT_FOUND: the overview does
 * not have the kernel on this device. */
int occ_judge_kernel(struct occ_kernel_judge *judge, const struct occ_config_row *dominant,
                     struct occ_kernel_answer *ret_answer, struct occ_error *err);
void occ_judge_close(struct occ_kernel_judge *judge);

/* Formats the saving of the answer's change: "about 4.9% of the GPU time: predicted time x0.85 (80% interval
 * ...); 9 published cases: 8 faster, 1 slower"; "measure it: ..." if the sign of the effect is not known.
 * Returns `text`. */
const char *occ_saving_text(const struct occ_kernel_answer *answer, char *text, size_t size);
/* Writes the object `key` about the answer into the open object, like an item of "findings". */
void occ_kernel_answer_json(struct occ_json *json, const char *key, const struct occ_kernel_answer *answer);

/* Nsight Compute's metrics of busy units, in percent. */
#define OCC_NCU_ISSUE   "smsp__issue_active.avg.pct_of_peak_sustained_active"
#define OCC_NCU_DRAM    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
#define OCC_NCU_COMPUTE "sm__throughput.avg.pct_of_peak_sustained_elapsed"
#define OCC_NCU_MEMORY  "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
/* Returns the utilization of units from Nsight Compute's reports; all NaN without a report. */
struct occ_hw_utilization occ_ncu_utilization(const struct occ_ncu_values *values);

/* ---- for people and programs ---- */

/* Formats the source of a finding's occupancy: "modelled", "simulated", "measured in 12 % of its time".
 * Returns `text`. */
const char *occ_confidence_text(const struct occ_finding *finding, char *text, size_t size);

/* Returns the text of the unknown part of the GPU time. */
const char *occ_overview_unknown_text(const struct occ_overview *overview);

/* Returns the text of a finding about the GPU time; of waits and pauses with the words that they may contain
 * lost launches. */
const char *occ_overview_finding_text(const struct occ_overview *overview, enum occ_finding_kind kind);

/* Formats the overview for people: busy time of the GPUs, parts of the GPU time (100 % together), the largest
 * loss, and the source of the occupancy; without GPU time only the first and the last line. Returns the
 * number of lines; 0: no launches. Names of GPUs are not sanitised. */
enum { OCC_OVERVIEW_LINES = 4, OCC_OVERVIEW_LINE_BYTES = 256 };
size_t occ_overview_text(const struct occ_overview *overview,
                         char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES]);

/* Writes the member `key` about the GPU time (null: unknown) into the open object. */
void occ_gpu_time_json(struct occ_json *json, const char *key, const struct occ_overview *overview);
/* Writes the members "gpu_time" (null: unknown) and "findings" (at most `max`) into the open object. */
void occ_overview_json(struct occ_json *json, const struct occ_overview *overview, size_t max);
