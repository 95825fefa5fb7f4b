/* Makes the bill of a history; see bill.h. One thread. */
#include <stdlib.h>

#include "bill_state.h"

static int by_run(const void *left, const void *right)
{
    const struct occ_bill_run *a = left, *b = right;
    return (a->run > b->run) - (a->run < b->run);
}

/* Returns the run in the question's runs, which are in ascending order; NULL: unknown. */
static const struct occ_bill_run *find_run(const struct occ_bill_work *w, int64_t run)
{
    const struct occ_bill_run key = {.run = run};
    return w->question->n_runs ? bsearch(&key, w->question->runs, w->question->n_runs, sizeof key, by_run)
                               : NULL;
}

/* Divides the GPUs' time among all runs of the history. A run holds a GPU from its first to its last launch,
 * also where it has no launch in the question's time. */
static int divide(struct occ_bill_work *w)
{
    const struct occ_filter all = {.since_ns = 0};
    int64_t until_ns = w->question->until_ns > 0 ? w->question->until_ns : INT64_MAX;
    int rc = occ_store_gpu_estimates(w->store, &all, NULL, &w->estimates, w->err);
    if (rc != 0)
        return rc;
    w->holders = calloc(w->estimates.n + 1, sizeof *w->holders);
    if (!w->holders)
        return occ_no_memory(w->err);
    for (size_t i = 0; i < w->estimates.n; i++) {
        const struct occ_gpu_estimate *e = &w->estimates.list[i];
        const struct occ_bill_run *run = find_run(w, e->run);
        int64_t first_ns = e->first_ns > w->question->since_ns ? e->first_ns : w->question->since_ns;
        int64_t last_ns = e->last_ns < until_ns ? e->last_ns : until_ns;
        w->holders[i] = (struct occ_holder){
            .gpu = e->device,
            .first_ns = first_ns,
            .last_ns = e->is_replay || last_ns < first_ns ? first_ns : last_ns,
            .is_alone = !e->has_uuid || !run || !run->has_epoch,
        };
    }
    return occ_held_divide(w->holders, w->estimates.n) == 0 ? occ_bill_divide_energy(w)
                                                            : occ_no_memory(w->err);
}

/* Extends the billed time by the run's: estimates [low, high). */
static void extend(struct occ_bill_work *w, size_t low, size_t high)
{
    for (size_t i = low; i < high; i++) {
        const struct occ_holder *h = &w->holders[i];
        if (!(h->held_s > 0))
            continue;
        w->first_ns = w->first_ns == 0 || h->first_ns < w->first_ns ? h->first_ns : w->first_ns;
        w->last_ns = h->last_ns > w->last_ns ? h->last_ns : w->last_ns;
    }
}

static int add_runs(struct occ_bill_work *w)
{
    int rc = 0;
    size_t high = 0;
    for (size_t low = 0; low < w->estimates.n && rc == 0; low = high) {
        const struct occ_bill_run *run = find_run(w, w->estimates.list[low].run);
        while (high < w->estimates.n && w->estimates.list[high].run == w->estimates.list[low].run)
            high++;
        if (run && run->is_billed && run->has_epoch)
            extend(w, low, high);
        if (run && run->is_billed && w->estimates.list[low].is_replay)
            w->replays++;
        else if (run && run->is_billed)
            rc = occ_bill_add_run(w, run, low, high);
    }
    return rc;
}

int occ_bill_make(struct occ_store *store, const struct occ_bill_question *question,
                  struct occ_bill *ret_bill, struct occ_error *err)
{
    struct occ_bill_work w = {.store = store, .question = question, .err = err};
    int rc = divide(&w);
    if (rc == 0)
        rc = add_runs(&w);
    if (rc == 0)
        rc = occ_bill_conclude(&w);
    *ret_bill = (struct occ_bill){.rows = w.rows,
                                  .n = w.n_rows,
                                  .first_ns = w.first_ns,
                                  .last_ns = w.last_ns,
                                  .replays = w.replays,
                                  .memory = w.arena.blocks};
    occ_gpu_estimates_free(&w.estimates);
    occ_map_free(&w.texts);
    free(w.holders);
    free(w.energies);
    free((void *)w.known);
    if (rc != 0)
        occ_bill_free(ret_bill);
    return rc;
}

void occ_bill_free(struct occ_bill *bill)
{
    free(bill->rows);
    occ_arena_free(bill->memory);
    *bill = (struct occ_bill){.rows = NULL};
}
