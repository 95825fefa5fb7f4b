/* Which counter source a GPU has, on a fake machine: the best kind that works, and when it is given back,
 * tried again, or left to another tool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "daemon/clients.h"
#include "daemon/source_select.h"
#include "daemon_fake_machine.h"

#define ALWAYS INT64_MAX

static struct occ_source_select select_of_gpu[2];
static struct occ_profiler_watch *watch;

static void start_gpu(struct occ_source_select *select, unsigned gpu, enum occ_sampler_mode mode)
{
    *select = (struct occ_source_select){
        .options = {.mode = mode, .interval_ns = FAKE_MS, .machine = &fake.machine},
        .gpu = fake.gpus[gpu],
        .watch = watch,
        .state = OCC_SOURCE_IDLE};
}

static int start(void **state)
{
    (void)state;
    fake_machine_reset();
    if (occ_profiler_watch_new(fake.proc, &watch, NULL) != 0)
        return 1;
    for (unsigned i = 0; i < 2; i++)
        start_gpu(&select_of_gpu[i], i, OCC_SAMPLER_AUTO);
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        occ_source_select_close(&select_of_gpu[i]);
    occ_profiler_watch_free(watch);
    fake_machine_remove();
    return 0;
}

static bool poll_gpu(unsigned gpu, int64_t wanted_until_ns, int64_t paused_until_ns)
{
    return occ_source_select_poll(&select_of_gpu[gpu], fake.monotonic_ns, wanted_until_ns, paused_until_ns);
}

/* How often /proc was opened since the last call. */
static unsigned count_scans(int opened)
{
    _Alignas(struct inotify_event) char events[4096];
    unsigned n = 0;
    ssize_t bytes;
    while ((bytes = read(opened, events, sizeof events)) > 0)
        for (ssize_t at = 0; at < bytes;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);
            n += event->len == 0; /* the directory itself */
            at += (ssize_t)(sizeof *event + event->len);
        }
    return n;
}

static void gpus_share_one_look_at_proc(void **state)
{
    (void)state;
    int opened = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_true(opened >= 0 && inotify_add_watch(opened, fake.proc, IN_OPEN | IN_ONLYDIR) >= 0);
    unsigned scans = 0;
    for (int i = 0; i < 400; i++) { /* 10 s */
        fake_machine_advance(i % 2 ? 50 * FAKE_MS : 0);
        (void)poll_gpu((unsigned)i % 2, ALWAYS, 0);
        scans += count_scans(opened); /* equal events that wait together are one */
    }
    assert_int_equal(scans, 6); /* after 0, 2 ... 10 s */
    (void)close(opened);
}

/* Polls GPU 0 every 50 ms. */
static void poll_for(int64_t ns)
{
    for (int64_t until_ns = fake.monotonic_ns + ns; fake.monotonic_ns < until_ns;) {
        fake_machine_advance(50 * FAKE_MS);
        (void)poll_gpu(0, ALWAYS, 0);
    }
}

/* Until a kind that fails so is tried again, which then works; INT64_MAX: not within an hour. */
static int64_t retried_after(enum occ_source_state state)
{
    fake.kinds[OCC_SLOT_PM].begin = state;
    (void)poll_gpu(0, ALWAYS, 0);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 1);
    assert_true(fake.kinds[OCC_SLOT_GPM].is_open);
    assert_int_equal(select_of_gpu[0].state, state);
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_OK;
    int64_t from_ns = fake.monotonic_ns;
    while (!fake.kinds[OCC_SLOT_PM].is_open && fake.monotonic_ns - from_ns < 3600 * FAKE_SECOND)
        poll_for(FAKE_SECOND);
    bool is_open = fake.kinds[OCC_SLOT_PM].is_open;
    assert_int_equal(fake.kinds[OCC_SLOT_GPM].is_open, !is_open);
    assert_int_equal(select_of_gpu[0].state, is_open ? OCC_SOURCE_OK : state);
    return is_open ? fake.monotonic_ns - from_ns : INT64_MAX;
}

/* Counters that another tool has are free soon; the cause of an unexpected error may pass, and so may the
 * lack of a permission, which a library's unknown error only hints at. */
static void a_better_kind_is_tried_again(void **state)
{
    static const struct {
        enum occ_source_state state;
        int64_t after_ns;
    } rows[] = {{OCC_SOURCE_BUSY, 30 * FAKE_SECOND},    {OCC_SOURCE_LOST, 30 * FAKE_SECOND},
                {OCC_SOURCE_FAILED, 300 * FAKE_SECOND}, {OCC_SOURCE_NO_PERMISSION, 300 * FAKE_SECOND},
                {OCC_SOURCE_NO_LIBRARY, INT64_MAX},     {OCC_SOURCE_NOT_SUPPORTED, INT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(retried_after(rows[i].state), rows[i].after_ns);
        (void)end(state);
        (void)start(state);
    }
}

/* Each user whose programs report once, however many there are. */
static void every_user_counts(void **state)
{
    static struct occ_client list[3 * 100];
    struct occ_producer *some_producer = (struct occ_producer *)(void *)list; /* not looked into */
    struct occ_clients clients = {.first = list};
    struct occ_profiler_users users = {0};
    (void)state;
    for (size_t i = 0; i < 300; i++) {
        list[i] = (struct occ_client){.peer.uid = (uint32_t)(1000 + (7 * i) % 100),
                                      .producer = i < 200 ? some_producer : NULL,
                                      .next = i < 299 ? &list[i + 1] : NULL};
        list[i].peer.uid += i < 200 ? 0 : 500; /* their programs have ended */
    }
    for (int again = 0; again < 2; again++) {
        assert_true(occ_clients_users(&clients, &users));
        assert_int_equal(users.n, 100);
        for (uint32_t i = 0; i < 100; i++)
            assert_int_equal(users.uids[i], 1000 + i);
    }
    free(users.uids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gpus_share_one_look_at_proc, start, end),
        cmocka_unit_test_setup_teardown(a_better_kind_is_tried_again, start, end),
        cmocka_unit_test(every_user_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
