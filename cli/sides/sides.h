/*
 * The two sides that occq diff and occq check compare: each has runs of a history, chosen by words of the
 * command line. One thread.
 *
 *   run:ID run:last last:N label:TEXT user:NAME job:ID rank:N gpu:ID|NAME since:WHEN until:WHEN FILE
 *
 * A number alone is a run, and another text alone a label. Commas join several words; all words of a side
 * must hold.
 */
#pragma once

#include "report.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "compare/gpu_time.h"
#include "side_ranges.h"

#define SIDES_HELP                                                                                           \
    "run:ID (or only ID) or run:last, last:N (the newest N runs), label:TEXT (* and ? match any text and "   \
    "character), user:NAME, job:ID, rank:N, gpu:ID or gpu:NAME, since:WHEN and until:WHEN, each as the "     \
    "option of occq top, or a FILE, another history than --db; commas join several: label:main,last:5; a "   \
    "text alone is a FILE if there is one, else a label"

struct side {
    const char *text;      /* the operand as given */
    struct cli_args where; /* the side's history: --db, or the operand FILE */
    struct occ_filter filter;
    uint32_t last;     /* number of newest runs to take; 0: all */
    uint32_t given;    /* bits of the words that the operand has */
    char *words;       /* owns the texts of the filter */
    const char *alone; /* a word without a key, which must be a label of the history; NULL: none */
    struct occ_store *store;
    struct kernel_names *names;
    int64_t runs[DIFF_RUNS_MAX]; /* newest first */
    uint32_t n_runs;
    /* left out a run of the other side: before the next run; between two of its runs */
    bool skips, skips_inside;
    struct occ_config_rows rows[DIFF_RUNS_MAX];
    struct side_range *ranges[DIFF_RUNS_MAX]; /* for each row; NULL: rows are not split */
    struct diff_row *compared[DIFF_RUNS_MAX]; /* for each row */
    struct occ_arena texts;                   /* ranges, layers and families */
    struct diff_facts facts;
};

struct sides {
    struct side side[DIFF_SIDES];
    /* arguments of occq diff --cluster: a side's runs are blocks of its minutes, newest first; NULL: no
     * cluster */
    const struct history_args *cluster;
    const struct cli_command *command; /* the command, if `cluster` is set */
    struct diff_aligned aligned;       /* set by sides_align_kernels(); the names are the sides' */
    bool is_of_owner; /* of one of many histories: a label that it lacks is OCC_E_NOT_FOUND, no wrong usage */
    bool by_range;    /* compares a kernel's launches separately for each range */
    struct diff_part *parts;
    size_t n_parts, parts_allocated;
    struct diff diff;
    double work;                   /* of B / A's for the GPU time; NaN: not known */
    struct diff_portions portions; /* slices of the GPU time; none if replicates are runs */
};
void sides_free(struct sides *sides);

/* Parses an operand. `text` NULL: all runs. OCC_E_INVALID: wrong usage. */
int side_parse(struct side *side, const char *text, const struct cli_args *where, struct occ_error *err);

/* Opens the side's history or warehouse; sets store and names. Does nothing for an open side. */
int side_open(const struct sides *sides, struct side *side, struct occ_error *err);

/* Printed words may have a number of one history ("SGEMM 64x64 #5"). If --kernel or --exclude means one
 * kernel in a history, and others in a history that has it, too, both sides take the name of that kernel.
 * OCC_E_USAGE: the text means different kernels, and none of them is that kernel. sides_compare() calls it.
 */
int sides_align_kernels(struct sides *sides, struct occ_error *err);

/* Returns true for options that choose launches of both sides: --kernel and --exclude. */
bool sides_option_applies(const struct cli_option *option);
/* Parses the operands A and B, and applies the options of sides_option_applies() to both. */
int sides_parse(struct sides *sides, const struct history_args *args, struct occ_error *err);

/* Reads both sides and compares them; reads only B if A's text is NULL. If A takes the newest runs, it skips
 * runs of B. OCC_E_NOT_FOUND: a side has no launches; OCC_E_INVALID: a side has launches on several GPU
 * models. */
int sides_compare(struct sides *sides, struct occ_error *err);

/* Returns the number of runs with the same launches on both sides: runs of both, if periods and GPUs are
 * equal. 0 with a cluster, since its runs are unknown. */
uint32_t sides_shared_runs(const struct sides *sides);
