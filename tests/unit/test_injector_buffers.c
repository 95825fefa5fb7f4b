/* injector/buffers: a buffer is never NULL, never out twice, zeroed and delivered in order; foreign buffers
 * are refused. */
#include "injector/buffers.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "cases.h"

#define BYTES        OCC_POOL_MIN_BYTES
#define SHORT_OUT_NS 1000u

static bool is_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static uint8_t *take(struct occ_pool *pool)
{
    size_t bytes;
    uint8_t *buffer = occ_pool_take(pool, 0, 0, &bytes);
    assert_int_equal(bytes, BYTES);
    return buffer;
}

static bool complete(struct occ_pool *pool, const uint8_t *buffer, size_t valid_bytes)
{
    return occ_pool_complete(pool, buffer, valid_bytes, SHORT_OUT_NS);
}

static void test_take_gives_every_buffer_then_the_discard_one(void **state)
{
    (void)state;
    struct occ_pool pool;
    assert_int_equal(occ_pool_init(&pool, 3, BYTES), 0);
    uint8_t *taken[5];
    for (int i = 0; i < 5; i++) {
        taken[i] = take(&pool);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % 8, 0);
    }
    assert_true(taken[0] != taken[1] && taken[1] != taken[2] && taken[0] != taken[2]);
    assert_true(taken[3] == taken[4] && taken[3] != taken[0] && taken[3] != taken[1] && taken[3] != taken[2]);
    memset(taken[3], 1, BYTES); /* writable */

    uint8_t *buffer;
    size_t valid;
    assert_true(complete(&pool, taken[3], 500));
    assert_true(complete(&pool, taken[4], 600));
    assert_int_equal(occ_pool_next(&pool, &buffer, &valid), -1); /* never read */
    assert_int_equal(atomic_load(&pool.discarded_bytes), 1100);
}

static void test_buffers_come_back_in_order_and_zeroed(void **state)
{
    (void)state;
    struct occ_pool pool;
    assert_int_equal(occ_pool_init(&pool, 3, BYTES), 0);
    for (int round = 0; round < 10; round++) {
        uint8_t *a = take(&pool), *b = take(&pool), *buffer;
        assert_true(is_zero(a, BYTES) && is_zero(b, BYTES));
        memset(a, 0xee, BYTES);
        memset(b, 0xdd, 100);
        size_t valid;
        assert_true(complete(&pool, b, 100));
        assert_true(complete(&pool, a, BYTES));
        int first = occ_pool_next(&pool, &buffer, &valid);
        assert_ptr_equal(buffer, b);
        assert_int_equal(valid, 100);
        int second = occ_pool_next(&pool, &buffer, &valid);
        assert_ptr_equal(buffer, a);
        assert_int_equal(valid, BYTES);
        assert_int_equal(occ_pool_next(&pool, &buffer, &valid), -1);
        occ_pool_recycle(&pool, first);
        occ_pool_recycle(&pool, second);
        occ_pool_maintain(&pool);
    }
    assert_int_equal(atomic_load(&pool.taken), 20);
    assert_int_equal(atomic_load(&pool.delivered), 20);
}

/* CUPTI may write beyond a buffer's valid bytes: a withdrawn record, or a record that it began. */
static void test_all_that_cupti_got_is_zeroed(void **state)
{
    (void)state;
    struct occ_pool pool;
    uint8_t *buffer;
    size_t valid;
    assert_int_equal(occ_pool_init(&pool, 1, BYTES), 0);
    uint8_t *taken = take(&pool);
    memset(taken, 0xee, BYTES);
    assert_true(complete(&pool, taken, 100));
    occ_pool_recycle(&pool, occ_pool_next(&pool, &buffer, &valid));
    assert_true(is_zero(take(&pool), BYTES));
}

/* Zeroing a large buffer with few records must not allocate its other pages. */
static void test_pages_that_nobody_used_are_not_made(void **state)
{
    (void)state;
    struct occ_pool pool;
    unsigned char in_memory[OCC_POOL_DEFAULT_BYTES / OCC_POOL_MIN_BYTES];
    uint8_t *buffer = NULL;
    size_t bytes = 0, valid, resident = 0;
    assert_int_equal(occ_pool_init(&pool, 3, OCC_POOL_DEFAULT_BYTES), 0);
    for (uint64_t now_ns = 1; bytes < OCC_POOL_DEFAULT_BYTES; now_ns++) { /* a thread fills buffers fast */
        buffer = occ_pool_take(&pool, 0, now_ns, &bytes);
        memset(buffer, 0xee, 1000);
        assert_true(complete(&pool, buffer, bytes < OCC_POOL_DEFAULT_BYTES ? bytes : 1000));
        occ_pool_recycle(&pool, occ_pool_next(&pool, &(uint8_t *){NULL}, &valid));
    }
    assert_int_equal(mincore(buffer, OCC_POOL_DEFAULT_BYTES, in_memory), 0);
    for (size_t i = 0; i < sizeof in_memory; i++)
        resident += in_memory[i] & 1;
    assert_int_equal(resident, 0);
    assert_true(is_zero(buffer, OCC_POOL_DEFAULT_BYTES));
}

static void test_what_is_not_ours_is_refused(void **state)
{
    (void)state;
    struct occ_pool pool;
    static uint8_t foreign[64];
    assert_int_equal(occ_pool_init(&pool, 2, BYTES), 0);
    uint8_t *mine = take(&pool);
    assert_false(complete(&pool, foreign, 0));
    assert_false(complete(&pool, mine + 8, 0));
    assert_false(complete(&pool, pool.base - BYTES, 0));
    assert_false(complete(&pool, pool.base + 3 * BYTES, 0));
    assert_false(complete(&pool, pool.base + BYTES, 0)); /* not taken */
    assert_true(complete(&pool, mine, BYTES * 100));     /* beyond the buffer */
    assert_false(complete(&pool, mine, 0));              /* twice */
    uint8_t *buffer;
    size_t valid;
    assert_int_equal(occ_pool_next(&pool, &buffer, &valid), 0);
    assert_int_equal(valid, BYTES);
}

static void test_tend_gives_back_what_is_too_much(void **state)
{
    (void)state;
    struct occ_pool pool;
    assert_int_equal(occ_pool_init(&pool, 40, BYTES), 0);
    uint8_t *taken[40], *buffer;
    for (int i = 0; i < 40; i++)
        taken[i] = take(&pool);
    for (int i = 0; i < 40; i++) {
        memset(taken[i], 1, BYTES);
        complete(&pool, taken[i], BYTES);
    }
    size_t valid;
    int index;
    while ((index = occ_pool_next(&pool, &buffer, &valid)) >= 0)
        occ_pool_recycle(&pool, index);
    for (int i = 0; i < 100; i++)
        occ_pool_maintain(&pool);
    int ready = 0;
    for (int i = 0; i < 40; i++)
        ready += atomic_load(&pool.state[i]) == 1; /* READY */
    assert_int_equal(ready, 8);
    for (int i = 0; i < 40; i++) { /* all buffers are still available, zeroed */
        taken[i] = take(&pool);
        assert_true(is_zero(taken[i], BYTES));
    }
    assert_int_equal(atomic_load(&pool.discarded_bytes), 0);
}

static void test_sizes_are_checked(void **state)
{
    (void)state;
    struct occ_pool pool;
    assert_true(occ_pool_init(&pool, 0, BYTES) < 0);
    assert_true(occ_pool_init(&pool, OCC_POOL_MAX_BUFFERS + 1, BYTES) < 0);
    assert_true(occ_pool_init(&pool, 1, 100) < 0);
    assert_null(pool.base);
}

/* ---- sizes of buffers, on a simulated clock ---- */

#define SECOND_NS    UINT64_C(1000000000)
#define RECORD_BYTES 216u

/* A thread that keeps the GPU busy: each kernel is launched when the one before it starts. */
struct busy_thread {
    uintptr_t thread;
    uint64_t kernel_ns[2]; /* alternating */
    uint64_t now_ns, end_ns, n;
    uint8_t *buffer;
    size_t bytes, used;
    uint64_t first_end_ns; /* end of the buffer's first record */
    uint64_t worst_age_ns; /* maximum time from a record's end to its arrival */
    uint64_t buffers;
};

static void deliver(struct occ_pool *pool, struct busy_thread *t, uint64_t at_ns)
{
    uint8_t *buffer;
    size_t valid;
    assert_true(occ_pool_complete(pool, t->buffer, t->used, at_ns));
    occ_pool_recycle(pool, occ_pool_next(pool, &buffer, &valid));
    if (at_ns - t->first_end_ns > t->worst_age_ns)
        t->worst_age_ns = at_ns - t->first_end_ns;
    t->buffer = NULL;
    t->buffers++;
}

/* Adds a launch. A buffer returns when it is full and its last record complete; no flush returns it earlier.
 */
static void launch(struct occ_pool *pool, struct busy_thread *t)
{
    uint64_t start_ns = t->end_ns, duration_ns = t->kernel_ns[t->n++ % 2];
    if (!t->buffer) {
        t->buffer = occ_pool_take(pool, t->thread, t->now_ns, &t->bytes);
        t->used = 0;
        t->first_end_ns = start_ns + duration_ns;
    }
    t->used += RECORD_BYTES;
    t->now_ns = start_ns;
    t->end_ns = start_ns + duration_ns;
    if (t->used + RECORD_BYTES > t->bytes)
        deliver(pool, t, t->end_ns);
}

/* Runs the thread for `seconds`, and measures all but the first five. */
static void keep_busy(struct occ_pool *pool, struct busy_thread *t, uint64_t seconds)
{
    uint64_t judged_ns = t->end_ns + 5 * SECOND_NS, until_ns = t->end_ns + seconds * SECOND_NS;
    while (t->end_ns < judged_ns)
        launch(pool, t);
    t->worst_age_ns = t->buffers = 0;
    while (t->end_ns < until_ns)
        launch(pool, t);
}

static void test_a_busy_stream_shows_its_records(void **state)
{
    (void)state;
    static const struct {
        uint64_t kernel_ns[2], max_age_ns, max_buffers; /* buffers per second */
    } cases[] = {
        {{5000, 5000}, SECOND_NS, 400},           {{3000000, 2000}, SECOND_NS, 10},
        {{20000000, 2000}, SECOND_NS, 10},        {{100000000, 2000}, 2 * SECOND_NS, 2},
        {{50000000, 50000000}, 2 * SECOND_NS, 2}, {{1000000000, 2000}, 10 * SECOND_NS, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct occ_pool pool;
        struct busy_thread t = {.end_ns = SECOND_NS};
        memcpy(t.kernel_ns, cases[i].kernel_ns, sizeof t.kernel_ns);
        assert_int_equal(occ_pool_init(&pool, 8, OCC_POOL_DEFAULT_BYTES), 0);
        keep_busy(&pool, &t, 60);
        assert_true(t.buffers <= cases[i].max_buffers * 55);
    }
}

static void test_each_thread_has_its_size(void **state)
{
    (void)state;
    struct occ_pool pool;
    struct busy_thread fast = {.thread = 0x7f0000001000, .kernel_ns = {10000, 10000}, .end_ns = SECOND_NS},
                       slow = {.thread = 0x7f0000802000, .kernel_ns = {40000000, 2000}, .end_ns = SECOND_NS};
    assert_int_equal(occ_pool_init(&pool, 8, OCC_POOL_DEFAULT_BYTES), 0);
    for (int i = 0; i < 40; i++) {
        keep_busy(&pool, &fast, 6);
        keep_busy(&pool, &slow, 6);
    }
    assert_true(fast.bytes == OCC_POOL_DEFAULT_BYTES && slow.bytes <= 8192);
    /* a thread that becomes slow gets small buffers */
    fast.kernel_ns[0] = fast.kernel_ns[1] = 30000000;
    keep_busy(&pool, &fast, 60);
    keep_busy(&pool, &fast, 60);
    assert_true(fast.worst_age_ns <= 2 * SECOND_NS);
}

/* A thread launches once a second: a flush returns its buffer, and its buffer size stays. */
static void test_a_buffer_that_is_not_full_changes_nothing(void **state)
{
    (void)state;
    struct occ_pool pool;
    uint8_t *buffer;
    size_t bytes = 0, valid;
    assert_int_equal(occ_pool_init(&pool, 8, OCC_POOL_DEFAULT_BYTES), 0);
    for (uint64_t i = 0; i < 100; i++) {
        const uint8_t *mine = occ_pool_take(&pool, 0, i * SECOND_NS, &bytes);
        assert_int_equal(bytes, OCC_POOL_MIN_BYTES);
        assert_true(occ_pool_complete(&pool, mine, RECORD_BYTES, i * SECOND_NS + i % 2 * SECOND_NS));
        occ_pool_recycle(&pool, occ_pool_next(&pool, &buffer, &valid));
    }
}

/* Another thread flushes often while it waits for the device: a buffer that returns early without being full
 * must not grow. */
static void test_a_buffer_that_a_flush_returns_early_does_not_grow(void **state)
{
    (void)state;
    struct occ_pool pool;
    uint8_t *buffer;
    size_t bytes = 0, valid;
    assert_int_equal(occ_pool_init(&pool, 8, OCC_POOL_DEFAULT_BYTES), 0);
    for (uint64_t i = 0; i < 100; i++) {
        const uint8_t *mine = occ_pool_take(&pool, 0, i * SECOND_NS / 100, &bytes);
        assert_int_equal(bytes, OCC_POOL_MIN_BYTES);
        assert_true(occ_pool_complete(&pool, mine, RECORD_BYTES, i * SECOND_NS / 100 + 1000));
        occ_pool_recycle(&pool, occ_pool_next(&pool, &buffer, &valid));
    }
}

static void test_who_has_asked(void **state)
{
    (void)state;
    struct occ_pool pool;
    size_t bytes;
    assert_int_equal(occ_pool_init(&pool, 8, OCC_POOL_DEFAULT_BYTES), 0);
    for (uintptr_t thread = 1; thread < 5; thread++) { /* so few threads have slots of their own */
        assert_false(occ_pool_may_have_asked(&pool, thread << 12));
        (void)occ_pool_take(&pool, thread << 12, SECOND_NS, &bytes);
        assert_true(occ_pool_may_have_asked(&pool, thread << 12));
    }
}

/* CUPTI's worker never requests a buffer: it must be told from many threads that do. */
static void test_who_has_not_asked_is_told_from_many(void **state)
{
    (void)state;
    static struct occ_pool pool;
    size_t bytes;
    assert_int_equal(occ_pool_init(&pool, 8, OCC_POOL_DEFAULT_BYTES), 0);
    for (uintptr_t thread = 1; thread <= OCC_POOL_ASKERS / 2; thread++)
        (void)occ_pool_take(&pool, thread << 12, SECOND_NS, &bytes);
    for (uintptr_t thread = 1; thread <= OCC_POOL_ASKERS; thread++)
        assert_int_equal(occ_pool_may_have_asked(&pool, thread << 12), thread <= OCC_POOL_ASKERS / 2);
    for (uintptr_t thread = 1; thread <= 2 * OCC_POOL_ASKERS; thread++) /* more than the table holds */
        (void)occ_pool_take(&pool, thread << 12, SECOND_NS, &bytes);
    for (uintptr_t thread = 1; thread <= 2 * OCC_POOL_ASKERS; thread++)
        assert_true(occ_pool_may_have_asked(&pool, thread << 12));
}

/* ---- several threads take and complete while one drains ---- */

#define THREADS 4
#define ROUNDS  2000

struct shared {
    struct occ_pool pool;
    _Atomic int clashes;
    _Atomic int discarded;
};

static void *taker(void *arg)
{
    struct shared *s = arg;
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t *buffer = take(&s->pool);
        if (buffer == s->pool.base + s->pool.count * s->pool.bytes) {
            atomic_fetch_add(&s->discarded, 1);
        } else {
            if (!is_zero(buffer, 64)) /* in use by another thread, or not zeroed */
                atomic_fetch_add(&s->clashes, 1);
            memset(buffer, 0x55, 64);
        }
        if (!complete(&s->pool, buffer, 64))
            atomic_fetch_add(&s->clashes, 1);
        if (i % 16 == 0)
            sched_yield();
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    static struct shared s;
    assert_int_equal(occ_pool_init(&s.pool, 8, BYTES), 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, taker, &s);
    int read = 0;
    while (atomic_load(&s.pool.delivered) < THREADS * ROUNDS ||
           read + atomic_load(&s.discarded) < THREADS * ROUNDS) {
        uint8_t *buffer;
        size_t valid;
        int index = occ_pool_next(&s.pool, &buffer, &valid);
        if (index < 0) {
            sched_yield();
            continue;
        }
        assert_int_equal(buffer[63], 0x55);
        occ_pool_recycle(&s.pool, index);
        read++;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s.clashes), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_gives_every_buffer_then_the_discard_one),
        cmocka_unit_test(test_buffers_come_back_in_order_and_zeroed),
        cmocka_unit_test(test_all_that_cupti_got_is_zeroed),
        cmocka_unit_test(test_pages_that_nobody_used_are_not_made),
        cmocka_unit_test(test_what_is_not_ours_is_refused),
        cmocka_unit_test(test_tend_gives_back_what_is_too_much),
        cmocka_unit_test(test_sizes_are_checked),
        cmocka_unit_test(test_a_busy_stream_shows_its_records),
        cmocka_unit_test(test_each_thread_has_its_size),
        cmocka_unit_test(test_who_has_asked),
        cmocka_unit_test(test_who_has_not_asked_is_told_from_many),
        cmocka_unit_test(test_a_buffer_that_is_not_full_changes_nothing),
        cmocka_unit_test(test_a_buffer_that_a_flush_returns_early_does_not_grow),
        cmocka_unit_test(test_threads),
    };
    choose_cases(argc, argv);
    return cmocka_run_group_tests_name("injector_buffers", tests, NULL, NULL);
}
