/* Sums the estimates of runs by GPU; see gpu_totals.h. Pure. */
#include "gpu_totals.h"

#include <stdlib.h>

/* Sums of estimates, in nanoseconds. */
struct sums {
    double recorded, unrecorded, duration, busy, others, launch_wait;
    /* time of launches that start before the question's time, also without communication; time behind its end
     */
    double entering, others_entering, leaving;
    double launches, read;
    double alone; /* time of the GPU / sum of the times of its runs: 1 if no runs overlap */
};

static void add_estimate(struct sums *sums, const struct occ_gpu_estimate *e)
{
    double mean_ns = e->read ? (double)e->duration_ns / (double)e->read : 0;
    /* Start times of replayed launches have no meaning: a replay counts as busy without gaps. */
    sums->recorded += e->is_replay ? mean_ns * (double)e->launches : (double)e->recorded_ns;
    sums->unrecorded += e->is_replay ? 0 : (double)e->unrecorded_ns;
    sums->duration += (double)e->duration_ns;
    sums->busy += e->is_replay ? (double)e->duration_ns : (double)e->busy_ns;
    sums->others += (double)e->others_busy_ns;
    sums->launch_wait += e->is_replay ? 0 : (double)e->launch_ns;
    sums->entering += (double)e->entering_ns;
    sums->others_entering += (double)e->others_entering_ns;
    sums->leaving += (double)e->leaving_ns;
    sums->launches += (double)e->launches;
    sums->read += (double)e->read;
}

static struct sums sum_device(const struct occ_gpu_estimates *estimates, int64_t device)
{
    struct sums sums = {0};
    for (size_t i = 0; i < estimates->n; i++)
        if (estimates->list[i].device == device)
            add_estimate(&sums, &estimates->list[i]);
    return sums;
}

/* ---- runs at the same time ---- */

struct span {
    int64_t low, high;
};

static int by_start(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

/* Returns the union of the spans / their sum. */
static double alone_ratio(struct span *spans, size_t n)
{
    double together = 0, sum = 0;
    int64_t end = INT64_MIN;
    qsort(spans, n, sizeof *spans, by_start);
    for (size_t i = 0; i < n; i++) {
        int64_t low = spans[i].low > end ? spans[i].low : end;
        sum += (double)(spans[i].high - spans[i].low);
        together += spans[i].high > low ? (double)(spans[i].high - low) : 0;
        end = spans[i].high > end ? spans[i].high : end;
    }
    return sum > 0 ? together / sum : 1;
}

/* Sets sums->alone: the union of the runs' times / their sum. Leaves out runs on a device without a UUID,
 * which may come from several machines, and replays, which have no times. Returns 0 or OCC_E_NO_MEMORY. */
static int set_alone(const struct occ_gpu_estimates *estimates, int64_t device, struct sums *sums)
{
    struct span *spans = malloc((estimates->n + 1) * sizeof *spans);
    size_t n = 0;
    if (!spans)
        return OCC_E_NO_MEMORY;
    for (size_t i = 0; i < estimates->n; i++) {
        const struct occ_gpu_estimate *e = &estimates->list[i];
        if (e->device == device && e->has_uuid && !e->is_replay && e->last_ns > e->first_ns)
            spans[n++] = (struct span){e->first_ns, e->last_ns};
    }
    sums->alone = alone_ratio(spans, n);
    free(spans);
    return 0;
}

/* ---- times ---- */

/* Sets a GPU's times. Busy time is the exact sum of durations in the question's time, scaled by busy time /
 * sum of durations of the launches that were read; waits are scaled by the number of launches. */
static void fill(const struct sums *read, const struct sums *all, const struct occ_device_sums *known,
                 struct occ_gpu_totals *gpu)
{
    /* If no launch of this GPU was read, assume the overlap of the other GPUs. */
    const struct sums *like = read->duration > 0 ? read : all;
    double alone = like->duration > 0 ? like->busy / like->duration : 1;
    gpu->window_s = read->recorded * read->alone * 1e-9;
    gpu->unrecorded_s = read->unrecorded * read->alone * 1e-9;
    double listed_ns = occ_positive(known->duration_ns - read->leaving);
    double duration_ns = listed_ns + read->entering;
    gpu->unlisted_s = listed_ns > 0 ? read->others_entering * 1e-9 * (known->duration_ns / listed_ns) : 0;
    gpu->busy_s = occ_at_most(duration_ns * alone * 1e-9, gpu->window_s);
    gpu->launch_wait_s = like->read > 0 ? like->launch_wait / like->read * (double)known->launches * 1e-9 : 0;
    if (read->alone < 1) /* while one program waits, another one may run */
        gpu->launch_wait_s = occ_at_most(gpu->launch_wait_s, occ_positive(gpu->window_s - gpu->busy_s));
    gpu->copies_s = NAN;
    gpu->communication_s =
        like->busy > 0 ? gpu->busy_s * occ_positive((like->busy - like->others) / like->busy) : NAN;
}

static bool has_times(const struct occ_gpu_estimates *estimates)
{
    for (size_t i = 0; i < estimates->n; i++)
        if (!estimates->list[i].is_replay)
            return true;
    return false;
}

/* Sets the overview's lost launches: a run has an estimate for each of its GPUs, one after the other. */
static void set_lost(const struct occ_gpu_estimates *estimates, struct occ_overview *overview)
{
    double lost = 0, launches = 0;
    for (size_t i = 0; i < estimates->n; i++) {
        const struct occ_gpu_estimate *e = &estimates->list[i];
        if (e->is_replay || (i > 0 && estimates->list[i - 1].run == e->run))
            continue;
        lost += (double)e->lost;
        launches += (double)e->of_launches;
    }
    overview->lost = (uint64_t)occ_at_most(lost, 1e18);
    overview->lost_ratio = lost > 0 ? lost / (launches > 1 ? launches : 1) : 0;
}

int occ_gpu_totals_fill(const struct occ_gpu_estimates *estimates, const struct occ_device_sums *sums,
                        struct occ_gpu_totals *gpus, size_t n, struct occ_overview *overview)
{
    int rc = 0;
    struct sums all = {0};
    for (size_t i = 0; i < estimates->n; i++)
        add_estimate(&all, &estimates->list[i]);
    set_lost(estimates, overview);
    overview->read_ratio = overview->launches ? occ_at_most(all.read / (double)overview->launches, 1) : NAN;
    for (size_t i = 0; i < n && has_times(estimates) && rc == 0; i++) {
        struct sums read = sum_device(estimates, gpus[i].gpu);
        rc = set_alone(estimates, gpus[i].gpu, &read);
        fill(&read, &all, &sums[i], &gpus[i]);
        overview->is_busy_most = overview->is_busy_most || all.read == 0 || read.alone < 1;
    }
    return rc;
}
