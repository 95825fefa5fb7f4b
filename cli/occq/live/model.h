/* What `occq live` shows, without a terminal: samples of the history become rows in an order, with the last
 * values of each kernel. Pure apart from malloc; one thread. */
#pragma once

#include "cli/kernels/top.h"
#include "support/arena.h"
#include "support/cleanup.h"

enum { LIVE_LINE_BYTES = 512 };

/* What the history said at one moment of the launches of its last seconds. */
struct live_sample {
    int64_t at_ns, window_ns;             /* launches that began in the window before `at_ns`, or later */
    int64_t cpu_ns;                       /* what asking took */
    struct occ_error err;                 /* code 0: none; else there is nothing but this, for people */
    struct occ_top kernels, gpus, causes; /* the most waste first; GPUs by number */
    struct occ_arena names;               /* of kernels */
    struct top_line *lines;               /* of kernels */
    struct top_sums sums;                 /* of their lines */
    int64_t newest_ns;                    /* the last start of all; 0: the history has no launches */
    int64_t missing_run;                  /* that the filter asks for; 0: it is there */
    int64_t runs;                         /* in progress; of them: */
    int64_t lost;
    double overhead;              /* CPU time of our threads / of the programs; NaN: not known */
    char daemon[LIVE_LINE_BYTES]; /* see live_ask_daemon() */
};
void live_sample_free(struct live_sample *sample);
OCC_CLEANUP(live_sample, live_sample_free)

enum { LIVE_VALUES = 10, LIVE_FILTER_BYTES = 64 };

/* A kernel on a device, and the waste of its last samples, the newest last. */
struct live_kernel {
    int64_t id, device;
    double values[LIVE_VALUES];
    size_t place; /* in the last order; SIZE_MAX: none */
};

/* A row. */
struct live_item {
    struct top_line *line;
    struct live_kernel *kernel;
    struct cli_value value; /* what rows are ordered by */
};

/* What people chose, and what follows. */
struct live_model {
    const struct cli_column *order; /* of top_columns: numbers largest first, texts from a to z */
    bool inverted;
    char filter[LIVE_FILTER_BYTES];    /* part of the name, in any case; "": any */
    int64_t selected, selected_device; /* of the kernel; 0: the first row */
    struct live_kernel *kernels;       /* by id and device */
    size_t n_kernels;
    struct live_item *items; /* of those that match the filter, in their order */
    size_t n;
    size_t at, first; /* place of the selected row or where it was; the first on the screen */
};
void live_model_release(struct live_model *model);

/* The values of a new sample. Kernels whose last values are all 0 go. false: no memory, nothing changed. */
bool live_record(struct live_model *model, const struct occ_top *kernels);

/* Rows of a recorded sample, which has to stay. `held`: those that had a place keep their order, and new ones
 * follow. false: no memory, there are no rows. */
bool live_arrange(struct live_model *model, const struct live_sample *sample, bool held);

/* Selects the row so many rows below. */
void live_move(struct live_model *model, int64_t rows);
/* So that the selected row is among the `visible` rows from `first` on. */
void live_scroll(struct live_model *model, size_t visible);

/* ---- texts ---- */

/* What is true of the sample as a whole: window, age, runs, losses, overhead. */
void live_head_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES]);
/* A GPU; safe to print. */
void live_gpu_text(const struct live_sample *sample, size_t i, char line[LIVE_LINE_BYTES]);
/* Main causes, in the sample's order: the most waste first. */
void live_causes_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES]);
/* Why there are no rows; "": there are some. */
void live_nothing_text(const struct live_sample *sample, const struct live_model *model,
                       char line[LIVE_LINE_BYTES]);
