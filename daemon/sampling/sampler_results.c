/* Results on their way from the GPUs' threads to the histories: see sampler.h. The loop's thread. */
#include <stdlib.h>
#include <string.h>

#include "ring/ring_abi.h"
#include "sampler_state.h"
#include "support/array.h"
#include "support/log.h"

#define SHARED_NS INT64_C(2000000000) /* samples may arrive this long after their time */

/* ---- histories ---- */

struct occ_sampler_history *occ_sampler_find_history(const struct occ_sampler *s, uint32_t number)
{
    for (size_t i = 0; i < s->n_histories; i++)
        if (s->histories[i]->number == number)
            return s->histories[i];
    return NULL;
}

int occ_sampler_add_history(struct occ_sampler *s, uint32_t number, struct occ_store *store,
                            const struct occ_collector *collector, struct occ_error *err)
{
    struct occ_sampler_history *h = calloc(1, sizeof *h);
    if (!h || !occ_grow((void **)&s->histories, &s->histories_allocated, s->n_histories, SIZE_MAX,
                        sizeof *s->histories)) {
        free(h);
        return occ_no_memory(err);
    }
    *h = (struct occ_sampler_history){
        .number = number, .tag = ++s->last_tag, .store = store, .collector = collector};
    s->histories[s->n_histories++] = h;
    return 0;
}

static void free_history(struct occ_sampler_history *h)
{
    for (size_t i = 0; i < OCC_GPUS_MAX; i++)
        occ_gpu_results_free(&h->shares[i].results);
    free(h);
}

void occ_sampler_remove_history(struct occ_sampler *s, uint32_t number)
{
    size_t i = 0;
    while (i < s->n_histories && s->histories[i]->number != number)
        i++;
    if (i == s->n_histories)
        return;
    free_history(s->histories[i]);
    s->n_histories--;
    memmove(s->histories + i, s->histories + i + 1, (s->n_histories - i) * sizeof *s->histories);
}

void occ_sampler_restart_history(struct occ_sampler *s, uint32_t number)
{
    struct occ_sampler_history *h = occ_sampler_find_history(s, number);
    if (!h)
        return;
    for (size_t i = 0; i < OCC_GPUS_MAX; i++) {
        occ_gpu_results_free(&h->shares[i].results);
        h->shares[i].device = 0;
    }
    h->tag = ++s->last_tag;
}

/* Stores the GPU in the first history, which gets samples of GPUs that its own launches may never use. */
static void name_gpu(struct occ_sampler_history *h, const struct occ_sampler_gpu *gpu,
                     struct occ_sampler_part *share)
{
    const struct occ_gpu_found *f = &gpu->found;
    struct occ_store_device device = {
        .name = f->name,
        .limits = {.cc = f->cc_major * 10 + f->cc_minor,
                   .sm_count = f->sm_count,
                   .max_threads_per_sm = f->max_warps_per_sm * f->warp_size},
        .simulated = occ_ring_name_is_simulated(f->name),
    };
    memcpy(device.uuid, f->uuid, sizeof device.uuid);
    /* on failure tried again with the next results */
    (void)occ_store_put_device(h->store, &device, &share->device, NULL);
}

/* Gives each history its part of a GPU worker's results. */
void occ_sampler_share(struct occ_sampler *s, size_t g, int64_t now_ns)
{
    struct occ_sampler_gpu *gpu = &s->gpus[g];
    struct occ_gpu_results results = {0};
    size_t users = 0;
    occ_gpu_worker_take(gpu->worker, &results);
    for (size_t i = 0; i < s->n_histories; i++)
        users += occ_collector_uses_gpu(s->histories[i]->collector, gpu->found.uuid);
    if (users > 1)
        gpu->shared_until_ns = now_ns + SHARED_NS;
    for (size_t i = 0; i < s->n_histories; i++) {
        struct occ_sampler_history *h = s->histories[i];
        struct occ_sampler_part *share = &h->shares[g];
        bool alone = now_ns >= gpu->shared_until_ns &&
                     (users == 0 || occ_collector_uses_gpu(h->collector, gpu->found.uuid));
        if (i == 0 && share->device == 0)
            name_gpu(h, gpu, share);
        if (share->device != 0)
            occ_gpu_results_share(&results, h->tag, i == 0 || alone, &share->results);
    }
    gpu->dropped += results.dropped;
    occ_gpu_results_free(&results);
}

bool occ_sampler_has_results(const struct occ_sampler *s, uint32_t number)
{
    const struct occ_sampler_history *h = occ_sampler_find_history(s, number);
    for (size_t i = 0; h && i < s->n_gpus; i++)
        if (!occ_gpu_results_is_empty(&h->shares[i].results))
            return true;
    return false;
}

void occ_sampler_gpu_status(const struct occ_sampler_gpu *gpu, struct occ_gpu_status *ret_status)
{
    occ_gpu_worker_get_status(gpu->worker, ret_status);
    ret_status->dropped += gpu->dropped;
    ret_status->has_results &= gpu->is_used;
}

static void log_state(struct occ_sampler_gpu *gpu)
{
    struct occ_gpu_status status;
    occ_sampler_gpu_status(gpu, &status);
    bool works = status.state == OCC_SOURCE_OK;
    const char *word = works ? status.source : occ_source_state_word(status.state);
    if (gpu->logged == word || (!gpu->logged && status.state == OCC_SOURCE_IDLE))
        return;
    gpu->logged = word;
    occ_log(OCC_LOG_INFO, "GPU %u: counters: %s%s%s", gpu->found.ordinal, works ? word : "none",
            status.reason[0] ? ": " : "", status.reason);
}

int occ_sampler_store(struct occ_sampler *s, uint32_t number, struct occ_error *err)
{
    int status = 0;
    struct occ_sampler_history *h = occ_sampler_find_history(s, number);
    for (size_t i = 0; h && i < s->n_gpus && status == 0; i++) {
        struct occ_gpu_results *results = &h->shares[i].results;
        status = occ_gpu_results_store(results, h->store, h->shares[i].device, err);
        s->gpus[i].dropped += results->dropped;
        occ_gpu_results_free(results);
        log_state(&s->gpus[i]);
    }
    return status;
}
