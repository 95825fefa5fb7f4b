/* Hardware counters: the functions that the daemon's loop calls; see sampler.h. */

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti/trusted.h"
#include "sampler_state.h"
#include "support/array.h"
#include "support/log.h"
#include "support/text.h"

#define WANTED_NS     INT64_C(10000000000)
#define REDISCOVER_NS INT64_C(30000000000) /* interval of the search for GPUs while none is found */
#define AWAIT_STEP_NS 200000
#define FEED_BATCH    256
#define MODELS_MAX    (1u << 16) /* models in a cache; both caches: 7 MB of models, 3 MB of maps */

OCC_WORDS(occ_sampler_mode_word, enum occ_sampler_mode, OCC_SAMPLER_MODES)

enum occ_sampler_mode occ_sampler_mode(const struct occ_sampler *s)
{
    return s->options.mode;
}

/* ---- GPUs ---- */

static void *discover(void *argument)
{
    struct occ_sampler *s = argument;
    struct occ_sampler_found *found = &s->found;
    found->state = s->options.machine->find_gpus(found->gpus, OCC_GPUS_MAX, &found->n, &found->err);
    atomic_store(&found->finished, true); /* occ_sampler_free() and is_ready() join the thread */
    return NULL;
}

/* Blocks all signals in the thread, whatever mask the loop has. */
static bool start_discovery(struct occ_sampler *s)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&s->discovery_thread, NULL, discover, s) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void occ_sampler_discover(struct occ_sampler *s)
{
    if (s->options.mode == OCC_SAMPLER_NONE || s->discovery != OCC_DISCOVERY_NONE)
        return;
    s->found.n = 0;
    atomic_store(&s->found.finished, false);
    s->discovery = OCC_DISCOVERY_RUNNING;
    if (!s->options.machine->has_threads) {
        (void)discover(s);
        return;
    }
    if (start_discovery(s))
        return;
    s->discovery = OCC_DISCOVERY_DONE;
    s->discovered_ns = s->options.machine->monotonic_ns();
    s->found.state = OCC_SOURCE_FAILED;
}

static void join_discovery(struct occ_sampler *s)
{
    if (s->options.machine->has_threads)
        (void)pthread_join(s->discovery_thread, NULL);
}

static void start_workers(struct occ_sampler *s)
{
    const struct occ_sampler_found *found = &s->found;
    for (size_t i = 0; i < found->n; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_sampler_gpu *gpu = &s->gpus[s->n_gpus];
        *gpu = (struct occ_sampler_gpu){.found = found->gpus[i]};
        if (occ_gpu_worker_new(&found->gpus[i], &s->options, s->watch, &gpu->worker, &err) == 0) {
            s->n_gpus++;
            if (s->offered)
                occ_gpu_worker_offer(gpu->worker, s->offered);
        } else {
            occ_log(OCC_LOG_WARNING, "GPU %u has no sampler: %s", gpu->found.ordinal, err.message);
        }
    }
    if (found->state != OCC_SOURCE_OK)
        occ_log(OCC_LOG_INFO, "no hardware counters: %s: %s", occ_source_state_text(found->state),
                found->err.message);
    else if (found->n == 0)
        occ_log(OCC_LOG_INFO, "no hardware counters: the driver shows this daemon no GPU");
}

static void want_all(struct occ_sampler *s, int64_t wanted_until_ns)
{
    for (size_t i = 0; i < s->n_gpus; i++)
        occ_gpu_worker_want(s->gpus[i].worker, wanted_until_ns, s->paused_until_ns);
}

/* true if the GPUs are known. */
static bool is_ready(struct occ_sampler *s)
{
    if (s->discovery == OCC_DISCOVERY_RUNNING && atomic_load(&s->found.finished)) {
        join_discovery(s);
        s->discovery = OCC_DISCOVERY_DONE;
        s->discovered_ns = s->options.machine->monotonic_ns();
        start_workers(s);
        want_all(s, s->wanted_until_ns);
    }
    return s->discovery == OCC_DISCOVERY_DONE;
}

static struct occ_sampler_gpu *find(struct occ_sampler *s, const uint8_t uuid[16])
{
    for (size_t i = 0; i < s->n_gpus; i++)
        if (memcmp(s->gpus[i].found.uuid, uuid, 16) == 0)
            return &s->gpus[i];
    return NULL;
}

bool occ_sampler_is_busy(struct occ_sampler *s)
{
    struct occ_gpu_status status;
    bool busy = s->discovery == OCC_DISCOVERY_RUNNING;
    for (size_t i = 0; i < s->n_gpus && !busy; i++) {
        occ_sampler_gpu_status(&s->gpus[i], &status);
        busy = status.is_busy || status.has_results;
    }
    return busy;
}

void occ_sampler_poll(struct occ_sampler *s, bool programs)
{
    int64_t now_ns = s->options.machine->monotonic_ns();
    for (size_t i = 0; is_ready(s) && i < s->n_gpus; i++) {
        struct occ_gpu_status status;
        occ_sampler_gpu_status(&s->gpus[i], &status);
        if (status.has_results)
            occ_sampler_share(s, i, now_ns);
        if (programs && s->gpus[i].is_used && status.active_ns > now_ns - WANTED_NS)
            occ_gpu_worker_want(s->gpus[i].worker, now_ns + WANTED_NS, s->paused_until_ns);
    }
}

void occ_sampler_swap_users(struct occ_sampler *s, struct occ_profiler_users *users)
{
    occ_profiler_watch_swap_users(s->watch, users);
}

void occ_sampler_wake(struct occ_sampler *s)
{
    if (s->options.mode == OCC_SAMPLER_NONE)
        return;
    s->wanted_until_ns = s->options.machine->monotonic_ns() + WANTED_NS;
    if (s->discovery == OCC_DISCOVERY_DONE && s->n_gpus == 0 &&
        s->options.machine->monotonic_ns() - s->discovered_ns > REDISCOVER_NS)
        s->discovery = OCC_DISCOVERY_NONE; /* a driver may have been loaded in the meantime */
    occ_sampler_discover(s);
    if (is_ready(s))
        want_all(s, s->wanted_until_ns);
}

void occ_sampler_offer_library(struct occ_sampler *s, const char *path, bool is_own)
{
    /* another program can only load a file that every user may read */
    bool is_taken = is_own || (geteuid() == 0 && occ_trusted_open(path));
    if (!is_taken || path[0] != '/' || (s->offered && strcmp(path, s->offered) == 0))
        return;
    char *copy = strdup(path);
    if (!copy)
        return;
    free(s->offered);
    s->offered = copy;
    for (size_t i = 0; i < s->n_gpus; i++)
        occ_gpu_worker_offer(s->gpus[i].worker, path);
}

void occ_sampler_pause(struct occ_sampler *s, int64_t duration_ns)
{
    s->paused_until_ns = duration_ns > 0 ? s->options.machine->monotonic_ns() + duration_ns : 0;
    if (is_ready(s))
        want_all(s, 0);
}

int64_t occ_sampler_paused_ns(const struct occ_sampler *s)
{
    int64_t left_ns = s->paused_until_ns - s->options.machine->monotonic_ns();
    return left_ns > 0 ? left_ns : 0;
}

static bool all_have_tried(struct occ_sampler *s)
{
    bool all = is_ready(s);
    for (size_t i = 0; i < s->n_gpus && all; i++) {
        struct occ_gpu_status status;
        occ_sampler_gpu_status(&s->gpus[i], &status);
        all = status.has_tried;
    }
    return all;
}

void occ_sampler_await(struct occ_sampler *s, int64_t patience_ns)
{
    const struct timespec step = {.tv_nsec = AWAIT_STEP_NS};
    int64_t until_ns = s->options.machine->monotonic_ns() + patience_ns;
    while (s->options.mode != OCC_SAMPLER_NONE && !all_have_tried(s) &&
           s->options.machine->monotonic_ns() < until_ns)
        (void)nanosleep(&step, NULL);
}

/* ---- launches in ---- */

/* The model's values that the attribution needs; zeroes (no bound) if the model refuses the configuration. */
static struct occ_attribution_key key_of(struct occ_store *store, uint32_t config)
{
    struct occ_result model = {0};
    if (occ_store_config_model(store, config, &model, NULL) != 0)
        return (struct occ_attribution_key){0};
    double waves = (double)model.grid_blocks / (double)model.wave_blocks, full = waves / ceil(waves);
    return (struct occ_attribution_key){.bound = model.theoretical * fmin(waves, 1),
                                        .expected = model.theoretical * full,
                                        .active = waves * model.blocks_per_sm,
                                        .blocks = full * model.blocks_per_sm,
                                        .grid = (double)model.grid_blocks};
}

static const struct occ_attribution_key *lookup(const struct occ_sampler_models *models, uint64_t id)
{
    uint32_t at = occ_map_get(&models->index, id);
    return at == OCC_MAP_NONE ? NULL : &models->keys[at];
}

/* NULL: no memory. */
static const struct occ_attribution_key *remember(struct occ_sampler *s,
                                                  const struct occ_attribution_key *key)
{
    struct occ_sampler_models *m = &s->recent_models;
    if (m->n == MODELS_MAX) {
        struct occ_sampler_models oldest = s->older_models;
        s->older_models = *m;
        *m = oldest;
        m->n = 0;
        occ_map_clear(&m->index);
    }
    if (!occ_grow((void **)&m->keys, &m->allocated, m->n, MODELS_MAX, sizeof *m->keys) ||
        occ_map_put(&m->index, key->shape, (uint32_t)m->n) == OCC_MAP_NONE)
        return NULL;
    m->keys[m->n] = *key;
    return &m->keys[m->n++];
}

/* The model's values of a configuration, computed once while the configuration is in use; NULL: no memory. */
static const struct occ_attribution_key *find_key(struct occ_sampler *s, const struct occ_sampler_history *h,
                                                  uint32_t config)
{
    uint64_t id = occ_gpu_results_config(h->tag, config);
    const struct occ_attribution_key *key = lookup(&s->recent_models, id);
    if (key)
        return key;
    key = lookup(&s->older_models, id);
    struct occ_attribution_key copy = key ? *key : key_of(h->store, config);
    copy.shape = id;
    return remember(s, &copy);
}

/* Memory operations of one size, of all programs: half of the GPU by assumption, since no model knows their
 * blocks. */
static struct occ_attribution_key memory_key(uint32_t memory)
{
    return (struct occ_attribution_key){
        .shape = occ_gpu_results_config(OCC_GPU_MEMORY, memory), .expected = 0.5, .is_memory = true};
}

static void free_models(struct occ_sampler_models *models)
{
    occ_map_free(&models->index);
    free(models->keys);
}

void occ_sampler_feed(struct occ_sampler *s, const struct occ_sampler_launches *l)
{
    struct occ_attribution_launch launches[FEED_BATCH];
    const struct occ_store_launch *rows = l->rows;
    struct occ_sampler_gpu *gpu = is_ready(s) ? find(s, l->uuid) : NULL;
    struct occ_sampler_history *h = occ_sampler_find_history(s, l->history);
    if (!gpu || !h)
        return;
    gpu->is_used = true;
    h->shares[gpu - s->gpus].device = l->device;
    for (size_t done = 0, batch; done < l->n; done += batch) {
        batch = l->n - done < FEED_BATCH ? l->n - done : FEED_BATCH;
        size_t fed = 0;
        for (size_t i = done; i < done + batch; i++) {
            struct occ_attribution_key memory = memory_key(rows[i].config);
            const struct occ_attribution_key *key = l->are_memory ? &memory : find_key(s, h, rows[i].config);
            if (!key || l->run > UINT32_MAX) /* a tag has 32 bits for the run */
                continue;
            launches[fed] =
                (struct occ_attribution_launch){.key = *key,
                                                .start_ns = rows[i].start_ns,
                                                .end_ns = rows[i].start_ns + (int64_t)rows[i].duration_ns,
                                                .tag = occ_gpu_results_tag(l->run, rows[i].correlation)};
            launches[fed++].key.graph_node = rows[i].graph_node;
        }
        gpu->dropped += batch - fed;
        occ_gpu_worker_feed(gpu->worker, launches, fed);
    }
    occ_gpu_worker_want(gpu->worker, s->options.machine->monotonic_ns() + WANTED_NS, s->paused_until_ns);
}

void occ_sampler_settle(struct occ_sampler *s, int64_t patience_ns)
{
    int64_t until_ns = s->options.machine->monotonic_ns() + patience_ns;
    for (size_t i = 0; is_ready(s) && i < s->n_gpus; i++)
        occ_gpu_worker_settle(s->gpus[i].worker, until_ns);
}

/* ---- status ---- */

size_t occ_sampler_get_status(struct occ_sampler *s, struct occ_gpu_status *status, size_t max)
{
    size_t n = is_ready(s) ? s->n_gpus : 0;
    for (size_t i = 0; i < n && i < max; i++)
        occ_sampler_gpu_status(&s->gpus[i], &status[i]);
    return n;
}

bool occ_sampler_find_status(struct occ_sampler *s, const uint8_t uuid[16], struct occ_gpu_status *ret_status)
{
    bool ready = is_ready(s);
    const struct occ_sampler_gpu *gpu = ready ? find(s, uuid) : NULL;
    if (gpu) {
        occ_sampler_gpu_status(gpu, ret_status);
        return true;
    }
    *ret_status = (struct occ_gpu_status){.source = "none", .state = OCC_SOURCE_NO_DRIVER};
    const char *why = s->options.mode == OCC_SAMPLER_NONE ? "hardware counters are switched off"
                      : !ready && s->wanted_until_ns == 0 ? "no program has come yet"
                      : !ready                            ? "the driver has not answered yet"
                      : s->found.state != OCC_SOURCE_OK   ? occ_source_state_text(s->found.state)
                                                          : "the daemon does not see this GPU";
    (void)snprintf(ret_status->reason, sizeof ret_status->reason, "%s", why);
    return false;
}

/* ---- life ---- */

int occ_sampler_new(const struct occ_sampler_options *options, struct occ_sampler **ret_sampler,
                    struct occ_error *err)
{
    struct occ_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return occ_no_memory(err);
    s->options = *options;
    if (!s->options.machine)
        s->options.machine = &occ_sampler_this_machine;
    int status = occ_profiler_watch_new(s->options.machine->proc, &s->watch, err);
    if (status == 0)
        *ret_sampler = s;
    else
        free(s);
    return status;
}

void occ_sampler_free(struct occ_sampler *s)
{
    if (!s)
        return;
    if (s->discovery == OCC_DISCOVERY_RUNNING)
        join_discovery(s);
    for (size_t i = 0; i < s->n_gpus; i++)
        occ_gpu_worker_free(s->gpus[i].worker);
    while (s->n_histories > 0)
        occ_sampler_remove_history(s, s->histories[0]->number);
    free(s->histories);
    free(s->offered);
    occ_profiler_watch_free(s->watch);
    free_models(&s->recent_models);
    free_models(&s->older_models);
    free(s);
}
