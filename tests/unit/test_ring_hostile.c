/* ring/: a consumer that meets a broken or hostile producer refuses or quarantines it, and never crashes. */
#include "ring_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cmocka.h>

#define SLOTS     OCC_RING_MIN_SLOTS
#define LOG_BYTES (1u << 22)

struct fixture {
    struct occ_ring_producer producer;
    struct occ_ring_consumer *consumer;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (occ_ring_create(&f->producer, SLOTS, LOG_BYTES) != 0 || !log_samples(&f->producer) ||
        attach_to(&f->producer, 0, &f->consumer) != 0)
        return -1;
    return drain_log(f->consumer) == 4 ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    occ_ring_detach(f->consumer);
    occ_ring_destroy(&f->producer);
    free(f);
    return 0;
}

/* ---- offered files ---- */

static int attach_code(int fd, const char **why)
{
    struct occ_ring_consumer *none = NULL;
    int rc = occ_ring_attach(fd, 0, &none, why);
    assert_null(none);
    return rc;
}

static void test_files_that_are_not_sealed_memfds_are_refused(void **state)
{
    (void)state;
    const char *why = NULL;
    char path[] = "/tmp/occ-ring-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    assert_int_equal(ftruncate(file, 1 << 20), 0);
    assert_int_equal(attach_code(file, &why), -EPERM); /* no memfd, or, if /tmp is a tmpfs, no seals */
    assert_non_null(why);
    close(file);

    int huge = memfd_create("t", MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (huge >= 0) { /* fails on a kernel without huge pages */
        assert_int_equal(ftruncate(huge, 1 << 21), 0);
        assert_int_equal(fcntl(huge, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
        assert_int_equal(attach_code(huge, &why), -EPERM);
        assert_string_equal(why, "kind of memory");
        close(huge);
    }

    int null = open("/dev/null", O_RDWR);
    assert_int_equal(attach_code(null, NULL), -EPERM);
    close(null);

    static const int seals[] = {0, F_SEAL_SHRINK, F_SEAL_GROW};
    for (size_t i = 0; i < 3; i++) {
        int fd = memfd_create("t", MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fd, 1 << 20), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
        assert_int_equal(attach_code(fd, NULL), -EPERM);
        close(fd);
    }
    assert_int_equal(attach_code(-1, NULL), -EBADF);
}

/* A sealed memfd that holds `header` and is `bytes` long. */
static int offer(const struct occ_ring_header *header, uint64_t bytes, int more_seals)
{
    int fd = memfd_create("t", MFD_ALLOW_SEALING);
    size_t n = bytes < sizeof *header ? (size_t)bytes : sizeof *header;
    assert_int_equal(pwrite(fd, header, n, 0), (ssize_t)n);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | more_seals), 0);
    return fd;
}

static void test_headers_that_lie_are_refused(void **state)
{
    struct fixture *f = *state;
    const struct occ_ring_header *good = f->producer.header;
    uint64_t total = good->total_bytes;
    struct {
        size_t offset;
        size_t bytes;
        uint64_t value;
        int code;
    } lies[] = {
#define LIE(field, value, code)                                                                              \
    {offsetof(struct occ_ring_header, field), sizeof good->field, (uint64_t)(value), code}
        LIE(magic, 0, -EPROTO),
        LIE(byte_order, 0x04030201, -EPROTO),
        LIE(version_major, 2, -EPROTONOSUPPORT),
        LIE(record_bytes, 48, -EINVAL),
        LIE(ring_slots, 0, -EINVAL),
        LIE(ring_slots, SLOTS - 1, -EINVAL),
        LIE(ring_slots, SLOTS * 2, -EINVAL),
        LIE(ring_slots, OCC_RING_MAX_SLOTS * 2u, -EINVAL),
        LIE(ring_slots, 0x80000000u, -EINVAL),
        LIE(log_bytes, 0, -EINVAL),
        LIE(log_bytes, LOG_BYTES + 1, -EINVAL),
        LIE(log_bytes, UINT64_MAX - 4095, -EINVAL),
        LIE(log_offset, 0, -EINVAL),
        LIE(log_offset, 8192, -EINVAL),
        LIE(ring_offset, 0, -EINVAL),
        LIE(ring_offset, UINT64_MAX, -EINVAL),
        LIE(total_bytes, total + 4096, -EINVAL),
        LIE(total_bytes, 0, -EINVAL),
        LIE(head, SLOTS + 1, -EINVAL),
        LIE(tail, 1, -EINVAL),
        LIE(tail, UINT64_MAX, -EINVAL),
#undef LIE
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct occ_ring_header header;
        memcpy(&header, good, sizeof header);
        memcpy((char *)&header + lies[i].offset, &lies[i].value, lies[i].bytes);
        int fd = offer(&header, total, 0);
        const char *why = NULL;
        assert_int_equal(attach_code(fd, &why), lies[i].code);
        assert_non_null(why);
        close(fd);
    }
}

static void test_files_of_another_size_are_refused(void **state)
{
    struct fixture *f = *state;
    const struct occ_ring_header *good = f->producer.header;
    const uint64_t sizes[] = {0, 1, 4095, 4096, good->total_bytes - 1, good->total_bytes + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int fd = offer(good, sizes[i], 0);
        assert_true(attach_code(fd, NULL) < 0);
        close(fd);
    }
    int fd = offer(good, good->total_bytes, 0); /* a sound file, offered the same way */
    struct occ_ring_consumer *c = NULL;
    assert_int_equal(occ_ring_attach(fd, 0, &c, NULL), 0);
    occ_ring_detach(c);
}

static void test_a_ring_nobody_may_write_is_refused(void **state)
{
    struct fixture *f = *state;
    int fd = offer(f->producer.header, f->producer.header->total_bytes, F_SEAL_WRITE);
    assert_true(attach_code(fd, NULL) < 0);
    close(fd);
}

static off_t blocks_of(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    return status.st_blocks;
}

/* A read through a mapping would allocate a page that was never written, and charge it to the reader: pages
 * of the header, the slots and the longest record. */
static void test_reading_makes_no_pages(void **state)
{
    struct fixture *f = *state;
    struct occ_ring_header header;
    const struct occ_log_record *record;
    static struct occ_ring_launch launches[SLOTS];
    static uint8_t head_only[OCC_RECORD_MAX_BYTES];
    size_t n = 0;
    memcpy(&header, f->producer.header, sizeof header);
    int empty = memfd_create("t", MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(empty, (off_t)header.total_bytes), 0);
    assert_int_equal(fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    assert_int_equal(attach_code(empty, NULL), -EPROTO);
    assert_int_equal(blocks_of(empty), 0);
    close(empty);

    for (int with_log = 0; with_log < 2; with_log++) {
        struct occ_ring_consumer *c = NULL;
        *(struct occ_log_record *)(void *)head_only =
            (struct occ_log_record){.type = OCC_RECORD_PROCESS, .bytes = sizeof head_only};
        header.head = SLOTS;
        header.log_head = with_log ? LOG_BYTES : 0;
        int fd = offer(&header, header.total_bytes, 0);
        assert_int_equal(pwrite(fd, head_only, sizeof(struct occ_log_record), OCC_RING_HEADER_BYTES),
                         sizeof(struct occ_log_record));
        off_t before = blocks_of(fd);
        assert_int_equal(occ_ring_attach(fd, 0, &c, NULL), 0);
        assert_int_equal(occ_ring_next_log_record(c, &record), with_log ? OCC_RING_BROKEN : OCC_RING_EMPTY);
        assert_int_equal(occ_ring_read(c, launches, SLOTS, &n), OCC_RING_BROKEN);
        assert_int_equal(blocks_of(fd), before);
        occ_ring_detach(c);
    }
}

/* ---- records ---- */

static void assert_broken(struct fixture *f, const char *reason)
{
    const struct occ_log_record *record;
    struct occ_ring_launch launch;
    size_t n = 1;
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_BROKEN);
    assert_int_equal(occ_ring_read(f->consumer, &launch, 1, &n), OCC_RING_BROKEN);
    assert_int_equal(n, 0);
    assert_string_equal(occ_ring_broken_reason(f->consumer), reason);
}

/* Writes raw bytes where the next record goes, and publishes them. */
static void write_raw(struct fixture *f, const void *bytes, uint32_t n)
{
    memcpy(f->producer.log + f->producer.log_head, bytes, n);
    f->producer.log_head += n;
    atomic_store(&f->producer.header->log_head, f->producer.log_head);
}

static void break_with_log_head(struct fixture *f, uint64_t log_head)
{
    atomic_store(&f->producer.header->log_head, log_head);
    assert_broken(f, "log head is impossible");
}

static void test_log_head_back(void **state)
{
    break_with_log_head(*state, 8);
}

static void test_log_head_beyond(void **state)
{
    break_with_log_head(*state, LOG_BYTES + 8);
}

static void test_log_head_odd(void **state)
{
    struct fixture *f = *state;
    break_with_log_head(f, f->producer.log_head + 4);
}

static void test_record_sizes(void **state)
{
    static const uint32_t sizes[] = {0, 7, 4, 12, 16, OCC_RECORD_MAX_BYTES + 8, UINT32_MAX & ~7u};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct fixture *f = *state;
        struct occ_log_record record = {.type = 999, .bytes = sizes[i]};
        write_raw(f, &record, sizeof record);
        assert_broken(f, "log record: size");
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_device_records(void **state)
{
    struct fixture *f = *state;
    struct occ_record_device d = {.record = {OCC_RECORD_DEVICE, 0, sizeof d}, .id = 1};
    memset(d.name, 'x', sizeof d.name);
    write_raw(f, &d, sizeof d);
    assert_broken(f, "device record: name without end");
}

static void test_device_ids(void **state)
{
    struct fixture *f = *state;
    log_device(&f->producer, 2);
    assert_broken(f, "device record: id out of order");
}

static void test_device_limit(void **state)
{
    struct fixture *f = *state;
    for (uint32_t id = 1; id <= OCC_LOG_MAX_DEVICES; id++)
        log_device(&f->producer, id);
    assert_int_equal(drain_log(f->consumer), -1);
    assert_broken(f, "device record: too many devices");
}

static void test_device_size(void **state)
{
    struct fixture *f = *state;
    struct occ_record_device d = {.record = {OCC_RECORD_DEVICE, 0, 16}, .id = 1};
    write_raw(f, &d, 16);
    assert_broken(f, "device record: size");
}

static void break_with_kernel(struct fixture *f, struct occ_record_kernel k, const char *text,
                              uint32_t text_bytes, const char *reason)
{
    k.record.type = OCC_RECORD_KERNEL;
    assert_true(occ_ring_log(&f->producer, &k.record, sizeof k, text, text_bytes));
    assert_broken(f, reason);
}

static void test_kernel_without_end(void **state)
{
    struct occ_record_kernel k = {.id = 1, .name_bytes = 8};
    break_with_kernel(*state, k, "abcdefgh", 8, "kernel record: name without end");
}

static void test_kernel_with_two_ends(void **state)
{
    struct occ_record_kernel k = {.id = 1, .name_bytes = 8};
    break_with_kernel(*state, k, "abc\0efg", 8, "kernel record: name without end");
}

static void test_kernel_longer_than_its_record(void **state)
{
    struct occ_record_kernel k = {.id = 1, .name_bytes = 4000};
    break_with_kernel(*state, k, "abcdefg", 8, "kernel record: size");
}

static void test_kernel_length_that_overflows(void **state)
{
    struct occ_record_kernel k = {.id = 1, .name_bytes = UINT32_MAX - 31};
    break_with_kernel(*state, k, "abcdefg", 8, "kernel record: size");
}

static void test_kernel_without_name(void **state)
{
    struct occ_record_kernel k = {.id = 1, .name_bytes = 0};
    break_with_kernel(*state, k, NULL, 0, "kernel record: size");
}

static void test_kernel_hash(void **state)
{
    struct occ_record_kernel k = {.id = 1, .name_bytes = 8, .name_hash = 1};
    break_with_kernel(*state, k, "abcdefg", 8, "kernel record: hash is not the name's");
}

static void test_kernel_ids(void **state)
{
    struct fixture *f = *state;
    log_kernel(&f->producer, 0, "again");
    assert_broken(f, "kernel record: id out of order");
}

static void test_measured_records(void **state)
{
    static const struct {
        size_t offset;
        uint64_t value;
        const char *reason;
    } lies[] = {
        {offsetof(struct occ_record_measured, config), 1, "measured record: unknown config"},
        {offsetof(struct occ_record_measured, minute), UINT64_MAX, "measured record: impossible values"},
        {offsetof(struct occ_record_measured, head), 4, "measured record: impossible values"},
        {offsetof(struct occ_record_measured, head), UINT64_MAX, "measured record: impossible values"},
        {offsetof(struct occ_record_measured, head), INT64_MAX, "measured record: counts future launches"},
        {offsetof(struct occ_record_measured, head), 6, "measured record: counts future launches"},
        {offsetof(struct occ_record_measured, launches), 0, "measured record: impossible values"},
        /* as doubles: 0, NaN, infinity, -1 */
        {offsetof(struct occ_record_measured, ns), 0, "measured record: impossible values"},
        {offsetof(struct occ_record_measured, ns), UINT64_C(0x7ff8000000000000),
         "measured record: impossible values"},
        {offsetof(struct occ_record_measured, ns), UINT64_C(0x7ff0000000000000),
         "measured record: impossible values"},
        {offsetof(struct occ_record_measured, warps_active_ns), UINT64_C(0xbff0000000000000),
         "measured record: impossible values"},
        {offsetof(struct occ_record_measured, warps_ns), UINT64_C(0x7ff8000000000000),
         "measured record: impossible values"},
        {offsetof(struct occ_record_measured, sms_active_ns), UINT64_C(0x7ff0000000000000),
         "measured record: impossible values"},
    };
    const struct occ_record_measured sound = sample_measured(5, 5);
    struct fixture *f = *state;
    struct occ_record_measured many = sample_measured(UINT64_C(1) << 62, UINT64_C(1) << 32);
    assert_true(occ_record_measured_is_valid(&sound) && occ_record_measured_is_valid(&many));
    many.launches++;
    assert_false(occ_record_measured_is_valid(&many));
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        f = *state;
        struct occ_record_measured m = sound;
        size_t bytes = lies[i].offset == offsetof(struct occ_record_measured, config) ? 4 : 8;
        f->producer.header->head = 5;
        memcpy((char *)&m + lies[i].offset, &lies[i].value, bytes);
        assert_true(occ_ring_log(&f->producer, &m.record, sizeof m, NULL, 0));
        assert_broken(f, lies[i].reason);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
    f = *state;
    struct occ_record_measured m = sound;
    assert_true(occ_ring_log(&f->producer, &m.record, sizeof m - 8, NULL, 0));
    assert_broken(f, "measured record: size");
}

static void test_range_records(void **state)
{
    static const struct {
        struct occ_record_range record;
        const char *text;
        uint32_t bytes;
        const char *reason;
    } lies[] = {
        {{.id = 0, .path_bytes = 8}, "abcdefgh", 8, "range record: path without end"},
        {{.id = 0, .path_bytes = 8}, "abc\0efg", 8, "range record: path without end"},
        {{.id = 1, .path_bytes = 8}, "abcdefg", 8, "range record: id out of order"},
        {{.id = 0, .path_bytes = 1}, "", 1, "range record: size"},
        {{.id = 0, .path_bytes = 900}, "abcdefg", 8, "range record: size"},
        {{.id = 0, .path_bytes = UINT32_MAX - 15}, "abcdefg", 8, "range record: size"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct fixture *f = *state;
        struct occ_record_range r = lies[i].record;
        r.record.type = OCC_RECORD_RANGE;
        assert_true(occ_ring_log(&f->producer, &r.record, sizeof r, lies[i].text, lies[i].bytes));
        assert_broken(f, lies[i].reason);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

static void break_with_config(struct fixture *f, struct occ_record_config s, const char *reason)
{
    assert_true(occ_ring_log(&f->producer, &s.record, sizeof s, NULL, 0));
    assert_broken(f, reason);
}

static void test_config_fields(void **state)
{
    static const struct {
        size_t offset;
        uint32_t value;
        const char *reason;
    } lies[] = {
        {offsetof(struct occ_record_config, id), 3, "configuration record: id out of order"},
        {offsetof(struct occ_record_config, kernel), 1, "configuration record: unknown kernel"},
        {offsetof(struct occ_record_config, device), 1, "configuration record: unknown device"},
        {offsetof(struct occ_record_config, range), 1, "configuration record: unknown range"},
        {offsetof(struct occ_record_config, grid[0]), 0, "configuration record: impossible configuration"},
        {offsetof(struct occ_record_config, grid[0]), 0x80000000u,
         "configuration record: impossible configuration"},
        {offsetof(struct occ_record_config, grid[1]), 65536,
         "configuration record: impossible configuration"},
        {offsetof(struct occ_record_config, block[0]), 1025,
         "configuration record: impossible configuration"},
        {offsetof(struct occ_record_config, block[1]), 9, "configuration record: impossible configuration"},
        {offsetof(struct occ_record_config, cluster[2]), 0, "configuration record: impossible configuration"},
        {offsetof(struct occ_record_config, carveout_percent), 101,
         "configuration record: impossible configuration"},
        {offsetof(struct occ_record_config, dynamic_smem_bytes), 1u << 30,
         "configuration record: impossible configuration"},
        {offsetof(struct occ_record_config, launch_type), 3,
         "configuration record: impossible configuration"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct occ_record_config s = sample_config(1);
        memcpy((char *)&s + lies[i].offset, &lies[i].value, sizeof lies[i].value);
        break_with_config(*state, s, lies[i].reason);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_process_records(void **state)
{
    static const struct {
        uint32_t count;
        uint32_t text_bytes;
        const char *reason;
    } lies[] = {
        {1, 8, "process record: text beyond the last key"},
        {3, 8, "process record: text without end"},
        {65, 8, "process record: too many keys"},
        {UINT32_MAX, 8, "process record: too many keys"},
        {2, 4000, "process record: size"},
        {2, UINT32_MAX, "process record: size"},
        {2, 7, "process record: text without end"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct fixture *f = *state;
        struct occ_record_process p = {
            .record.type = OCC_RECORD_PROCESS, .count = lies[i].count, .text_bytes = lies[i].text_bytes};
        assert_true(occ_ring_log(&f->producer, &p.record, sizeof p, "a\0b\0c\0d", 8));
        assert_broken(f, lies[i].reason);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_state_records(void **state)
{
    struct fixture *f = *state;
    struct occ_record_state s = {.record.type = OCC_RECORD_STATE, .level = OCC_LEVEL_COUNT};
    assert_true(occ_ring_log(&f->producer, &s.record, sizeof s, NULL, 0));
    assert_broken(f, "state record: unknown level");
}

static void test_state_reason(void **state)
{
    struct fixture *f = *state;
    struct occ_record_state s = {.record.type = OCC_RECORD_STATE};
    memset(s.reason, 'r', sizeof s.reason);
    assert_true(occ_ring_log(&f->producer, &s.record, sizeof s, NULL, 0));
    assert_broken(f, "state record: reason without end");
}

/* ---- launches ---- */

static void push_sample(struct fixture *f, uint64_t n)
{
    struct occ_ring_launch launch = sample_launch(n);
    assert_true(occ_ring_push(&f->producer, &launch));
}

static void test_head_back(void **state)
{
    struct fixture *f = *state;
    push_sample(f, 0);
    push_sample(f, 1);
    struct occ_ring_launch launches[2];
    size_t n;
    assert_int_equal(occ_ring_read(f->consumer, launches, 2, &n), OCC_RING_OK);
    atomic_store(&f->producer.header->head, 1);
    assert_int_equal(occ_ring_read(f->consumer, launches, 2, &n), OCC_RING_BROKEN);
    assert_broken(f, "head moved back");
    assert_int_equal(occ_ring_position(f->consumer), 2);
    assert_int_equal(occ_ring_pending(f->consumer), 0);
}

static void test_head_far_ahead(void **state)
{
    struct fixture *f = *state;
    struct occ_ring_launch launch;
    size_t n;
    atomic_store(&f->producer.header->head, SLOTS + 1);
    assert_int_equal(occ_ring_pending(f->consumer), SLOTS);
    assert_true(occ_ring_fill(f->consumer) <= 1.0);
    assert_int_equal(occ_ring_read(f->consumer, &launch, 1, &n), OCC_RING_BROKEN);
    assert_broken(f, "head overran records that were not read");
}

static void break_with_launch(struct fixture *f, struct occ_ring_launch bad, const char *reason)
{
    push_sample(f, 0);
    assert_true(occ_ring_push(&f->producer, &bad));
    struct occ_ring_launch launches[4];
    size_t n;
    assert_int_equal(occ_ring_read(f->consumer, launches, 4, &n), OCC_RING_OK);
    assert_int_equal(n, 1); /* the sound launch before the broken one */
    assert_true(is_sample_launch(&launches[0], 0));
    assert_int_equal(occ_ring_read(f->consumer, launches, 4, &n), OCC_RING_BROKEN);
    assert_broken(f, reason);
}

static void test_launch_of_unknown_config(void **state)
{
    struct occ_ring_launch bad = sample_launch(1);
    bad.config = 1;
    break_with_launch(*state, bad, "launch: unknown config");
}

static void test_launch_without_start(void **state)
{
    struct occ_ring_launch bad = sample_launch(1);
    bad.start_ns = 0;
    break_with_launch(*state, bad, "launch: impossible times");
}

static void test_launch_times_that_overflow(void **state)
{
    struct occ_ring_launch bad = sample_launch(1);
    bad.duration_ns = UINT64_MAX;
    break_with_launch(*state, bad, "launch: impossible times");
}

static void test_launch_of_another_round(void **state)
{
    struct fixture *f = *state;
    push_sample(f, 0);
    f->producer.slots[0].check = occ_ring_check(SLOTS);
    struct occ_ring_launch launch;
    size_t n;
    assert_int_equal(occ_ring_read(f->consumer, &launch, 1, &n), OCC_RING_BROKEN);
    assert_broken(f, "launch: stale or torn record");
}

static void test_producer_ignores_a_tail_that_makes_no_sense(void **state)
{
    struct fixture *f = *state;
    for (uint64_t n = 0; n < SLOTS; n++)
        push_sample(f, n);
    atomic_store(&f->producer.header->tail, SLOTS * 10);
    struct occ_ring_launch launch = sample_launch(SLOTS);
    assert_false(occ_ring_push(&f->producer, &launch));
    atomic_store(&f->producer.header->tail, 1);
    assert_true(occ_ring_push(&f->producer, &launch));
    atomic_store(&f->producer.header->tail, 0); /* a tail that moves back frees no slot */
    assert_false(occ_ring_push(&f->producer, &launch));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_that_are_not_sealed_memfds_are_refused),
        TEST(test_headers_that_lie_are_refused),
        TEST(test_files_of_another_size_are_refused),
        TEST(test_a_ring_nobody_may_write_is_refused),
        TEST(test_reading_makes_no_pages),
        TEST(test_log_head_back),
        TEST(test_log_head_beyond),
        TEST(test_log_head_odd),
        TEST(test_record_sizes),
        TEST(test_device_records),
        TEST(test_device_ids),
        TEST(test_device_limit),
        TEST(test_device_size),
        TEST(test_kernel_without_end),
        TEST(test_kernel_with_two_ends),
        TEST(test_kernel_longer_than_its_record),
        TEST(test_kernel_length_that_overflows),
        TEST(test_kernel_without_name),
        TEST(test_kernel_hash),
        TEST(test_kernel_ids),
        TEST(test_measured_records),
        TEST(test_range_records),
        TEST(test_config_fields),
        TEST(test_process_records),
        TEST(test_state_records),
        TEST(test_state_reason),
        TEST(test_head_back),
        TEST(test_head_far_ahead),
        TEST(test_launch_of_unknown_config),
        TEST(test_launch_without_start),
        TEST(test_launch_times_that_overflow),
        TEST(test_launch_of_another_round),
        TEST(test_producer_ignores_a_tail_that_makes_no_sense),
    };
    return cmocka_run_group_tests_name("ring_hostile", tests, NULL, NULL);
}
