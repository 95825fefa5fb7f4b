/* The answer about two compared sides: rows with the changes in words, sums, JSON. One thread (stdio). */
#pragma once

#include <stdio.h>

#include "cli/json.h"
#include "compare/levels.h"
#include "diff_rows.h"
#include "gpu_time.h"
#include "layers.h"
#include "store/outcomes.h"
#include "texts.h"

/* Parameters of launch configurations. X(key, word, value of const struct occ_config_row *row) */
#define DIFF_FIELDS(X)                                                                                       \
    X(registers_per_thread, "registers", row->launch.registers_per_thread)                                   \
    X(block_threads, "block", diff_product(row->launch.block))                                               \
    X(grid_blocks, "grid", diff_product(row->launch.grid))                                                   \
    X(cluster_blocks, "cluster", diff_product(row->launch.cluster))                                          \
    X(static_shared_bytes, "static shared memory (bytes)", row->launch.static_smem_bytes)                    \
    X(dynamic_shared_bytes, "dynamic shared memory (bytes)", row->launch.dynamic_smem_bytes)                 \
    X(shared_config_bytes, "carve-out (bytes)", row->launch.smem_config_bytes)                               \
    X(local_bytes_per_thread, "local memory (bytes)", row->local_bytes_per_thread)
static inline double diff_product(const uint32_t size[3])
{
    return (double)(size[0] ? size[0] : 1) * (size[1] ? size[1] : 1) * (size[2] ? size[2] : 1);
}

/* A side's launches on a device. */
struct diff_device {
    int64_t id;
    uint64_t launches;
};
enum { DIFF_DEVICES_MAX = 64 };

/* Facts about a side: its GPUs, launches and losses. */
struct diff_facts {
    char title[160];                              /* "run 3 before" */
    const char *device;                           /* the GPU model, the same for all devices of a side */
    struct diff_device devices[DIFF_DEVICES_MAX]; /* sorted by id */
    uint32_t n_devices;                           /* 0: from a warehouse, which has only models */
    char device_ids[64];                          /* "1, 2" */
    bool is_of_other_history; /* device numbers are not comparable with the other side's */
    uint32_t sm_count;
    bool simulated, serialised; /* serialised: measured with occtrace --exact or by ncu */
    uint64_t launches, lost;
    uint32_t runs;        /* set by diff_answer(); 0: not known, the side's minutes come from a warehouse */
    bool is_loss_unknown; /* the loss of at least one run is unknown */
};
/* Returns the reason why the sides are not comparable; NULL: they are comparable. */
const char *diff_incomparable(const struct diff_facts *a, const struct diff_facts *b);

/* Counts launches on a device. Ignores devices after the first DIFF_DEVICES_MAX. Ids below 1 are models and
 * are ignored. */
void diff_add_device(struct diff_facts *facts, int64_t id, uint64_t launches);
/* Writes facts->device_ids. */
void diff_list_devices(struct diff_facts *facts);
/* Returns a sentence if a difference may come from the GPUs although their model is the same: the sides ran
 * on different GPUs, or spread their launches differently over the same GPUs; "": neither. Returns `text`. */
enum { DIFF_NOTE_BYTES = 320 };
const char *diff_devices_note(const struct diff_facts *a, const struct diff_facts *b,
                              char text[DIFF_NOTE_BYTES]);

/* Names in the driver of the kernels that --kernel and --exclude mean on both sides, where their texts mean
 * others in the other history; NULL: the texts count. */
struct diff_aligned {
    const char *kernel, *exclude;
};

struct diff_report {
    const struct diff *diff;
    struct diff_facts side[DIFF_SIDES];
    double floor, min_share;
    size_t shown;              /* maximum number of printed rows */
    bool all_rows;             /* also rows that do not matter; see diff_row_matters() */
    bool is_markdown;          /* names in sentences are code, so that none is a link, a mention or a tag */
    struct diff_levels levels; /* set by diff_answer() */
    struct diff_layers layers; /* set by diff_answer() */
    struct sides_gpu_time gpu_time; /* set by diff_answer() */
    const char *incomparable;       /* reason, if the comparison was forced; NULL: comparable */
    struct diff_aligned aligned;    /* set by diff_answer() */
};

/* Writes the meaning of diff_report.aligned, without a stop at the end; "": nothing. Returns `text`. */
enum { DIFF_KERNELS_BYTES = 480 };
const char *diff_kernels_note(const struct diff_report *report, char text[DIFF_KERNELS_BYTES]);

static inline void diff_report_done(struct diff_report *report)
{
    diff_levels_free(&report->levels);
    diff_layers_free(&report->layers);
    sides_gpu_time_free(&report->gpu_time);
}

/* Defaults of occq diff. */
#define DIFF_FLOOR     0.05
#define DIFF_MIN_SHARE 0.01

/* A row. Texts are safe to print. */
struct diff_line {
    const struct diff_pair *pair;
    const char *verdict, *verdict_by[DIFF_METRIC_COUNT], *match, *mangled[DIFF_SIDES];
    char kernel[512];   /* "matmul", "matmul -> gemm", "sum + mul -> fused" */
    char range[512];    /* "model/linear", "model/linear -> model/fused"; "": unknown, or several */
    char changes[1024]; /* "registers 41 -> 43, block 256 -> 128, theoretical 50.0% -> 37.5%" */
    char reason[160];   /* why the verdict differs from the kernel's, or there is none; "": no such case */
    int64_t config[DIFF_SIDES]; /* id of its launch configuration; 0: several, or none */
    const char *basis;    /* the change is per "launch" or per "work"; NULL: launches are not comparable */
    char advice[320];     /* prediction of A's advice and the result; "": B follows no advice */
    double advised_saves; /* maximum saving, a part of a launch's time; NaN: B follows no advice */
    struct occ_advice_outcome outcome; /* outcome of A's advice; an empty `change`: none to keep */
    uint64_t launches[DIFF_SIDES], total_ns[DIFF_SIDES];
    double mean_ns[DIFF_SIDES], waste[DIFF_SIDES], value[DIFF_VALUE_COUNT][DIFF_SIDES];
    enum diff_verdict time_verdict;
    bool matters;                       /* is printed without --rows */
    double share, change, low, high, q; /* change: b / a - 1 by basis, with its 95 % interval */
};
extern const struct cli_column diff_columns[];
/* Returns B's launch configuration, A's of a kernel that is gone; 0: a side has several. Rows of one kernel
 * in one layer may differ in the configuration alone. */
static inline int64_t diff_config_of(const struct diff_line *line)
{
    const uint32_t *n = line->pair->configs;
    return n[DIFF_A] > 1 || n[DIFF_B] > 1 ? 0 : line->config[n[DIFF_B] ? DIFF_B : DIFF_A];
}

/* Makes an array of report->diff->n_pairs rows, largest change of total time first; the caller frees it.
 * NULL: no memory. */
struct diff_line *diff_make_lines(const struct diff_report *report);

/* Writes "matmul", "matmul -> gemm" or "sum + mul -> fused"; is_said: words in place of long names. Safe to
 * print. */
void diff_name_kernels(const struct diff *diff, const struct diff_pair *pair, bool is_said, char *buffer,
                       size_t size);

/* Returns the words after the row's change: " for the same work", or "" for a launch. */
const char *diff_work_words(const struct diff_line *line);

/* Formats "A: run 3 before; 42 launches, 1.2 ms; NVIDIA A100". Safe to print. */
#define DIFF_SIDE_BYTES 2048
const char *diff_side_text(const struct diff_report *report, uint32_t side, char line[DIFF_SIDE_BYTES]);
/* Returns a sentence about the replicates of the verdicts: runs, minutes or blocks of launches. */
const char *diff_caveat(const struct diff *diff);
/* Prints times, occupancy and waste of both sides; of diff_sum_up_runs() they are per run. */
void diff_print_sums(FILE *out, const struct diff_summary *summary);
/* Prints the line "1 worse, 3 better, ..." of kinds with rows; nothing without rows of a change. */
void diff_print_counts(FILE *out, const struct diff_summary *summary);
/* Prints sums and counts of a report. */
void diff_print_summary(FILE *out, const struct diff_report *report);
/* Returns the next row to print after `line`, the first after NULL; NULL: there is none. *ret_printed counts
 * the rows. */
const struct diff_line *diff_next_line(const struct diff_report *report, const struct diff_line *lines,
                                       const struct diff_line *line, size_t *ret_printed);
/* Prints "20 of 100 rows, ..." or how to see rows after an empty line; nothing if all rows are printed. */
void diff_print_footer(FILE *out, const struct diff_report *report, size_t printed);

/* Writes members of the open object for `occq diff --json`. */
void diff_json(struct occ_json *json, const struct diff_report *report, const struct diff_line *lines);
