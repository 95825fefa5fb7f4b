/* The choice of a GPU's counter source, on a fake machine: the best kind that works, and when it is given
 * back, tried again, or left to another tool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/sampling/sampler_state.h"
#include "daemon/sampling/source_select.h"
#include "daemon/serve/server_state.h"
#include "daemon_fake_machine.h"
#include "producer_ring.h"

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
    for (unsigned i = 0; i < 2; i++) {
        occ_source_select_close(&select_of_gpu[i]);
        free(select_of_gpu[i].offered);
    }
    occ_profiler_watch_free(watch);
    fake_machine_remove();
    return 0;
}

static bool poll_gpu(unsigned gpu, int64_t wanted_until_ns, int64_t paused_until_ns)
{
    return occ_source_select_poll(&select_of_gpu[gpu], fake.monotonic_ns, wanted_until_ns, paused_until_ns);
}

/* Returns how often /proc was opened since the last call. */
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

/* Returns the time until a kind that failed with `state` is tried again, and works; INT64_MAX: not within an
 * hour. */
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

/* Counters that another tool uses are soon free, and the cause of an unexpected error or of a missing
 * permission may pass. NOT_PASSED is only a guess from the library's unknown error, so it is tried again
 * after an hour. */
static void a_better_kind_is_tried_again(void **state)
{
    static const struct {
        enum occ_source_state state;
        int64_t after_ns;
    } rows[] = {{OCC_SOURCE_BUSY, 30 * FAKE_SECOND},        {OCC_SOURCE_LOST, 30 * FAKE_SECOND},
                {OCC_SOURCE_FAILED, 300 * FAKE_SECOND},     {OCC_SOURCE_NO_PERMISSION, 300 * FAKE_SECOND},
                {OCC_SOURCE_NO_LIBRARY, INT64_MAX},         {OCC_SOURCE_NOT_SUPPORTED, INT64_MAX},
                {OCC_SOURCE_NOT_PASSED, 3600 * FAKE_SECOND}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(retried_after(rows[i].state), rows[i].after_ns);
        (void)end(state);
        (void)start(state);
    }
}

/* A program names a libcupti that the daemon did not find. */
static void an_offered_library_is_tried_at_once(void **state)
{
    (void)state;
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_NO_LIBRARY;
    poll_for(FAKE_SECOND);
    assert_string_equal(fake.offered, "");
    assert_true(fake.kinds[OCC_SLOT_GPM].is_open);
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_OK;
    occ_source_select_offer(&select_of_gpu[0], strdup("/a/libcupti.so.13"));
    poll_for(FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    assert_false(fake.kinds[OCC_SLOT_GPM].is_open);
    assert_string_equal(fake.offered, "/a/libcupti.so.13");
    occ_source_select_offer(&select_of_gpu[0], strdup("/b/libcupti.so.13")); /* one is enough */
    poll_for(FAKE_SECOND);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 2);
}

/* An offered library does not help a source that was found but is busy, or has failed: the source is tried
 * again no sooner than without the offer. */
static void an_offered_library_changes_nothing_for_others(void **state)
{
    static const enum occ_source_state states[] = {OCC_SOURCE_BUSY,          OCC_SOURCE_LOST,
                                                   OCC_SOURCE_FAILED,        OCC_SOURCE_NO_PERMISSION,
                                                   OCC_SOURCE_NOT_SUPPORTED, OCC_SOURCE_NOT_PASSED};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        fake.kinds[OCC_SLOT_PM].begin = states[i];
        poll_for(FAKE_SECOND);
        occ_source_select_offer(&select_of_gpu[0], strdup("/a/libcupti.so.13"));
        poll_for(FAKE_SECOND);
        assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 1);
        assert_int_equal(select_of_gpu[0].state, states[i]);
        (void)end(state);
        (void)start(state);
    }
}

/* README: "occtrace backs off while another profiler runs, and resumes". */
static void another_profiler_gets_the_counters(void **state)
{
    (void)state;
    poll_for(FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    fake_machine_process(5, "ncu");
    poll_for(2 * FAKE_SECOND);
    assert_false(fake.kinds[OCC_SLOT_PM].is_open);
    assert_true(fake.kinds[OCC_SLOT_GPM].is_open); /* GPM does not disturb it */
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_BUSY);
    assert_non_null(strstr(select_of_gpu[0].reason, "Nsight Compute"));
    unsigned begins = fake.kinds[OCC_SLOT_PM].begins;
    poll_for(600 * FAKE_SECOND);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, begins); /* not even tried */
    fake_machine_process(5, NULL);
    poll_for(2 * FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    assert_false(fake.kinds[OCC_SLOT_GPM].is_open);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_OK);
    assert_string_equal(select_of_gpu[0].reason, "");
}

/* A profiler that already runs keeps the counters: the daemon does not take them even for a moment. */
static void a_profiler_that_runs_already_keeps_the_counters(void **state)
{
    (void)state;
    fake_machine_process(5, "nsys");
    poll_for(FAKE_SECOND);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 0);
    assert_true(fake.kinds[OCC_SLOT_GPM].is_open);
}

static void counters_are_given_back_while_they_are_not_wanted(void **state)
{
    (void)state;
    assert_false(poll_gpu(0, fake.monotonic_ns, 0));
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 0); /* not wanted yet */
    assert_false(poll_gpu(0, fake.monotonic_ns + 1, 0));
    assert_true(fake.kinds[OCC_SLOT_PM].is_open && !fake.kinds[OCC_SLOT_GPM].is_open);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].interval_ns, FAKE_MS);
    fake_machine_advance(1);
    assert_false(poll_gpu(0, fake.monotonic_ns, 0));
    assert_false(fake.kinds[OCC_SLOT_PM].is_open);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_IDLE);
    (void)poll_gpu(0, ALWAYS, fake.monotonic_ns + 1);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_PAUSED);
    assert_false(fake.kinds[OCC_SLOT_PM].is_open);
    fake_machine_advance(1);
    (void)poll_gpu(0, ALWAYS, fake.monotonic_ns);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    (void)poll_gpu(0, ALWAYS, fake.monotonic_ns + 1);
    assert_false(fake.kinds[OCC_SLOT_PM].is_open);
    fake_machine_advance(1);
    (void)poll_gpu(0, fake.monotonic_ns, fake.monotonic_ns); /* the pause is over, but nothing needs them */
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_IDLE);
}

/* A new need for counters tries every kind, whatever its earlier errors. */
static void idleness_forgets_refusals(void **state)
{
    (void)state;
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_NOT_SUPPORTED;
    poll_for(FAKE_SECOND);
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_OK;
    (void)poll_gpu(0, fake.monotonic_ns, 0);
    poll_for(FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
}

static size_t read_gpu(void)
{
    static struct occ_sample samples[4096];
    return occ_source_select_read(&select_of_gpu[0], samples, 4096);
}

/* Counters that worked before are passed: an unknown error then counts as FAILED. */
static void counters_that_worked_are_passed(void **state)
{
    (void)state;
    poll_for(FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    fake.kinds[OCC_SLOT_PM].read = fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_NOT_PASSED;
    (void)read_gpu();
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_FAILED);
    poll_for(60 * FAKE_SECOND); /* tried again after 30 s */
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_FAILED);
    fake.kinds[OCC_SLOT_PM].read = fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_OK;
    poll_for(300 * FAKE_SECOND);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_OK);
}

/* The other kind replaces a failed kind at once; the failed kind is tried again after 30 s. */
static void a_source_that_fails_is_replaced(void **state)
{
    struct occ_source_stats stats;
    (void)state;
    assert_false(poll_gpu(0, ALWAYS, 0));
    fake_machine_advance(10 * FAKE_MS);
    assert_int_equal(read_gpu(), 10);
    fake.kinds[OCC_SLOT_PM].read = OCC_SOURCE_LOST;
    fake_machine_advance(10 * FAKE_MS);
    assert_int_equal(read_gpu(), 0);
    assert_false(fake.kinds[OCC_SLOT_PM].is_open);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_LOST);
    assert_non_null(strstr(select_of_gpu[0].reason, "the script says gpu_lost"));
    assert_true(poll_gpu(0, ALWAYS, 0)); /* another kind of source */
    assert_true(fake.kinds[OCC_SLOT_GPM].is_open);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_LOST); /* the error of the better source */
    fake.kinds[OCC_SLOT_PM].read = OCC_SOURCE_OK;
    int64_t from_ns = fake.monotonic_ns;
    bool is_other = false;
    while (!is_other && fake.monotonic_ns - from_ns < 100 * FAKE_SECOND) {
        fake_machine_advance(FAKE_SECOND);
        is_other = poll_gpu(0, ALWAYS, 0);
    }
    assert_int_equal(fake.monotonic_ns - from_ns, 30 * FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    fake_machine_advance(5 * FAKE_MS);
    assert_int_equal(read_gpu(), 5);
    occ_source_select_get_stats(&select_of_gpu[0], &stats);
    assert_int_equal(stats.samples, 15); /* including the closed source */
    assert_int_equal(stats.rotations, 15);
    assert_int_equal(stats.bytes_per_sample, FAKE_SAMPLE_BYTES);
    occ_source_select_close(&select_of_gpu[0]);
    occ_source_select_get_stats(&select_of_gpu[0], &stats);
    assert_int_equal(stats.samples, 15);
    assert_int_equal(stats.bytes_per_sample, FAKE_SAMPLE_BYTES); /* from the last source with a value */
}

static void unusable_samples_close_every_kind(void **state)
{
    struct occ_error err = OCC_ERROR_INIT;
    (void)state;
    (void)poll_gpu(0, ALWAYS, 0);
    (void)occ_fail(&err, OCC_E_NO_MEMORY, "no room");
    occ_source_select_fail(&select_of_gpu[0], &err);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_FAILED);
    assert_non_null(strstr(select_of_gpu[0].reason, "no room"));
    poll_for(29 * FAKE_SECOND);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 1);
    assert_int_equal(fake.kinds[OCC_SLOT_GPM].begins, 0);
    poll_for(2 * FAKE_SECOND);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 2);
}

static void the_mode_limits_the_kinds(void **state)
{
    static const struct {
        enum occ_sampler_mode mode;
        bool pm, gpm;
    } rows[] = {
        {OCC_SAMPLER_PM, true, false}, {OCC_SAMPLER_GPM, false, true}, {OCC_SAMPLER_NONE, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start_gpu(&select_of_gpu[0], 0, rows[i].mode);
        poll_for(FAKE_SECOND);
        assert_int_equal(fake.kinds[OCC_SLOT_PM].is_open, rows[i].pm);
        assert_int_equal(fake.kinds[OCC_SLOT_GPM].is_open, rows[i].gpm);
        (void)end(state);
        (void)start(state);
    }
}

/* The status names the profiler even if no other kind of source is left. */
static void a_profiler_is_named_where_nothing_is_left(void **state)
{
    (void)state;
    start_gpu(&select_of_gpu[0], 0, OCC_SAMPLER_PM);
    fake_machine_process(5, "ncu");
    poll_for(FAKE_SECOND);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 0);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_BUSY);
    assert_non_null(strstr(select_of_gpu[0].reason, "Nsight Compute"));
    fake_machine_process(5, NULL);
    poll_for(3 * FAKE_SECOND);
    fake_machine_process(5, "nsys");
    poll_for(3 * FAKE_SECOND);
    assert_false(fake.kinds[OCC_SLOT_PM].is_open);
    assert_non_null(strstr(select_of_gpu[0].reason, "Nsight Systems"));
}

static bool burst_after(int64_t ns, bool useful)
{
    fake_machine_advance(ns);
    (void)poll_gpu(0, ALWAYS, 0);
    return occ_source_select_burst(&select_of_gpu[0], useful);
}

/* A useful burst has an interval of 50 us for 2 s, at most once a minute. */
static void bursts_are_short_and_rare(void **state)
{
    const int64_t *interval_ns = &fake.kinds[OCC_SLOT_PM].interval_ns;
    (void)state;
    assert_false(burst_after(0, false));
    assert_int_equal(*interval_ns, FAKE_MS);
    assert_false(burst_after(0, true));
    assert_int_equal(*interval_ns, FAKE_MS / 20);
    assert_false(burst_after(2 * FAKE_SECOND - 1, true));
    assert_int_equal(*interval_ns, FAKE_MS / 20);
    assert_true(burst_after(1, true));
    assert_int_equal(*interval_ns, FAKE_MS);
    assert_false(burst_after(58 * FAKE_SECOND - 1, true));
    assert_int_equal(*interval_ns, FAKE_MS);
    assert_false(burst_after(1, true));
    assert_int_equal(*interval_ns, FAKE_MS / 20);
    assert_true(burst_after(2 * FAKE_SECOND, false)); /* it ends, useful or not */
    assert_int_equal(*interval_ns, FAKE_MS);
}

/* A new source begins with the usual interval, not with the old source's burst. */
static void a_new_source_has_no_burst(void **state)
{
    (void)state;
    assert_false(burst_after(0, true));
    fake.kinds[OCC_SLOT_PM].read = OCC_SOURCE_LOST;
    fake_machine_advance(1);
    (void)read_gpu();
    fake.kinds[OCC_SLOT_PM].read = OCC_SOURCE_OK;
    poll_for(31 * FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    assert_false(burst_after(0, false)); /* nothing ends */
    assert_int_equal(fake.kinds[OCC_SLOT_PM].shortest_ns, FAKE_MS / 20);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].interval_ns, FAKE_MS);
}

/* GPM has a fixed interval. A source with an error at the burst's begin is closed. */
static void bursts_are_of_pm_only(void **state)
{
    (void)state;
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_NOT_SUPPORTED;
    assert_false(burst_after(0, true));
    assert_true(fake.kinds[OCC_SLOT_GPM].is_open);
    assert_int_equal(fake.kinds[OCC_SLOT_GPM].interval_ns, FAKE_MS);
    (void)end(state);
    (void)start(state);
    fake.kinds[OCC_SLOT_PM].set_interval = OCC_SOURCE_FAILED;
    assert_false(burst_after(0, true));
    assert_false(fake.kinds[OCC_SLOT_PM].is_open);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_FAILED);
}

/* A source that cannot change its interval continues to work; rounds are short only during bursts. */
static void a_refused_burst_is_none(void **state)
{
    (void)state;
    assert_false(burst_after(0, true));
    assert_int_equal(occ_source_select_read_every_ns(&select_of_gpu[0]), 10 * FAKE_MS);
    assert_true(burst_after(2 * FAKE_SECOND, true));
    assert_int_equal(occ_source_select_read_every_ns(&select_of_gpu[0]), 50 * FAKE_MS);
    fake.kinds[OCC_SLOT_PM].set_interval = OCC_SOURCE_NOT_SUPPORTED;
    assert_false(burst_after(58 * FAKE_SECOND, true));
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    assert_int_equal(occ_source_select_read_every_ns(&select_of_gpu[0]), 50 * FAKE_MS);
    assert_int_equal(select_of_gpu[0].state, OCC_SOURCE_OK);
    assert_false(burst_after(2 * FAKE_SECOND, true)); /* nothing ends */
}

/* A failed change of sets is remembered, however often the source is closed and opened. */
static void a_failed_change_is_remembered(void **state)
{
    (void)state;
    (void)poll_gpu(0, ALWAYS, 0);
    assert_string_equal(occ_source_select_note(&select_of_gpu[0]), "");
    assert_false(fake.kinds[OCC_SLOT_PM].keeps_first_set);
    fake.kinds[OCC_SLOT_PM].failed_changes = 1;
    fake.kinds[OCC_SLOT_PM].note = "one set only";
    assert_string_equal(occ_source_select_note(&select_of_gpu[0]), "one set only");
    for (int i = 0; i < 3; i++) {
        (void)poll_gpu(0, fake.monotonic_ns, 0); /* not wanted any more */
        assert_false(fake.kinds[OCC_SLOT_PM].is_open);
        assert_string_equal(occ_source_select_note(&select_of_gpu[0]), "");
        (void)poll_gpu(0, ALWAYS, 0);
        assert_true(fake.kinds[OCC_SLOT_PM].keeps_first_set);
        fake.kinds[OCC_SLOT_PM].failed_changes = 0;
    }
}

/* The list has each user with reporting programs once, for any number of programs. */
static void every_user_counts(void **state)
{
    static struct occ_client list[3 * 100];
    struct occ_producer *some_producer = (struct occ_producer *)(void *)list; /* never read */
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

/* ---- a program's libcupti ---- */

/* Returns true if the sampler takes the path from a program of this process and user. */
static bool takes_library(pid_t pid, uint32_t uid, const char *path)
{
    static struct occ_server server;
    const struct occ_server_options server_options = {.socket_path = ""};
    const struct occ_sampler_options options = {
        .mode = OCC_SAMPLER_AUTO, .interval_ns = FAKE_MS, .machine = &fake.machine};
    struct occ_history history = {.context = &server};
    struct occ_producer_device device = {.id = 1};
    struct occ_producer producer = {.peer = {.pid = pid, .uid = uid}};
    struct occ_ring_producer ring;
    server.options = &server_options;
    give_ring(&producer, &ring);
    assert_int_equal(occ_sampler_new(&options, &server.sampler, NULL), 0);
    producer.run.row.cupti.path = path;
    occ_program_appended(&producer, &device, NULL, 0, &history);
    bool is_taken = server.sampler->offered && strcmp(server.sampler->offered, path) == 0;
    occ_sampler_free(server.sampler);
    take_ring(&producer, &ring);
    return is_taken;
}

enum place { HERE, OTHER_MOUNTS, OTHER_ROOT };

/* Starts a process with the daemon's files, other mounts or another root; 0: the kernel refuses. It runs
 * until it is killed. */
static pid_t start_process(enum place place)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        bool is_there = place == HERE || (place == OTHER_MOUNTS ? unshare(CLONE_NEWNS) : chroot("/tmp")) == 0;
        if (is_there && write(ready[1], "r", 1) == 1)
            (void)pause();
        _exit(0);
    }
    (void)close(ready[1]);
    bool is_there = child > 0 && read(ready[0], &byte, 1) == 1;
    (void)close(ready[0]);
    if (!is_there)
        (void)waitpid(child, NULL, 0);
    return is_there ? child : 0;
}

/* The root user of a container without a user namespace has uid 0 here, but its path means another file here,
 * which it may have written. The path is taken only if the process sees the daemon's files, or if root
 * installed the file and every user may read it. */
static void a_library_is_taken_from_programs_with_the_same_files(void **state)
{
    (void)state;
    assert_false(takes_library(0, geteuid(), "/closed/libcupti.so")); /* unknown process */
    for (enum place place = HERE; place <= OTHER_ROOT; place++) {
        pid_t process = start_process(place);
        if (process == 0)
            continue;
        assert_int_equal(takes_library(process, geteuid(), "/closed/libcupti.so"), place == HERE);
        assert_false(takes_library(process, geteuid() + 1, "/closed/libcupti.so"));
        assert_int_equal(takes_library(process, geteuid() + 1, "/bin/sh"), geteuid() == 0);
        assert_int_equal(kill(process, SIGKILL), 0);
        assert_int_equal(waitpid(process, NULL, 0), process);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gpus_share_one_look_at_proc, start, end),
        cmocka_unit_test_setup_teardown(a_better_kind_is_tried_again, start, end),
        cmocka_unit_test_setup_teardown(counters_that_worked_are_passed, start, end),
        cmocka_unit_test_setup_teardown(an_offered_library_is_tried_at_once, start, end),
        cmocka_unit_test_setup_teardown(an_offered_library_changes_nothing_for_others, start, end),
        cmocka_unit_test_setup_teardown(another_profiler_gets_the_counters, start, end),
        cmocka_unit_test_setup_teardown(a_profiler_that_runs_already_keeps_the_counters, start, end),
        cmocka_unit_test_setup_teardown(counters_are_given_back_while_they_are_not_wanted, start, end),
        cmocka_unit_test_setup_teardown(idleness_forgets_refusals, start, end),
        cmocka_unit_test_setup_teardown(a_source_that_fails_is_replaced, start, end),
        cmocka_unit_test_setup_teardown(unusable_samples_close_every_kind, start, end),
        cmocka_unit_test_setup_teardown(the_mode_limits_the_kinds, start, end),
        cmocka_unit_test_setup_teardown(bursts_are_short_and_rare, start, end),
        cmocka_unit_test_setup_teardown(bursts_are_of_pm_only, start, end),
        cmocka_unit_test_setup_teardown(a_new_source_has_no_burst, start, end),
        cmocka_unit_test_setup_teardown(a_profiler_is_named_where_nothing_is_left, start, end),
        cmocka_unit_test_setup_teardown(a_refused_burst_is_none, start, end),
        cmocka_unit_test_setup_teardown(a_failed_change_is_remembered, start, end),
        cmocka_unit_test(every_user_counts),
        cmocka_unit_test_setup_teardown(a_library_is_taken_from_programs_with_the_same_files, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
