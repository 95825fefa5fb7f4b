/* The making of a bill, for bill.c, bill_share.c and bill_rows.c only. One thread. */
#pragma once

#include "bill.h"
#include "support/arena.h"
#include "support/map.h"

/* Energy of a run on a GPU, and the part of its held time for which the energy is known. */
struct occ_bill_energy {
    double joules, seconds;
};

/* A history in the bill. */
struct occ_bill_side {
    const struct occ_bill_history *history;
    struct occ_gpu_estimates estimates; /* estimates of all runs, from their first to their last launch */
    struct occ_holder *holders;         /* holders[i]: the part of estimates.list[i] in the question's time */
    struct occ_bill_energy *energies;   /* energies[i] belongs to holders[i] */
    struct occ_map gpus;                /* device with a UUID -> number of the GPU, the same in all sides */
};

struct occ_bill_work {
    const struct occ_bill_question *question;
    struct occ_bill_side *sides;      /* sides[i] belongs to the question's histories[i] */
    const struct occ_bill_side *side; /* the history whose runs are added */
    struct occ_holder *holders;       /* the holders of all sides */
    size_t n_holders;
    struct occ_bill_energy *energies; /* energies[i] belongs to holders[i] */
    struct occ_bill_row *rows;
    size_t n_rows, allocated;
    size_t merged; /* number of rows after the last merge */
    size_t replays;
    int64_t first_ns, last_ns; /* see struct occ_bill */
    struct occ_map texts;      /* hash of a text -> index in `known` */
    const char **known;
    size_t n_known, allocated_known;
    struct occ_arena arena;
    struct occ_error *err;
};

/* ---- bill_energy.c ---- */

/* Sets the energies of all holders, whose times are set before. */
int occ_bill_divide_energy(struct occ_bill_work *work);

/* ---- bill_rows.c ---- */

/* Returns a copy of the text that lives as long as the bill; equal texts share a copy. NULL: no memory. */
const char *occ_bill_intern(struct occ_bill_work *work, const char *text);
/* Adds seconds, energies and marks of `row` to `sum`, which keeps its key and model. */
void occ_bill_add_row(struct occ_bill_row *sum, const struct occ_bill_row *row);
/* Adds a copy of the row to the bill; its key and model must live as long as the bill. */
int occ_bill_put_row(struct occ_bill_work *work, const struct occ_bill_row *row);
/* Merges the rows of one key and model, sets prices and amounts, and sorts the rows. */
int occ_bill_conclude(struct occ_bill_work *work);

/* ---- bill_share.c ---- */

/* Adds the time of a run of work->side on its GPUs: the estimates from `low` to `high` - 1. */
int occ_bill_add_run(struct occ_bill_work *work, const struct occ_bill_run *run, size_t low, size_t high);
