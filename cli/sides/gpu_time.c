/* Asks for the GPU time of both sides; see gpu_time.h. One thread. */
#include "gpu_time.h"

#include <math.h>

#include "sides.h"

/* Sets the filter of the side's runs. False: no filter describes them. */
static bool choose_runs(const struct side *side, struct occ_filter *ret_filter)
{
    *ret_filter = side->filter;
    if (side->n_runs == 0 || occ_overview_is_partial(&side->filter))
        return false;
    if (side->n_runs == 1)
        ret_filter->run = side->runs[0];
    else if (side->last > 0) {
        ret_filter->first_run = side->runs[side->n_runs - 1];
        ret_filter->last_run = side->runs[0];
    }
    return side->n_runs == 1 || !side->skips_inside;
}

static uint32_t index_of(const struct side *side, int64_t run)
{
    uint32_t i = 0;
    while (i < side->n_runs && side->runs[i] != run)
        i++;
    return i;
}

/* Makes a portion of each run: its recorded time, and its launches as work. */
static int read_runs(const struct sides *sides, uint32_t which, const struct occ_filter *filter,
                     struct diff_portions *ret_portions, struct occ_error *err)
{
    static const struct occ_map none = {0};
    const struct side *side = &sides->side[which];
    struct occ_gpu_estimates estimates = {0};
    int status = occ_store_gpu_estimates(side->store, filter, &none, &estimates, err);
    ret_portions->n[which] = side->n_runs;
    for (size_t i = 0; i < estimates.n && status == 0; i++) {
        uint32_t run = index_of(side, estimates.list[i].run);
        if (run < side->n_runs && !estimates.list[i].is_replay)
            ret_portions->list[which][run].time += (double)estimates.list[i].recorded_ns;
    }
    for (size_t i = 0; i < sides->n_parts; i++) {
        const struct diff_part *part = &sides->parts[i];
        if (part->side == which && ret_portions->list[which][part->run].time > 0)
            ret_portions->list[which][part->run].work += (double)part->row->launches;
    }
    occ_gpu_estimates_free(&estimates);
    return status;
}

static int ask_side(const struct sides *sides, uint32_t which, struct sides_gpu_time *time,
                    struct diff_portions *portions, struct occ_error *err)
{
    const struct side *side = &sides->side[which];
    struct occ_filter filter;
    if (!side->store || sides->cluster || !choose_runs(side, &filter))
        return 0;
    time->runs[which] = side->n_runs;
    int status = occ_overview_ask(side->store, &filter, &time->overview[which], err);
    if (status == 0 && sides->diff.by_runs)
        status = read_runs(sides, which, &filter, portions, err);
    return status;
}

int sides_gpu_time_ask(const struct sides *sides, struct sides_gpu_time *ret_time, struct occ_error *err)
{
    struct diff_portions portions = sides->portions;
    int status = 0;
    *ret_time = (struct sides_gpu_time){.work = sides->work, .by_runs = sides->diff.by_runs};
    for (uint32_t i = 0; i < DIFF_SIDES && status == 0; i++)
        status = ask_side(sides, i, ret_time, &portions, err);
    const double seconds[] = {ret_time->overview[DIFF_A].time.window_s,
                              ret_time->overview[DIFF_B].time.window_s};
    ret_time->is_known = status == 0 && seconds[DIFF_A] > 0 && seconds[DIFF_B] > 0;
    double ratio = ret_time->is_known ? seconds[DIFF_B] / seconds[DIFF_A] / ret_time->work : (double)NAN;
    ret_time->change = diff_gpu_time_change(&sides->diff, ratio, &portions);
    return status;
}

void sides_gpu_time_free(struct sides_gpu_time *time)
{
    for (uint32_t i = 0; i < DIFF_SIDES; i++)
        occ_overview_free(&time->overview[i]);
}
