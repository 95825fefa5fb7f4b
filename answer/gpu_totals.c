/* Sums the estimates of runs by GPU; see gpu_totals.h. Pure. */
#include "gpu_totals.h"

/* Sums of estimates, in nanoseconds. */
struct sums {
    double recorded, duration, busy, others, launch_wait;
    double launches, read;
};

static void add_estimate(struct sums *sums, const struct occ_gpu_estimate *e)
{
    double mean_ns = e->read ? (double)e->duration_ns / (double)e->read : 0;
    /* Start times of replayed launches have no meaning: a replay counts as busy without gaps. */
    sums->recorded += e->is_replay ? mean_ns * (double)e->launches : (double)e->recorded_ns;
    sums->duration += (double)e->duration_ns;
    sums->busy += e->is_replay ? (double)e->duration_ns : (double)e->busy_ns;
    sums->others += (double)e->others_busy_ns;
    sums->launch_wait += e->is_replay ? 0 : (double)e->launch_ns;
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

/* Sets a GPU's times. Busy time is the exact sum of durations, scaled by busy time / sum of durations of the
 * launches that were read; waits are scaled by the number of launches. */
static void fill(const struct sums *read, const struct sums *all, const struct occ_device_sums *known,
                 struct occ_gpu_totals *gpu)
{
    /* If no launch of this GPU was read, assume the overlap of the other GPUs. */
    const struct sums *like = read->duration > 0 ? read : all;
    double alone = like->duration > 0 ? like->busy / like->duration : 1;
    gpu->window_s = read->recorded * 1e-9;
    gpu->busy_s = occ_at_most(known->duration_ns * alone * 1e-9, gpu->window_s);
    gpu->launch_wait_s = like->read > 0 ? like->launch_wait / like->read * (double)known->launches * 1e-9 : 0;
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

void occ_gpu_totals_fill(const struct occ_gpu_estimates *estimates, const struct occ_device_sums *sums,
                         struct occ_gpu_totals *gpus, size_t n, struct occ_overview *overview)
{
    struct sums all = {0};
    for (size_t i = 0; i < estimates->n; i++)
        add_estimate(&all, &estimates->list[i]);
    overview->read_ratio = overview->launches ? occ_at_most(all.read / (double)overview->launches, 1) : NAN;
    for (size_t i = 0; i < n && has_times(estimates); i++) {
        struct sums read = sum_device(estimates, gpus[i].gpu);
        fill(&read, &all, &sums[i], &gpus[i]);
        overview->is_busy_most = overview->is_busy_most || all.read == 0;
    }
}
