/*
 * injector/drain.c: memory operations, which are the program's fills and copies on SMs. The daemon gets them
 * only on request; they count neither as launches nor as lost launches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "injector/drain.h"
#include "injector_samples.h"
#include "ring/consumer.h"

#define RECORD_BYTES OCC_CUPTI_KERNEL_BYTES_13
#define COMPUTE      OCC_CUPTI_CHANNEL_COMPUTE
#define COPY_ENGINE  2u
#define SLOTS        OCC_RING_MIN_SLOTS
#define FILL         OCC_CUPTI_KIND_MEMSET
#define COPY         OCC_CUPTI_KIND_MEMCPY

static struct guest {
    struct occ_ring_producer ring;
    struct occ_ring_consumer *daemon;
    struct occ_tracing tracing;
    struct occ_pool pool;
    struct occ_exact_client exact;
    struct occ_drain drain;
    uint8_t *buffer;
    size_t used, size;
} guest;

static uint32_t next_record(uint8_t *buffer, size_t valid_bytes, void **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + RECORD_BYTES : buffer;
    if (next >= buffer + valid_bytes)
        return OCC_CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = next;
    return OCC_CUPTI_SUCCESS;
}

static int set_up(void **state)
{
    struct guest *g = &guest;
    (void)state;
    memset(g, 0, sizeof *g);
    g->tracing.cupti.version = OCC_CUPTI_VERSION_13_0 + 1;
    g->tracing.call.get_next_record = next_record;
    return occ_ring_create(&g->ring, SLOTS, UINT64_C(65536)) != 0 ||
           occ_ring_attach(dup(g->ring.fd), 0, &g->daemon, NULL) != 0 ||
           occ_pool_init(&g->pool, 4, OCC_POOL_DEFAULT_BYTES) != 0 ||
           occ_drain_init(&g->drain, &g->ring, &g->tracing, &g->pool, &g->exact) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)munmap(guest.pool.base, 5 * guest.pool.bytes);
    occ_ring_detach(guest.daemon);
    occ_ring_destroy(&guest.ring);
    return 0;
}

static void add(const void *record, size_t bytes)
{
    struct guest *g = &guest;
    if (!g->buffer) {
        g->buffer = occ_pool_take(&g->pool, 1, 0, &g->size);
        g->used = 0;
    }
    assert_true(g->used + RECORD_BYTES <= g->size);
    memcpy(g->buffer + g->used, record, bytes);
    g->used += RECORD_BYTES;
}

/* Delivers the buffer without its last `missing` bytes. */
static void deliver_less(size_t missing)
{
    struct guest *g = &guest;
    assert_true(occ_pool_complete(&g->pool, g->buffer, g->used - missing, 0));
    g->buffer = NULL;
    occ_drain_all(&g->drain);
}

static void add_kernel(uint64_t n)
{
    struct occ_cupti_kernel kernel = sample_kernel("_Z4gemmv", 1, n);
    add(&kernel, sizeof kernel);
}

static struct occ_cupti_memory_record operation(uint32_t kind, uint32_t channel_type, uint64_t n)
{
    return (struct occ_cupti_memory_record){.kind = kind,
                                            .bytes = 4096,
                                            .start_ns = SAMPLE_START_NS + n * 1000,
                                            .end_ns = SAMPLE_START_NS + n * 1000 + 300,
                                            .context = 1,
                                            .stream = 7,
                                            .correlation = (uint32_t)n,
                                            .channel_type = channel_type};
}

static void add_operation(uint32_t kind, uint32_t channel_type, uint64_t n)
{
    struct occ_cupti_memory_record record = operation(kind, channel_type, n);
    add(&record, sizeof record);
}

/* The daemon's view: launches by the flags of their kernel. */
struct seen {
    size_t kernels, fills, copies;
    uint64_t lost;
};

#define KERNELS_MAX 8
static uint32_t flags_of_kernel[KERNELS_MAX], kernel_of_config[KERNELS_MAX];

static struct seen see(void)
{
    struct seen s = {0};
    const struct occ_log_record *record;
    struct occ_ring_launch launches[SLOTS];
    size_t n = 0;
    while (occ_ring_next_log_record(guest.daemon, &record) == OCC_RING_OK) {
        const struct occ_record_kernel *k = (const void *)record;
        const struct occ_record_config *c = (const void *)record;
        if (record->type == OCC_RECORD_KERNEL)
            flags_of_kernel[k->id % KERNELS_MAX] = k->flags;
        if (record->type == OCC_RECORD_CONFIG)
            kernel_of_config[c->id % KERNELS_MAX] = c->kernel;
    }
    (void)occ_ring_read(guest.daemon, launches, SLOTS, &n);
    for (size_t i = 0; i < n; i++) {
        uint32_t flags = flags_of_kernel[kernel_of_config[launches[i].config]];
        s.kernels += flags == 0;
        s.fills += flags == OCC_KERNEL_FILL;
        s.copies += flags == OCC_KERNEL_COPY;
        assert_int_equal(launches[i].duration_ns, flags == 0 ? 500 : 300);
    }
    assert_null(occ_ring_broken_reason(guest.daemon));
    for (int i = 0; i < OCC_LOSS_COUNT; i++)
        s.lost += occ_ring_lost(guest.daemon, (enum occ_loss_cause)i);
    return s;
}

static void assert_seen(size_t kernels, size_t fills, size_t copies)
{
    struct seen s = see();
    assert_int_equal(s.kernels, kernels);
    assert_int_equal(s.fills, fills);
    assert_int_equal(s.copies, copies);
    assert_int_equal(s.lost, 0);
}

static void add_all_kinds(void)
{
    add_kernel(1);
    add_operation(FILL, COMPUTE, 2);
    add_operation(COPY, COMPUTE, 3);
    add_kernel(4);
    add_operation(COPY, COMPUTE, 5);
    deliver_less(0);
}

static void a_daemon_that_does_not_ask_gets_none(void **state)
{
    (void)state;
    add_all_kinds();
    assert_seen(2, 0, 0);
    occ_ring_want_memory(guest.daemon, true);
    occ_ring_want_memory(guest.daemon, false);
    add_all_kinds();
    assert_seen(2, 0, 0);
    atomic_store(&guest.ring.header->requests.wants_memory, 2); /* a value unknown to this version */
    add_all_kinds();
    assert_seen(2, 0, 0);
}

static void a_daemon_that_asks_gets_them_beside_the_launches(void **state)
{
    (void)state;
    occ_ring_want_memory(guest.daemon, true);
    add_all_kinds();
    assert_seen(2, 1, 2);
    add_all_kinds();
    assert_seen(2, 1, 2);
    assert_int_equal(guest.drain.records, 4); /* records of kernels */
}

/* The program continues without its daemon; an older daemon may follow, which would store memory operations
 * as launches. */
static void none_without_a_daemon(void **state)
{
    (void)state;
    occ_ring_want_memory(guest.daemon, true);
    occ_ring_reset_requests(&guest.ring);
    add_all_kinds();
    assert_seen(2, 0, 0);
}

static void copy_engines_have_no_warps(void **state)
{
    (void)state;
    occ_ring_want_memory(guest.daemon, true);
    add_operation(COPY, COPY_ENGINE, 1);
    add_operation(FILL, COPY_ENGINE, 2);
    add_operation(COPY, 0, 3); /* unknown */
    deliver_less(0);
    assert_seen(0, 0, 0);
}

static void impossible_times_are_skipped(void **state)
{
    (void)state;
    static const uint64_t times[][2] = {
        {0, 5}, {9, 9}, {9, 8}, {SAMPLE_START_NS, 0}, {UINT64_MAX - 9, UINT64_MAX}};
    occ_ring_want_memory(guest.daemon, true);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct occ_cupti_memory_record record = operation(FILL, COMPUTE, i);
        record.start_ns = times[i][0];
        record.end_ns = times[i][1];
        add(&record, sizeof record);
    }
    deliver_less(0);
    assert_seen(0, 0, 0);
}

static void a_record_that_is_cut_is_skipped(void **state)
{
    (void)state;
    occ_ring_want_memory(guest.daemon, true);
    add_kernel(1);
    add_operation(FILL, COMPUTE, 2);
    deliver_less(RECORD_BYTES - sizeof(struct occ_cupti_memory_record) + 8);
    assert_seen(1, 0, 0);
}

static void pauses_hold_for_them(void **state)
{
    (void)state;
    occ_ring_want_memory(guest.daemon, true);
    assert_true(occ_drain_pause(&guest.drain, SAMPLE_START_NS + 3000));
    add_all_kinds(); /* kernel 1 and fill 2 are before the pause */
    assert_seen(1, 1, 0);
}

static void they_use_up_no_limit_of_launches(void **state)
{
    (void)state;
    occ_ring_want_memory(guest.daemon, true);
    guest.drain.max_launches = 3;
    add_all_kinds();
    add_all_kinds();
    assert_seen(3, 2, 3); /* the first copy of the second buffer precedes the launch beyond the limit */
}

/* Half of the ring stays free for launches; further operations are dropped, and do not count as losses. */
static void they_never_displace_a_launch(void **state)
{
    (void)state;
    occ_ring_want_memory(guest.daemon, true);
    for (uint64_t n = 0; n < SLOTS; n += 16) { /* in buffers of the first size */
        for (uint64_t i = n; i < n + 16; i++)
            add_operation(FILL, COMPUTE, i);
        deliver_less(0);
    }
    for (uint64_t n = 0; n < SLOTS / 2; n += 16) {
        for (uint64_t i = n; i < n + 16; i++)
            add_kernel(i);
        deliver_less(0);
    }
    assert_seen(SLOTS / 2, SLOTS / 2, 0);
}

/* The grid of the configuration gives the daemon the size: classes of a quarter of an octave. */
static void sizes_have_configurations_of_their_own(void **state)
{
    static const uint64_t sizes[] = {0, 3, 4, 5, 4096, 5119, 5120, UINT64_MAX};
    static const uint32_t grids[] = {1, 4, 9, 10, 49, 50, 256};
    const struct occ_log_record *record;
    size_t n = 0;
    (void)state;
    occ_ring_want_memory(guest.daemon, true);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct occ_cupti_memory_record fill = operation(FILL, COMPUTE, i);
        fill.bytes = sizes[i];
        add(&fill, sizeof fill);
    }
    deliver_less(0);
    while (occ_ring_next_log_record(guest.daemon, &record) == OCC_RING_OK)
        if (record->type == OCC_RECORD_CONFIG)
            assert_int_equal(((const struct occ_record_config *)(const void *)record)->grid[0], grids[n++]);
    assert_int_equal(n, sizeof grids / sizeof *grids);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_daemon_that_does_not_ask_gets_none),
        T(a_daemon_that_asks_gets_them_beside_the_launches),
        T(none_without_a_daemon),
        T(copy_engines_have_no_warps),
        T(impossible_times_are_skipped),
        T(a_record_that_is_cut_is_skipped),
        T(pauses_hold_for_them),
        T(they_use_up_no_limit_of_launches),
        T(they_never_displace_a_launch),
        T(sizes_have_configurations_of_their_own),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
