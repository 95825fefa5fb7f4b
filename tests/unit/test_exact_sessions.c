/*
 * injector/exact: when sessions of the range profiler begin and end, and that the program never waits or
 * breaks for it. The program itself is the libcupti that is bound: doubles of the functions of
 * cupti/functions.h, which only keep count.
 */
#include "injector/exact/profiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "injector/exact/driver_calls.h"

#define STREAM     UINT64_C(0x5000) /* unless a test says otherwise */
#define PER_THREAD UINT64_C(2)      /* CU_STREAM_PER_THREAD */

#define SESSION   384 /* launches of a full session */
#define LAUNCH    307 /* cuLaunchKernel */
#define GRAPH     514 /* cuGraphLaunch */
#define DEVICES   480 /* cuLaunchCooperativeKernelMultiDevice */
#define BEGIN     539 /* cuStreamBeginCapture_v2 */
#define END       497 /* cuStreamEndCapture */
#define DESTROY   326 /* cuStreamDestroy_v2 */
#define UNJOINED  904u
#define UNMATCHED 903u

static struct occ_exact *exact;

static struct {
    occ_callback *callback;
    void *user_data;
    atomic_int starts, stops, subscribers, initialised;
    atomic_bool capturing, broke_a_capture, was_called_under_lock;
    bool time_passes;                          /* for sessions */
    atomic_bool is_stopped;                    /* the guest's word */
    atomic_bool is_torn_down, was_called_late; /* each call is forbidden, and one was made */
    void (*in_stop)(void); /* another thread's doing, for which cuptiRangeProfilerStop waits */
    uint32_t subscribe_result, enable_result, initialise_result;
    atomic_int ranges;            /* of each session */
    _Atomic uint32_t correlation; /* of the call that is reported */
    uint64_t stream;              /* the call's first parameter */
    bool has_no_parameters;
} fake;

/* Every call of CUPTI. The lock is this thread's own, so trying it is no question of time. */
static void enter_cupti(void)
{
    if (fake.is_stopped || fake.is_torn_down)
        fake.was_called_late = true;
    if (!exact)
        return;
    if (pthread_mutex_trylock(&exact->lock) == 0)
        pthread_mutex_unlock(&exact->lock);
    else
        fake.was_called_under_lock = true;
}

#define FAKE(name, ...)                                                                                      \
    uint32_t name(__VA_ARGS__);                                                                              \
    __attribute__((visibility("default"))) uint32_t name(__VA_ARGS__)

FAKE(cuptiSubscribe, void **subscriber, occ_callback *callback, void *user_data)
{
    if (fake.subscribe_result != 0)
        return fake.subscribe_result;
    fake.subscribers++;
    fake.callback = callback;
    fake.user_data = user_data;
    *subscriber = &fake;
    return 0;
}
FAKE(cuptiUnsubscribe, void *subscriber)
{
    enter_cupti();
    assert_ptr_equal(subscriber, &fake);
    fake.subscribers--;
    return 0;
}
FAKE(cuptiProfilerInitialize, struct occ_params_none *p)
{
    enter_cupti();
    (void)p;
    fake.initialised += fake.initialise_result == 0;
    return fake.initialise_result;
}
FAKE(cuptiDeviceGetChipName, struct occ_params_chip_name *p)
{
    enter_cupti();
    p->name = "a chip";
    return 0;
}
FAKE(cuptiProfilerHostGetConfigImageSize, struct occ_params_config *p)
{
    enter_cupti();
    p->config.size = 64;
    return 0;
}
FAKE(cuptiProfilerHostGetNumOfPasses, struct occ_params_passes *p)
{
    enter_cupti();
    p->passes = 1;
    return 0;
}
FAKE(cuptiProfilerHostEvaluateToGpuValues, struct occ_params_evaluate *p)
{
    enter_cupti();
    for (size_t i = 0; i < p->metrics.count; i++)
        p->values[i] = 1;
    return 0;
}
FAKE(cuptiRangeProfilerEnable, struct occ_params_enable *p)
{
    enter_cupti();
    p->object = &fake;
    return 0;
}
FAKE(cuptiRangeProfilerGetCounterDataSize, struct occ_params_range_data_size *p)
{
    enter_cupti();
    p->data_size = 64;
    return 0;
}
FAKE(cuptiRangeProfilerStart, void *p)
{
    enter_cupti();
    (void)p;
    fake.starts++;
    if (fake.capturing)
        fake.broke_a_capture = true;
    return 0;
}
FAKE(cuptiRangeProfilerStop, void *p)
{
    enter_cupti();
    (void)p;
    fake.stops++;
    if (fake.in_stop)
        fake.in_stop();
    if (fake.capturing)
        fake.broke_a_capture = true;
    return 0;
}
FAKE(cuptiRangeProfilerGetCounterDataInfo, struct occ_params_range_info *p)
{
    enter_cupti();
    p->ranges = (size_t)fake.ranges;
    return 0;
}

/* Defines a call of CUPTI that only succeeds. */
#define SUCCEEDS(name)                                                                                       \
    FAKE(name, void *p)                                                                                      \
    {                                                                                                        \
        (void)p;                                                                                             \
        enter_cupti();                                                                                       \
        return 0;                                                                                            \
    }
SUCCEEDS(cuptiProfilerGetCounterAvailability)
SUCCEEDS(cuptiProfilerHostInitialize)
SUCCEEDS(cuptiProfilerHostDeinitialize)
SUCCEEDS(cuptiProfilerHostConfigAddMetrics)
SUCCEEDS(cuptiProfilerHostGetConfigImage)
SUCCEEDS(cuptiRangeProfilerDisable)
SUCCEEDS(cuptiRangeProfilerCounterDataImageInitialize)
SUCCEEDS(cuptiRangeProfilerSetConfig)
SUCCEEDS(cuptiRangeProfilerDecodeData)
FAKE(cuptiEnableCallback, uint32_t enable, void *subscriber, uint32_t domain, uint32_t id)
{
    enter_cupti();
    (void)enable, (void)subscriber, (void)id;
    return domain == OCC_CALLBACK_RESOURCE ? fake.enable_result : 0;
}
FAKE(cuptiGetDeviceId, void *context, uint32_t *ret_device)
{
    enter_cupti();
    (void)context;
    *ret_device = 0;
    return 0;
}

/* ---- the program ---- */

static struct occ_cupti cupti;

static int set_up(void **state)
{
    char reason[OCC_REASON_BYTES];
    *state = NULL;
    memset(&fake, 0, sizeof fake);
    fake.stream = STREAM;
    cupti = (struct occ_cupti){.handle = dlopen(NULL, RTLD_NOW), .version = OCC_CUPTI_VERSION_13_0};
    exact = occ_exact_library.start(&cupti, &fake.is_stopped, reason);
    return exact ? 0 : -1;
}

static int drop(void *context, struct occ_record_measured *record)
{
    (void)context, (void)record;
    return 0;
}
static bool take_launch(void *context, struct occ_ring_launch *launch)
{
    (void)context, (void)launch;
    return true;
}
static void lose(void *context, enum occ_loss_cause cause, uint64_t n)
{
    (void)context, (void)cause, (void)n;
}

/* A round of the helper's. */
static struct occ_exact_report round_of_helper(void)
{
    struct occ_exact_report report;
    const struct occ_exact_sink sink = {NULL, drop, take_launch, lose};
    occ_exact_library.poll(exact, false, &sink, &report);
    return report;
}

/* The sessions that ended since the last time: the oldest is copied, all go to the matching. */
static unsigned int take_sessions(struct occ_session *ret_oldest)
{
    unsigned int n = 0;
    if (exact->queue.first && ret_oldest)
        *ret_oldest = *exact->queue.first;
    for (const struct occ_session *s = exact->queue.first; s; s = s->next)
        n++;
    (void)round_of_helper();
    assert_null(exact->queue.first);
    return n;
}

static int tear_down(void **state)
{
    (void)state;
    fake.in_stop = NULL;
    occ_exact_library.finish(exact, true);
    (void)take_sessions(NULL);
    assert_false(fake.was_called_under_lock);
    assert_false(fake.was_called_late);
    exact = NULL;
    return dlclose(cupti.handle);
}

/* Their seconds do not pass, however slow the machine is. */
static void keep_sessions(void)
{
    pthread_mutex_lock(&exact->lock);
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++)
        exact->contexts[i].until_ns = UINT64_MAX;
    pthread_mutex_unlock(&exact->lock);
}

static void call(uint32_t id, enum occ_callback_site site, uint32_t result, uintptr_t context)
{
    const struct occ_callback_data data = {.site = site,
                                           .function_result = &result,
                                           .function_parameters =
                                               fake.has_no_parameters ? NULL : &fake.stream,
                                           .context = (void *)(context << 12),
                                           .context_id = (uint32_t)context,
                                           .correlation = fake.correlation};
    fake.callback(fake.user_data, OCC_CALLBACK_DRIVER, id, &data);
    if (!fake.time_passes && site == OCC_CALLBACK_ENTER)
        keep_sessions();
}

static void launch(uint32_t id, uintptr_t context)
{
    fake.correlation++;
    call(id, OCC_CALLBACK_ENTER, 0, context);
    call(id, OCC_CALLBACK_EXIT, 0, context);
}

static void fill_session(void)
{
    for (int i = 0; i < SESSION; i++)
        launch(LAUNCH, 1);
    assert_int_equal(fake.starts, 1);
    assert_int_equal(fake.stops, 0);
}

static void begin_capture_in(uintptr_t context, uint32_t result)
{
    call(BEGIN, OCC_CALLBACK_ENTER, 0, context);
    fake.capturing = result == 0; /* as the driver does it, between the two */
    call(BEGIN, OCC_CALLBACK_EXIT, result, context);
}

/* Begins a capture in context 9, which launches nothing. */
static void begin_capture(uint32_t result)
{
    begin_capture_in(9, result);
}

static void end_capture(uint32_t result, bool is_over)
{
    call(END, OCC_CALLBACK_ENTER, 0, 1);
    fake.capturing = fake.capturing && !is_over;
    call(END, OCC_CALLBACK_EXIT, result, 1);
}

static void destroy_stream(uint32_t result)
{
    call(DESTROY, OCC_CALLBACK_ENTER, 0, 1);
    fake.capturing = fake.capturing && result != 0;
    call(DESTROY, OCC_CALLBACK_EXIT, result, 1);
}

static void run_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *launch_in_thread(void *arg)
{
    launch(LAUNCH, 1);
    pthread_testcancel();
    return arg;
}

/* Returns a thread that waits: its launch must end the full session first, while the calling thread is inside
 * a launch. */
static pthread_t thread_that_waits(void)
{
    pthread_t thread;
    bool waits = false;
    for (int i = 0; i < SESSION - 1; i++)
        launch(LAUNCH, 1);
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    assert_int_equal(pthread_create(&thread, NULL, launch_in_thread, NULL), 0);
    while (!waits && fake.stops == 0) {
        sched_yield();
        pthread_mutex_lock(&exact->lock);
        waits = exact->contexts[0].is_claimed;
        pthread_mutex_unlock(&exact->lock);
    }
    return thread;
}

/* ---- tests ---- */

static void a_full_session_ends_with_the_next_launch(void **state)
{
    (void)state;
    fill_session();
    launch(LAUNCH, 1);
    assert_int_equal(fake.starts, 2);
    assert_int_equal(fake.stops, 1);
    launch(GRAPH, 1); /* runs in none */
    assert_int_equal(fake.stops, 2);
    launch(GRAPH, 1);
    assert_int_equal(fake.starts, 2);
    launch(LAUNCH, 1);
    assert_int_equal(fake.starts, 3);
    assert_int_equal(fake.stops, 2);
    assert_int_equal(take_sessions(NULL), 2);
}

/* A killed program loses the launches of its open session, so a session is kept short. */
static void a_session_ends_with_the_first_launch_after_a_second(void **state)
{
    (void)state;
    fake.time_passes = true;
    uint64_t *until_ns = &exact->contexts[0].until_ns, before_ns = occ_exact_clock_ns(CLOCK_MONOTONIC);
    launch(LAUNCH, 1);
    assert_in_range(*until_ns, before_ns + OCC_EXACT_SESSION_NS,
                    occ_exact_clock_ns(CLOCK_MONOTONIC) + OCC_EXACT_SESSION_NS);
    *until_ns = UINT64_MAX;
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    *until_ns = occ_exact_clock_ns(CLOCK_MONOTONIC);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    assert_int_equal(fake.starts, 2);
}

/* The helper gets the calls of three launches in order; the driver refuses the second. */
static void a_session_has_its_calls_in_their_order(void **state)
{
    static struct occ_session s;
    (void)state;
    fake.ranges = 2;
    launch(LAUNCH, 1);
    fake.correlation = 40;
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    call(LAUNCH, OCC_CALLBACK_EXIT, 1, 1);
    launch(LAUNCH, 1);
    launch(LAUNCH, 2); /* another context's */
    launch(GRAPH, 1);
    assert_int_equal(take_sessions(&s), 1);
    assert_false(s.is_unpaired);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.ranges, 2);
    assert_int_equal(s.calls[0].correlation, 1);
    assert_int_equal(s.calls[1].correlation, 40);
    assert_int_equal(s.calls[2].correlation, 41);
    for (int i = 0; i < 3; i++) {
        assert_true(s.calls[i].has_returned && !s.calls[i].may_be_captured);
        assert_int_equal(s.calls[i].is_refused, i == 1);
        assert_true(s.calls[i].start_ns > UINT64_C(1700000000000000000));
        assert_true(i == 0 || s.calls[i].start_ns >= s.calls[i - 1].start_ns);
    }
    assert_int_equal(exact->matching.ranges, 2);
}

static void a_call_during_a_capture_may_be_captured(void **state)
{
    static struct occ_session s;
    (void)state;
    launch(LAUNCH, 1);
    begin_capture(0);
    launch(LAUNCH, 1);
    end_capture(0, true);
    launch(GRAPH, 1);
    assert_int_equal(take_sessions(&s), 1);
    assert_int_equal(s.n, 2);
    assert_true(!s.calls[0].may_be_captured && s.calls[1].may_be_captured && !s.is_unpaired);
    launch(LAUNCH, 1);
    begin_capture(0);
    launch(GRAPH, 1); /* in the session, since it may not end: any number of ranges */
    end_capture(0, true);
    launch(LAUNCH, 1);
    assert_int_equal(take_sessions(&s), 1);
    assert_true(s.is_unpaired);
    assert_false(fake.broke_a_capture);
}

/* A launch waits while another thread's launch in its context is in progress. */
static void launches_of_threads_take_turns(void **state)
{
    pthread_t thread;
    (void)state;
    launch(LAUNCH, 1);
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    assert_int_equal(pthread_create(&thread, NULL, launch_in_thread, NULL), 0);
    pthread_mutex_lock(&exact->lock);
    assert_int_equal(exact->contexts[0].session->n, 2);
    pthread_mutex_unlock(&exact->lock);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(exact->contexts[0].session->n, 3);
    assert_false(exact->contexts[0].session->is_unpaired);
}

static void *graph_in_thread(void *arg)
{
    bool *ret_is_crowded = arg;
    call(GRAPH, OCC_CALLBACK_ENTER, 0, 1);
    *ret_is_crowded = exact->contexts[0].is_crowded;
    call(GRAPH, OCC_CALLBACK_EXIT, 0, 1);
    return NULL;
}

/* After the first wait the context counts as crowded: later launches do not wait, and the session has no
 * values because the order of its launches is unknown. */
static void a_launch_that_keeps_others_waiting_leaves_no_values(void **state)
{
    static struct occ_session s;
    pthread_t thread;
    (void)state;
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread, NULL, launch_in_thread, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(exact->contexts[0].is_crowded);
    }
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    launch(GRAPH, 1);
    assert_int_equal(take_sessions(&s), 1);
    assert_true(s.is_unpaired);
    assert_int_equal(s.n, 3);
}

/* Launches take turns again once the slow launch has returned, or once its session is over. */
static void turns_go_on_after_a_launch_that_lasted(void **state)
{
    bool *is_crowded = &exact->contexts[0].is_crowded, is_crowded_then = true;
    pthread_t thread;
    (void)state;
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    *is_crowded = true;
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    assert_false(*is_crowded);
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    *is_crowded = true;
    assert_int_equal(pthread_create(&thread, NULL, graph_in_thread, &is_crowded_then), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(is_crowded_then);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
}

static void a_capture_counts_from_before_its_beginning(void **state)
{
    pthread_t thread;
    (void)state;
    fill_session();
    call(BEGIN, OCC_CALLBACK_ENTER, 0, 9);
    fake.capturing = true;
    assert_int_equal(pthread_create(&thread, NULL, launch_in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    call(BEGIN, OCC_CALLBACK_EXIT, 0, 9);
    launch(LAUNCH, 1);
    assert_false(fake.broke_a_capture);
    end_capture(0, true);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
}

static void *capture_in_thread(void *arg)
{
    begin_capture(0);
    return arg;
}

static void let_another_thread_capture(void)
{
    pthread_t thread;
    fake.in_stop = NULL;
    assert_int_equal(pthread_create(&thread, NULL, capture_in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The program's thread waits half a second for the end of a session, no longer: the next one must not begin.
 */
static void a_capture_that_begins_between_two_steps_is_left_alone(void **state)
{
    (void)state;
    fill_session();
    fake.in_stop = let_another_thread_capture;
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    assert_int_equal(fake.starts, 1);
    end_capture(0, true);
    launch(LAUNCH, 1);
    assert_int_equal(fake.starts, 2);
}

static void a_capture_that_was_refused_is_none(void **state)
{
    (void)state;
    fill_session();
    begin_capture(1);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
}

static void a_capture_that_begins_while_a_launch_waits_is_left_alone(void **state)
{
    (void)state;
    pthread_t thread = thread_that_waits();
    begin_capture(0);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(fake.broke_a_capture);
    end_capture(0, true);
}

/* The session stays as it was, and its launches take turns as before. */
static void a_session_that_could_not_end_goes_on(void **state)
{
    static struct occ_session s;
    (void)state;
    pthread_t thread = thread_that_waits();
    begin_capture(0);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end_capture(0, true);
    assert_int_equal(fake.stops, 0);
    launch(LAUNCH, 1);
    assert_int_equal(take_sessions(&s), 1);
    assert_false(s.is_unpaired);
    assert_int_equal(s.n, SESSION + 1);
    for (int i = 0; i <= SESSION; i++)
        assert_true(s.calls[i].has_returned && s.calls[i].may_be_captured == (i == SESSION));
    assert_int_equal(exact->strays + exact->open_strays, 0);
}

/* Launches in a session that must not end have no times for as long. */
static void a_capture_that_never_ends_holds_no_session(void **state)
{
    static struct occ_session s;
    (void)state;
    launch(LAUNCH, 1);
    begin_capture_in(1, 0);
    assert_int_equal(fake.stops, 1);
    launch(LAUNCH, 1);
    launch(LAUNCH, 2);
    assert_int_equal(fake.starts, 1);
    assert_false(fake.broke_a_capture);
    assert_int_equal(take_sessions(&s), 1);
    assert_true(!s.is_unpaired && s.n == 1);
}

static void a_capture_ends_when_it_cannot_be_saved(void **state)
{
    (void)state;
    fill_session();
    begin_capture(0);
    end_capture(UNMATCHED, false);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    end_capture(UNJOINED, true);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    assert_false(fake.broke_a_capture);
}

/* A destroyed stream ends its capture. No later call could end the capture, and an open capture keeps every
 * session from ending. */
static void a_capture_ends_with_its_stream(void **state)
{
    (void)state;
    fill_session();
    begin_capture(0);
    destroy_stream(1); /* refused */
    launch(LAUNCH, 1);
    fake.stream = STREAM + 16;
    call(DESTROY, OCC_CALLBACK_ENTER, 0, 1); /* of another stream */
    call(DESTROY, OCC_CALLBACK_EXIT, 0, 1);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    fake.stream = STREAM;
    destroy_stream(0);
    end_capture(1, true); /* an error of the program */
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    begin_capture(0);
    end_capture(0, true);
    assert_int_equal(exact->captures.n, 0);
    assert_false(fake.broke_a_capture);
}

static void destroy_context(uintptr_t context)
{
    const struct occ_callback_resource gone = {.context = (void *)(context << 12)};
    fake.callback(fake.user_data, OCC_CALLBACK_RESOURCE, OCC_RESOURCE_CONTEXT_DESTROY_STARTING, &gone);
}

/* The default stream of a thread belongs to the current context. */
static void a_capture_ends_with_its_context(void **state)
{
    (void)state;
    fill_session();
    fake.stream = PER_THREAD;
    begin_capture(0);
    destroy_context(8);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    destroy_context(9);
    fake.capturing = false;
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
}

/* A stream with a name may belong to another context than the thread's current one. */
static void a_capture_outlives_the_context_of_its_call(void **state)
{
    (void)state;
    fill_session();
    begin_capture(0);
    destroy_context(9);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    assert_false(fake.broke_a_capture);
    end_capture(0, true);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
}

/* The driver has destroyed the stream, another thread's new stream has its handle, and the callback of the
 * destruction comes last. */
static void a_capture_in_a_stream_with_a_used_handle_counts(void **state)
{
    (void)state;
    fill_session();
    begin_capture(0);
    call(DESTROY, OCC_CALLBACK_ENTER, 0, 1);
    run_thread(capture_in_thread, NULL);
    call(DESTROY, OCC_CALLBACK_EXIT, 0, 1);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    end_capture(0, true);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    assert_false(fake.broke_a_capture);
}

static void captures_without_a_name_count(void **state)
{
    (void)state;
    fill_session();
    for (uint64_t i = 0; i < OCC_CAPTURES_MAX + 2; i++) {
        fake.stream = STREAM + i;
        begin_capture(0);
    }
    destroy_stream(1);
    for (uint64_t i = 1; i < OCC_CAPTURES_MAX + 2; i++) {
        fake.stream = STREAM + i;
        end_capture(0, false);
    }
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    fake.stream = STREAM;
    end_capture(0, true);
    fake.has_no_parameters = true;
    begin_capture(0);
    begin_capture(1);
    fake.capturing = true;
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    end_capture(0, true);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    assert_false(fake.broke_a_capture);
}

/* Each thread has a stream of this handle, which no other thread can name. */
static void a_capture_of_a_thread_s_stream_ends_with_the_thread(void **state)
{
    (void)state;
    fill_session();
    fake.stream = PER_THREAD;
    begin_capture(0);
    run_thread(capture_in_thread, NULL);
    assert_int_equal(exact->captures.n, 1);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    call(END, OCC_CALLBACK_ENTER, 0, 9);
    call(END, OCC_CALLBACK_EXIT, 0, 9);
    fake.capturing = false;
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
}

static void no_session_begins_after_the_end(void **state)
{
    (void)state;
    pthread_t thread = thread_that_waits();
    occ_exact_library.finish(exact, true);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(fake.starts, fake.stops);
    launch(LAUNCH, 1);
    assert_int_equal(fake.starts, fake.stops);
}

/* A CUPTI that hung lets the helper go while the exit handlers run, and other threads launch. */
static void nothing_is_called_after_the_guest_has_stopped(void **state)
{
    (void)state;
    fill_session();
    fake.is_stopped = true;
    occ_exact_library.finish(exact, true);
    launch(LAUNCH, 1);
    launch(GRAPH, 1);
    launch(LAUNCH, 2);
    destroy_context(1);
    (void)round_of_helper();
    assert_int_equal(fake.stops, 0);
    assert_false(fake.was_called_late);
}

static void stop_guest(void)
{
    fake.is_stopped = true;
}

/* Stopping a session is several calls; the ranges of this one are lost. */
static void the_guest_may_stop_between_two_calls(void **state)
{
    static struct occ_session s;
    (void)state;
    fake.ranges = SESSION;
    fill_session();
    fake.in_stop = stop_guest;
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    assert_int_equal(fake.starts, 1);
    assert_false(fake.was_called_late);
    assert_int_equal(take_sessions(&s), 1);
    assert_true(s.is_unpaired);
    assert_int_equal(s.ranges, 0);
}

static void *finish_in_thread(void *arg)
{
    occ_exact_library.finish(exact, true);
    fake.is_torn_down = true; /* CUPTI's exit handlers follow */
    return arg;
}

static void let_the_program_end(void)
{
    pthread_t helper;
    fake.in_stop = NULL;
    assert_int_equal(pthread_create(&helper, NULL, finish_in_thread, NULL), 0);
    assert_int_equal(pthread_join(helper, NULL), 0);
}

/* The program's end waits 50 ms for a thread inside CUPTI, which then finds itself alone. */
static void a_thread_inside_cupti_at_the_end_calls_nothing_more(void **state)
{
    (void)state;
    fill_session();
    fake.in_stop = let_the_program_end;
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    assert_false(fake.was_called_late);
}

/* Another client of CUPTI has interrupted us. */
static void the_end_leaves_cupti_alone_if_it_must(void **state)
{
    (void)state;
    launch(LAUNCH, 1);
    fake.is_torn_down = true;
    occ_exact_library.finish(exact, false);
    launch(LAUNCH, 1);
    launch(GRAPH, 1);
    assert_false(fake.was_called_late);
}

static void a_cancelled_thread_leaves_no_lock(void **state)
{
    void *result = NULL;
    (void)state;
    pthread_t thread = thread_that_waits();
    assert_int_equal(pthread_cancel(thread), 0);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(pthread_mutex_trylock(&exact->lock), 0);
    pthread_mutex_unlock(&exact->lock);
    assert_int_equal(fake.stops, 1); /* the thread ended the session before its cancellation */
}

/* Checks which sessions that ended since the last check have values, oldest first: '1' yes, '0' no. */
static void assert_sessions(const char *expected)
{
    char got[8] = "";
    size_t n = 0;
    for (const struct occ_session *s = exact->queue.first; s && n < sizeof got - 1; s = s->next)
        got[n++] = s->is_unpaired ? '0' : '1';
    assert_string_equal(got, expected);
    (void)take_sessions(NULL);
}

static void one_session(uintptr_t context)
{
    launch(LAUNCH, context);
    launch(GRAPH, context);
}

/* Threads that are cancelled inside the driver: the call never returns. */
static void *end_in_launch(void *arg)
{
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1); /* nested */
    pthread_exit(arg);
}

static void *end_in_several(void *arg)
{
    call(DEVICES, OCC_CALLBACK_ENTER, 0, 1);
    pthread_exit(arg);
}

static void *end_in_capture(void *arg)
{
    call(BEGIN, OCC_CALLBACK_ENTER, 0, 9);
    pthread_exit(arg);
}

/* The cancelled thread's launch may have begun: its call counts as not returned. Later sessions are sure. */
static void a_cancelled_thread_leaves_no_launch_in_flight(void **state)
{
    static struct occ_session s;
    (void)state;
    fake.ranges = 1;
    launch(LAUNCH, 1);
    run_thread(end_in_launch, NULL);
    assert_int_equal(exact->contexts[0].in_flight, 0);
    launch(GRAPH, 1);
    assert_int_equal(take_sessions(&s), 1);
    assert_int_equal(s.n, 2);
    assert_true(!s.is_unpaired && s.calls[0].has_returned && !s.calls[1].has_returned);
    run_thread(end_in_several, NULL);
    assert_int_equal(exact->open_strays, 0);
    one_session(1);
    assert_sessions("1");
}

/* A thread that exits inside the begin call may have begun the capture: the capture counts as begun. */
static void a_cancelled_thread_leaves_a_capture(void **state)
{
    (void)state;
    fill_session();
    run_thread(end_in_capture, NULL);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 0);
    destroy_stream(0);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
}

/* A thread that was stopped while it held the lock. */
static sem_t is_held, may_release;

static void *hold_the_lock(void *arg)
{
    pthread_mutex_lock(&exact->lock);
    (void)sem_post(&is_held);
    (void)sem_wait(&may_release);
    pthread_mutex_unlock(&exact->lock);
    return arg;
}

static pthread_t holder;

static void let_another_thread_hold_the_lock(void)
{
    fake.in_stop = NULL;
    assert_int_equal(pthread_create(&holder, NULL, hold_the_lock, NULL), 0);
    assert_int_equal(sem_wait(&is_held), 0);
}

/* The program's end: the helper goes on without the lock, and without the session that it has ended. */
static void the_end_does_not_wait_for_the_lock(void **state)
{
    (void)state;
    assert_int_equal(sem_init(&is_held, 0, 0) | sem_init(&may_release, 0, 0), 0);
    fake.ranges = 1;
    launch(LAUNCH, 1);
    launch(LAUNCH, 2);
    fake.in_stop = let_another_thread_hold_the_lock;
    occ_exact_library.finish(exact, true);
    assert_int_equal(fake.stops, 1);
    fake.was_called_under_lock = false; /* it was the other thread's */
    assert_int_equal(sem_post(&may_release), 0);
    assert_int_equal(pthread_join(holder, NULL), 0);
    (void)round_of_helper();
    assert_int_equal(exact->matching.unpaired, 1);
    assert_int_equal(sem_destroy(&is_held) | sem_destroy(&may_release), 0);
}

/* The lock is held, as by a thread that CUPTI does not let go: who calls this has the helper's place. */
static void the_helper_does_not_wait_for_the_lock(void **state)
{
    (void)state;
    launch(LAUNCH, 1);
    launch(GRAPH, 1);
    launch(LAUNCH, 1);
    assert_int_equal(fake.stops, 1);
    pthread_mutex_lock(&exact->lock);
    struct occ_exact_report report = round_of_helper();
    assert_non_null(exact->queue.first); /* the session that has ended stays where it is */
    assert_false(report.is_new);
    assert_string_equal(report.reason, "");
    occ_exact_library.finish(exact, true);
    pthread_mutex_unlock(&exact->lock);
    launch(GRAPH, 1);
    assert_int_equal(fake.starts, 2);
    assert_int_equal(fake.stops, 1);
}

static void retired_sessions_end_with_the_next_launch(void **state)
{
    (void)state;
    launch(LAUNCH, 1);
    launch(LAUNCH, 2);
    occ_exact_library.retire(exact);
    assert_int_equal(fake.stops, 0); /* not by the helper */
    begin_capture(0);
    launch(LAUNCH, 2);
    assert_int_equal(fake.stops, 0);
    end_capture(0, true);
    launch(LAUNCH, 2);
    launch(LAUNCH, 3);
    assert_int_equal(fake.stops, 1);
    assert_true(exact->is_on);
    launch(LAUNCH, 1);
    launch(LAUNCH, 1);
    assert_int_equal(fake.starts, 2);
    assert_int_equal(fake.stops, 2);
    assert_false(exact->is_on);
    assert_int_equal(take_sessions(NULL), 2);
}

/* cuLaunch may call cuLaunchGrid, say, and both are reported. */
static void a_nested_launch_leaves_none_in_flight(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
        call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
        call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
        assert_int_equal(exact->contexts[0].in_flight, 1);
        call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
        assert_int_equal(exact->contexts[0].in_flight, 0);
    }
    assert_int_equal(exact->contexts[0].launches, 6); /* each may be a range */
    assert_int_equal(exact->contexts[0].session->n, 3);
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    launch(LAUNCH, 2); /* in another context: no session begins inside a launch */
    launch(GRAPH, 1);  /* nor ends, and it leaves the session without values */
    assert_true(exact->contexts[0].session->is_unpaired);
    assert_int_equal(exact->contexts[0].in_flight, 1);
    assert_int_equal(fake.starts, 1);
    assert_int_equal(fake.stops, 0);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    assert_int_equal(exact->contexts[0].in_flight, 0);
    launch(LAUNCH, 1); /* the graph's session ends */
    assert_int_equal(fake.stops, 1);
}

static void *launch_in_context_2(void *arg)
{
    launch(LAUNCH, 2);
    return arg;
}

/* Acts like CUPTI with an internal lock: another thread holds the lock until its callback has returned. */
static void let_another_thread_launch(void)
{
    pthread_t thread;
    fake.in_stop = NULL;
    assert_int_equal(pthread_create(&thread, NULL, launch_in_context_2, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_call_of_cupti_may_wait_for_another_callback(void **state)
{
    (void)state;
    launch(LAUNCH, 1);
    fake.in_stop = let_another_thread_launch;
    launch(GRAPH, 1);
    assert_int_equal(fake.stops, 1);
    assert_int_equal(fake.starts, 2);
}

static void *two_sessions_in_context_2(void *arg)
{
    one_session(2);
    one_session(2);
    return arg;
}

/* A launch in several contexts may be any number of ranges in each context, also in a session that begins and
 * ends before the launch returns. */
static void a_launch_in_several_contexts_leaves_no_values(void **state)
{
    pthread_t thread;
    (void)state;
    launch(LAUNCH, 1);
    launch(LAUNCH, 2);
    call(DEVICES, OCC_CALLBACK_ENTER, 0, 1);
    assert_int_equal(fake.stops, 1); /* as before a graph */
    assert_int_equal(pthread_create(&thread, NULL, two_sessions_in_context_2, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    call(DEVICES, OCC_CALLBACK_EXIT, 0, 1);
    one_session(2);
    one_session(1);
    assert_sessions("10011");
}

static void *end_two_sessions(void *arg)
{
    launch(GRAPH, 1);
    one_session(1);
    return arg;
}

/* The first session is ended without it. Its kernel may run in the second. */
static void a_launch_that_outlives_its_session_may_be_in_the_next(void **state)
{
    pthread_t thread;
    (void)state;
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    assert_int_equal(pthread_create(&thread, NULL, end_two_sessions, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    one_session(1);
    assert_int_equal(exact->open_strays, 0);
    assert_sessions("101"); /* the first has one call, which is not certain */
}

static void sessions_that_nobody_takes_do_not_pile_up(void **state)
{
    (void)state;
    fake.ranges = 1;
    for (int i = 0; i < 2100; i++) {
        launch(LAUNCH, 1);
        launch(GRAPH, 1);
    }
    assert_int_equal(fake.stops, 2100);
    assert_int_equal(take_sessions(NULL), exact->queue.max);
    assert_int_equal(exact->matching.unpaired, 2100 - exact->queue.max); /* ranges of the others */
    launch(LAUNCH, 1);
    launch(GRAPH, 1);
    assert_int_equal(take_sessions(NULL), 1);
}

/* 64 MiB, whatever the size of a page: each session has pages of its own. */
static void sessions_that_nobody_takes_fit_in_memory(void **state)
{
    (void)state;
    for (uint64_t page_bytes = 4096; page_bytes <= UINT64_C(65536); page_bytes *= 4) {
        uint64_t pages = (sizeof(struct occ_session) + page_bytes - 1) / page_bytes;
        assert_in_range(occ_exact_max_waiting(page_bytes) * pages * page_bytes, 1, 64 << 20);
    }
    assert_int_equal(exact->queue.max, occ_exact_max_waiting((uint64_t)sysconf(_SC_PAGESIZE)));
    exact->queue.max = occ_exact_max_waiting(65536);
    for (int i = 0; i < 1100; i++)
        one_session(1);
    assert_int_equal(take_sessions(NULL), 1024);
}

static void too_many_contexts_are_a_reason(void **state)
{
    (void)state;
    for (uintptr_t context = 1; context <= OCC_EXACT_MAX_CONTEXTS; context++)
        launch(LAUNCH, context);
    assert_false(round_of_helper().is_new);
    launch(LAUNCH, OCC_EXACT_MAX_CONTEXTS + 1);
    struct occ_exact_report report = round_of_helper();
    assert_true(report.is_new);
    assert_non_null(strstr(report.reason, "more than 16"));
    launch(LAUNCH, OCC_EXACT_MAX_CONTEXTS + 1);
    assert_false(round_of_helper().is_new);
}

static void what_cannot_begin_leaves_nothing_behind(void **state)
{
    char reason[OCC_REASON_BYTES];
    (void)state;
    occ_exact_library.stop(exact);
    assert_int_equal(fake.subscribers, 0);
    fake.subscribe_result = 39;
    assert_null(occ_exact_library.start(&cupti, &fake.is_stopped, reason));
    assert_non_null(strstr(reason, "callbacks: error 39"));
    assert_int_equal(fake.subscribers, 0);
}

static void a_refused_callback_leaves_no_subscriber(void **state)
{
    char reason[OCC_REASON_BYTES];
    (void)state;
    occ_exact_library.stop(exact);
    fake.enable_result = 7;
    assert_null(occ_exact_library.start(&cupti, &fake.is_stopped, reason));
    assert_non_null(strstr(reason, "callbacks: error 7"));
    assert_int_equal(fake.subscribers, 0);
}

/* A failed run unsubscribes, so that other profilers may subscribe; late callbacks do nothing. */
static void a_run_that_failed_has_no_subscriber(void **state)
{
    (void)state;
    fake.initialise_result = 1;
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    assert_true(round_of_helper().has_failed);
    occ_exact_library.stop(exact);
    assert_int_equal(fake.subscribers, 0);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    launch(LAUNCH, 1);
    fake.is_stopped = true; /* the exit handlers of CUPTI may run */
    fake.subscribers = 1;
    occ_exact_library.stop(exact);
    assert_int_equal(fake.subscribers, 1);
}

/* Not inside cuInit, where the driver is not ready: with the first launch. */
static void the_profiler_is_initialised_with_the_first_launch(void **state)
{
    (void)state;
    assert_int_equal(fake.initialised, 0);
    launch(LAUNCH, 1);
    launch(LAUNCH, 2);
    assert_int_equal(fake.initialised, 1);
    assert_int_equal(fake.starts, 2);
}

/* The guest then lets the daemon measure; a context that works, or a value, is enough to go on. */
static void contexts_that_all_fail_are_reported(void **state)
{
    (void)state;
    assert_false(round_of_helper().has_failed);
    fake.initialise_result = 1;
    launch(LAUNCH, 1);
    struct occ_exact_report report = round_of_helper();
    assert_true(report.has_failed && report.is_new);
    assert_non_null(strstr(report.reason, "the profiler: error 1"));
    fake.initialise_result = 0;
    launch(LAUNCH, 2);
    assert_false(round_of_helper().has_failed);
    assert_int_equal(fake.starts, 1);
}

/* Launches in a failed context are not counted and do not wait for each other. */
static void a_failed_context_is_left_alone(void **state)
{
    pthread_t thread;
    (void)state;
    fake.initialise_result = 1;
    call(LAUNCH, OCC_CALLBACK_ENTER, 0, 1);
    assert_int_equal(exact->contexts[0].state, OCC_EXACT_FAILED);
    assert_int_equal(pthread_create(&thread, NULL, launch_in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(exact->contexts[0].in_flight, 0);
    assert_int_equal(exact->contexts[0].turns, 0);
    call(LAUNCH, OCC_CALLBACK_EXIT, 0, 1);
    assert_int_equal(exact->strays, 0);
}

static void a_value_is_no_failure(void **state)
{
    (void)state;
    launch(LAUNCH, 1);
    exact->matching.ranges = 1;
    fake.initialise_result = 1;
    occ_exact_give_up(exact, &exact->contexts[0]);
    assert_false(round_of_helper().has_failed);
}

/* A context that another thread works on for too long is left alone: its launch has no value, and no thread
 * hangs. */
static void a_context_that_stays_claimed_is_left_alone(void **state)
{
    (void)state;
    launch(LAUNCH, 1);
    exact->contexts[0].is_claimed = true;
    launch(GRAPH, 1);
    assert_int_equal(fake.stops, 0);
    assert_int_equal(exact->contexts[0].in_flight, 0);
    assert_int_equal(exact->strays, 1); /* its ranges could be any session's */
    assert_int_equal(exact->open_strays, 0);
    begin_capture(0);
    end_capture(0, true);
    destroy_context(1);
    exact->contexts[0].is_claimed = false;
    launch(LAUNCH, 1); /* a new context at the address of the old one */
    assert_int_equal(fake.starts, 2);
    assert_ptr_equal(exact->contexts[1].context, exact->contexts[0].context);
}

static void a_destroyed_context_ends_its_session(void **state)
{
    (void)state;
    launch(LAUNCH, 1);
    destroy_context(1);
    assert_int_equal(fake.stops, 1);
    assert_int_equal(exact->contexts[0].state, OCC_EXACT_FREE);
    assert_int_equal(take_sessions(NULL), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_full_session_ends_with_the_next_launch),
        T(a_session_ends_with_the_first_launch_after_a_second),
        T(a_session_has_its_calls_in_their_order),
        T(a_call_during_a_capture_may_be_captured),
        T(launches_of_threads_take_turns),
        T(a_launch_that_keeps_others_waiting_leaves_no_values),
        T(turns_go_on_after_a_launch_that_lasted),
        T(a_capture_counts_from_before_its_beginning),
        T(a_capture_that_begins_between_two_steps_is_left_alone),
        T(a_capture_that_was_refused_is_none),
        T(a_capture_that_begins_while_a_launch_waits_is_left_alone),
        T(a_session_that_could_not_end_goes_on),
        T(a_capture_that_never_ends_holds_no_session),
        T(a_capture_ends_when_it_cannot_be_saved),
        T(a_capture_ends_with_its_stream),
        T(a_capture_ends_with_its_context),
        T(a_capture_outlives_the_context_of_its_call),
        T(a_capture_in_a_stream_with_a_used_handle_counts),
        T(captures_without_a_name_count),
        T(a_capture_of_a_thread_s_stream_ends_with_the_thread),
        T(no_session_begins_after_the_end),
        T(nothing_is_called_after_the_guest_has_stopped),
        T(the_guest_may_stop_between_two_calls),
        T(a_thread_inside_cupti_at_the_end_calls_nothing_more),
        T(the_end_leaves_cupti_alone_if_it_must),
        T(a_cancelled_thread_leaves_no_lock),
        T(a_cancelled_thread_leaves_no_launch_in_flight),
        T(a_cancelled_thread_leaves_a_capture),
        T(the_end_does_not_wait_for_the_lock),
        T(the_helper_does_not_wait_for_the_lock),
        T(retired_sessions_end_with_the_next_launch),
        T(a_nested_launch_leaves_none_in_flight),
        T(a_call_of_cupti_may_wait_for_another_callback),
        T(a_launch_in_several_contexts_leaves_no_values),
        T(a_launch_that_outlives_its_session_may_be_in_the_next),
        T(sessions_that_nobody_takes_do_not_pile_up),
        T(sessions_that_nobody_takes_fit_in_memory),
        T(too_many_contexts_are_a_reason),
        T(what_cannot_begin_leaves_nothing_behind),
        T(a_refused_callback_leaves_no_subscriber),
        T(a_run_that_failed_has_no_subscriber),
        T(the_profiler_is_initialised_with_the_first_launch),
        T(contexts_that_all_fail_are_reported),
        T(a_failed_context_is_left_alone),
        T(a_value_is_no_failure),
        T(a_context_that_stays_claimed_is_left_alone),
        T(a_destroyed_context_ends_its_session),
    };
#undef T
    return cmocka_run_group_tests_name("exact_sessions", tests, NULL, NULL);
}
