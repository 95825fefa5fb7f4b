/* See profiler.h. */
#include "profiler.h"

#include <stdio.h>

/* Maximum memory of the sessions that wait for the helper. */
#define WAITING_BYTES (UINT64_C(64) << 20)

#define NAP_NS    1000000L
#define UNLIMITED UINT32_MAX

static const char *const metric_names[] = {"sm__warps_active.sum", "sm__cycles_active.sum",
                                           "sm__cycles_elapsed.max", "sm__ctas_active.sum",
                                           "gpu__time_duration.sum"};
#define METRICS (sizeof metric_names / sizeof metric_names[0])
const struct occ_cupti_metrics occ_exact_metrics = {metric_names, METRICS};

uint64_t occ_exact_clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* ---- the lock ---- */

static _Thread_local uint32_t naps_left = UNLIMITED;

void occ_exact_limit_naps(uint32_t naps)
{
    naps_left = naps;
}

void occ_exact_unlimit_naps(void)
{
    naps_left = UNLIMITED;
}

bool occ_exact_nap(void)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    if (naps_left == 0)
        return false;
    naps_left -= naps_left != UNLIMITED;
    (void)nanosleep(&nap, NULL);
    return true;
}

bool occ_exact_lock(struct occ_exact *e)
{
    if (naps_left == UNLIMITED)
        return pthread_mutex_lock(&e->lock) == 0;
    while (pthread_mutex_trylock(&e->lock) != 0)
        if (!occ_exact_nap())
            return false;
    return true;
}

/* ---- problems ---- */

static void set_problem(struct occ_exact *e, const char *problem)
{
    if (!occ_exact_lock(e))
        return;
    (void)snprintf(e->problem, sizeof e->problem, "no exact values: %s", problem);
    e->problem_is_new = true;
    (void)pthread_mutex_unlock(&e->lock);
}

void occ_exact_fail(struct occ_exact *e, const char *what, uint32_t result)
{
    char problem[OCC_REASON_BYTES];
    if (occ_exact_is_stopped(e))
        return;
    (void)snprintf(problem, sizeof problem, "%s: error %u, %.120s", what, result,
                   occ_cupti_result_text(e->cupti, result));
    set_problem(e, problem);
}

/* Makes one call of CUPTI in a function that returns true on success; returns false on failure. */
#define CALL(e, what, call)                                                                                  \
    do {                                                                                                     \
        if (occ_exact_is_stopped(e))                                                                         \
            return false;                                                                                    \
        uint32_t result_ = (call);                                                                           \
        if (result_ != OCC_CUPTI_SUCCESS) {                                                                  \
            occ_exact_fail(e, what, result_);                                                                \
            return false;                                                                                    \
        }                                                                                                    \
    } while (0)

/* ---- a context ---- */

/* Initialises the profiler at the first launch: InitializeInjection is too early, since CUDA still
 * initialises the driver. A second call does nothing. */
static bool initialise(struct occ_exact *e)
{
    struct occ_params_none p = {.size = sizeof p};
    if (!atomic_load(&e->is_initialised))
        CALL(e, "the profiler", e->host.initialize(&p));
    atomic_store(&e->is_initialised, true);
    return true;
}

static bool configure(struct occ_exact *e, struct occ_exact_context *c)
{
    uint32_t device = 0;
    CALL(e, "the context's GPU", e->call.device_id(c->context, &device));
    struct occ_params_chip_name chip = {.size = sizeof chip, .device = device};
    CALL(e, "the GPU's chip", e->host.chip_name(&chip));
    /* Only a chip unknown to the library needs the availability image; others are in the library's own table.
     */
    struct occ_cupti_image availability;
    if (occ_exact_is_stopped(e))
        return false;
    (void)occ_cupti_availability(e->call.availability, (uintptr_t)c->context, &availability);
    c->host = (struct occ_cupti_host){.call = &e->host, .metrics = occ_exact_metrics};
    uint32_t result = occ_cupti_host_open(&c->host, OCC_PROFILER_TYPE_RANGE, chip.name, &availability);
    occ_cupti_image_free(&availability);
    CALL(e, "counters of this chip", result);
    if (c->host.passes == 1)
        return true;
    char problem[OCC_REASON_BYTES];
    (void)snprintf(problem, sizeof problem,
                   "the counters need %zu passes on this GPU, each of which would run the kernel",
                   c->host.passes);
    set_problem(e, problem);
    return false;
}

static bool enable(struct occ_exact *e, struct occ_exact_context *c)
{
    struct occ_params_enable p = {.size = sizeof p, .subject = (uintptr_t)c->context};
    CALL(e, "the range profiler", e->call.enable(&p));
    c->profiler = p.object;
    struct occ_params_range_data_size size = {.size = sizeof size,
                                              .object = c->profiler,
                                              .metrics = occ_exact_metrics,
                                              .max_ranges = OCC_SESSION_MAX_RANGES,
                                              .max_nodes = OCC_SESSION_MAX_RANGES};
    CALL(e, "size of the counter data", e->call.data_size(&size));
    CALL(e, "memory for counter data",
         occ_cupti_image_new(&c->data, size.data_size) ? OCC_CUPTI_SUCCESS : OCC_CUPTI_ERROR_OUT_OF_MEMORY);
    return true;
}

void occ_exact_prepare(struct occ_exact *e, struct occ_exact_context *c)
{
    if (initialise(e) && configure(e, c) && enable(e, c))
        c->state = OCC_EXACT_READY;
    else
        occ_exact_give_up(e, c);
}

void occ_exact_release(struct occ_exact *e, struct occ_exact_context *c)
{
    struct occ_params_object p = {.size = sizeof p, .object = c->profiler};
    if (occ_exact_is_stopped(e))
        return;
    if (c->profiler)
        (void)e->call.disable(&p);
    c->profiler = NULL;
    occ_cupti_host_close(&c->host);
    occ_cupti_image_free(&c->data);
    if (c->session)
        occ_session_free(c->session);
    c->session = NULL;
}

void occ_exact_give_up(struct occ_exact *e, struct occ_exact_context *c)
{
    occ_exact_release(e, c);
    c->state = OCC_EXACT_FAILED;
}

/* ---- its sessions ---- */

static bool start_session(struct occ_exact *e, struct occ_exact_context *c)
{
    struct occ_params_data data = {.size = sizeof data, .object = c->profiler, .data = c->data};
    CALL(e, "initialisation of the counter data", e->call.data(&data));
    struct occ_params_range_config config = {.size = OCC_RANGE_CONFIG_SIZE,
                                             .object = c->profiler,
                                             .config = c->host.config,
                                             .data = c->data,
                                             .range = OCC_PROFILER_AUTO_RANGE,
                                             .replay = OCC_PROFILER_KERNEL_REPLAY,
                                             .max_ranges = OCC_SESSION_MAX_RANGES,
                                             .nesting_levels = 1,
                                             .min_nesting_level = 1};
    CALL(e, "configuration of the range profiler", e->call.set_config(&config));
    c->session = occ_session_new();
    CALL(e, "memory for a session", c->session ? OCC_CUPTI_SUCCESS : OCC_CUPTI_ERROR_OUT_OF_MEMORY);
    c->strays = atomic_load(&e->strays);
    c->session->is_unpaired = atomic_load(&e->open_strays) > 0;
    struct occ_params_object start = {.size = sizeof start, .object = c->profiler};
    CALL(e, "start of the range profiler", e->call.start(&start));
    c->until_ns = occ_exact_clock_ns(CLOCK_MONOTONIC) + OCC_EXACT_SESSION_NS;
    c->launches = 0;
    c->is_graph = false;
    c->state = OCC_EXACT_RUNNING;
    return true;
}

static bool read_ranges(struct occ_exact *e, struct occ_exact_context *c, struct occ_session *s)
{
    for (uint32_t i = 0; i < s->ranges; i++) {
        double v[METRICS] = {0};
        CALL(e, "a launch's counters", occ_cupti_host_evaluate(&c->host, &c->data, i, v));
        s->counts[i] = (struct occ_range_counts){v[0], v[1], v[2], v[3], v[4]};
    }
    return true;
}

uint32_t occ_exact_max_waiting(uint64_t page_bytes)
{
    uint64_t pages = (sizeof(struct occ_session) + page_bytes - 1) / page_bytes;
    return (uint32_t)(WAITING_BYTES / (pages * page_bytes));
}

static bool append(struct occ_exact_queue *q, struct occ_session *s)
{
    if (q->n >= q->max)
        return false;
    *q->last = s;
    q->last = &s->next;
    q->n++;
    return true;
}

/* Queues a session for the helper. Returns false if the queue is full or the lock not free in time. */
static bool queue(struct occ_exact *e, struct occ_session *s)
{
    bool has_lock = occ_exact_lock(e);
    bool is_queued = has_lock && append(&e->queue, s);
    if (has_lock)
        (void)pthread_mutex_unlock(&e->lock);
    if (!is_queued)
        (void)atomic_fetch_add(&e->queue.dropped, s->ranges);
    return is_queued;
}

/* Reads the session's ranges. With dropped ranges none is usable, since the order no longer identifies a
 * call. */
static bool read_session(struct occ_exact *e, struct occ_exact_context *c, struct occ_session *s)
{
    struct occ_params_range_decode decode = {.size = sizeof decode, .object = c->profiler};
    CALL(e, "decoding the counters", e->call.decode(&decode));
    struct occ_params_range_info info = {
        .size = sizeof info, .data = c->data.bytes, .data_size = c->data.size};
    CALL(e, "number of ranges", e->call.info(&info));
    bool is_whole = decode.dropped == 0 && info.ranges <= OCC_SESSION_MAX_RANGES;
    s->ranges = is_whole ? (uint32_t)info.ranges : 0;
    s->is_unpaired |= !is_whole;
    return read_ranges(e, c, s);
}

static bool stop_session(struct occ_exact *e, struct occ_exact_context *c, struct occ_session *s)
{
    struct occ_params_range_stop stop = {.size = OCC_RANGE_STOP_SIZE, .object = c->profiler};
    c->state = OCC_EXACT_READY;
    CALL(e, "end of the range profiler", e->call.stop(&stop));
    return read_session(e, c, s);
}

/* Queues the session even if CUPTI fails: launches that wait in the helper need its calls. */
static bool end_session(struct occ_exact *e, struct occ_exact_context *c)
{
    struct occ_session *s = c->session;
    c->session = NULL;
    bool is_read = stop_session(e, c, s);
    s->is_unpaired |= !is_read || c->strays != atomic_load(&e->strays);
    if (!queue(e, s))
        occ_session_free(s);
    return is_read;
}

void occ_exact_start_session(struct occ_exact *e, struct occ_exact_context *c)
{
    if (c->state == OCC_EXACT_READY && !start_session(e, c))
        occ_exact_give_up(e, c);
}

void occ_exact_end_session(struct occ_exact *e, struct occ_exact_context *c)
{
    if (c->state == OCC_EXACT_RUNNING && !end_session(e, c))
        occ_exact_give_up(e, c);
}
