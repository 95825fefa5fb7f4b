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
    struct occ_gpu_estimates estimates; /* of all runs, from their first to their last launch */
    struct occ_holder *holders;         /* holders[i]: the part of estimates.list[i] in the question's time */
    struct occ_bill_energy *energies;   /* of each of `holders` */
    struct occ_map gpus;                /* device with a UUID -> number of the GPU among those of all sides */
};

struct occ_bill_work {
    const struct occ_bill_question *question;
    struct occ_bill_side *sides;      /* one for each of the question's histories */
    const struct occ_bill_side *side; /* the history whose runs are added */
    struct occ_holder *holders;       /* of all sides */
    size_t n_holders;
    struct occ_bill_energy *energies; /* of each of `holders` */
    struct occ_bill_row *rows;
    size_t n_rows, allocated;
    size_t merged; /* number of rows after the last merge */
    size_t replays;
    int64_t first_ns, last_ns; /* as in struct occ_bill */
    struct occ_map texts;      /* hash of a text -> index in `known` */
    const char **known;
    size_t n_known, allocated_known;
    struct occ_arena arena;
    struct occ_error *err;
};

/* ---- bill_energy.c ---- */

/* Sets the energies, after holders have their times. */
int occ_bill_divide_energy(struct occ_bill_work *work);

/* ---- bill_rows.c ---- */

/* Returns a copy of the text, one for all runs; NULL: no memory. */
const char *occ_bill_intern(struct occ_bill_work *work, const char *text);
/* Adds seconds, amounts and marks of `row`; the sum keeps its key and model. */
void occ_bill_add_row(struct occ_bill_row *sum, const struct occ_bill_row *row);
/* Adds a row to the bill. */
int occ_bill_put_row(struct occ_bill_work *work, const struct occ_bill_row *row);
/* Merges rows of one key and model, sets the amounts, and sorts. */
int occ_bill_conclude(struct occ_bill_work *work);

/* ---- bill_share.c ---- */

/* Adds the run's time on its GPUs: estimates [low, high). */
int occ_bill_add_run(struct occ_bill_work *work, const struct occ_bill_run *run, size_t low, size_t high);
