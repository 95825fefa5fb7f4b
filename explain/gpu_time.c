/* GPU time that adds up; see verdict.h. No state; any thread. */
#include <stdlib.h>

#include "support/cleanup.h"
#include "support/error.h"
#include "verdict.h"

/* ---- one GPU in one run ---- */

/* Sums of durations on a GPU, in seconds. */
struct sums {
    double communication, others;
};

/* Seconds of a GPU. */
struct seconds {
    double window, launch_wait, pause, communication, copies, kernels;
    bool is_divided;
};

/* Limits each part to the remaining time, since inputs from different sources may disagree. The last
 * remainder is the pause. */
static struct seconds divide(const struct occ_gpu_totals *gpu, const struct sums *sums)
{
    struct seconds s = {.window = occ_positive(gpu->window_s)};
    double busy = occ_at_most(occ_positive(gpu->busy_s), s.window);
    double all = sums->communication + sums->others;
    bool is_known = isfinite(gpu->communication_s);
    s.copies = occ_at_most(occ_positive(gpu->copies_s), s.window - busy);
    s.launch_wait = occ_at_most(occ_positive(gpu->launch_wait_s), s.window - busy - s.copies);
    s.pause = s.window - busy - s.copies - s.launch_wait;
    s.pause = s.pause > 0 ? s.pause : 0;
    s.communication = sums->communication > 0 ? busy * (sums->communication / all) : 0;
    if (is_known)
        s.communication = occ_at_most(occ_positive(gpu->communication_s), busy);
    s.kernels = busy - s.communication;
    s.is_divided = !is_known && sums->communication > 0 && sums->others > 0;
    return s;
}

/* ---- a kernel ---- */

/* Moves the gain of part `at`, which is negative, to the nearest losses above, then to the losses below. */
static void move_gain(double part[OCC_PART_COUNT], unsigned at)
{
    double gain = -part[at];
    part[at] = 0;
    for (unsigned k = at; k-- > 0 && gain > 0;) {
        double taken = occ_at_most(occ_positive(part[k]), gain);
        part[k] -= taken;
        gain -= taken;
    }
    for (unsigned k = at + 1; k < OCC_PART_COUNT && gain > 0; k++) {
        double taken = occ_at_most(occ_positive(part[k]), gain);
        part[k] -= taken;
        gain -= taken;
    }
}

/* Adds the time of a kernel, divided by its waterfall. */
static void add_kernel(const struct occ_kernel_totals *kernel, double seconds, struct occ_gpu_time *time)
{
    double part[OCC_PART_COUNT], sum = 0;
    double used = occ_at_most(occ_positive(kernel->used), 1);
    if (!isfinite(kernel->used)) {
        time->unknown += seconds;
        return;
    }
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        part[i] = i != OCC_CAUSE_PARTIAL_WARP && isfinite(kernel->part[i]) ? kernel->part[i] : 0;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        if (part[i] < 0)
            move_gain(part, i);
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        sum += part[i];
    time->used += seconds * used;
    if (!(sum > 0))
        time->lost[OCC_PART_UNEXPLAINED] += seconds * (1 - used);
    for (unsigned i = 0; i < OCC_PART_COUNT && sum > 0; i++)
        time->lost[i] += seconds * (1 - used) * (part[i] / sum);
}

/* ---- rows ---- */

struct work {
    const struct occ_totals *totals;
    struct sums *sums;       /* sums for each GPU */
    struct seconds *seconds; /* likewise */
    size_t *row_of;          /* likewise */
};

static void sum_durations(struct work *w)
{
    for (size_t i = 0; i < w->totals->n_kernels; i++) {
        const struct occ_kernel_totals *kernel = &w->totals->kernels[i];
        struct sums *sums = &w->sums[kernel->gpu];
        *(occ_is_communication(kernel) ? &sums->communication : &sums->others) +=
            occ_positive(kernel->time_s);
    }
    for (size_t i = 0; i < w->totals->n_gpus; i++)
        w->sums[i].others += occ_positive(w->totals->gpus[i].unlisted_s);
    for (size_t i = 0; i < w->totals->n_gpus; i++)
        w->seconds[i] = divide(&w->totals->gpus[i], &w->sums[i]);
}

static int64_t key_of(const struct occ_gpu_totals *gpu, enum occ_time_by by)
{
    const int64_t keys[OCC_TIME_BYS] = {0, gpu->gpu, gpu->run, gpu->job};
    return keys[by];
}

static int compare_rows(const void *left, const void *right)
{
    const struct occ_gpu_time *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

/* Makes a row of each key, sorted. Returns the number of rows. */
static size_t make_rows(const struct occ_totals *totals, enum occ_time_by by, struct occ_gpu_time *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < totals->n_gpus; i++)
        rows[i] = (struct occ_gpu_time){.key = key_of(&totals->gpus[i], by), .has_copies = true};
    if (totals->n_gpus > 1)
        qsort(rows, totals->n_gpus, sizeof *rows, compare_rows);
    for (size_t i = 0; i < totals->n_gpus; i++)
        if (n == 0 || rows[n - 1].key != rows[i].key)
            rows[n++] = rows[i];
    return n;
}

static void add_gpu(const struct occ_gpu_totals *gpu, const struct seconds *s, struct occ_gpu_time *row)
{
    row->window_s += s->window;
    row->unrecorded_s += occ_positive(gpu->unrecorded_s);
    row->launch_wait += s->launch_wait;
    row->pause += s->pause;
    row->communication += s->communication;
    row->copies += s->copies;
    row->kernels += s->kernels;
    row->has_copies = row->has_copies && isfinite(gpu->copies_s);
    row->is_divided = row->is_divided || s->is_divided;
}

static void add_kernels(const struct work *w, struct occ_gpu_time *rows)
{
    for (size_t i = 0; i < w->totals->n_kernels; i++) {
        const struct occ_kernel_totals *kernel = &w->totals->kernels[i];
        double others = w->sums[kernel->gpu].others;
        if (!occ_is_communication(kernel) && others > 0)
            add_kernel(kernel, w->seconds[kernel->gpu].kernels * (occ_positive(kernel->time_s) / others),
                       &rows[w->row_of[kernel->gpu]]);
    }
}

/* Turns seconds into shares. Busy time without a kernel of the list is unknown. */
static void normalise(struct occ_gpu_time *row)
{
    double window = row->window_s > 0 ? row->window_s : 1, known = row->used + row->unknown;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        known += row->lost[i];
    row->unknown += row->kernels > known ? row->kernels - known : 0;
    double *const shares[] = {&row->launch_wait, &row->pause, &row->communication, &row->copies,
                              &row->kernels,     &row->used,  &row->unknown};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        *shares[i] /= window;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        row->lost[i] /= window;
}

int occ_gpu_times(const struct occ_totals *totals, enum occ_time_by by, struct occ_gpu_time **ret_rows,
                  size_t *ret_n)
{
    size_t n_gpus = totals->n_gpus + 1;
    _cleanup_(occ_freep) struct sums *sums = calloc(n_gpus, sizeof *sums);
    _cleanup_(occ_freep) struct seconds *seconds = calloc(n_gpus, sizeof *seconds);
    _cleanup_(occ_freep) size_t *row_of = calloc(n_gpus, sizeof *row_of);
    _cleanup_(occ_freep) struct occ_gpu_time *rows = calloc(n_gpus, sizeof *rows);
    struct work w = {totals, sums, seconds, row_of};
    if (!sums || !seconds || !row_of || !rows)
        return OCC_E_NO_MEMORY;
    size_t n = make_rows(totals, by, rows);
    sum_durations(&w);
    for (size_t i = 0; i < totals->n_gpus; i++) {
        const struct occ_gpu_time key = {.key = key_of(&totals->gpus[i], by)};
        const struct occ_gpu_time *row = bsearch(&key, rows, n, sizeof *rows, compare_rows);
        row_of[i] = (size_t)(row - rows);
        add_gpu(&totals->gpus[i], &seconds[i], &rows[row_of[i]]);
    }
    add_kernels(&w, rows);
    for (size_t i = 0; i < n; i++)
        normalise(&rows[i]);
    *ret_rows = occ_take(rows);
    *ret_n = n;
    return 0;
}

void occ_round_shares(const double *ratios, size_t n, unsigned steps, unsigned *ret_steps)
{
    double sum = 0;
    unsigned given = 0;
    for (size_t i = 0; i < n; i++) {
        sum += ratios[i];
        ret_steps[i] = (unsigned)(ratios[i] * steps);
        given += ret_steps[i];
    }
    for (unsigned wanted = (unsigned)lround(sum * steps); given < wanted; given++) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
            if (ratios[i] * steps - ret_steps[i] > ratios[best] * steps - ret_steps[best])
                best = i;
        ret_steps[best]++;
    }
}
