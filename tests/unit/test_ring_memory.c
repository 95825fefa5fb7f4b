/*
 * The ring's pages: they are allocated before they are written. A system without memory costs records, which
 * are counted; a write to a page that it does not give would end the program by SIGBUS.
 */
#include "ring/lean_map.h"
#include "ring_samples.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>

#define SLOTS     8192u
#define LOG_BYTES (UINT64_C(1) << 20)
#define UNLIMITED SIZE_MAX

/* ---- the system's memory ---- */

static struct {
    size_t left; /* bytes that may still be allocated */
    int error;   /* madvise(2) always fails with this; 0: it works */
    unsigned int asked;
} memory;

int __real_madvise(void *address, size_t bytes, int advice);
int __wrap_madvise(void *address, size_t bytes, int advice);
int __wrap_madvise(void *address, size_t bytes, int advice)
{
    memory.asked++;
    if (memory.error != 0 || bytes > memory.left) {
        errno = memory.error ? memory.error : EFAULT;
        return -1;
    }
    memory.left -= memory.left == UNLIMITED ? 0 : bytes;
    int rc = __real_madvise(address, bytes, advice);
    return rc != 0 && errno == EINVAL ? 0 : rc; /* a kernel before 5.14 */
}

/* ---- mappings ---- */

/* The second page of the mapping is beyond the end of the file: a write to it raises SIGBUS. */
static void test_pages_that_cannot_be_written_are_found(void **state)
{
    static const int errors[] = {0, EINVAL, EPERM, ENOSYS}; /* from the second on: pages are tried singly */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        int fd = memfd_create("test", MFD_CLOEXEC);
        assert_true(fd >= 0 && ftruncate(fd, (off_t)page) == 0);
        char *map = occ_lean_map(fd, 2 * page);
        assert_true(map != MAP_FAILED);
        memory.error = errors[i];
        assert_true(occ_lean_populate(map, page));
        assert_true(occ_lean_populate(map + 8, 8));
        if (errors[i] != 0 || __real_madvise(map, page, 23) == 0)
            assert_false(occ_lean_populate(map, 2 * page));
        for (size_t at = 0; at < page; at++)
            assert_int_equal(map[at], 0);
        munmap(map, 2 * page);
        close(fd);
    }
}

/* Growing by steps leaves the contents of allocated pages as they are. */
static void test_what_was_written_stays(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = occ_lean_map(-1, 8 * page);
    (void)state;
    assert_true(map != MAP_FAILED);
    memory.error = EINVAL;
    assert_true(occ_lean_populate(map, page));
    memset(map, 'x', page);
    assert_true(occ_lean_populate(map + page, 7 * page));
    for (size_t at = 0; at < 8 * page; at++)
        assert_int_equal(map[at], at < page ? 'x' : 0);
    munmap(map, 8 * page);
}

/* mlockall(2) with MCL_FUTURE would fill a new mapping. */
static void test_a_mapping_is_not_locked(void **state)
{
    enum { PAGES = 1024 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char resident[PAGES];
    (void)state;
    if (mlockall(MCL_FUTURE) != 0)
        skip();
    for (int i = 0; i < 2; i++) {
        int fd = i == 0 ? -1 : memfd_create("test", MFD_CLOEXEC);
        assert_true(fd < 0 || ftruncate(fd, (off_t)(PAGES * page)) == 0);
        char *map = occ_lean_map(fd, PAGES * page);
        assert_true(map != MAP_FAILED);
        assert_int_equal(mincore(map, PAGES * page, resident), 0);
        for (int k = 1; k < PAGES; k++)
            assert_int_equal(resident[k] & 1, 0);
        munmap(map, PAGES * page);
        if (fd >= 0)
            close(fd);
    }
    munlockall();
}

/* ---- the ring ---- */

struct fixture {
    struct occ_ring_producer producer;
    struct occ_ring_consumer *consumer;
    uint64_t pushed;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    memory.error = 0;
    memory.asked = 0;
    memory.left = UNLIMITED;
    if (occ_ring_create(&f->producer, SLOTS, LOG_BYTES) != 0 || !log_samples(&f->producer))
        return -1;
    return attach_to(&f->producer, 0, &f->consumer);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    occ_ring_detach(f->consumer);
    occ_ring_destroy(&f->producer);
    free(f);
    return 0;
}

static bool push(struct fixture *f)
{
    struct occ_ring_launch launch = sample_launch(f->pushed);
    bool is_pushed = occ_ring_push(&f->producer, &launch);
    f->pushed += is_pushed;
    return is_pushed;
}

/* Reads and releases all launches, which must be those that were pushed. */
static void read_all(struct fixture *f)
{
    static struct occ_ring_launch launches[SLOTS];
    uint64_t from = occ_ring_position(f->consumer);
    size_t n = 0;
    assert_int_equal(occ_ring_read(f->consumer, launches, SLOTS, &n), OCC_RING_OK);
    assert_int_equal(from + n, f->pushed);
    for (size_t i = 0; i < n; i++)
        assert_true(is_sample_launch(&launches[i], from + i));
    occ_ring_release(f->consumer, f->pushed);
}

static void test_no_memory_for_the_header(void **state)
{
    struct occ_ring_producer producer;
    (void)state;
    memory.left = 0;
    assert_int_equal(occ_ring_create(&producer, SLOTS, LOG_BYTES), -ENOMEM);
    assert_int_equal(producer.fd, -1);
}

/* After the first round each slot has its memory, and nothing more is asked for. */
static void test_memory_is_asked_for_once(void **state)
{
    struct fixture *f = *state;
    drain_log(f->consumer);
    for (int round = 0; round < 5; round++) {
        unsigned int asked = memory.asked;
        for (uint32_t i = 0; i < SLOTS; i++)
            assert_true(push(f));
        assert_false(push(f));
        assert_int_equal(memory.asked > asked, round == 0);
        assert_true(memory.asked < 16);
        read_all(f);
    }
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_RING_FULL), 5);
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_NO_MEMORY), 0);
}

static void test_launches_without_memory_are_counted(void **state)
{
    struct fixture *f = *state;
    uint64_t lost = 0;
    drain_log(f->consumer);
    memory.left = 100000;
    while (push(f))
        ;
    lost++;
    assert_true(f->pushed > 0 && f->pushed < 100000 / OCC_RING_RECORD_BYTES);
    unsigned int asked = memory.asked;
    for (int i = 0; i < 100; i++, lost++)
        assert_false(push(f));
    assert_int_equal(memory.asked, asked); /* at most once a second */
    assert_true(occ_ring_lacks_memory(&f->producer));
    struct occ_ring_launch operation = sample_launch(0);
    assert_false(occ_ring_push_memory(&f->producer, &operation));
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_NO_MEMORY), lost);
    read_all(f);

    occ_ring_heartbeat(&f->producer, 1); /* the next second: still none */
    assert_false(push(f));
    assert_int_equal(memory.asked, asked + 1);
    memory.left = UNLIMITED;
    assert_false(push(f));
    occ_ring_heartbeat(&f->producer, 2);
    for (int i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < SLOTS / 2; k++)
            assert_true(push(f));
        read_all(f);
    }
    assert_false(occ_ring_lacks_memory(&f->producer));
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_NO_MEMORY), lost + 2);
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_RING_FULL), 0);
}

/* After occ_ring_expect() push asks for nothing. */
static void test_expected_launches_have_their_memory(void **state)
{
    struct fixture *f = *state;
    drain_log(f->consumer);
    occ_ring_expect(&f->producer, 3000);
    unsigned int asked = memory.asked;
    memory.left = 0;
    for (int i = 0; i < 3000; i++)
        assert_true(push(f));
    assert_int_equal(memory.asked, asked);
    read_all(f);
    memory.left = UNLIMITED;
    occ_ring_expect(&f->producer, UINT32_MAX); /* more than there are */
    asked = memory.asked;
    for (uint32_t i = 0; i < SLOTS; i++)
        assert_true(push(f));
    assert_int_equal(memory.asked, asked);
    assert_false(push(f));
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_NO_MEMORY), 0);
}

/* The last words of a program fit even if its kernels do not. */
static void test_states_fit_when_kernels_do_not(void **state)
{
    struct fixture *f = *state;
    uint32_t id = 1;
    char name[300];
    memset(name, 'k', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memory.left = 0;
    while (log_kernel(&f->producer, id, name))
        id++;
    assert_true(id < 100);
    assert_true(occ_ring_lacks_memory(&f->producer));
    struct occ_record_state s = {.record.type = OCC_RECORD_STATE, .level = OCC_LEVEL_NOTHING};
    assert_true(occ_ring_log(&f->producer, &s.record, sizeof s, NULL, 0));
    struct occ_record_closed closed = {.record.type = OCC_RECORD_CLOSED};
    assert_true(occ_ring_log(&f->producer, &closed.record, sizeof closed, NULL, 0));
    memory.left = UNLIMITED;
    occ_ring_heartbeat(&f->producer, 1);
    while (log_kernel(&f->producer, id, name))
        id++;
    assert_true(id > LOG_BYTES / 2 / sizeof name);
    assert_false(occ_ring_lacks_memory(&f->producer));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_pages_that_cannot_be_written_are_found),
        TEST(test_what_was_written_stays),
        TEST(test_a_mapping_is_not_locked),
        TEST(test_no_memory_for_the_header),
        TEST(test_memory_is_asked_for_once),
        TEST(test_launches_without_memory_are_counted),
        TEST(test_expected_launches_have_their_memory),
        TEST(test_states_fit_when_kernels_do_not),
    };
    return cmocka_run_group_tests_name("ring_memory", tests, NULL, NULL);
}
