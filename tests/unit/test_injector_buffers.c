/* injector/buffers: never NULL, never two at once, zeroed when given, in order; what is foreign. */
#include "injector/buffers.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define BYTES 32768u

static bool is_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void test_take_gives_every_buffer_then_the_discard_one(void **state)
{
    (void)state;
    struct occ_pool pool;
    assert_int_equal(occ_pool_init(&pool, 3, BYTES), 0);
    uint8_t *taken[5];
    for (int i = 0; i < 5; i++) {
        taken[i] = occ_pool_take(&pool);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % 8, 0);
    }
    assert_true(taken[0] != taken[1] && taken[1] != taken[2] && taken[0] != taken[2]);
    assert_true(taken[3] == taken[4] && taken[3] != taken[0] && taken[3] != taken[1] && taken[3] != taken[2]);
    memset(taken[3], 1, BYTES); /* it can be written */

    uint8_t *buffer;
    size_t valid;
    assert_true(occ_pool_complete(&pool, taken[3], 500));
    assert_true(occ_pool_complete(&pool, taken[4], 600));
    assert_int_equal(occ_pool_next(&pool, &buffer, &valid), -1); /* never read */
    assert_int_equal(atomic_load(&pool.discarded_bytes), 1100);
}

static void test_buffers_come_back_in_order_and_zeroed(void **state)
{
    (void)state;
    struct occ_pool pool;
    assert_int_equal(occ_pool_init(&pool, 3, BYTES), 0);
    for (int round = 0; round < 10; round++) {
        uint8_t *a = occ_pool_take(&pool), *b = occ_pool_take(&pool), *buffer;
        assert_true(is_zero(a, BYTES) && is_zero(b, BYTES));
        memset(a, 0xee, BYTES);
        memset(b, 0xdd, 100);
        size_t valid;
        assert_true(occ_pool_complete(&pool, b, 100));
        assert_true(occ_pool_complete(&pool, a, BYTES));
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

static void test_what_is_not_ours_is_refused(void **state)
{
    (void)state;
    struct occ_pool pool;
    static uint8_t foreign[64];
    assert_int_equal(occ_pool_init(&pool, 2, BYTES), 0);
    uint8_t *mine = occ_pool_take(&pool);
    assert_false(occ_pool_complete(&pool, foreign, 0));
    assert_false(occ_pool_complete(&pool, mine + 8, 0));
    assert_false(occ_pool_complete(&pool, pool.base - BYTES, 0));
    assert_false(occ_pool_complete(&pool, pool.base + 3 * BYTES, 0));
    assert_false(occ_pool_complete(&pool, pool.base + BYTES, 0)); /* not taken */
    assert_true(occ_pool_complete(&pool, mine, BYTES * 100));     /* more than there is */
    assert_false(occ_pool_complete(&pool, mine, 0));              /* twice */
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
        taken[i] = occ_pool_take(&pool);
    for (int i = 0; i < 40; i++) {
        memset(taken[i], 1, BYTES);
        occ_pool_complete(&pool, taken[i], BYTES);
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
    for (int i = 0; i < 40; i++) { /* all can still be had, zeroed */
        taken[i] = occ_pool_take(&pool);
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
        uint8_t *buffer = occ_pool_take(&s->pool);
        if (buffer == s->pool.base + s->pool.count * s->pool.bytes) {
            atomic_fetch_add(&s->discarded, 1);
        } else {
            if (!is_zero(buffer, 64)) /* somebody else's, or not zeroed */
                atomic_fetch_add(&s->clashes, 1);
            memset(buffer, 0x55, 64);
        }
        if (!occ_pool_complete(&s->pool, buffer, 64))
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_gives_every_buffer_then_the_discard_one),
        cmocka_unit_test(test_buffers_come_back_in_order_and_zeroed),
        cmocka_unit_test(test_what_is_not_ours_is_refused),
        cmocka_unit_test(test_tend_gives_back_what_is_too_much),
        cmocka_unit_test(test_sizes_are_checked),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("injector_buffers", tests, NULL, NULL);
}
