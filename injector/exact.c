/* See exact.h. */
#include "exact.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "guest_log.h"
#include "profiler_calls.h"

/* Fewer than an image holds: launches that other threads have begun still come into it. */
#define SESSION_LAUNCHES (OCC_PAIRS_MOST_RANGES - 128u)

#define SECOND_NS   1000000000L
#define PATIENCE_NS 500000000L

/* 50 ms: the program's end does not wait long for the helper. */
#define HELPER_NAP_NS    1000000L
#define HELPER_MOST_NAPS 50u

/* Sessions that wait for the helper, 64 MiB at most: of those beyond nothing is kept. */
#define MOST_WAITING 4096u

/* With these a capture is over too: there is nothing left that could break. */
#define CAPTURE_INVALIDATED 901u /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
#define CAPTURE_UNJOINED    904u /* CUDA_ERROR_STREAM_CAPTURE_UNJOINED */

const char *const occ_exact_metrics[OCC_EXACT_METRICS] = {"sm__warps_active.sum", "sm__cycles_active.sum",
                                                          "sm__cycles_elapsed.max", "sm__ctas_active.sum"};

static const struct {
    size_t offset;
    const char *name;
} symbols[] = {
#define X(slot, symbol, parameters) {offsetof(struct occ_exact_functions, slot), symbol},
#include "profiler_table.def"
#undef X
};

static const struct {
    uint32_t id;
    enum occ_profiler_call call;
} calls[] = {
#define X(name, number, what) {number, OCC_PROFILER_##what},
    OCC_PROFILER_CALLS(X)
#undef X
};

/* What we ask of CUPTI inside a callback may call the driver, and so us again. */
static _Thread_local bool is_inside;

/* The context that this thread is launching in. */
static _Thread_local struct occ_exact_context *launching;

static void describe(struct occ_exact *e, const char *what, uint32_t result)
{
    const char *text = NULL;
    if (!e->cupti->result_string || e->cupti->result_string(result, &text) != OCC_CUPTI_SUCCESS || !text)
        text = "unknown error";
    (void)snprintf(e->problem, sizeof e->problem, "no exact values: %s: error %u, %.120s", what, result,
                   text);
    e->problem_is_new = true;
    occ_guest_log("%s", e->problem);
}

/* ---- memory: no malloc in callbacks ---- */

static void *get_memory(size_t bytes)
{
    void *map = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
    return map == MAP_FAILED ? NULL : map;
}

static void free_memory(uint8_t **memory, size_t bytes)
{
    if (*memory)
        (void)munmap(*memory, bytes);
    *memory = NULL;
}

/* ---- one context: getting ready ---- */

#define CALL(e, function, what, ...)                                                                         \
    do {                                                                                                     \
        uint32_t result_ = (e)->call.function(__VA_ARGS__);                                                  \
        if (result_ != OCC_CUPTI_SUCCESS) {                                                                  \
            describe(e, what, result_);                                                                      \
            return false;                                                                                    \
        }                                                                                                    \
    } while (0)

static bool no_memory(struct occ_exact *e)
{
    describe(e, "memory for counters", ENOMEM);
    return false;
}

/* A chip that the library does not know needs it; without it the library's own table is used. */
static uint8_t *ask_availability(struct occ_exact *e, void *context, size_t *ret_bytes)
{
    struct occ_params_availability p = {.bytes = OCC_PARAMS_BYTES(occ_params_availability, image),
                                        .context = context};
    *ret_bytes = 0;
    if (e->call.availability(&p) != OCC_CUPTI_SUCCESS || !(p.image = get_memory(p.image_bytes)))
        return NULL;
    *ret_bytes = p.image_bytes;
    if (e->call.availability(&p) != OCC_CUPTI_SUCCESS)
        free_memory(&p.image, *ret_bytes);
    return p.image;
}

static bool begin_host(struct occ_exact *e, struct occ_exact_context *c, const uint8_t *availability)
{
    uint32_t device = 0;
    CALL(e, device_id, "the context's GPU", c->context, &device);
    struct occ_params_chip_name chip = {.bytes = OCC_PARAMS_BYTES(occ_params_chip_name, name),
                                        .device = device};
    CALL(e, chip_name, "the GPU's chip", &chip);
    struct occ_params_host host = {.bytes = OCC_PARAMS_BYTES(occ_params_host, host),
                                   .type = OCC_PROFILER_TYPE_RANGE,
                                   .chip = chip.name,
                                   .availability = availability};
    CALL(e, host_begin, "counters of this chip", &host);
    c->host = host.host;
    return true;
}

static bool make_config(struct occ_exact *e, struct occ_exact_context *c)
{
    const char *names[OCC_EXACT_METRICS];
    memcpy(names, occ_exact_metrics, sizeof names);
    struct occ_params_metrics metrics = {.bytes = OCC_PARAMS_BYTES(occ_params_metrics, count),
                                         .host = c->host,
                                         .names = names,
                                         .count = OCC_EXACT_METRICS};
    CALL(e, add_metrics, "counters of this chip", &metrics);
    struct occ_params_config_bytes size = {.bytes = OCC_PARAMS_BYTES(occ_params_config_bytes, config_bytes),
                                           .host = c->host};
    CALL(e, config_bytes, "size of a configuration", &size);
    c->config_bytes = size.config_bytes;
    c->config = get_memory(c->config_bytes);
    if (!c->config)
        return no_memory(e);
    struct occ_params_config config = {.bytes = OCC_PARAMS_BYTES(occ_params_config, config),
                                       .host = c->host,
                                       .config_bytes = c->config_bytes,
                                       .config = c->config};
    CALL(e, config, "a configuration", &config);
    struct occ_params_passes passes = {.bytes = OCC_PARAMS_BYTES(occ_params_passes, passes),
                                       .config_bytes = c->config_bytes,
                                       .config = c->config};
    CALL(e, passes, "number of passes", &passes);
    if (passes.passes == 1)
        return true;
    (void)snprintf(
        e->problem, sizeof e->problem,
        "no exact values: the counters need %zu passes on this GPU, and kernels would run so often",
        passes.passes);
    e->problem_is_new = true;
    return false;
}

static bool make_image(struct occ_exact *e, struct occ_exact_context *c)
{
    const char *names[OCC_EXACT_METRICS];
    memcpy(names, occ_exact_metrics, sizeof names);
    struct occ_params_image_bytes size = {.bytes = OCC_PARAMS_BYTES(occ_params_image_bytes, image_bytes),
                                          .profiler = c->profiler,
                                          .names = names,
                                          .count = OCC_EXACT_METRICS,
                                          .most_ranges = OCC_PAIRS_MOST_RANGES,
                                          .most_nodes = OCC_PAIRS_MOST_RANGES};
    CALL(e, image_bytes, "size of the counters", &size);
    c->image_bytes = size.image_bytes;
    c->image = get_memory(c->image_bytes);
    return c->image || no_memory(e);
}

static bool enable(struct occ_exact *e, struct occ_exact_context *c)
{
    struct occ_params_enable p = {.bytes = OCC_PARAMS_BYTES(occ_params_enable, profiler),
                                  .context = c->context};
    CALL(e, enable, "the range profiler", &p);
    c->profiler = p.profiler;
    return true;
}

static bool prepare(struct occ_exact *e, struct occ_exact_context *c)
{
    size_t bytes = 0;
    uint8_t *availability = ask_availability(e, c->context, &bytes);
    bool done = begin_host(e, c, availability) && make_config(e, c) && enable(e, c) && make_image(e, c);
    free_memory(&availability, bytes);
    return done;
}

static void release(struct occ_exact *e, struct occ_exact_context *c)
{
    struct occ_params_profiler profiler = {.bytes = OCC_PARAMS_BYTES(occ_params_profiler, profiler),
                                           .profiler = c->profiler};
    struct occ_params_host_end host = {.bytes = OCC_PARAMS_BYTES(occ_params_host_end, host), .host = c->host};
    if (c->profiler)
        (void)e->call.disable(&profiler);
    if (c->host)
        (void)e->call.host_end(&host);
    free_memory(&c->config, c->config_bytes);
    free_memory(&c->image, c->image_bytes);
    c->profiler = c->host = NULL;
}

static void give_up(struct occ_exact *e, struct occ_exact_context *c)
{
    release(e, c);
    c->state = OCC_EXACT_FAILED;
}

/* ---- sessions ---- */

static bool start_session(struct occ_exact *e, struct occ_exact_context *c)
{
    struct occ_params_image image = {.bytes = OCC_PARAMS_BYTES(occ_params_image, image),
                                     .profiler = c->profiler,
                                     .image_bytes = c->image_bytes,
                                     .image = c->image};
    CALL(e, image, "memory for counters", &image);
    struct occ_params_set_config config = {.bytes =
                                               OCC_PARAMS_BYTES(occ_params_set_config, target_nesting_level),
                                           .profiler = c->profiler,
                                           .config_bytes = c->config_bytes,
                                           .config = c->config,
                                           .image_bytes = c->image_bytes,
                                           .image = c->image,
                                           .range = OCC_PROFILER_AUTO_RANGE,
                                           .replay = OCC_PROFILER_KERNEL_REPLAY,
                                           .most_ranges = OCC_PAIRS_MOST_RANGES,
                                           .nesting_levels = 1,
                                           .least_nesting_level = 1,
                                           .pass = 0,
                                           .target_nesting_level = 0};
    CALL(e, set_config, "the counters", &config);
    CALL(e, timestamp, "the time", &c->began_ns);
    struct occ_params_profiler start = {.bytes = OCC_PARAMS_BYTES(occ_params_profiler, profiler),
                                        .profiler = c->profiler};
    CALL(e, start, "start of the counters", &start);
    c->lost = atomic_load(&e->lost);
    c->launches = 0;
    c->is_graph = false;
    c->state = OCC_EXACT_RUNNING;
    return true;
}

static bool read_range(struct occ_exact *e, struct occ_exact_context *c, size_t range,
                       struct occ_range_counts *ret)
{
    const char *names[OCC_EXACT_METRICS];
    double values[OCC_EXACT_METRICS] = {0};
    memcpy(names, occ_exact_metrics, sizeof names);
    struct occ_params_evaluate p = {.bytes = OCC_PARAMS_BYTES(occ_params_evaluate, values),
                                    .host = c->host,
                                    .image = c->image,
                                    .image_bytes = c->image_bytes,
                                    .range = range,
                                    .names = names,
                                    .count = OCC_EXACT_METRICS,
                                    .values = values};
    CALL(e, evaluate, "a launch's counters", &p);
    *ret = (struct occ_range_counts){values[0], values[1], values[2], values[3]};
    return true;
}

/* What the stopped session holds, for the helper. Ranges that were dropped leave it without meaning: no session then. */
static bool read_session(struct occ_exact *e, struct occ_exact_context *c, uint64_t ended_ns)
{
    struct occ_params_decode decode = {.bytes = OCC_PARAMS_BYTES(occ_params_decode, dropped),
                                       .profiler = c->profiler};
    CALL(e, decode, "reading the counters", &decode);
    struct occ_params_ranges ranges = {.bytes = OCC_PARAMS_BYTES(occ_params_ranges, ranges),
                                       .image = c->image,
                                       .image_bytes = c->image_bytes};
    CALL(e, ranges, "number of ranges", &ranges);
    if (decode.dropped > 0 || ranges.ranges == 0 || ranges.ranges > OCC_PAIRS_MOST_RANGES ||
        e->waiting >= MOST_WAITING)
        return true;
    struct occ_session *s = get_memory(sizeof *s);
    if (!s)
        return no_memory(e);
    s->context = c->id; /* field by field: a whole one is more than some threads' stacks have left */
    s->began_ns = c->began_ns;
    s->ended_ns = ended_ns;
    s->lost = c->lost;
    s->ranges = (uint32_t)ranges.ranges;
    for (size_t i = 0; i < ranges.ranges; i++) {
        if (!read_range(e, c, i, &s->counts[i])) {
            (void)munmap(s, sizeof *s);
            return false;
        }
    }
    *e->last = s;
    e->last = &s->next;
    e->waiting++;
    return true;
}

static bool stop_session(struct occ_exact *e, struct occ_exact_context *c)
{
    uint64_t ended_ns = 0;
    struct occ_params_stop stop = {.bytes = OCC_PARAMS_BYTES(occ_params_stop, is_complete),
                                   .profiler = c->profiler};
    c->state = OCC_EXACT_READY;
    CALL(e, stop, "end of the counters", &stop);
    CALL(e, timestamp, "the time", &ended_ns);
    return read_session(e, c, ended_ns);
}

static void end_session(struct occ_exact *e, struct occ_exact_context *c)
{
    if (c->state == OCC_EXACT_RUNNING && !stop_session(e, c))
        give_up(e, c);
}

/* ---- callbacks ---- */

static struct occ_exact_context *find_context(struct occ_exact *e, void *context)
{
    for (uint32_t i = 0; i < OCC_EXACT_MOST_CONTEXTS; i++)
        if (e->contexts[i].state != OCC_EXACT_FREE && e->contexts[i].context == context)
            return &e->contexts[i];
    return NULL;
}

/* CLOCK_MONOTONIC: a moment from now, less than a second. */
static struct timespec after(long ns)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / SECOND_NS;
    t.tv_nsec %= SECOND_NS;
    return t;
}

/* No session may begin or end: a stream is captured, or all is over. What it says holds until the lock is given away. */
static bool must_not_touch(const struct occ_exact *e)
{
    return e->captures > 0 || !atomic_load(&e->is_on);
}

/* A launch that another thread is in the middle of would be in neither session. New ones wait meanwhile. The wait is bounded: a launch
 * may wait for something itself, and the call back from one may be lost. Gives the lock away. */
static void wait_for_others(struct occ_exact *e, struct occ_exact_context *c)
{
    struct timespec until = after(PATIENCE_NS);
    c->is_ending = true;
    while (c->in_flight > 0 && atomic_load(&e->is_on) &&
           pthread_cond_timedwait(&e->quiet, &e->lock, &until) == 0)
        ;
    c->is_ending = false;
    c->in_flight = 0; /* whoever has not come back by now is not waited for again */
    (void)pthread_cond_broadcast(&e->quiet);
}

static void wait_for_end(struct occ_exact *e, struct occ_exact_context *c)
{
    struct timespec until = after(PATIENCE_NS);
    while (c->is_ending && pthread_cond_timedwait(&e->quiet, &e->lock, &until) == 0)
        ;
}

/* Once: it would be new with every launch. */
static void say_full(struct occ_exact *e)
{
    if (e->is_full)
        return;
    e->is_full = e->problem_is_new = true;
    (void)snprintf(e->problem, sizeof e->problem,
                   "no exact values of all contexts: the program has more than %u at a time",
                   OCC_EXACT_MOST_CONTEXTS);
    occ_guest_log("%s", e->problem);
}

static struct occ_exact_context *add_context(struct occ_exact *e, const struct occ_callback_data *data)
{
    uint32_t i = 0;
    while (i < OCC_EXACT_MOST_CONTEXTS && e->contexts[i].state != OCC_EXACT_FREE)
        i++;
    if (i == OCC_EXACT_MOST_CONTEXTS) {
        say_full(e);
        return NULL;
    }
    struct occ_exact_context *c = &e->contexts[i];
    *c = (struct occ_exact_context){
        .state = OCC_EXACT_READY, .context = data->context, .id = data->context_id};
    if (!prepare(e, c))
        give_up(e, c);
    return c;
}

static bool must_end(const struct occ_exact_context *c, bool at_once)
{
    return c && c->state == OCC_EXACT_RUNNING && (at_once || c->is_graph || c->launches >= SESSION_LAUNCHES);
}

/* The last context that is given up is the end of all. */
static void retire(struct occ_exact *e, struct occ_exact_context *c)
{
    bool is_used = false;
    if (c)
        give_up(e, c);
    for (uint32_t i = 0; i < OCC_EXACT_MOST_CONTEXTS; i++)
        is_used |= e->contexts[i].state == OCC_EXACT_READY || e->contexts[i].state == OCC_EXACT_RUNNING;
    if (!is_used)
        atomic_store(&e->is_on, false);
}

static void before_launch(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph)
{
    bool is_last = atomic_load(&e->is_retired);
    if (must_not_touch(e) || !data->context)
        return;
    struct occ_exact_context *c = find_context(e, data->context);
    if (!c && !is_last)
        c = add_context(e, data);
    if (c && c->is_ending)
        wait_for_end(e, c);
    if (must_end(c, is_graph || is_last))
        wait_for_others(e, c);
    if (must_not_touch(e)) /* since we waited */
        return;
    if (must_end(c, is_graph || is_last))
        end_session(e, c);
    if (is_last)
        retire(e, c);
    if (!c || c->state == OCC_EXACT_FAILED)
        return;
    if (c->state == OCC_EXACT_READY && !start_session(e, c))
        give_up(e, c);
    c->launches++;
    c->in_flight++;
    c->is_graph = is_graph;
    launching = c;
}

static void after_launch(struct occ_exact *e)
{
    struct occ_exact_context *c = launching;
    launching = NULL;
    if (c && c->in_flight > 0 && --c->in_flight == 0)
        (void)pthread_cond_broadcast(&e->quiet);
}

static void context_goes(struct occ_exact *e, void *context)
{
    struct occ_exact_context *c = find_context(e, context);
    if (!c)
        return;
    end_session(e, c);
    release(e, c);
    c->state = OCC_EXACT_FREE;
}

/* The CUresult of a call that is over. */
static uint32_t result_of(const struct occ_callback_data *data)
{
    uint32_t result = UINT32_MAX;
    if (data->function_result)
        memcpy(&result, data->function_result, sizeof result);
    return result;
}

static bool capture_is_over(uint32_t result)
{
    return result == 0 || result == CAPTURE_INVALIDATED || result == CAPTURE_UNJOINED;
}

static void on_call(struct occ_exact *e, enum occ_profiler_call call, const struct occ_callback_data *data)
{
    bool enters = data->site == OCC_CALLBACK_ENTER;
    switch (call) {
    case OCC_PROFILER_LAUNCH:
    case OCC_PROFILER_GRAPH:
        if (enters)
            before_launch(e, data, call == OCC_PROFILER_GRAPH);
        else
            after_launch(e);
        break;
    case OCC_PROFILER_BEGIN: /* counted before it is one: from then on nothing may happen to it */
        if (enters)
            e->captures++;
        else if (e->captures > 0 && result_of(data) != 0)
            e->captures--;
        break;
    case OCC_PROFILER_END:
        if (!enters && e->captures > 0 && capture_is_over(result_of(data)))
            e->captures--;
        break;
    }
}

static void on_event(struct occ_exact *e, uint32_t domain, uint32_t id, const void *data)
{
    (void)pthread_mutex_lock(&e->lock);
    bool is_on = atomic_load(&e->is_on); /* it may have ended while we waited */
    if (is_on && domain == OCC_CALLBACK_RESOURCE)
        context_goes(e, ((const struct occ_callback_resource *)data)->context);
    for (size_t i = 0; is_on && domain == OCC_CALLBACK_DRIVER && i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].id == id)
            on_call(e, calls[i].call, data);
    (void)pthread_mutex_unlock(&e->lock);
}

/* A thread that is cancelled in here would leave `lock` locked for ever. */
static void on_callback(void *user_data, uint32_t domain, uint32_t id, const void *data)
{
    struct occ_exact *e = user_data;
    int saved = errno, cancel;
    if (is_inside || !data || !atomic_load(&e->is_on))
        return;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    is_inside = true;
    on_event(e, domain, id, data);
    is_inside = false;
    (void)pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

/* ---- the beginning ---- */

static const char *bind_functions(struct occ_exact *e)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *function = dlsym(e->cupti->handle, symbols[i].name);
        memcpy((char *)&e->call + symbols[i].offset, &function, sizeof function);
        if (!function) {
            (void)dlerror();
            return symbols[i].name;
        }
    }
    return NULL;
}

/* A call that this version of the library does not know is not made either. */
static bool watch_calls(struct occ_exact *e)
{
    CALL(e, subscribe, "callbacks", &e->subscriber, on_callback, e);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        (void)e->call.enable_callback(1, e->subscriber, OCC_CALLBACK_DRIVER, calls[i].id);
    uint32_t result = e->call.enable_callback(1, e->subscriber, OCC_CALLBACK_RESOURCE,
                                              OCC_RESOURCE_CONTEXT_DESTROY_STARTING);
    if (result == OCC_CUPTI_SUCCESS)
        return true;
    (void)e->call.unsubscribe(e->subscriber);
    describe(e, "callbacks", result);
    return false;
}

static bool begin_profiler(struct occ_exact *e)
{
    struct occ_params_none p = {.bytes = OCC_PARAMS_BYTES(occ_params_none, reserved)};
    uint32_t result = e->call.initialize(&p);
    if (result == OCC_CUPTI_SUCCESS)
        return true;
    (void)e->call.unsubscribe(e->subscriber);
    describe(e, "the profiler", result);
    return false;
}

bool occ_exact_start(struct occ_exact *exact, const struct occ_cupti *cupti, char reason[OCC_REASON_BYTES])
{
    struct occ_exact *e = exact;
    pthread_condattr_t monotonic;
    memset(e, 0, sizeof *e);
    (void)pthread_mutex_init(&e->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&e->quiet, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    e->cupti = cupti;
    e->last = &e->first;
    const char *missing = cupti->version >= OCC_CUPTI_VERSION_13_0 ? bind_functions(e) : NULL;
    if (cupti->version < OCC_CUPTI_VERSION_13_0)
        (void)snprintf(e->problem, sizeof e->problem,
                       "no exact values: libcupti (version %u) is older than CUDA 13.0", cupti->version);
    else if (missing)
        (void)snprintf(e->problem, sizeof e->problem, "no exact values: libcupti lacks %s", missing);
    else
        atomic_store(&e->is_on, watch_calls(e) && begin_profiler(e));
    e->problem_is_new = false;
    memcpy(reason, e->problem, sizeof e->problem);
    return atomic_load(&e->is_on);
}

/* ---- the helper's side ---- */

/* A thread of the program may hold it for as long as CUPTI likes. Not with a time limit: that is by the clock that people set, or
 * of newer C libraries. */
static bool lock_soon(struct occ_exact *e)
{
    const struct timespec nap = {.tv_nsec = HELPER_NAP_NS};
    uint32_t naps = 0;
    while (pthread_mutex_trylock(&e->lock) != 0) {
        if (naps++ == HELPER_MOST_NAPS)
            return false;
        (void)nanosleep(&nap, NULL);
    }
    return true;
}

struct occ_session *occ_exact_take(struct occ_exact *exact)
{
    if (!lock_soon(exact))
        return NULL;
    struct occ_session *first = exact->first;
    exact->first = NULL;
    exact->last = &exact->first;
    exact->waiting = 0;
    (void)pthread_mutex_unlock(&exact->lock);
    return first;
}

bool occ_exact_problem(struct occ_exact *exact, char reason[OCC_REASON_BYTES])
{
    reason[0] = '\0';
    if (!lock_soon(exact))
        return false;
    bool is_new = exact->problem_is_new;
    exact->problem_is_new = false;
    memcpy(reason, exact->problem, sizeof exact->problem);
    (void)pthread_mutex_unlock(&exact->lock);
    return is_new;
}

void occ_exact_retire(struct occ_exact *exact)
{
    atomic_store(&exact->is_retired, true);
}

void occ_exact_finish(struct occ_exact *exact)
{
    atomic_store(&exact->is_on, false);
    if (!lock_soon(exact))
        return;
    is_inside = true;
    for (uint32_t i = 0; i < OCC_EXACT_MOST_CONTEXTS; i++)
        end_session(exact, &exact->contexts[i]);
    (void)pthread_cond_broadcast(&exact->quiet); /* there is nothing to wait for any more */
    (void)pthread_mutex_unlock(&exact->lock);
    is_inside = false;
}

void occ_exact_stop(struct occ_exact *exact)
{
    occ_exact_finish(exact);
    (void)exact->call.unsubscribe(exact->subscriber);
}
