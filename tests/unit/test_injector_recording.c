/*
 * injector/recording: the one place that switches recording off and on. The guest is real; CUPTI, its worker
 * and all clocks are the test's, so that a second takes no time. Each test reads the STATE records that the
 * daemon would read.
 */
#include "injector/guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "ring/consumer.h"
#include "ring/producer.h"

#define SECOND   UINT64_C(1000000000)
#define MS       UINT64_C(1000000)
#define EPOCH_NS (UINT64_C(1700000000) * SECOND)
#define KERNEL   OCC_CUPTI_KIND_CONCURRENT_KERNEL
#define BUFFERS  4
#define WORKER   (-4242) /* the clock of CUPTI's worker */

/* ---- clocks ---- */

static struct {
    uint64_t elapsed_ns; /* since the start of the test */
    uint64_t back_ns;    /* how far the real-time clock was set back */
    uint64_t helper_ns, worker_ns, process_ns;
} clocks;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    uint64_t ns = clock == CLOCK_REALTIME             ? EPOCH_NS + clocks.elapsed_ns - clocks.back_ns
                  : clock == CLOCK_THREAD_CPUTIME_ID  ? clocks.helper_ns
                  : clock == CLOCK_PROCESS_CPUTIME_ID ? clocks.process_ns
                  : clock == WORKER                   ? clocks.worker_ns
                                                      : 1000 * SECOND + clocks.elapsed_ns;
    *ret = (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
    return 0;
}

/* ---- CUPTI ---- */

static struct {
    occ_cupti_buffer_requested *requested;
    occ_cupti_buffer_completed *completed;
    uint64_t attributes[64];
    uint32_t register_result, enable_result;
    bool is_enabled;
    unsigned int enables, disables, registrations, reads;
    void (*in_enable)(void); /* runs before cuptiActivityEnable returns; stands for other threads too */
} cupti;

static uint32_t on_register(occ_cupti_buffer_requested *requested, occ_cupti_buffer_completed *completed)
{
    if (cupti.register_result != 0)
        return cupti.register_result;
    cupti.registrations++;
    cupti.requested = requested;
    cupti.completed = completed;
    return 0;
}

static uint32_t on_enable(uint32_t kind)
{
    if (kind != KERNEL || cupti.enable_result != 0)
        return cupti.enable_result;
    cupti.is_enabled = true;
    cupti.enables++;
    if (cupti.in_enable) {
        cupti.in_enable();
        (void)usleep(300);
    }
    return 0;
}

static uint32_t on_disable(uint32_t kind)
{
    cupti.is_enabled &= kind != KERNEL;
    cupti.disables += kind == KERNEL;
    return 0;
}

static uint32_t on_set_attribute(uint32_t attribute, size_t *bytes, void *value)
{
    cupti.attributes[attribute] = 0;
    memcpy(&cupti.attributes[attribute], value, *bytes);
    return 0;
}

static uint32_t on_get_attribute(uint32_t attribute, size_t *bytes, void *value)
{
    memcpy(value, &cupti.attributes[attribute], *bytes);
    cupti.reads++;
    return 0;
}

static const struct occ_cupti_activity calls = {.register_callbacks = on_register,
                                                .enable = on_enable,
                                                .disable = on_disable,
                                                .set_attribute = on_set_attribute,
                                                .get_attribute = on_get_attribute};

static uint8_t *request(void)
{
    uint8_t *buffer = NULL;
    size_t size = 0, max_records = 0;
    cupti.requested(&buffer, &size, &max_records);
    return buffer;
}

static void complete(uint8_t *buffer)
{
    cupti.completed(NULL, 0, buffer, OCC_POOL_MIN_BYTES, 0);
}

/* Ends another client's session like Kineto: kinds off, one attribute reset. The session took the callbacks
 * when it began. */
static void end_session(void)
{
    cupti.is_enabled = false;
    cupti.attributes[OCC_CUPTI_ATTRIBUTE_PER_THREAD_BUFFER] = 0;
}

/* ---- the guest ---- */

static struct occ_guest *guest;
static struct occ_ring_consumer *daemon_;

static int set_up(void **state)
{
    struct occ_guest *g = guest = occ_guest();
    (void)state;
    memset(&clocks, 0, sizeof clocks);
    memset(&cupti, 0, sizeof cupti);
    memset(g, 0, sizeof *g);
    g->tracing.cupti.version = OCC_CUPTI_VERSION_13_3;
    g->tracing.call = calls;
    atomic_store(&g->has_context, true); /* no exit handlers */
    atomic_store(&g->worker_clock, WORKER);
    if (occ_ring_create(&g->ring, OCC_RING_MIN_SLOTS, UINT64_C(65536)) != 0 ||
        occ_ring_attach(dup(g->ring.fd), 0, &daemon_, NULL) != 0 ||
        occ_pool_init(&g->pool, BUFFERS, OCC_POOL_MIN_BYTES) != 0 ||
        occ_drain_init(&g->drain, &g->ring, &g->tracing, &g->pool, &g->exact) != 0 ||
        !occ_tracing_resume(&g->tracing))
        return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)munmap(guest->pool.base, (BUFFERS + 1) * guest->pool.bytes);
    occ_ring_detach(daemon_);
    occ_ring_destroy(&guest->ring);
    return 0;
}

static void start(void)
{
    occ_recording_start(guest);
}

/* Runs the helper's round after a second in which the helper and CUPTI's worker used this CPU time. */
static void second_of_cpu(uint64_t helper_ms, uint64_t worker_ms)
{
    clocks.elapsed_ns += SECOND;
    clocks.helper_ns += helper_ms * MS;
    clocks.worker_ns += worker_ms * MS;
    clocks.process_ns += SECOND;
    occ_recording_round(guest);
}

static void second(void)
{
    second_of_cpu(0, 0);
}

static void seconds(unsigned int n)
{
    while (n-- > 0)
        second();
}

/* Fills, delivers and drains one buffer, like a program's launches. */
static void launch(void)
{
    complete(request());
    occ_drain_all(&guest->drain);
}

/* Expects the next STATE record: its level, reason and begin in ms since the start of the test. */
static void assert_state(enum occ_level level, const char *reason, uint64_t from_ms)
{
    const struct occ_log_record *record;
    assert_int_equal(occ_ring_next_log_record(daemon_, &record), OCC_RING_OK);
    assert_int_equal(record->type, OCC_RECORD_STATE);
    const struct occ_record_state *s = (const void *)record;
    if (!strstr(s->reason, reason) || (reason[0] == '\0') != (s->reason[0] == '\0'))
        fail_msg("reason is \"%s\", not \"%s\"", s->reason, reason);
    assert_int_equal(s->level, level);
    bool is_unmeasured = guest->exact.run || guest->recording.governor.step >= OCC_STEP_NO_COUNTERS;
    assert_int_equal(s->record.flags & OCC_STATE_UNMEASURED, is_unmeasured ? OCC_STATE_UNMEASURED : 0);
    assert_int_equal((s->time_ns - EPOCH_NS) / MS, from_ms);
}

static void assert_no_state(void)
{
    const struct occ_log_record *record;
    assert_int_equal(occ_ring_next_log_record(daemon_, &record), OCC_RING_EMPTY);
}

/* Returns true if a launch that started this many ms after the start of the test is recorded. */
static bool is_kept_at(uint64_t ms)
{
    struct occ_ring_launch launch = {.start_ns = EPOCH_NS + ms * MS, .duration_ns = 5};
    return occ_drain_found(&guest->drain, &launch);
}

/* Ends another client's session; the guest notices the end in the next second. */
static void take_over(void)
{
    end_session();
    second();
    assert_int_equal(guest->recording.takeover.state, OCC_TAKEOVER_TAKEN);
}

#define OTHER "another profiler of the program used CUPTI"

/* ---- buffers after another client's session ---- */

static uint8_t *early[2];
static unsigned int n_early;

static void launch_early(void)
{
    early[n_early] = request();
    early[n_early++][0] = 0x5a;
}

/* A thread that launches before cuptiActivityEnable has returned has a buffer of its own. */
static void a_buffer_taken_inside_enable_has_one_owner(void **state)
{
    (void)state;
    start();
    launch();
    (void)request(); /* the session's forced flush gives it to the other client */
    take_over();
    n_early = 0;
    cupti.in_enable = launch_early;
    seconds(3);
    assert_int_equal(n_early, 1);
    assert_int_equal(guest->recording.takeover.state, OCC_TAKEOVER_NONE);
    for (int i = 0; i < BUFFERS; i++) /* only the discard buffer may go out twice */
        assert_true(request() != early[0]);
    assert_int_equal(early[0][0], 0x5a);
    complete(early[0]);
    assert_false(guest->foreign_buffer);
    second();
    assert_int_equal(guest->recording.is_gone, false);
}

/* All buffers that the session swallowed return to the pool. */
static void buffers_of_the_session_come_back(void **state)
{
    (void)state;
    uint8_t *seen[BUFFERS];
    start();
    for (int i = 0; i < BUFFERS; i++)
        seen[i] = request();
    take_over();
    seconds(3);
    for (int i = 0; i < BUFFERS; i++)
        seen[i] = request();
    for (int i = 0; i < BUFFERS; i++)
        for (int k = 0; k < i; k++)
            assert_true(seen[i] != seen[k]);
    for (int i = 0; i < BUFFERS; i++)
        complete(seen[i]);
    assert_int_equal(atomic_load(&guest->pool.taken), atomic_load(&guest->pool.delivered));
    assert_int_equal(atomic_load(&guest->pool.discarded_bytes), 0);
}

/* A doubt of a minute ends by registering again; CUPTI still has the buffers and delivers them. */
static void buffers_that_cupti_may_have_are_not_reclaimed(void **state)
{
    (void)state;
    start();
    launch();
    uint8_t *out = request();
    out[0] = 0x5a;
    for (int i = 0; i < 4; i++)
        second_of_cpu(0, 2); /* CUPTI's worker works, and not for us */
    assert_int_equal(guest->recording.takeover.state, OCC_TAKEOVER_SUSPECTED);
    unsigned int registrations = cupti.registrations;
    seconds(60);
    assert_int_equal(cupti.registrations, registrations + 1);
    for (int i = 0; i < BUFFERS; i++)
        assert_true(request() != out);
    assert_int_equal(out[0], 0x5a);
    complete(out);
    assert_false(guest->foreign_buffer);
}

/* CUPTI refuses the kind after a pause: another client may have it now. The guest tries again as after
 * another client's session, and waits twice as long each time. */
static void a_refused_kind_is_tried_again(void **state)
{
    (void)state;
    start();
    launch();
    occ_ring_pause(daemon_, true);
    second();
    assert_state(OCC_LEVEL_NOTHING, "paused", 1000);
    launch();
    second();
    assert_false(cupti.is_enabled);
    occ_ring_pause(daemon_, false);
    cupti.enable_result = 39;
    second();
    assert_state(OCC_LEVEL_NOTHING, "refused to record again", 3000);
    seconds(3); /* the second refusal */
    cupti.enable_result = 0;
    seconds(5);
    assert_false(cupti.is_enabled);
    second();
    assert_true(cupti.is_enabled);
    assert_state(OCC_LEVEL_TRACE, "", 12000);
    assert_true(is_kept_at(12500));
    assert_false(is_kept_at(11500));
    launch();
    seconds(100);
    assert_no_state();
    assert_int_equal(cupti.registrations, 1); /* another client's callbacks stay */
}

/* The same at the end of --delay, where no buffer has gone out yet. */
static void a_refusal_after_the_delay_loses_a_few_seconds(void **state)
{
    (void)state;
    guest->env.delay_ms = 1500;
    start();
    assert_state(OCC_LEVEL_NOTHING, "--delay", 0);
    second();
    cupti.enable_result = 39;
    second();
    assert_state(OCC_LEVEL_NOTHING, "refused to record again", 2000);
    cupti.enable_result = 0;
    seconds(3);
    assert_true(cupti.is_enabled);
    assert_state(OCC_LEVEL_TRACE, "", 5000);
    assert_false(guest->recording.is_gone);
}

/* Buffers that CUPTI has when it refuses are still the guest's. */
static void a_refusal_reclaims_nothing(void **state)
{
    (void)state;
    start();
    launch();
    occ_ring_pause(daemon_, true);
    second();
    uint8_t *out = request();
    second();
    occ_ring_pause(daemon_, false);
    cupti.enable_result = 39;
    second();
    cupti.enable_result = 0;
    seconds(3);
    assert_true(cupti.is_enabled);
    for (int i = 0; i < BUFFERS; i++)
        assert_true(request() != out);
    complete(out);
    assert_false(guest->foreign_buffer);
}

/* CUPTI refuses the kind after it took our callbacks: it may have asked for buffers since. */
static void a_failed_return_reclaims_once(void **state)
{
    (void)state;
    start();
    launch();
    take_over();
    cupti.enable_result = 1;
    seconds(3);
    assert_int_equal(guest->recording.takeover.state, OCC_TAKEOVER_TAKEN);
    uint8_t *out = request();
    cupti.enable_result = 0;
    seconds(6);
    assert_int_equal(guest->recording.takeover.state, OCC_TAKEOVER_NONE);
    for (int i = 0; i < BUFFERS; i++)
        assert_true(request() != out);
    complete(out);
    assert_false(guest->foreign_buffer);
}

/* Each session doubles the wait; the period begins when the last buffer before it had arrived. */
static void two_sessions_are_two_periods(void **state)
{
    (void)state;
    start();
    launch();
    second();
    (void)request();
    second();
    take_over();
    assert_state(OCC_LEVEL_NOTHING, OTHER, 900);
    seconds(2);
    assert_false(cupti.is_enabled);
    second();
    assert_true(cupti.is_enabled);
    assert_state(OCC_LEVEL_TRACE, "", 6000);
    launch();
    second();
    take_over();
    assert_state(OCC_LEVEL_NOTHING, OTHER, 6000);
    seconds(5);
    assert_false(cupti.is_enabled);
    second();
    assert_true(cupti.is_enabled);
    assert_state(OCC_LEVEL_TRACE, "", 14000);
    assert_no_state();
}

/* A buffer of another client: recording ends for good, and CUPTI is not called any more. */
static void a_foreign_buffer_ends_recording(void **state)
{
    (void)state;
    static uint8_t foreign[64];
    start();
    launch();
    complete(foreign);
    second();
    assert_state(OCC_LEVEL_NOTHING, "took CUPTI over", 1000);
    unsigned int disables = cupti.disables, registrations = cupti.registrations;
    seconds(100);
    assert_int_equal(cupti.disables, disables);
    assert_int_equal(cupti.registrations, registrations);
    assert_no_state();
}

/* A call of CUPTI before the driver is ready could hang: attributes are read after the first buffer or ten
 * seconds. */
static void attributes_are_not_read_too_early(void **state)
{
    (void)state;
    unsigned int reads = cupti.reads;
    start();
    seconds(9);
    assert_int_equal(cupti.reads, reads);
    second();
    assert_true(cupti.reads > reads);
    guest->recording.rounds = 0;
    (void)request();
    reads = cupti.reads;
    second();
    assert_true(cupti.reads > reads);
}

/* Three flushes that CUPTI refuses in a row are a session's end by cuptiFinalize. */
static void failed_flushes_are_a_takeover(void **state)
{
    (void)state;
    start();
    launch();
    for (int i = 0; i < 2; i++) {
        occ_recording_flushed(&guest->recording, 1);
        second();
    }
    occ_recording_flushed(&guest->recording, 0);
    for (int i = 0; i < 2; i++) {
        occ_recording_flushed(&guest->recording, 1);
        second();
    }
    assert_no_state();
    occ_recording_flushed(&guest->recording, 1);
    second();
    assert_int_equal(guest->recording.takeover.state, OCC_TAKEOVER_TAKEN);
    seconds(3);
    assert_int_equal(guest->recording.takeover.state, OCC_TAKEOVER_NONE);
    second();
    assert_int_equal(guest->recording.takeover.state, OCC_TAKEOVER_NONE); /* failures count anew */
}

/* A doubt that turns out wrong leaves no period: its end is its begin. */
static void a_doubt_is_withdrawn(void **state)
{
    (void)state;
    start();
    launch();
    second();
    uint8_t *out = request();
    second();
    for (int i = 0; i < 3; i++)
        second_of_cpu(0, 2);
    assert_state(OCC_LEVEL_NOTHING, "seems to use CUPTI", 900);
    assert_true(cupti.is_enabled); /* the kind stays: records may come after all */
    assert_true(is_kept_at(5000));
    complete(out);
    second();
    assert_state(OCC_LEVEL_TRACE, "", 900);
}

/* A doubt that ends by registering again was not withdrawn: the launches during the doubt are missing. */
static void a_doubt_that_ends_by_registering_stays_a_period(void **state)
{
    (void)state;
    start();
    launch();
    second();
    (void)request();
    second();
    for (int i = 0; i < 3; i++)
        second_of_cpu(0, 2);
    assert_state(OCC_LEVEL_NOTHING, "seems to use CUPTI", 900);
    seconds(60); /* the worker rests */
    assert_int_equal(cupti.registrations, 2);
    assert_state(OCC_LEVEL_TRACE, "", 65000);
    assert_no_state();
}

/* CUPTI's worker works with no buffer of ours out: the records of new launches go elsewhere. */
static void a_worker_that_brings_nothing_is_a_doubt(void **state)
{
    (void)state;
    start();
    launch();
    second();
    launch();
    second_of_cpu(0, 2);
    seconds(10); /* the program launches nothing */
    assert_no_state();
    for (int i = 0; i < 3; i++)
        second_of_cpu(0, 2);
    assert_state(OCC_LEVEL_NOTHING, "seems to use CUPTI", 900);
    assert_int_equal(atomic_load(&guest->pool.taken), atomic_load(&guest->pool.delivered));
}

/* ---- windows, the owner's pause, the number of launches ---- */

static void a_window_has_its_edges(void **state)
{
    (void)state;
    guest->env.delay_ms = 2500;
    guest->env.duration_ms = 2000;
    start();
    assert_state(OCC_LEVEL_NOTHING, "--delay", 0);
    assert_false(cupti.is_enabled);
    assert_int_equal(occ_recording_wait_ns(guest, 1000 * SECOND), 2500 * MS);
    seconds(2);
    assert_false(cupti.is_enabled);
    clocks.elapsed_ns -= 500 * MS; /* the helper wakes at the edge */
    second();
    assert_true(cupti.is_enabled);
    assert_true(!is_kept_at(2499) && is_kept_at(2500));
    assert_state(OCC_LEVEL_TRACE, "", 2500);
    assert_int_equal(occ_recording_wait_ns(guest, 1000 * SECOND + 2500 * MS), 2000 * MS);
    second();
    launch();
    assert_no_state();
    second();
    assert_state(OCC_LEVEL_NOTHING, "--duration", 4500);
    assert_true(is_kept_at(4499) && !is_kept_at(4500));
    assert_int_equal(occ_recording_wait_ns(guest, 1000 * SECOND + 4500 * MS), UINT64_MAX);
}

static void take_40_ms(void)
{
    clocks.elapsed_ns += 40 * MS;
}

/* The kernel may run another thread while CUPTI enables the kind, and that thread launches: a period has
 * ended when the first launch is recorded. */
static void a_period_ends_before_the_first_record_after_it(void **state)
{
    (void)state;
    guest->env.delay_ms = 1000;
    start();
    assert_state(OCC_LEVEL_NOTHING, "--delay", 0);
    cupti.in_enable = take_40_ms;
    second();
    assert_true(cupti.is_enabled);
    assert_state(OCC_LEVEL_TRACE, "", 1000);
    occ_ring_pause(daemon_, true);
    launch();
    second();
    assert_state(OCC_LEVEL_NOTHING, "paused", 2040);
    launch();
    second();
    assert_false(cupti.is_enabled);
    occ_ring_pause(daemon_, false);
    second();
    assert_state(OCC_LEVEL_TRACE, "", 4040);
    launch();
    take_over();
    assert_state(OCC_LEVEL_NOTHING, OTHER, (guest->recording.takeover.from_ns - EPOCH_NS) / MS);
    seconds(3);
    assert_true(cupti.is_enabled);
    assert_state(OCC_LEVEL_TRACE, "", 8080);
    assert_no_state();
}

/* Another client's session may just have begun and enabled the kind too: the kind stays enabled until CUPTI
 * requests a buffer from the guest. */
static void a_kind_is_disabled_when_it_is_known_to_be_ours(void **state)
{
    (void)state;
    start();
    launch();
    second();
    occ_ring_pause(daemon_, true);
    second();
    assert_state(OCC_LEVEL_NOTHING, "paused", 2000);
    assert_true(is_kept_at(1999) && !is_kept_at(2000));
    seconds(5);
    assert_true(cupti.is_enabled);
    launch();
    second();
    assert_false(cupti.is_enabled);
    occ_ring_pause(daemon_, false);
    second();
    assert_true(cupti.is_enabled);
    assert_true(!is_kept_at(8999) && is_kept_at(9000));
    assert_state(OCC_LEVEL_TRACE, "", 9000);
}

/* Times of a pause come again if the clock is set back: launches at these times are recorded after the pause,
 * and no launch during it. */
static void a_clock_that_is_set_back_moves_no_pause(void **state)
{
    (void)state;
    start();
    launch();
    second();
    occ_ring_pause(daemon_, true);
    seconds(3);
    occ_ring_pause(daemon_, false);
    second();
    assert_true(!is_kept_at(3000) && is_kept_at(5000));
    clocks.back_ns = 5 * SECOND;
    second();
    assert_true(is_kept_at(3000));
    occ_ring_pause(daemon_, true);
    second();
    clocks.back_ns = 7 * SECOND;
    second();
    assert_false(is_kept_at(1000));
}

static void the_limit_of_launches_has_the_time_of_the_first_beyond(void **state)
{
    (void)state;
    guest->env.launches = 3;
    start();
    assert_int_equal(guest->drain.max_launches, 3);
    launch();
    guest->drain.beyond_ns = EPOCH_NS + 300 * MS; /* as the drain finds it */
    second();
    assert_state(OCC_LEVEL_NOTHING, "--launches", 300);
}

/* The strongest cause is reported, and after its end the next one. */
static void causes_are_ranked(void **state)
{
    (void)state;
    guest->env.duration_ms = 500;
    start();
    launch();
    occ_ring_pause(daemon_, true);
    second();
    assert_state(OCC_LEVEL_NOTHING, "paused", 1000);
    take_over();
    assert_state(OCC_LEVEL_NOTHING, OTHER, 0);
    occ_ring_pause(daemon_, false);
    seconds(3);
    assert_state(OCC_LEVEL_NOTHING, "--duration", 5000);
    assert_no_state();
}

/* ---- the budget, and a CUPTI without times ---- */

static void the_budget_is_a_ladder(void **state)
{
    (void)state;
    unsigned int on = 0;
    start();
    second(); /* the window begins */
    for (int i = 0; i < 10; i++)
        second_of_cpu(20, 0);
    assert_state(OCC_LEVEL_TRACE, "not measured by hardware counters: overhead was 2 %", 11000);
    assert_false(occ_recording_is_full(&guest->recording));
    for (int i = 0; i < 10; i++)
        second_of_cpu(20, 0);
    assert_state(OCC_LEVEL_CONFIGS, "one second of ten", 21000);
    for (int i = 0; i < 10; i++) {
        launch();
        second_of_cpu(20, 0);
        on += cupti.is_enabled && i < 9; /* the last one stays on until CUPTI asks for a buffer */
    }
    assert_state(OCC_LEVEL_NOTHING, "not recorded", 31000);
    assert_int_equal(on, 1);
    launch();
    second();
    assert_false(cupti.is_enabled);
    seconds(59); /* a calm minute: one step up */
    assert_state(OCC_LEVEL_CONFIGS, "one second of ten", 91000);
}

/* The time of CUPTI's worker and of the guest's callbacks counts as overhead too. */
static void the_cost_is_of_all_that_is_ours(void **state)
{
    (void)state;
    start();
    second();
    for (int i = 0; i < 10; i++) {
        atomic_fetch_add(&guest->pool.callback_ns, 4 * MS);
        launch();
        second_of_cpu(4, 4);
    }
    assert_state(OCC_LEVEL_TRACE, "overhead was 1.2 %, the budget is 1 %", 11000);
}

/* Exact values have no budget, and every range must find its launch, so windows and pauses do not apply. */
static void exact_values_have_neither_budget_nor_window(void **state)
{
    (void)state;
    guest->exact.run = (struct occ_exact *)(void *)&cupti; /* any address */
    guest->env.delay_ms = guest->env.duration_ms = guest->env.launches = 1;
    start();
    occ_ring_pause(daemon_, true);
    second();
    for (int i = 0; i < 100; i++)
        second_of_cpu(500, 0);
    assert_no_state();
    assert_int_equal(guest->drain.max_launches, 0);
}

/* Records of a run with exact values stay in their buffer until it is full: neither other libraries nor a
 * busy worker of CUPTI is a sign of a takeover. */
static void buffers_of_exact_values_are_no_takeover(void **state)
{
    (void)state;
    guest->exact.run = (struct occ_exact *)(void *)&cupti; /* any address */
    start();
    launch();
    second();
    uint8_t *out = request();
    for (int i = 0; i < 100; i++)
        second_of_cpu(0, 2);
    assert_no_state();
    complete(out);
    take_over(); /* an attribute that another client has reset is still a sign */
    assert_state(OCC_LEVEL_NOTHING, OTHER, 1900);
}

static uint64_t measured; /* launches, as the double of the exact library reports them */

static void poll_exact(struct occ_exact *exact, bool is_last, const struct occ_exact_sink *sink,
                       struct occ_exact_report *ret_report)
{
    (void)exact;
    sink->lost(sink->context, OCC_LOSS_BAD_TIMES, 3);
    *ret_report = (struct occ_exact_report){.measured = measured, .launches = 5, .is_new = is_last};
    (void)snprintf(ret_report->reason, sizeof ret_report->reason, "measured %u of 5", (unsigned)measured);
}

static bool keep_none(struct occ_exact *exact, const struct occ_exact_launch *launch)
{
    (void)exact;
    (void)launch;
    return false; /* like a graph's kernel */
}

static void finish_exact(struct occ_exact *exact, bool may_call)
{
    (void)exact;
    (void)may_call;
}

/* Checks the level of a run with exact values at its end: full only if a launch was measured. */
static void a_run_is_full_if_a_launch_was_measured(void **state)
{
    static const struct occ_exact_library library = {.poll = poll_exact, .finish = finish_exact};
    guest->exact = (struct occ_exact_client){.call = &library, .run = (struct occ_exact *)(void *)&cupti};
    guest->link = (struct occ_link){.socket.fd = -1, .is_taken = true};
    measured = *(const uint64_t *)*state;
    start();
    atomic_store(&guest->closing, 1);
    assert_true(occ_helper_start(guest));
    while (atomic_load(&guest->settled) == 0)
        (void)usleep(100);
    assert_state(measured > 0 ? OCC_LEVEL_FULL : OCC_LEVEL_TRACE, "of 5", 0);
    assert_int_equal(occ_ring_lost(daemon_, OCC_LOSS_BAD_TIMES), 3);
    assert_int_equal(guest->drain.bad_times, 0);
}

/* Missing times are no fault of CUPTI while the range profiler takes them, even the times of a graph's
 * kernels in a session that must not end. */
static void times_that_exact_values_take_are_no_fault_of_cupti(void **state)
{
    static const struct occ_exact_library library = {.add_launch = keep_none};
    const struct occ_cupti_kernel timeless = {
        .kind = KERNEL, .name = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}};
    (void)state;
    guest->exact = (struct occ_exact_client){.call = &library, .run = (struct occ_exact *)(void *)&cupti};
    start();
    for (int i = 0; i < 2000; i++)
        occ_drain_record(&guest->drain, &timeless);
    seconds(10);
    assert_int_equal(occ_ring_lost(daemon_, OCC_LOSS_BAD_TIMES), 2000);
    assert_true(occ_recording_is_full(&guest->recording));
    guest->exact.run = NULL;
    for (int i = 0; i < 2000; i++)
        occ_drain_record(&guest->drain, &timeless);
    seconds(10);
    assert_false(occ_recording_is_full(&guest->recording));
}

/* The daemon's budget counts, unless the program has its own. */
static void the_daemon_may_set_the_budget(void **state)
{
    (void)state;
    start();
    occ_ring_set_budget(daemon_, 50000);
    second();
    for (int i = 0; i < 30; i++)
        second_of_cpu(20, 0);
    assert_no_state();
    guest->env.budget = 1;
    guest->recording.governor.budget = 1e-6;
    for (int i = 0; i < 10; i++)
        second_of_cpu(20, 0);
    assert_state(OCC_LEVEL_TRACE, "not measured by hardware counters", 41000);
}

/* Seconds of a pause are no evidence of a cheap program. */
static void a_pause_is_not_calm(void **state)
{
    (void)state;
    start();
    second();
    for (int i = 0; i < 10; i++)
        second_of_cpu(20, 0);
    assert_state(OCC_LEVEL_TRACE, "not measured by hardware counters", 11000);
    occ_ring_pause(daemon_, true);
    second();
    assert_state(OCC_LEVEL_NOTHING, "paused", 12000);
    seconds(120);
    occ_ring_pause(daemon_, false);
    second();
    assert_state(OCC_LEVEL_TRACE, "not measured by hardware counters", 133000);
}

static void records_without_times_are_a_level(void **state)
{
    (void)state;
    start();
    guest->drain.records = 2000;
    guest->drain.bad_times = 1500;
    seconds(10);
    assert_state(OCC_LEVEL_CONFIGS, "CUPTI returns no times any more", 10000);
    assert_true(cupti.is_enabled);
    guest->drain.records = 4000;
    seconds(10);
    assert_state(OCC_LEVEL_TRACE, "", 20000);
}

/* The program ends, and CUPTI with it: the round calls no function of CUPTI. */
static void no_round_after_the_end(void **state)
{
    (void)state;
    start();
    launch();
    atomic_store(&guest->drain.is_stopped, true);
    end_session();
    seconds(20);
    assert_int_equal(cupti.registrations, 1);
    assert_no_state();
}

int main(void)
{
    static uint64_t launches[] = {0, 1};
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_buffer_taken_inside_enable_has_one_owner),
        T(buffers_of_the_session_come_back),
        T(buffers_that_cupti_may_have_are_not_reclaimed),
        T(a_refused_kind_is_tried_again),
        T(a_refusal_after_the_delay_loses_a_few_seconds),
        T(a_refusal_reclaims_nothing),
        T(a_failed_return_reclaims_once),
        T(two_sessions_are_two_periods),
        T(a_foreign_buffer_ends_recording),
        T(attributes_are_not_read_too_early),
        T(failed_flushes_are_a_takeover),
        T(a_doubt_is_withdrawn),
        T(a_doubt_that_ends_by_registering_stays_a_period),
        T(a_worker_that_brings_nothing_is_a_doubt),
        T(a_window_has_its_edges),
        T(a_period_ends_before_the_first_record_after_it),
        T(a_kind_is_disabled_when_it_is_known_to_be_ours),
        T(a_clock_that_is_set_back_moves_no_pause),
        T(the_limit_of_launches_has_the_time_of_the_first_beyond),
        T(causes_are_ranked),
        T(the_budget_is_a_ladder),
        T(the_cost_is_of_all_that_is_ours),
        T(exact_values_have_neither_budget_nor_window),
        T(buffers_of_exact_values_are_no_takeover),
        {"a_run_without_measured_launches_is_not_full", a_run_is_full_if_a_launch_was_measured, set_up,
         tear_down, &launches[0]},
        {"a_run_with_a_measured_launch_is_full", a_run_is_full_if_a_launch_was_measured, set_up, tear_down,
         &launches[1]},
        T(times_that_exact_values_take_are_no_fault_of_cupti),
        T(the_daemon_may_set_the_budget),
        T(a_pause_is_not_calm),
        T(records_without_times_are_a_level),
        T(no_round_after_the_end),
    };
#undef T
    return cmocka_run_group_tests_name("recording", tests, NULL, NULL);
}
