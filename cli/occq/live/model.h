/* The model of `occq live`, without a terminal: turns samples of the history into ordered rows with the last
 * values of each kernel. Pure apart from malloc; one thread. */
#pragma once

#include "cli/kernels/top.h"
#include "explain/layers.h"
#include "support/arena.h"
#include "support/cleanup.h"

enum { LIVE_LINE_BYTES = 512 };

/* Use of a GPU in a window; parts of the window. */
struct live_use {
    int64_t device;
    double busy;   /* kernels ran; above 1: the sum of durations, in which overlap is not known */
    double used;   /* the same without empty warp slots; NaN: unknown */
    double alone;  /* busy time / sum of durations */
    bool is_least; /* launches of its runs were lost: kernels may have run in the idle part */
};

/* Layers of the window's launches; n 0: no ranges. */
struct live_layers {
    struct occ_layers tree;
    struct occ_top rows; /* owners of the tree's texts */
    struct occ_arena texts;
};

/* Answers of the history at one time about the launches of its last seconds. */
struct live_sample {
    int64_t at_ns, window_ns;
    int64_t complete_ns;  /* end of the window: launches that began until then are in the history */
    int64_t cpu_ns;       /* CPU time of the queries */
    struct occ_error err; /* code 0: none; else the sample has no rows */
    struct occ_top kernels, gpus, causes; /* by waste, largest first; GPUs by number */
    struct live_use *uses;                /* as many as GPUs, in any order */
    struct live_layers layers;
    struct occ_arena names; /* of kernels */
    struct top_line *lines; /* of kernels */
    struct top_sums sums;   /* sums of `lines` */
    int64_t newest_ns;      /* last start of all launches; 0: no launches */
    int64_t missing_run;    /* run of the filter, if it does not exist; else 0 */
    int64_t runs;           /* runs in progress; their losses and overhead: */
    int64_t lost;
    double overhead;              /* CPU time of the helper threads / of the programs; NaN: unknown */
    char daemon[LIVE_LINE_BYTES]; /* see live_ask_daemon() */
};
void live_sample_free(struct live_sample *sample);
OCC_CLEANUP(live_sample, live_sample_free)

enum { LIVE_VALUES = 10, LIVE_FILTER_BYTES = 64 };

/* A kernel on a device, and the waste of its last samples, newest last. */
struct live_kernel {
    int64_t id, device;
    double values[LIVE_VALUES];
    size_t last_row; /* row in the last order; SIZE_MAX: none */
};

/* A row of the table. */
struct live_item {
    struct top_line *line;
    struct live_kernel *kernel;
    struct cli_value value; /* sort key */
};

/* The user's choices, and the resulting rows. */
struct live_model {
    const struct cli_column *order; /* of top_columns; numbers: largest first; texts: ascending */
    bool inverted;
    char filter[LIVE_FILTER_BYTES];    /* part of a kernel's name, ignoring case; "": all kernels */
    int64_t selected, selected_device; /* ids of the selected kernel; 0: the first row */
    struct live_kernel *kernels;       /* ordered by id and device */
    size_t n_kernels;
    struct live_item *items; /* rows that match the filter, in order */
    size_t n;
    size_t at, first; /* index of the selected row (or its last index), of the first visible row */
};
void live_model_release(struct live_model *model);

/* Appends the values of a new sample and drops kernels with zeros only. Returns false without memory; the
 * model is then unchanged. */
bool live_record(struct live_model *model, const struct occ_top *kernels);

/* Makes the rows of a recorded sample, which must outlive them. `held`: known rows keep their order, and new
 * rows follow. Returns false without memory; there are then no rows. */
bool live_arrange(struct live_model *model, const struct live_sample *sample, bool held);

/* Moves the selection down by `rows`. */
void live_move(struct live_model *model, int64_t rows);
/* Scrolls so that the selected row is among the `visible` rows from `first` on. */
void live_scroll(struct live_model *model, size_t visible);

/* ---- the window ---- */

#define LIVE_LATE_NS INT64_C(3000000000)
/* Returns the end of the window in which the launches are complete. A launch is in the history 3 s after its
 * end: up to 2 s in CUPTI's buffers (at 20 launches per second and more), up to 1 s until the commit. Each
 * run in progress is complete up to its newest launch. `behind_ns`: the newest launch of the run in progress
 * where it is oldest; 0: no run is in progress. */
int64_t live_complete_ns(const struct live_sample *sample, int64_t behind_ns);

/* ---- texts ---- */

/* Writes the head line: window, age, runs, losses, overhead. */
void live_head_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES]);
/* Writes the line of GPU `i`, with a bar: used, busy, idle. Safe to print. `ascii`: without blocks. */
void live_gpu_text(const struct live_sample *sample, size_t i, bool ascii, char line[LIVE_LINE_BYTES]);
/* Writes the main causes in the sample's order, largest loss first. */
void live_causes_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES]);
/* Writes the owners of the kernels by time; "": all kernels have the same owner. */
void live_owners_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES]);
/* Writes the innermost layers by time; "": no launch has a range. */
void live_layers_text(const struct live_sample *sample, bool ascii, char line[LIVE_LINE_BYTES]);
/* Returns the use of GPU `i`; NULL: unknown. */
const struct live_use *live_use_of(const struct live_sample *sample, size_t i);
/* Sets the share of the GPUs' time in the window on all lines. */
void live_set_shares(struct live_sample *sample);
/* Writes the reason for an empty table; "": the table has rows. */
void live_nothing_text(const struct live_sample *sample, const struct live_model *model,
                       char line[LIVE_LINE_BYTES]);
