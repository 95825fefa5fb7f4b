/* Makes the bill of histories; see bill.h. One thread. */
#include <stdlib.h>
#include <string.h>

#include "bill_state.h"
#include "support/cleanup.h"

static int by_run(const void *left, const void *right)
{
    const struct occ_bill_run *a = left, *b = right;
    return (a->run > b->run) - (a->run < b->run);
}

/* Returns the run in the history's runs, which are in ascending order; NULL: unknown. */
static const struct occ_bill_run *find_run(const struct occ_bill_side *side, int64_t run)
{
    const struct occ_bill_run key = {.run = run};
    const struct occ_bill_history *history = side->history;
    return history->n_runs ? bsearch(&key, history->runs, history->n_runs, sizeof key, by_run) : NULL;
}

/* Reads when each run held its GPUs: from its first to its last launch, also where it has no launch in the
 * question's time. */
static int read_sides(struct occ_bill_work *w)
{
    const struct occ_filter all = {.since_ns = 0};
    int rc = 0;
    w->sides = calloc(w->question->n_histories + 1, sizeof *w->sides);
    if (!w->sides)
        return occ_no_memory(w->err);
    for (size_t i = 0; i < w->question->n_histories && rc == 0; i++) {
        struct occ_bill_side *side = &w->sides[i];
        side->history = &w->question->histories[i];
        rc = occ_store_gpu_estimates(side->history->store, &all, NULL, &side->estimates, w->err);
        w->n_holders += side->estimates.n;
    }
    return rc;
}

/* ---- GPUs ---- */

enum { UUID_BYTES = sizeof((struct occ_gpu_estimate *)0)->uuid };

static int by_uuid(const void *left, const void *right)
{
    return memcmp(left, right, UUID_BYTES);
}

/* Lists the UUIDs of all estimates in ascending order. Returns their number. */
static size_t list_uuids(const struct occ_bill_work *w, uint8_t (*uuids)[UUID_BYTES])
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < w->question->n_histories; i++)
        for (size_t k = 0; k < w->sides[i].estimates.n; k++)
            if (w->sides[i].estimates.list[k].has_uuid)
                memcpy(uuids[n++], w->sides[i].estimates.list[k].uuid, UUID_BYTES);
    if (n > 1)
        qsort(uuids, n, sizeof *uuids, by_uuid);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || by_uuid(uuids[kept - 1], uuids[i]) != 0)
            memmove(uuids[kept++], uuids[i], UUID_BYTES);
    return kept;
}

/* Numbers the GPUs of all histories: devices with one UUID are one GPU. */
static int number_gpus(struct occ_bill_work *w)
{
    _cleanup_(occ_freep) uint8_t(*uuids)[UUID_BYTES] = calloc(w->n_holders + 1, sizeof *uuids);
    if (!uuids)
        return occ_no_memory(w->err);
    size_t n = list_uuids(w, uuids);
    for (size_t i = 0; i < w->question->n_histories; i++) {
        struct occ_bill_side *side = &w->sides[i];
        for (size_t k = 0; k < side->estimates.n; k++) {
            const struct occ_gpu_estimate *e = &side->estimates.list[k];
            const uint8_t(*found)[UUID_BYTES] =
                e->has_uuid ? bsearch(e->uuid, uuids, n, sizeof *uuids, by_uuid) : NULL;
            if (found &&
                occ_map_put(&side->gpus, (uint64_t)e->device, (uint32_t)(found - uuids)) == OCC_MAP_NONE)
                return occ_no_memory(w->err);
        }
    }
    return 0;
}

/* ---- division ---- */

static void set_holders(const struct occ_bill_work *w, struct occ_bill_side *side)
{
    int64_t until_ns = w->question->until_ns > 0 ? w->question->until_ns : INT64_MAX;
    for (size_t i = 0; i < side->estimates.n; i++) {
        const struct occ_gpu_estimate *e = &side->estimates.list[i];
        const struct occ_bill_run *run = find_run(side, e->run);
        int64_t first_ns = e->first_ns > w->question->since_ns ? e->first_ns : w->question->since_ns;
        int64_t last_ns = e->last_ns < until_ns ? e->last_ns : until_ns;
        side->holders[i] = (struct occ_holder){
            .gpu = occ_map_get(&side->gpus, (uint64_t)e->device),
            .first_ns = first_ns,
            .last_ns = e->is_replay || last_ns < first_ns ? first_ns : last_ns,
            .is_alone = !e->has_uuid || !run || !run->has_epoch,
        };
    }
}

/* Divides the GPUs' time and energy among all runs of all histories. */
static int divide(struct occ_bill_work *w)
{
    size_t at = 0;
    w->holders = calloc(w->n_holders + 1, sizeof *w->holders);
    w->energies = calloc(w->n_holders + 1, sizeof *w->energies);
    if (!w->holders || !w->energies)
        return occ_no_memory(w->err);
    for (size_t i = 0; i < w->question->n_histories; i++) {
        w->sides[i].holders = &w->holders[at];
        w->sides[i].energies = &w->energies[at];
        at += w->sides[i].estimates.n;
        set_holders(w, &w->sides[i]);
    }
    return occ_held_divide(w->holders, w->n_holders) == 0 ? occ_bill_divide_energy(w) : occ_no_memory(w->err);
}

/* ---- the bill ---- */

/* Extends the billed time by the run's: estimates [low, high) of the side. */
static void extend(struct occ_bill_work *w, size_t low, size_t high)
{
    for (size_t i = low; i < high; i++) {
        const struct occ_holder *h = &w->side->holders[i];
        if (!(h->held_s > 0))
            continue;
        w->first_ns = w->first_ns == 0 || h->first_ns < w->first_ns ? h->first_ns : w->first_ns;
        w->last_ns = h->last_ns > w->last_ns ? h->last_ns : w->last_ns;
    }
}

static int add_runs(struct occ_bill_work *w)
{
    const struct occ_gpu_estimates *of = &w->side->estimates;
    int rc = 0;
    size_t high = 0;
    for (size_t low = 0; low < of->n && rc == 0; low = high) {
        const struct occ_bill_run *run = find_run(w->side, of->list[low].run);
        while (high < of->n && of->list[high].run == of->list[low].run)
            high++;
        if (run && run->is_billed && run->has_epoch)
            extend(w, low, high);
        if (run && run->is_billed && of->list[low].is_replay)
            w->replays++;
        else if (run && run->is_billed)
            rc = occ_bill_add_run(w, run, low, high);
    }
    return rc;
}

static void free_work(struct occ_bill_work *w)
{
    for (size_t i = 0; w->sides && i < w->question->n_histories; i++) {
        occ_gpu_estimates_free(&w->sides[i].estimates);
        occ_map_free(&w->sides[i].gpus);
    }
    occ_map_free(&w->texts);
    free(w->sides);
    free(w->holders);
    free(w->energies);
    free((void *)w->known);
}

int occ_bill_make(const struct occ_bill_question *question, struct occ_bill *ret_bill, struct occ_error *err)
{
    struct occ_bill_work w = {.question = question, .err = err};
    int rc = read_sides(&w);
    if (rc == 0)
        rc = number_gpus(&w);
    if (rc == 0)
        rc = divide(&w);
    for (size_t i = 0; i < question->n_histories && rc == 0; i++) {
        w.side = &w.sides[i];
        rc = add_runs(&w);
    }
    if (rc == 0)
        rc = occ_bill_conclude(&w);
    *ret_bill = (struct occ_bill){.rows = w.rows,
                                  .n = w.n_rows,
                                  .first_ns = w.first_ns,
                                  .last_ns = w.last_ns,
                                  .replays = w.replays,
                                  .memory = w.arena.blocks};
    free_work(&w);
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
