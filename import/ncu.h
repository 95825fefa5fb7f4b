/* Parts of the reader of Nsight Compute's results: ncu_report.c reads reports (.ncu-rep), ncu_csv.c the
 * output of `ncu --csv`, ncu_text.c the output of ncu without --csv, ncu_heading.c its headings, ncu_print.c
 * a printed value, ncu_streams.c and ncu_lines.c lines of ranks, and ncu_result.c makes a launch and its
 * measured values of a result. Internal to import/. One thread. */
#pragma once

#include "readers.h"

/* The metrics that are read: X(NAME, metric as a pattern of fnmatch(), label on the page "details" (NULL: not
 * on this page), unit). A metric with a unit is kept under ncu's name; metrics without a unit describe the
 * launch and its device. The first matching row counts. */
#define OCC_NCU_METRICS(X)                                                                                   \
    X(GRID_SIZE, "launch__grid_size", "Grid Size", NULL)                                                     \
    X(GRID_X, "launch__grid_dim_x", NULL, NULL)                                                              \
    X(GRID_Y, "launch__grid_dim_y", NULL, NULL)                                                              \
    X(GRID_Z, "launch__grid_dim_z", NULL, NULL)                                                              \
    X(BLOCK_SIZE, "launch__block_size", "Block Size", NULL)                                                  \
    X(BLOCK_X, "launch__block_dim_x", NULL, NULL)                                                            \
    X(BLOCK_Y, "launch__block_dim_y", NULL, NULL)                                                            \
    X(BLOCK_Z, "launch__block_dim_z", NULL, NULL)                                                            \
    X(CLUSTER_X, "launch__cluster_dim_x", NULL, NULL)                                                        \
    X(CLUSTER_Y, "launch__cluster_dim_y", NULL, NULL)                                                        \
    X(CLUSTER_Z, "launch__cluster_dim_z", NULL, NULL)                                                        \
    X(CLUSTERS, "launch__cluster_max_active", "Max Active Clusters", "")                                     \
    X(REGISTERS, "launch__registers_per_thread", "Registers Per Thread", NULL)                               \
    X(STATIC_SMEM, "launch__shared_mem_per_block_static", "Static Shared Memory Per Block", NULL)            \
    X(DYNAMIC_SMEM, "launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block", NULL)         \
    X(SMEM_CONFIG, "launch__shared_mem_config_size", "Shared Memory Configuration Size", NULL)               \
    X(BARRIERS, "launch__barrier_count", NULL, NULL)                                                         \
    X(DEVICE, "launch__device_id", NULL, NULL)                                                               \
    X(CONTEXT, "launch__context_id", NULL, NULL)                                                             \
    X(STREAM, "launch__stream_id", NULL, NULL)                                                               \
    X(DEV_NAME, "device__attribute_display_name", NULL, NULL)                                                \
    X(DEV_MAJOR, "device__attribute_compute_capability_major", NULL, NULL)                                   \
    X(DEV_MINOR, "device__attribute_compute_capability_minor", NULL, NULL)                                   \
    X(DEV_SMS, "device__attribute_multiprocessor_count", NULL, NULL)                                         \
    X(DEV_WARP, "device__attribute_warp_size", NULL, NULL)                                                   \
    X(DEV_BLOCK_THREADS, "device__attribute_max_threads_per_block", NULL, NULL)                              \
    X(DEV_SM_THREADS, "device__attribute_max_threads_per_multiprocessor", NULL, NULL)                        \
    X(DEV_SM_BLOCKS, "device__attribute_max_blocks_per_multiprocessor", NULL, NULL)                          \
    X(DEV_BLOCK_REGISTERS, "device__attribute_max_registers_per_block", NULL, NULL)                          \
    X(DEV_SM_REGISTERS, "device__attribute_max_registers_per_multiprocessor", NULL, NULL)                    \
    X(DEV_BLOCK_SMEM, "device__attribute_max_shared_memory_per_block", NULL, NULL)                           \
    X(DEV_BLOCK_SMEM_OPTIN, "device__attribute_max_shared_memory_per_block_optin", NULL, NULL)               \
    X(DEV_SM_SMEM, "device__attribute_max_shared_memory_per_multiprocessor", NULL, NULL)                     \
    X(DEV_SMEM_RESERVED, "device__attribute_reserved_shared_memory_per_block", NULL, NULL)                   \
    X(DEV_CLOCK_KHZ, "device__attribute_clock_rate", NULL, NULL)                                             \
    X(DEV_MEMORY, "device__attribute_total_memory", NULL, NULL)                                              \
    /* computed by ncu */                                                                                    \
    X(SMS, "launch__sm_count", "# SMs", "SMs")                                                               \
    X(GREEN, "launch__uses_green_context", "Uses Green Context", "")                                         \
    X(THEORETICAL_WARPS, "sm__maximum_warps_avg_per_active_cycle", "Theoretical Active Warps per SM", NULL)  \
    X(THEORETICAL, "sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy", "%")                   \
    X(LIMIT_BLOCKS, "launch__occupancy_limit_blocks", "Block Limit SM", "blocks")                            \
    X(LIMIT_REGISTERS, "launch__occupancy_limit_registers", "Block Limit Registers", "blocks")               \
    X(LIMIT_SMEM, "launch__occupancy_limit_shared_mem", "Block Limit Shared Mem", "blocks")                  \
    X(LIMIT_WARPS, "launch__occupancy_limit_warps", "Block Limit Warps", "blocks")                           \
    X(LIMIT_BARRIERS, "launch__occupancy_limit_barriers", "Block Limit Barriers", "blocks")                  \
    X(CLUSTER_OCCUPANCY, "launch__occupancy_cluster_*pct", NULL, "%")                                        \
    X(WAVES, "launch__waves_per_multiprocessor", "Waves Per SM", "waves")                                    \
    X(PASSES, "profiler__replayer_passes", NULL, "passes")                                                   \
    /* measured by ncu */                                                                                    \
    X(DURATION, "gpu__time_duration.sum", "Duration", "ns")                                                  \
    X(ACHIEVED, "sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy", "%")              \
    X(ACHIEVED_OF_SMS, "sm__warps_active.m*.pct_of_peak_sustained_active", NULL, "%")                        \
    X(WARPS, "sm__warps_active.avg.per_cycle_active", "Achieved Active Warps Per SM", "warps")               \
    X(SM_ACTIVE, "sm__cycles_active.avg", "SM Active Cycles", "cycles")                                      \
    X(SM_ACTIVE_MIN, "sm__cycles_active.min", NULL, "cycles")                                                \
    X(SM_ACTIVE_MAX, "sm__cycles_active.max", NULL, "cycles")                                                \
    X(SM_ELAPSED, "sm__cycles_elapsed.avg", NULL, "cycles")                                                  \
    X(GPC_ELAPSED, "gpc__cycles_elapsed.max", "Elapsed Cycles", "cycles")                                    \
    X(COMPUTE, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput", "%")           \
    X(MEMORY, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "Memory Throughput", "%")  \
    X(DRAM, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput", "%")                \
    X(L1, "l1tex__throughput.avg.pct_of_peak_sustained_active", "L1/TEX Cache Throughput", "%")              \
    X(L2, "lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 Cache Throughput", "%")                   \
    X(ISSUE_ACTIVE, "smsp__issue_active.avg.pct_of_peak_sustained_active", "One or More Eligible", "%")      \
    X(NO_ELIGIBLE, "smsp__issue_inst0.avg.pct_of_peak_sustained_active", "No Eligible", "%")                 \
    X(ISSUED, "smsp__issue_active.avg.per_cycle_active", "Issued Warp Per Scheduler", "warps")               \
    X(SCHEDULER_WARPS, "smsp__warps_active.avg.per_cycle_active", "Active Warps Per Scheduler", "warps")     \
    X(ELIGIBLE, "smsp__warps_eligible.avg.per_cycle_active", "Eligible Warps Per Scheduler", "warps")        \
    X(TENSOR, "sm__pipe_tensor*_cycles_active.avg.pct_of_peak_sustained_*", NULL, "%")                       \
    X(TENSOR_INST, "sm__inst_executed_pipe_tensor*.avg.pct_of_peak_sustained_*", NULL, "%")                  \
    X(LATENCY, "smsp__average_warp_latency_per_inst_issued.ratio", "Warp Cycles Per Issued Instruction",     \
      "cycles")                                                                                              \
    X(STALL, "smsp__average_warps_issue_stalled_*_per_issue_active.ratio", NULL, "cycles")                   \
    X(NOT_ISSUED, "smsp__pcsamp_warps_issue_stalled_*_not_issued", NULL, NULL)                               \
    X(SAMPLES, "smsp__pcsamp_warps_issue_stalled_*", NULL, "samples")

#define OCC_NCU_ENUMERATOR(name, metric, label, unit) OCC_NCU_##name,
enum occ_ncu_metric_row { OCC_NCU_METRICS(OCC_NCU_ENUMERATOR) OCC_NCU_COUNT }; /* COUNT: not read */

struct occ_ncu {
    struct occ_import_sink *sink;
    struct occ_error *err;
    struct occ_import_recording recording;
    uint32_t results; /* number of results read; results count from 1 */
    int64_t end_ns;   /* end of the previous launch */
    bool lacks_times, lacks_durations, lacks_achieved, rounds_sizes, computes_sms;

    /* the current result */
    double value[OCC_NCU_COUNT]; /* NaN: not collected */
    struct occ_import_measured measured;
    char gpu[256];
    int64_t created_s; /* since 1970; 0: unknown */
    size_t name_bytes;
    char name[16384]; /* kernel name, up to the length that the history keeps */
};

void occ_ncu_begin(struct occ_ncu *ncu, struct occ_import_sink *sink, struct occ_error *err);

/* The row by ncu's name of the metric or, with `is_label`, by the label on the page "details". */
enum occ_ncu_metric_row occ_ncu_find(const char *name, bool is_label);
/* The row with the longest label that begins the line, and the label's length. COUNT: none. */
enum occ_ncu_metric_row occ_ncu_find_label(const char *line, size_t *ret_bytes);
/* NULL: the metric is not kept. */
const char *occ_ncu_unit(enum occ_ncu_metric_row row);

/* Sets a value of the current result, in base units. `name`: ncu's name; NULL: the row's. OCC_E_FULL: too
 * many values. */
int occ_ncu_set(struct occ_ncu *ncu, enum occ_ncu_metric_row row, const char *name, double value);
/* A value as ncu prints it. */
struct occ_ncu_printed {
    const char *text; /* "4.22" */
    const char *unit; /* "Kbyte/block"; "": none */
    char point;       /* the decimal point's character */
};
/* Scales the value to base units. A size in bytes that was rounded for printing becomes the roundest number
 * that is printed the same. Ignores a value with another kind of unit than the row's. */
int occ_ncu_set_printed(struct occ_ncu *ncu, enum occ_ncu_metric_row row, const char *name,
                        const struct occ_ncu_printed *printed);
/* Sets the kernel's name, cut at its maximum. */
void occ_ncu_set_name(struct occ_ncu *ncu, const void *name, size_t n);

/* Passes the current result to the sink and begins the next one. OCC_E_INVALID: the result is from another
 * GPU than the user named. */
int occ_ncu_end_result(struct occ_ncu *ncu);
/* Discards the current result and begins the next one. */
void occ_ncu_drop_result(struct occ_ncu *ncu);
/* Call after the last result: describes the recording and its missing fields to the sink. */
void occ_ncu_end(struct occ_ncu *ncu);

/* The heading with which a result begins: "scale(float *) (768, 1, 1)x(256, 1, 1), Context 1, Stream 7,
 * Device 0, CC 9.0". */
struct occ_ncu_heading {
    const char *name; /* points into the line */
    size_t name_bytes;
    bool has_sizes, has_date;
    unsigned size[6]; /* grid, block */
    const char *facts;
};
/* `line` has no blanks at its ends. */
bool occ_ncu_parse_heading(const char *line, struct occ_ncu_heading *ret_heading);

/* The readers of both kinds of output, for the results in these streams (ncu_lines.h). */
struct occ_ncu_streams;
int occ_ncu_read_csv(FILE *file, const struct occ_ncu_streams *streams, struct occ_import_sink *sink,
                     struct occ_error *err);
int occ_ncu_read_text(FILE *file, const struct occ_ncu_streams *streams, struct occ_import_sink *sink,
                      struct occ_error *err);
