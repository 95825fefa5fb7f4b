/*
 * What occq diff and occq check compare: two sides, each some runs of a history, in words of the command
 * line. One thread.
 *
 *   run:ID run:last last:N label:TEXT user:NAME job:ID rank:N gpu:ID|NAME since:WHEN until:WHEN FILE
 *
 * Commas join several of them, which all hold.
 */
#pragma once

#include "report.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "side_ranges.h"

#define SIDES_HELP                                                                                           \
    "run:ID or run:last, last:N (the newest N runs), label:TEXT (* and ? match any text and character), "    \
    "user:NAME, job:ID, rank:N, gpu:ID or gpu:NAME, since:WHEN and until:WHEN, all of them as the options "  \
    "of occq top, or a FILE, another history than --db; commas join several: label:main,last:5"

struct side {
    const char *text;      /* as it was given */
    struct cli_args where; /* its history: --db, or its own */
    struct occ_filter filter;
    uint32_t last;  /* the newest runs only; 0: all */
    uint32_t given; /* bits: words */
    char *words;    /* owner of the texts */
    struct occ_store *store;
    struct kernel_names *names;
    int64_t runs[DIFF_RUNS_MAX]; /* the newest first */
    uint32_t n_runs;
    struct occ_config_rows rows[DIFF_RUNS_MAX];
    struct side_range *ranges[DIFF_RUNS_MAX]; /* of each row; NULL: the runs are not split */
    struct diff_row *compared[DIFF_RUNS_MAX]; /* of each row */
    struct occ_arena texts;                   /* of ranges */
    struct diff_facts facts;
};

struct sides {
    struct side side[DIFF_SIDES];
    /* of occq diff --cluster: a side's runs are the blocks of its minutes, the newest first; or NULL */
    const struct history_args *cluster;
    const struct cli_command *command; /* with it */
    bool by_range;                     /* what a kernel does in one range and in another is compared apart */
    struct diff_part *parts;
    size_t n_parts, parts_allocated;
    struct diff diff;
};
void sides_free(struct sides *sides);

/* `text` NULL: all runs. OCC_E_INVALID: wrong usage. */
int side_parse(struct side *side, const char *text, const struct cli_args *where, struct occ_error *err);

/* Sets store and names. */
int side_open(const struct sides *sides, struct side *side, struct occ_error *err);

/* Whether a filter's option chooses launches of both sides: --kernel and --exclude. */
bool sides_take(const struct cli_option *option);
/* The operands A and B, of which the options that sides_take() choose launches. */
int sides_parse(struct sides *sides, const struct history_args *args, struct occ_error *err);

/* Reads both sides (A may have the text NULL: there is none) and compares them. Runs of B are not runs of A
 * where A takes the newest ones. OCC_E_NOT_FOUND: a side has no launches; OCC_E_INVALID: a side has launches
 * on several GPU models. */
int sides_compare(struct sides *sides, struct occ_error *err);

/* Runs that have the same launches on both sides, where no time or GPU tells them apart; of a cluster 0, as
 * its runs are not known. */
uint32_t sides_shared_runs(const struct sides *sides);
