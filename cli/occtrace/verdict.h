/* The verdict in the summary: the uses of the GPU time in the runs of this call, and the worst kernels. One
 * thread. */
#pragma once

#include "answer/answer.h"
#include "store/store.h"

/* Prints a line on stderr, sanitised, wrapped at the width of the terminal, or at 80 columns. */
void summary_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Facts about the runs for the verdict. */
struct verdict_runs {
    const char *session;
    int64_t run;            /* for hints; 0: several runs */
    const char *db;         /* the history as printed in hints; "": occq's default */
    const char *unmeasured; /* reason for missing counters; "": none */
    double overhead;        /* CPU time of the guest / CPU time of the programs; NaN: not measured */
    bool is_short;          /* no run was long enough for the overhead budget */
};

/* Prints the verdict; nothing without launches. */
int verdict_print(struct occ_store *store, const struct verdict_runs *runs, struct occ_error *err);
