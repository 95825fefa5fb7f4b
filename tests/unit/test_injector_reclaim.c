/*
 * occ_pool_reclaim(): the buffers that another client's session took return whole, and no other buffer
 * changes.
 */
#include "injector/buffers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define BYTES (2 * OCC_POOL_MIN_BYTES)
#define COUNT 4

static struct occ_pool pool;

static int set_up(void **state)
{
    (void)state;
    return occ_pool_init(&pool, COUNT, BYTES);
}

static int tear_down(void **state)
{
    (void)state;
    return munmap(pool.base, (COUNT + 1) * (size_t)BYTES);
}

static uint8_t *take(void)
{
    size_t bytes;
    return occ_pool_take(&pool, 0, 0, &bytes);
}

static bool is_filled(const uint8_t *bytes, uint8_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/* CUPTI wrote into these buffers before the session, and the session's client may have written anything. */
static void what_was_out_is_zeroed_and_given_again(void **state)
{
    (void)state;
    uint8_t *out[COUNT];
    for (int i = 0; i < COUNT; i++) {
        out[i] = take();
        memset(out[i], 0xee, OCC_POOL_MIN_BYTES); /* the size that CUPTI got */
    }
    occ_pool_reclaim(&pool);
    for (int i = 0; i < COUNT; i++) {
        uint8_t *again = take();
        assert_true(again != pool.base + (size_t)COUNT * BYTES);
        assert_true(is_filled(again, 0, BYTES));
        memset(again, 1, 1);
    }
}

/* Delivered buffers that wait for the helper are read, in order. */
static void what_was_delivered_is_read(void **state)
{
    (void)state;
    uint8_t *first = take(), *lost = take(), *second = take(), *buffer;
    size_t valid;
    memset(first, 1, 216);
    memset(second, 2, 216);
    assert_true(occ_pool_complete(&pool, first, 216, 1));
    assert_true(occ_pool_complete(&pool, second, 216, 2));
    occ_pool_reclaim(&pool);
    assert_ptr_equal(take(), lost);
    int index = occ_pool_next(&pool, &buffer, &valid);
    assert_ptr_equal(buffer, first);
    assert_true(is_filled(buffer, 1, valid) && valid == 216);
    occ_pool_recycle(&pool, index);
    index = occ_pool_next(&pool, &buffer, &valid);
    assert_ptr_equal(buffer, second);
    assert_true(is_filled(buffer, 2, valid) && valid == 216);
    occ_pool_recycle(&pool, index);
    assert_int_equal(occ_pool_next(&pool, &buffer, &valid), -1);
}

/* CUPTI has none of the guest's buffers after the reclaim: the helper does not flush until CUPTI requests a
 * buffer. */
static void nothing_is_out_afterwards(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT + 2; i++) /* the discard buffer, too */
        (void)take();
    assert_int_equal(atomic_load(&pool.taken) - atomic_load(&pool.delivered), COUNT + 2);
    occ_pool_reclaim(&pool);
    assert_int_equal(atomic_load(&pool.taken), atomic_load(&pool.delivered));
    assert_int_equal(atomic_load(&pool.discarded_bytes), 0); /* the session's records are no losses */
    uint8_t *buffer = take();
    assert_int_equal(atomic_load(&pool.taken), atomic_load(&pool.delivered) + 1);
    assert_true(occ_pool_complete(&pool, buffer, 0, 1));
    assert_int_equal(atomic_load(&pool.taken), atomic_load(&pool.delivered));
}

/* A buffer that its new owner completes after the reclaim is foreign. */
static void a_late_completion_is_foreign(void **state)
{
    (void)state;
    uint8_t *buffer = take();
    occ_pool_reclaim(&pool);
    assert_false(occ_pool_complete(&pool, buffer, 100, 1));
    assert_int_equal(atomic_load(&pool.delivered), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(what_was_out_is_zeroed_and_given_again),
        T(what_was_delivered_is_read),
        T(nothing_is_out_afterwards),
        T(a_late_completion_is_foreign),
    };
#undef T
    return cmocka_run_group_tests_name("reclaim", tests, NULL, NULL);
}
