/* injector/intern, readable, devices, drain: names by content, launch configurations by key, bounds;
 * unreadable names. */
#include "ring_samples.h"
#include "injector_samples.h"
#include "sanitized.h"
#include "injector/drain.h"
#include "injector/watch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>

struct fixture {
    struct occ_ring_producer ring;
    struct occ_ring_consumer *consumer;
    struct occ_tracing tracing;
    struct occ_exact_client exact; /* measures nothing unless a test fills it */
    struct occ_pool pool;
    struct occ_drain drain;
};

static uint8_t *take(struct occ_pool *pool)
{
    size_t bytes;
    return occ_pool_take(pool, 0, 0, &bytes);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    f->tracing.cupti.version = 130001;
    if (occ_ring_create(&f->ring, 4096, 1 << 20) != 0 || attach_to(&f->ring, 0, &f->consumer) != 0 ||
        occ_pool_init(&f->pool, 4, 65536) != 0)
        return -1;
    return occ_drain_init(&f->drain, &f->ring, &f->tracing, &f->pool, &f->exact);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    occ_ring_detach(f->consumer);
    occ_ring_destroy(&f->ring);
    free(f);
    return 0;
}

static void test_names_are_known_by_content(void **state)
{
    struct fixture *f = *state;
    struct occ_intern *in = &f->drain.intern;
    char a[] = "kernel_a", again[] = "kernel_a", b[] = "kernel_b";
    assert_int_equal(occ_intern_kernel(in, a), 0);
    assert_int_equal(occ_intern_kernel(in, again), 0);
    assert_int_equal(occ_intern_kernel(in, b), 1);
    assert_int_equal(occ_intern_kernel(in, a), 0);
    assert_int_equal(in->kernel_count, 2);
    assert_int_equal(drain_log(f->consumer), 2);
}

static void test_many_names_share_a_table(void **state)
{
    struct fixture *f = *state;
    static char names[4000][16]; /* in 131072 places: dozens collide */
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 4000; i++) {
            (void)snprintf(names[i], sizeof names[i], "kernel%u", i);
            occ_intern_next_buffer(&f->drain.intern, true);
            assert_int_equal(occ_intern_kernel(&f->drain.intern, names[i]), i);
        }
    assert_int_equal(drain_log(f->consumer), 4000);
}

static void test_an_address_that_got_another_name(void **state)
{
    struct fixture *f = *state;
    struct occ_intern *in = &f->drain.intern;
    char name[] = "before";
    assert_int_equal(occ_intern_kernel(in, name), 0);
    memcpy(name, "after!", 6);
    occ_intern_next_buffer(in, true);
    assert_int_equal(occ_intern_kernel(in, name), 1);
    memcpy(name, "before", 6);
    occ_intern_next_buffer(in, true);
    assert_int_equal(occ_intern_kernel(in, name), 0);
}

/* Steps by the records' size, and also returns a last record that reaches beyond the valid bytes. */
static uint32_t next_record(uint8_t *buffer, size_t valid_bytes, void **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + sizeof(struct occ_cupti_kernel) : buffer;
    if ((size_t)(next - buffer) + 8 > valid_bytes)
        return OCC_CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = next;
    return OCC_CUPTI_SUCCESS;
}

/* Names are read again after 16384 records or 250 ms, not for every buffer, since buffers are small. */
static void test_when_names_are_read_again(void **state)
{
    struct fixture *f = *state;
    f->tracing.call.get_next_record = next_record;
    char name[] = "before";
    static const struct {
        uint64_t delivered_ns;
        uint32_t records_before; /* parsed elsewhere */
        uint32_t kernels;        /* known afterwards */
    } steps[] = {{0, 0, 1}, {249999999, 0, 1}, {250000000, 0, 2}, {250000001, 16382, 2}, {250000002, 0, 3}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        name[0] = (char)('a' + i);
        struct occ_cupti_kernel *record = (void *)take(&f->pool);
        *record = sample_kernel(name, 1, (uint32_t)i);
        assert_true(occ_pool_complete(&f->pool, (uint8_t *)record, sizeof *record, steps[i].delivered_ns));
        f->drain.records += steps[i].records_before;
        occ_drain_all(&f->drain);
        assert_int_equal(f->drain.intern.kernel_count, steps[i].kernels);
    }
}

static void test_names_that_are_not_there(void **state)
{
    struct fixture *f = *state;
    struct occ_intern *in = &f->drain.intern;
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    memset(pages, 'x', 4096);
    assert_int_equal(occ_intern_kernel(in, NULL), OCC_INTERN_UNREADABLE);
    assert_int_equal(occ_intern_kernel(in, pages + 4096), OCC_INTERN_UNREADABLE);
    assert_int_equal(occ_intern_kernel(in, pages + 4000),
                     OCC_INTERN_UNREADABLE); /* runs into the second page */
    assert_int_equal(occ_intern_kernel(in, (const char *)8), OCC_INTERN_UNREADABLE);
    assert_int_equal(occ_intern_kernel(in, (const char *)UINTPTR_MAX), OCC_INTERN_UNREADABLE);
    pages[4095] = '\0';
    assert_int_equal(occ_intern_kernel(in, pages + 4000), 0); /* ends with the page */
    munmap(pages, 8192);
    occ_intern_next_buffer(in, true);
    assert_int_equal(occ_intern_kernel(in, pages + 4000), OCC_INTERN_UNREADABLE); /* unloaded meanwhile */
    assert_int_equal(drain_log(f->consumer), 1);
}

#define TORN_BYTES 600

static struct {
    char name[TORN_BYTES + 1];
    _Atomic unsigned int changes;
    _Atomic bool is_over;
} torn;

static void *keep_changing(void *unused)
{
    volatile char *digits = &torn.name[TORN_BYTES / 2];
    for (unsigned int n = 0; !torn.is_over; torn.changes = ++n)
        for (unsigned int i = 0; i < 5; i++)
            digits[i] = (char)('a' + (n >> 4 * i) % 16);
    return unused;
}

/* A name that changes between its hash and its copy, like a name in a library that is unloaded, is not logged
 * under that hash: the reader would take it for another kernel. */
static void test_a_torn_name_is_not_logged(void **state)
{
    struct fixture *f = *state;
    struct occ_intern *in = &f->drain.intern;
    pthread_t thread;
#if SANITIZED_THREAD
    skip(); /* the race is the subject */
#endif
    memset(torn.name, 'a', TORN_BYTES);
    assert_int_equal(pthread_create(&thread, NULL, keep_changing, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        unsigned int seen = torn.changes;
        while (torn.changes == seen) /* the thread runs beside this one */
            sched_yield();
        uint32_t id = occ_intern_kernel(in, torn.name);
        assert_true(id < in->kernel_count || id == OCC_INTERN_UNREADABLE);
        occ_intern_next_buffer(in, true);
    }
    torn.is_over = true;
    pthread_join(thread, NULL);
    /* the reader compares each hash with the name */
    assert_int_equal(drain_log(f->consumer), in->kernel_count);
}

static void test_a_very_long_name_is_cut_but_told_apart(void **state)
{
    struct fixture *f = *state;
    static char one[40000], other[40000];
    memset(one, 'a', sizeof one - 1);
    memset(other, 'a', sizeof other - 1);
    other[sizeof other - 2] = 'b';
    assert_int_equal(occ_intern_kernel(&f->drain.intern, one), 0);
    assert_int_equal(occ_intern_kernel(&f->drain.intern, other), 1);
    const struct occ_log_record *record;
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    const struct occ_record_kernel *kernel = (const void *)record;
    assert_int_equal(kernel->flags, OCC_KERNEL_NAME_CUT);
    assert_int_equal(kernel->name_bytes, OCC_KERNEL_NAME_MAX_BYTES);
    assert_int_equal(kernel->name_hash, occ_fnv1a(one, sizeof one - 1));
    assert_int_equal(drain_log(f->consumer), 1);
}

static void test_more_pointers_than_are_remembered(void **state)
{
    struct fixture *f = *state;
    static char names[OCC_INTERN_POINTERS + 1000][2];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        names[i][0] = (char)('a' + i % 26);
        assert_int_equal(occ_intern_kernel(&f->drain.intern, names[i]), i % 26);
    }
    assert_int_equal(f->drain.intern.kernel_count, 26);
}

static struct occ_record_config config_of_kernel(uint32_t kernel, uint32_t grid_x)
{
    struct occ_record_config config = sample_config(0);
    config.kernel = kernel;
    config.grid[0] = grid_x;
    return config;
}

static void test_configs_by_key(void **state)
{
    struct fixture *f = *state;
    struct occ_intern *in = &f->drain.intern;
    assert_int_equal(occ_devices_id(&f->drain.devices, &f->ring, 0), 0);
    assert_int_equal(occ_intern_kernel(in, "k"), 0);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 5000; i++) {
            struct occ_record_config config = config_of_kernel(0, i + 1);
            assert_int_equal(occ_intern_config(in, &config), i);
        }
    struct occ_record_config other = config_of_kernel(0, 1);
    other.context = 9; /* the last field of the key */
    assert_int_equal(occ_intern_config(in, &other), 5000);
    assert_int_equal(drain_log(f->consumer), 5003);
}

static void test_a_full_log_is_said(void **state)
{
    struct fixture *f = *state;
    struct occ_intern *in = &f->drain.intern;
    assert_int_equal(occ_devices_id(&f->drain.devices, &f->ring, 0), 0);
    assert_int_equal(occ_intern_kernel(in, "k"), 0);
    uint32_t id, i = 0;
    do {
        struct occ_record_config config = config_of_kernel(0, ++i);
        id = occ_intern_config(in, &config);
    } while (id != OCC_INTERN_FULL);
    assert_true(i > 9000 && i < 11000); /* 1 MiB of 104 bytes each */
    struct occ_record_config known = config_of_kernel(0, 1);
    assert_int_equal(occ_intern_config(in, &known), 0); /* known configurations stay known */
    assert_int_equal(
        occ_intern_kernel(in, "another, whose name does not fit any more, since it is longer than "
                              "what the last config left, which was less than one hundred and four bytes"),
        OCC_INTERN_FULL);
}

static void test_devices_have_ids_in_order_of_sight(void **state)
{
    struct fixture *f = *state;
    struct occ_devices *d = &f->drain.devices;
    assert_int_equal(occ_devices_id(d, &f->ring, 3), 0);
    assert_int_equal(occ_devices_id(d, &f->ring, 0), 1);
    assert_int_equal(occ_devices_id(d, &f->ring, 3), 0);
    assert_int_equal(occ_devices_id(d, &f->ring, OCC_LOG_MAX_DEVICES), OCC_DEVICES_FULL);
    const struct occ_log_record *record;
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    assert_int_equal(((const struct occ_record_device *)(const void *)record)->ordinal, 3);
}

/* Loads a driver, which stays in the process: tests that need a process without a driver run earlier. */
static void test_what_the_driver_says_of_a_device(void **state)
{
    struct fixture *f = *state;
    assert_non_null(dlopen(OCC_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL));
    assert_int_equal(occ_devices_id(&f->drain.devices, &f->ring, 2), 0);
    const struct occ_log_record *record;
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    const struct occ_record_device *device = (const void *)record;
    assert_string_equal(device->name, "device 102 (simulated)");
    assert_int_equal(device->ordinal, 2);
    assert_int_equal(device->uuid[0], 102);
    assert_int_equal(device->memory_bytes, UINT64_C(80) << 30);
    assert_int_equal(device->driver_version, 13000);
    assert_int_equal(device->cc_major, 1075); /* the double answers 1000 + the attribute's number */
    assert_int_equal(device->cc_minor, 1076);
    assert_int_equal(device->sm_count, 1016);
    assert_int_equal(device->warp_size, 1010);
    assert_int_equal(device->max_threads_per_block, 1001);
    assert_int_equal(device->max_threads_per_sm, 1039);
    assert_int_equal(device->max_blocks_per_sm, 0); /* the driver refuses this attribute */
    assert_int_equal(device->registers_per_block, 1012);
    assert_int_equal(device->registers_per_sm, 1082);
    assert_int_equal(device->smem_per_block_bytes, 1008);
    assert_int_equal(device->smem_per_block_optin_bytes, 1097);
    assert_int_equal(device->smem_per_sm_bytes, 1081);
    assert_int_equal(device->smem_reserved_per_block_bytes, 1111);
    assert_int_equal(device->clock_khz, 1013);
}

/* ---- the watch over times ---- */

static bool rounds(struct occ_watch *watch, unsigned int n, uint64_t records, uint64_t bad)
{
    bool changed = false;
    for (unsigned int i = 0; i < n; i++)
        changed |= occ_watch_round(watch, records, bad);
    return changed;
}

static void test_times_that_stop_and_come_back(void **state)
{
    (void)state;
    struct occ_watch watch = {0};
    assert_false(rounds(&watch, OCC_WATCH_ROUNDS, 5000, 100)); /* few bad times */
    assert_false(rounds(&watch, OCC_WATCH_ROUNDS - 1, 10000, 5100));
    assert_true(rounds(&watch, 1, 10000, 5100)); /* a window with bad times only */
    assert_true(watch.is_without_times);
    assert_false(rounds(&watch, OCC_WATCH_ROUNDS, 10999, 5100)); /* too few good times */
    assert_true(watch.is_without_times);
    assert_true(rounds(&watch, OCC_WATCH_ROUNDS, 11999, 5100));
    assert_false(watch.is_without_times);
}

/* ---- drain ---- */

static uint64_t lost(const struct fixture *f, enum occ_loss_cause cause)
{
    return occ_ring_lost(f->consumer, cause);
}

static void test_records_become_launches(void **state)
{
    struct fixture *f = *state;
    for (uint64_t n = 0; n < 100; n++) {
        struct occ_cupti_kernel k = sample_kernel(n % 2 ? "odd" : "even", (uint32_t)(n % 5) + 1, n);
        occ_drain_record(&f->drain, &k);
    }
    assert_int_equal(drain_log(f->consumer), 1 + 2 + 10);
    struct occ_ring_launch launches[200];
    size_t n;
    assert_int_equal(occ_ring_read(f->consumer, launches, 200, &n), OCC_RING_OK);
    assert_int_equal(n, 100);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(launches[i].config, i % 10);
        assert_int_equal(launches[i].start_ns, SAMPLE_START_NS + i * 1000);
    }
}

static void test_what_else_lies_in_a_buffer(void **state)
{
    struct fixture *f = *state;
    f->tracing.call.get_next_record = next_record;
    struct occ_cupti_kernel *records = (void *)take(&f->pool);
    for (uint32_t n = 0; n < 10; n++) {
        records[n] = sample_kernel("k", 1, n);
        if (n % 2)
            records[n].kind = 1; /* a memory copy, which the guest did not request */
    }
    assert_true(occ_pool_complete(&f->pool, (uint8_t *)records, 8 * sizeof *records + 100, 0));
    occ_drain_all(&f->drain);
    assert_int_equal(f->drain.records, 4);
    assert_int_equal(lost(f, OCC_LOSS_BAD_RECORD), 1); /* the record that is cut off */
    assert_int_equal(occ_ring_pending(f->consumer), 4);
}

/* ---- ranges ---- */

static uint32_t next_of_two_kinds(uint8_t *buffer, size_t valid_bytes, void **record)
{
    uint32_t kind = 0;
    uint8_t *next = *record;
    if (next)
        memcpy(&kind, next, sizeof kind);
    next = !next ? buffer
                 : next + (kind == OCC_CUPTI_KIND_EXTERNAL ? sizeof(struct occ_cupti_external_record)
                                                           : sizeof(struct occ_cupti_kernel));
    if ((size_t)(next - buffer) + 8 > valid_bytes)
        return OCC_CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = next;
    return OCC_CUPTI_SUCCESS;
}

static size_t fake_path(uint64_t id, char *text, size_t size)
{
    return id == 9 ? 0 : (size_t)snprintf(text, size, "path %u", (unsigned)id);
}

static const struct occ_nvtx_library fake_nvtx = {OCC_NVTX_ABI, NULL, fake_path};

static void deliver_kernels(struct fixture *f, uint32_t from, uint32_t n)
{
    struct occ_cupti_kernel *records = (void *)take(&f->pool);
    for (uint32_t i = 0; i < n; i++)
        records[i] = sample_kernel("k", 1, from + i);
    assert_true(occ_pool_complete(&f->pool, (uint8_t *)records, n * sizeof *records, 0));
}

/* External ids give launches their ranges by correlation id, even if the ids come in a later buffer. Ids of
 * other clients, and stale or impossible ids, have no effect. */
static void test_launches_find_their_ranges(void **state)
{
    struct fixture *f = *state;
    const uint32_t kind = OCC_CUPTI_EXTERNAL_KIND;
    const struct occ_cupti_external_record numbers[] = {
        {OCC_CUPTI_KIND_EXTERNAL, kind, 7, 2, 0},
        {OCC_CUPTI_KIND_EXTERNAL, kind, OCC_NVTX_OTHER, 3, 0},
        {OCC_CUPTI_KIND_EXTERNAL, kind - 1, 7, 4, 0},              /* another client's */
        {OCC_CUPTI_KIND_EXTERNAL, kind, OCC_NVTX_OTHER + 1, 5, 0}, /* no path of ours */
        {OCC_CUPTI_KIND_EXTERNAL, kind, UINT64_MAX, 6, 0},
        {OCC_CUPTI_KIND_EXTERNAL, kind, 9, 7, 0},                    /* its path is not known */
        {OCC_CUPTI_KIND_EXTERNAL, kind, 7, 8 + OCC_RANGES_CALLS, 0}, /* a million calls later */
        {OCC_CUPTI_KIND_EXTERNAL, kind, 7, 9, 0},
        {OCC_CUPTI_KIND_EXTERNAL, kind, 7, 10, 0}, /* is cut off */
    };
    static const uint32_t expected[] = {0, 1, 2, 0, 0, 0, 0, 0, 1, 0};
    f->tracing.call.get_next_record = next_of_two_kinds;
    assert_true(occ_ranges_start(&f->drain.ranges, &f->ring, &fake_nvtx));
    deliver_kernels(f, 1, 10);
    uint8_t *buffer = take(&f->pool);
    memcpy(buffer, numbers, sizeof numbers);
    assert_true(occ_pool_complete(&f->pool, buffer, sizeof numbers - 16, 0));
    occ_drain_all(&f->drain);
    const struct occ_log_record *record;
    uint32_t of_config[8] = {0}, ranges = 0, configs = 0;
    while (occ_ring_next_log_record(f->consumer, &record) == OCC_RING_OK) {
        if (record->type == OCC_RECORD_RANGE)
            assert_string_equal((const char *)record + sizeof(struct occ_record_range),
                                ranges++ ? "path 4096" : "path 7");
        if (record->type == OCC_RECORD_CONFIG)
            of_config[configs++] = ((const struct occ_record_config *)(const void *)record)->range;
    }
    assert_int_equal(ranges, 2);
    assert_int_equal(configs, 3);
    struct occ_ring_launch launches[16];
    size_t n;
    assert_int_equal(occ_ring_read(f->consumer, launches, 16, &n), OCC_RING_OK);
    assert_int_equal(n, 10);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(of_config[launches[i].config], expected[i]);
}

/* Half of the configurations are for launches without a range. */
static void test_ranges_leave_room(void **state)
{
    struct fixture *f = *state;
    const struct occ_cupti_external_record number = {OCC_CUPTI_KIND_EXTERNAL, OCC_CUPTI_EXTERNAL_KIND, 7, 1,
                                                     0};
    assert_true(occ_ranges_start(&f->drain.ranges, &f->ring, &fake_nvtx));
    occ_ranges_add(&f->drain.ranges, &number);
    f->drain.intern.config_count = OCC_INTERN_CONFIGS / 2;
    struct occ_cupti_kernel k = sample_kernel("k", 1, 1);
    occ_drain_record(&f->drain, &k);
    assert_int_equal(f->drain.ranges.count, 0);
    f->drain.intern.config_count -= 2;
    occ_drain_record(&f->drain, &k);
    assert_int_equal(f->drain.ranges.count, 1);
}

static uint32_t lost_record(uint8_t *buffer, size_t valid_bytes, void **record)
{
    (void)buffer;
    (void)valid_bytes;
    *record = (void *)8; /* outside, for ever */
    return OCC_CUPTI_SUCCESS;
}

static void test_a_library_that_leads_astray(void **state)
{
    struct fixture *f = *state;
    f->tracing.call.get_next_record = lost_record;
    assert_true(occ_pool_complete(&f->pool, take(&f->pool), 4096, 0));
    occ_drain_all(&f->drain);
    assert_int_equal(f->drain.records, 0);
    assert_int_equal(f->drain.buffers, 1);
}

static struct occ_pool *busy_pool;
static uint32_t busy_buffers;

/* Delivers another buffer while a buffer is read, as long as busy_buffers last. */
static uint32_t busy_record(uint8_t *buffer, size_t valid_bytes, void **record)
{
    (void)buffer;
    (void)record;
    if (busy_buffers > 0) {
        busy_buffers--;
        (void)occ_pool_complete(busy_pool, take(busy_pool), valid_bytes, 0);
    }
    return OCC_CUPTI_ERROR_MAX_LIMIT_REACHED;
}

static void test_a_program_that_is_faster_does_not_keep_the_helper(void **state)
{
    struct fixture *f = *state;
    f->tracing.call.get_next_record = busy_record;
    busy_pool = &f->pool;
    busy_buffers = 1000;
    assert_true(occ_pool_complete(&f->pool, take(&f->pool), 4096, 0));
    occ_drain_all(&f->drain);
    assert_true(f->drain.buffers <= f->pool.count);
    occ_drain_all(&f->drain); /* continues with the remaining buffers */
    assert_true(f->drain.buffers > f->pool.count);
}

static void test_losses_by_cause(void **state)
{
    struct fixture *f = *state;
    struct occ_cupti_kernel k = sample_kernel("k", 1, 1);
    k.start_ns = k.end_ns = 0;
    occ_drain_record(&f->drain, &k);
    assert_int_equal(lost(f, OCC_LOSS_BAD_TIMES), 1);
    f->drain.by_force = true;
    occ_drain_record(&f->drain, &k);
    assert_int_equal(lost(f, OCC_LOSS_EXIT), 1);
    k.start_ns = 6;
    k.end_ns = 5; /* complete, but wrong */
    occ_drain_record(&f->drain, &k);
    assert_int_equal(lost(f, OCC_LOSS_EXIT), 1);
    assert_int_equal(lost(f, OCC_LOSS_BAD_TIMES), 2);
    assert_int_equal(drain_log(f->consumer), 3); /* device, kernel, launch configuration all the same */
    k.name = NULL;
    occ_drain_record(&f->drain, &k);
    k = sample_kernel("k", 0, 1);
    occ_drain_record(&f->drain, &k);
    assert_int_equal(lost(f, OCC_LOSS_BAD_RECORD), 2);
    k = sample_kernel("k", 1, 1);
    for (int i = 0; i < 4097; i++)
        occ_drain_record(&f->drain, &k);
    assert_int_equal(lost(f, OCC_LOSS_RING_FULL), 1);
    assert_int_equal(f->drain.records, 5 + 4097);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Double of libocctrace-exact.so: the launches that it received. */
struct occ_exact {
    uint32_t n;
    struct occ_exact_launch launches[8];
};

static bool add_launch(struct occ_exact *exact, const struct occ_exact_launch *launch)
{
    assert_true(exact->n < 8);
    exact->launches[exact->n++] = *launch;
    return launch->launch.graph_node == 0;
}

/* The exact library keeps records without times until their times are found. It does not keep a graph's
 * kernel, which is lost. */
static void test_exact_gets_every_record(void **state)
{
    static const struct occ_exact_library library = {.add_launch = add_launch};
    struct fixture *f = *state;
    struct occ_exact got = {0};
    f->exact = (struct occ_exact_client){.call = &library, .run = &got};
    struct occ_cupti_kernel good = sample_kernel("k", 1, 0), nameless = sample_kernel((const char *)8, 1, 1),
                            timeless = sample_kernel("k", 1, 2), neither = nameless, node = timeless;
    good.graph_node = timeless.graph_node = 0;
    node.graph_node = 7;
    timeless.start_ns = timeless.end_ns = neither.start_ns = neither.end_ns = node.start_ns = node.end_ns = 0;
    timeless.correlation = 77;
    occ_drain_record(&f->drain, &good);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.launches[0].launch.config, 0);
    assert_int_equal(got.launches[0].launch.start_ns, SAMPLE_START_NS);
    assert_true(got.launches[0].is_timed);
    occ_drain_record(&f->drain, &nameless);
    occ_drain_record(&f->drain, &neither);
    assert_int_equal(lost(f, OCC_LOSS_BAD_RECORD), 2);
    assert_int_equal(got.n, 1);
    occ_drain_record(&f->drain, &timeless);
    f->drain.by_force = true;
    occ_drain_record(&f->drain, &timeless);
    assert_int_equal(got.n, 3);
    assert_false(got.launches[1].is_timed);
    assert_int_equal(got.launches[1].launch.config, 0);
    assert_int_equal(got.launches[1].launch.correlation, 77);
    assert_int_equal(got.launches[1].cause, OCC_LOSS_BAD_TIMES);
    assert_int_equal(got.launches[2].cause, OCC_LOSS_EXIT);
    assert_int_equal(lost(f, OCC_LOSS_BAD_TIMES) + lost(f, OCC_LOSS_EXIT), 0);
    assert_int_equal(f->ring.head, 1);
    occ_drain_record(&f->drain, &node);
    assert_int_equal(lost(f, OCC_LOSS_EXIT), 1);
    assert_int_equal(f->drain.bad_times, 0); /* --exact takes times: no sign of a CUPTI without times */
}

/* Launches with times from the exact library are recorded like other launches: not while recording is off. */
static void test_a_launch_whose_times_were_found(void **state)
{
    struct fixture *f = *state;
    struct occ_ring_launch launch = {.start_ns = SAMPLE_START_NS, .duration_ns = 5};
    assert_true(occ_drain_found(&f->drain, &launch));
    assert_true(occ_drain_pause(&f->drain, SAMPLE_START_NS));
    assert_false(occ_drain_found(&f->drain, &launch));
    assert_int_equal(f->ring.head, 1);
}

/* Returns true if a launch at SAMPLE_START_NS + us is kept, both with its record's times and with times from
 * the exact library. */
static bool keeps(struct fixture *f, uint64_t us)
{
    struct occ_cupti_kernel kernel = sample_kernel("k", 1, us);
    struct occ_ring_launch launch = {.start_ns = kernel.start_ns, .duration_ns = 5};
    uint64_t before = f->ring.head;
    bool is_kept = occ_drain_found(&f->drain, &launch);
    occ_drain_record(&f->drain, &kernel);
    assert_int_equal(f->ring.head - before, is_kept ? 2 : 0);
    return is_kept;
}

/* CUPTI may keep a buffer with an unfinished launch beyond the end of one or more pauses: the launches of a
 * pause are ignored whenever they come. */
static void test_launches_of_a_pause_are_ignored_after_it_too(void **state)
{
    struct fixture *f = *state;
    assert_true(occ_drain_pause(&f->drain, SAMPLE_START_NS + 10 * 1000));
    assert_false(occ_drain_pause(&f->drain, SAMPLE_START_NS + 15 * 1000)); /* already off */
    assert_true(keeps(f, 9) && !keeps(f, 10) && !keeps(f, 1000000));
    occ_drain_resume(&f->drain, SAMPLE_START_NS + 20 * 1000);
    occ_drain_resume(&f->drain, SAMPLE_START_NS + 30 * 1000); /* already on */
    assert_true(keeps(f, 9) && !keeps(f, 10) && !keeps(f, 19) && keeps(f, 20));
    for (uint64_t pause = 2; pause <= OCC_DRAIN_PAUSES; pause++) {
        assert_true(occ_drain_pause(&f->drain, SAMPLE_START_NS + pause * 100 * 1000));
        assert_true(!keeps(f, pause * 100));
        occ_drain_resume(&f->drain, SAMPLE_START_NS + (pause * 100 + 10) * 1000);
        assert_true(!keeps(f, pause * 100 + 9) && keeps(f, pause * 100 + 10));
        assert_true(!keeps(f, 10) && !keeps(f, 19) && keeps(f, 20));
    }
}

static struct occ_cupti_kernel one_thread(const char *name)
{
    struct occ_cupti_kernel k = sample_kernel(name, 1, 0);
    k.graph_node = 0;
    for (int i = 0; i < 3; i++)
        k.grid[i] = k.block[i] = 1;
    return k;
}

/* The range profiler's kernel replay runs a kernel of its own, which no program launched. */
static void test_the_profilers_own_kernel_is_no_launch(void **state)
{
    static const struct occ_exact_library library = {.add_launch = add_launch};
    struct fixture *f = *state;
    struct occ_exact got = {0};
    struct occ_cupti_kernel own = one_thread("WaitNs"), timeless = own, node = own, wide = own,
                            longer = one_thread("WaitNs2");
    timeless.start_ns = timeless.end_ns = 0;
    node.graph_node = 7;
    wide.block[0] = 32;
    occ_drain_record(&f->drain, &own); /* without --exact it is the program's */
    assert_int_equal(f->ring.head, 1);
    f->exact = (struct occ_exact_client){.call = &library, .run = &got};
    occ_drain_record(&f->drain, &own);
    occ_drain_record(&f->drain, &timeless);
    f->exact.run = NULL; /* older buffers may come later */
    occ_drain_record(&f->drain, &own);
    assert_int_equal(f->ring.head, 1);
    assert_int_equal(got.n, 0);
    f->exact.run = &got;
    occ_drain_record(&f->drain, &wide);
    occ_drain_record(&f->drain, &longer);
    occ_drain_record(&f->drain, &node);
    assert_int_equal(f->ring.head, 4);
    assert_int_equal(got.n, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_names_are_known_by_content),
        TEST(test_many_names_share_a_table),
        TEST(test_an_address_that_got_another_name),
        TEST(test_when_names_are_read_again),
        TEST(test_names_that_are_not_there),
        TEST(test_a_torn_name_is_not_logged),
        TEST(test_a_very_long_name_is_cut_but_told_apart),
        TEST(test_more_pointers_than_are_remembered),
        TEST(test_configs_by_key),
        TEST(test_a_full_log_is_said),
        TEST(test_devices_have_ids_in_order_of_sight),
        cmocka_unit_test(test_times_that_stop_and_come_back),
        TEST(test_what_the_driver_says_of_a_device),
        TEST(test_records_become_launches),
        TEST(test_what_else_lies_in_a_buffer),
        TEST(test_launches_find_their_ranges),
        TEST(test_ranges_leave_room),
        TEST(test_a_library_that_leads_astray),
        TEST(test_a_program_that_is_faster_does_not_keep_the_helper),
        TEST(test_losses_by_cause),
        TEST(test_exact_gets_every_record),
        TEST(test_a_launch_whose_times_were_found),
        TEST(test_launches_of_a_pause_are_ignored_after_it_too),
        TEST(test_the_profilers_own_kernel_is_no_launch),
    };
    return cmocka_run_group_tests_name("injector_intern", tests, NULL, NULL);
}
