/*
 * The whole guest in a process of its own, with a fake libcupti (injector_fake_cupti.c); the test is the
 * daemon. Each case forks a program, takes its ring while it runs to its end, and reads the ring.
 */
#include "ring_samples.h"
#include "injector_samples.h"
#include "sanitized.h"
#include "injector/guest.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <cmocka.h>

int InitializeInjection(void);

/* Sanitizers misbehave in a program that forks beside another thread: they refuse threads in the child, and
 * look for leaks under locks that the other thread may have held. */
#if SANITIZED_THREAD
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}
#endif
#if SANITIZED_ADDRESS
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

typedef void launcher(const struct occ_cupti_kernel *kernel);
typedef int program(void);

#define OFFERS_MAX 8

/* A ring that a program offered. */
struct offer {
    int connection, memfd;
};

struct fixture {
    char directory[40];
    char path[64];
    int listener;
    bool is_mute;                    /* the daemon takes no ring while programs run */
    struct offer offers[OFFERS_MAX]; /* from next_offer on: taken, but not read yet */
    int next_offer, n_offers;
    int output; /* the program's stdout and stderr */
    pid_t pid;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    (void)snprintf(f->directory, sizeof f->directory, "/tmp/occ-guest-XXXXXX");
    if (!mkdtemp(f->directory))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/d.sock", f->directory);
    f->listener = listen_at(f->path);
    f->output = memfd_create("output", 0);
    return f->listener < 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->pid > 0) {
        kill(f->pid, SIGKILL);
        waitpid(f->pid, NULL, 0);
    }
    for (; f->next_offer < f->n_offers; f->next_offer++) {
        close(f->offers[f->next_offer].connection);
        close(f->offers[f->next_offer].memfd);
    }
    close(f->listener);
    close(f->output);
    unlink(f->path);
    rmdir(f->directory);
    free(f);
    return 0;
}

/* Runs `main_of_it` in a process of its own, with "NAME=value" strings (NULL-terminated) in its environment.
 */
static void run(struct fixture *f, program *main_of_it, const char *const *variables)
{
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid > 0)
        return;
    dup2(f->output, STDOUT_FILENO);
    dup2(f->output, STDERR_FILENO);
    setenv("OCCTRACE_SOCKET", f->path, 1);
    setenv("OCCTRACE_CUPTI", OCC_FAKE_CUPTI, 1);
    for (; variables && *variables; variables++)
        putenv((char *)(uintptr_t)*variables);
    exit(main_of_it());
}

/* Takes the next ring and confirms it. Returns false if no ring is offered within `timeout_ms`. */
static bool take_offer(struct fixture *f, int timeout_ms)
{
    struct occ_hello hello;
    struct offer offer = {.connection = accept_within(f->listener, timeout_ms), .memfd = -1};
    if (offer.connection < 0)
        return false;
    assert_true(receive_hello(offer.connection, &hello, &offer.memfd));
    occ_hello_accept(offer.connection);
    assert_true(f->n_offers < OFFERS_MAX);
    f->offers[f->n_offers++] = offer;
    return true;
}

/* Takes rings until the program has ended; at its end, the program waits for the confirmation. */
static void serve_until_end(struct fixture *f)
{
    struct pollfd events[] = {{.fd = (int)syscall(SYS_pidfd_open, f->pid, 0), .events = POLLIN},
                              {.fd = f->listener, .events = POLLIN}};
    assert_true(events[0].fd >= 0);
    while (poll(events, 2, -1) > 0 && !events[0].revents)
        assert_true(take_offer(f, 0));
    close(events[0].fd);
}

static int wait_for_end(struct fixture *f)
{
    int status = -1;
    if (!f->is_mute)
        serve_until_end(f);
    assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
    f->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool was_offered(struct fixture *f)
{
    return f->next_offer < f->n_offers || take_offer(f, 0);
}

static struct occ_ring_consumer *accept_program(struct fixture *f, int *ret_connection)
{
    struct occ_ring_consumer *consumer = NULL;
    if (f->next_offer == f->n_offers)
        assert_true(take_offer(f, DEADLINE_MS));
    *ret_connection = f->offers[f->next_offer].connection;
    assert_int_equal(occ_ring_attach(f->offers[f->next_offer++].memfd, 0, &consumer, NULL), 0);
    if (f->next_offer == f->n_offers)
        f->next_offer = f->n_offers = 0;
    return consumer;
}

/* Contents of a ring that was read to its end. */
struct story {
    int processes, devices, kernels, configs, states, closed;
    uint32_t level;
    uint64_t level_ns; /* time of the last STATE record */
    bool is_unmeasured;
    char reason[240];
    uint64_t launches, launches_as_closed;
    char cupti_path[256], cupti_note[256];
};

static void hear_record(struct story *s, const struct occ_log_record *record)
{
    int *const counts[] = {[OCC_RECORD_PROCESS] = &s->processes, [OCC_RECORD_DEVICE] = &s->devices,
                           [OCC_RECORD_KERNEL] = &s->kernels,    [OCC_RECORD_CONFIG] = &s->configs,
                           [OCC_RECORD_STATE] = &s->states,      [OCC_RECORD_CLOSED] = &s->closed};
    ++*counts[record->type];
    if (record->type == OCC_RECORD_PROCESS) {
        const struct occ_record_process *process = (const void *)record;
        const char *key = (const char *)(process + 1);
        if (strcmp(key, "cupti_path") == 0) {
            const char *path = key + sizeof "cupti_path", *next = path + strlen(path) + 1;
            (void)snprintf(s->cupti_path, sizeof s->cupti_path, "%s", path);
            if (process->count == 2 && strcmp(next, "cupti_note") == 0)
                (void)snprintf(s->cupti_note, sizeof s->cupti_note, "%s", next + sizeof "cupti_note");
        }
    }
    if (record->type == OCC_RECORD_STATE) {
        const struct occ_record_state *state = (const void *)record;
        s->level = state->level;
        s->level_ns = state->time_ns;
        s->is_unmeasured = (record->flags & OCC_STATE_UNMEASURED) != 0;
        memcpy(s->reason, state->reason, sizeof s->reason);
    }
    if (record->type == OCC_RECORD_CLOSED)
        s->launches_as_closed = ((const struct occ_record_closed *)(const void *)record)->launches;
}

static struct story read_story(struct occ_ring_consumer *consumer)
{
    struct story s = {0};
    const struct occ_log_record *record;
    while (occ_ring_next_log_record(consumer, &record) == OCC_RING_OK)
        hear_record(&s, record);
    struct occ_ring_launch launches[512];
    size_t n;
    while (occ_ring_read(consumer, launches, 512, &n) == OCC_RING_OK)
        s.launches += n;
    assert_null(occ_ring_broken_reason(consumer));
    return s;
}

/* Runs a program to its end, then reads its ring, which outlives the program. */
static struct story story_of(struct fixture *f, program *main_of_it, const char *const *variables,
                             int expected_exit)
{
    run(f, main_of_it, variables);
    assert_int_equal(wait_for_end(f), expected_exit);
    int connection;
    struct occ_ring_consumer *consumer = accept_program(f, &connection);
    struct story s = read_story(consumer);
    assert_int_equal(occ_ring_is_closed(consumer), s.closed == 1);
    occ_ring_detach(consumer);
    close(connection);
    return s;
}

/* ---- programs ---- */

static void *fake(const char *symbol)
{
    void *library = dlopen(OCC_FAKE_CUPTI, RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, symbol) : NULL;
}

static void launch(uint64_t count)
{
    static const char *const names[] = {"_Z4gemmv", "_Z7softmaxv", "_Z4normv"};
    void *symbol = fake("fake_launch");
    launcher *launch_one;
    memcpy(&launch_one, &symbol, sizeof launch_one);
    for (uint64_t n = 0; n < count; n++) {
        struct occ_cupti_kernel k = sample_kernel(names[n % 3], (uint32_t)(n % 4) + 1, n);
        launch_one(&k);
    }
}

static int wait_for_kill(void)
{
    for (;;)
        pause();
    return 0;
}

static int program_that_launches(void)
{
    InitializeInjection();
    launch(20000);
    return 7;
}

static void test_every_launch_arrives(void **state)
{
    struct story s = story_of(*state, program_that_launches, NULL, 7);
    assert_int_equal(s.launches, 20000);
    assert_int_equal(s.launches_as_closed, 20000);
    assert_int_equal(s.processes, 2);
    assert_string_equal(s.cupti_path, OCC_FAKE_CUPTI);
    assert_int_equal(s.devices, 1);
    assert_int_equal(s.kernels, 3);
    assert_int_equal(s.configs, 12);
    assert_int_equal(s.states, 1);
    assert_int_equal(s.level, OCC_LEVEL_TRACE);
    assert_string_equal(s.reason, "");
    assert_int_equal(s.closed, 1);
}

/* The ending program waits for the daemon's answer only a bounded time; its ring is complete. */
static void test_a_daemon_that_never_answers_does_not_keep_the_program(void **state)
{
    struct fixture *f = *state;
    f->is_mute = true;
    struct story s = story_of(f, program_that_launches, NULL, 7);
    assert_int_equal(s.launches, 20000);
    assert_int_equal(s.closed, 1);
}

static void test_records_of_every_version(void **state)
{
    static const char *const versions[] = {"FAKE_CUPTI_VERSION=20", "FAKE_CUPTI_VERSION=28",
                                           "FAKE_CUPTI_VERSION=130001", "FAKE_CUPTI_VERSION=140000"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        const char *const variables[] = {versions[i], NULL};
        struct story s = story_of(*state, program_that_launches, variables, 7);
        assert_int_equal(s.launches, 20000);
        assert_int_equal(s.configs, 12);
    }
}

/* A libcupti before 13.3 traces memory copies and fills too, from the start, and the run's note gives the
 * reason. */
static void test_the_leak_of_graphs_by_version(void **state)
{
    static const struct {
        const char *version, *copies, *note;
    } cases[] = {
        {"FAKE_CUPTI_VERSION=20", NULL, "memory copies and fills are traced, not kept: libcupti before 13.3"},
        {"FAKE_CUPTI_VERSION=28", NULL, "memory copies and fills are traced, not kept: libcupti before 13.3"},
        {"FAKE_CUPTI_VERSION=130201", NULL, "memory copies and fills are traced, not kept"},
        {"FAKE_CUPTI_VERSION=130201", "FAKE_CUPTI_COPIES=1", "refuses to trace memory copies and fills"},
        {"FAKE_CUPTI_VERSION=130300", "FAKE_CUPTI_COPIES=1", NULL},
        {"FAKE_CUPTI_VERSION=140000", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const variables[] = {cases[i].version, cases[i].copies, NULL};
        struct story s = story_of(*state, program_that_launches, variables, 7);
        assert_int_equal(s.level, OCC_LEVEL_TRACE);
        assert_string_equal(s.reason, ""); /* the level has no reason: hardware counters may be used */
        if (cases[i].note)
            assert_non_null(strstr(s.cupti_note, cases[i].note));
        else
            assert_string_equal(s.cupti_note, "");
    }
}

/* An option that cannot be met only adds a reason to the state: hardware counters may still measure the run.
 */
static void test_an_unmet_option_is_a_reason_only(void **state)
{
    static const struct {
        const char *option, *reason;
    } cases[] = {{"OCCTRACE_NVTX=1", "no ranges: "}, {"OCCTRACE_EXACT=1", "no exact values: "}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const variables[] = {cases[i].option, NULL};
        struct story s = story_of(*state, program_that_launches, variables, 7);
        assert_int_equal(s.launches, 20000);
        assert_int_equal(s.level, OCC_LEVEL_TRACE);
        assert_non_null(strstr(s.reason, cases[i].reason));
        assert_false(s.is_unmeasured);
    }
}

static void test_it_is_silent(void **state)
{
    struct fixture *f = *state;
    (void)story_of(f, program_that_launches, NULL, 7);
    assert_int_equal(lseek(f->output, 0, SEEK_END), 0);
    const char *const asked[] = {"OCCTRACE_LOG=stderr", "OCCTRACE_RING_SLOTS=5", NULL};
    (void)story_of(f, program_that_launches, asked, 7);
    char text[4096] = "";
    assert_true(pread(f->output, text, sizeof text - 1, 0) > 0);
    assert_non_null(strstr(text, "level trace"));
    assert_non_null(strstr(text, "OCCTRACE_RING_SLOTS: not valid, ignored"));
}

static int program_without_launches(void)
{
    InitializeInjection();
    return 7;
}

/* Expects that a program with this variable records nothing, and that the reason contains `reason`. */
static void assert_quiet_for(struct fixture *f, const char *variable, const char *reason)
{
    const char *const variables[] = {variable, NULL};
    struct story s = story_of(f, program_without_launches, variables, 7);
    assert_int_equal(s.level, OCC_LEVEL_NOTHING);
    assert_non_null(strstr(s.reason, reason));
    assert_int_equal(s.processes, 1);
    assert_int_equal(s.closed, 1);
}

static void test_reasons_to_record_nothing(void **state)
{
    struct fixture *f = *state;
    char not_cupti[4200];
    (void)snprintf(not_cupti, sizeof not_cupti, "OCCTRACE_CUPTI=%s", OCC_GUEST_LIBRARY);
    assert_quiet_for(f, "OCCTRACE_CUPTI=/nowhere/libcupti.so.13", "/nowhere/libcupti.so.13");
    assert_quiet_for(f, not_cupti, "lacks cuptiGetVersion");
    assert_quiet_for(f, "FAKE_CUPTI_VERSION=18", "older than CUDA 12.2");
    assert_quiet_for(f, "FAKE_CUPTI_VERSION=130000", "13.0");
    assert_quiet_for(f, "FAKE_CUPTI_ENABLE=39", "another profiler");
    assert_quiet_for(f, "FAKE_CUPTI_ENABLE=35", "A_FAKE_ERROR");
    assert_quiet_for(f, "NSYS_PROFILING_SESSION_ID=1", "Nsight Systems");
}

static void test_disabled_is_disabled(void **state)
{
    struct fixture *f = *state;
    const char *const variables[] = {"OCCTRACE_DISABLE=1", NULL};
    run(f, program_without_launches, variables);
    assert_int_equal(wait_for_end(f), 7);
    assert_false(was_offered(f));
}

/* A socket that cannot be must not send the records to the user's own daemon, which listens here; an empty
 * variable is not set. */
static void test_no_other_daemon_for_an_invalid_socket(void **state)
{
    struct fixture *f = *state;
    char folder[48], path[64], runtime[64], too_long[160] = "OCCTRACE_SOCKET=/";
    memset(too_long + strlen(too_long), 'x', 110);
    (void)snprintf(folder, sizeof folder, "%s/occtrace", f->directory);
    (void)snprintf(path, sizeof path, "%s/occtraced.sock", folder);
    (void)snprintf(runtime, sizeof runtime, "XDG_RUNTIME_DIR=%s", f->directory);
    const char *const sockets[] = {"OCCTRACE_SOCKET=relative.sock", too_long, "OCCTRACE_SOCKET="};
    assert_int_equal(mkdir(folder, 0700), 0);
    close(f->listener);
    f->listener = listen_at(path);
    for (size_t i = 0; i < 3; i++) {
        const char *const variables[] = {sockets[i], runtime, NULL};
        run(f, program_without_launches, variables);
        assert_int_equal(wait_for_end(f), 7);
        assert_int_equal(was_offered(f), i == 2);
    }
    unlink(path);
    rmdir(folder);
}

/* Exits with 0 if the calling thread keeps its errno, signal mask and name. */
static int program_that_looks_at_itself(void)
{
    sigset_t before, after;
    char name[16] = "", name_after[16] = "";
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    prctl(PR_SET_NAME, "the program");
    prctl(PR_GET_NAME, name);
    errno = 4711;
    if (InitializeInjection() != 1 || errno != 4711)
        return 1;
    launch(2000);
    if (errno != 4711)
        return 2;
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    prctl(PR_GET_NAME, name_after);
    for (int signal = 1; signal < 32; signal++)
        if (sigismember(&after, signal) != sigismember(&before, signal))
            return 3;
    return strcmp(name, name_after) == 0 ? 0 : 4;
}

static void test_errno_signals_and_name_are_kept(void **state)
{
    struct story s = story_of(*state, program_that_looks_at_itself, NULL, 0);
    assert_int_equal(s.launches, 2000);
}

static int program_called_twice(void)
{
    InitializeInjection();
    InitializeInjection();
    launch(100);
    return 0;
}

static void test_a_second_call_does_nothing(void **state)
{
    struct fixture *f = *state;
    struct story s = story_of(f, program_called_twice, NULL, 0);
    assert_int_equal(s.launches, 100);
    assert_false(was_offered(f));
}

/* Returns the thread with the helper's name; 0: it does not run yet. */
static pid_t find_helper(void)
{
    char path[300], name[32];
    pid_t found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; !found && (entry = readdir(tasks));) {
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *comm = fopen(path, "r");
        if (comm && fgets(name, sizeof name, comm) && strcmp(name, "occtrace\n") == 0)
            found = (pid_t)atoi(entry->d_name);
        if (comm)
            fclose(comm);
    }
    closedir(tasks);
    return found;
}

static bool is_asleep(pid_t thread)
{
    char path[64], line[512] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *stat = fopen(path, "r");
    const char *state = stat && fgets(line, sizeof line, stat) ? strrchr(line, ')') : NULL;
    if (stat)
        fclose(stat);
    return state && strncmp(state, ") S", 3) == 0;
}

/* Waits until the helper sleeps. A child that is forked while the helper holds the loader's lock would wait
 * for this lock for ever: glibc does not reset the lock of dl_iterate_phdr. */
static void initialise_and_wait_for_helper(void)
{
    pid_t helper;
    InitializeInjection();
    while ((helper = find_helper()) == 0 || !is_asleep(helper))
        usleep(1000);
}

static int program_that_forks(void)
{
    initialise_and_wait_for_helper();
    launch(100);
    pid_t child = fork();
    if (child == 0)
        exit(0); /* runs the handlers of exit */
    int status;
    waitpid(child, &status, 0);
    launch(100);
    return status == 0 ? 0 : 1;
}

static void test_a_forked_child_leaves_its_parent_alone(void **state)
{
    struct fixture *f = *state;
    struct story s = story_of(f, program_that_forks, NULL, 0);
    assert_int_equal(s.launches, 200);
    assert_int_equal(s.launches_as_closed, 200);
    assert_false(was_offered(f));
}

/* A direct clone(2) runs no fork handlers: the child's exit handlers must notice that the ring is its
 * parent's. */
static int program_that_clones(void)
{
    InitializeInjection();
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        exit(0);
    int status;
    waitpid((pid_t)child, &status, 0);
    return atomic_load(&occ_guest()->ring.header->closed) == 0 ? 0 : 1;
}

static void test_a_cloned_child_leaves_its_parent_alone(void **state)
{
#if SANITIZED
    print_message("skipped: a sanitizer does not survive a clone by hand\n");
    skip();
#endif
    const char *const variables[] = {"FAKE_CUPTI_ENABLE=39", NULL};
    struct story s = story_of(*state, program_that_clones, variables, 0);
    assert_int_equal(s.closed, 1);
}

static int program_whose_child_uses_cuda(void)
{
    initialise_and_wait_for_helper();
    launch(100);
    pid_t child = fork();
    if (child == 0) {
        InitializeInjection();
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

static void test_a_forked_child_may_begin_anew(void **state)
{
    struct fixture *f = *state;
#if SANITIZED_THREAD
    print_message(
        "skipped: a thread may hold the loader's lock while the child is forked, which then waits for it\n");
    skip();
#endif
    struct story s = story_of(f, program_whose_child_uses_cuda, NULL, 0);
    assert_int_equal(s.launches, 100);
    int connection;
    struct occ_ring_consumer *child = accept_program(f, &connection);
    s = read_story(child);
    assert_int_equal(s.launches, 0);
    assert_int_equal(s.closed, 1);
    occ_ring_detach(child);
    close(connection);
}

static void test_a_cupti_that_hangs_does_not_keep_the_program(void **state)
{
    const char *const variables[] = {"FAKE_CUPTI_HANG=1", NULL};
    struct story s = story_of(*state, program_that_launches, variables, 7);
    assert_int_equal(s.closed, 0);
}

static char early_path[64], late_path[80]; /* paths of the daemon's socket */

static int program_whose_daemon_is_late(void)
{
    setenv("OCCTRACE_SOCKET", late_path, 1);
    InitializeInjection();
    launch(100);
    return rename(early_path, late_path) == 0 ? 7 : 1;
}

/* A daemon that begins to listen at the program's end gets the ring with all launches. */
static void test_the_last_round_looks_for_a_daemon(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(early_path, sizeof early_path, "%s", f->path);
    (void)snprintf(late_path, sizeof late_path, "%s.late", f->path);
    run(f, program_whose_daemon_is_late, NULL);
    assert_int_equal(wait_for_end(f), 7);
    (void)rename(late_path, f->path);
    assert_true(was_offered(f));
}

static int program_that_dies(void)
{
    InitializeInjection();
    launch(100);
    return wait_for_kill();
}

static void test_what_was_pushed_survives_a_kill(void **state)
{
    struct fixture *f = *state;
    run(f, program_that_dies, NULL);
    int connection;
    struct occ_ring_consumer *consumer = accept_program(f, &connection);
    while (occ_ring_pending(consumer) < 100) /* the helper's next second */
        usleep(10000);
    kill(f->pid, SIGKILL);
    assert_int_equal(wait_for_end(f), 128 + SIGKILL);
    struct story s = read_story(consumer);
    assert_int_equal(s.launches, 100);
    assert_int_equal(s.closed, 0);
    occ_ring_detach(consumer);
    close(connection);
}

static void test_the_next_daemon_takes_over(void **state)
{
    struct fixture *f = *state;
    run(f, program_that_dies, NULL);
    int connection;
    struct occ_ring_consumer *first = accept_program(f, &connection);
    uint8_t uuid[16];
    memcpy(uuid, occ_ring_uuid(first), sizeof uuid);
    occ_ring_detach(first);
    close(connection);
    struct occ_ring_consumer *second = accept_program(f, &connection);
    assert_memory_equal(occ_ring_uuid(second), uuid, sizeof uuid);
    occ_ring_detach(second);
    close(connection);
}

static int program_with_bad_records(void)
{
    InitializeInjection();
    void *symbol = fake("fake_launch");
    launcher *launch_one;
    memcpy(&launch_one, &symbol, sizeof launch_one);
    for (uint64_t n = 0; n < 10; n++) {
        struct occ_cupti_kernel k = sample_kernel("k", 1, n);
        if (n % 2)
            k.start_ns = k.end_ns = 0;
        launch_one(&k);
    }
    return 0;
}

static void test_losses_at_the_end(void **state)
{
    struct fixture *f = *state;
    const char *const variables[] = {"FAKE_CUPTI_DROPPED=5", NULL};
    run(f, program_with_bad_records, variables);
    assert_int_equal(wait_for_end(f), 0);
    int connection;
    struct occ_ring_consumer *consumer = accept_program(f, &connection);
    assert_int_equal(occ_ring_lost(consumer, OCC_LOSS_EXIT), 5);
    assert_int_equal(occ_ring_lost(consumer, OCC_LOSS_CUPTI_DROPPED), 5);
    assert_int_equal(occ_ring_cost(consumer, OCC_COST_RECORDS), 10);
    assert_int_equal(occ_ring_cost(consumer, OCC_COST_BUFFERS), 1);
    assert_true(occ_ring_cost(consumer, OCC_COST_INIT_NS) > 0);
    assert_int_equal(read_story(consumer).launches, 5);
    occ_ring_detach(consumer);
    close(connection);
}

/* Launches 18 kernels, which fill the first buffer. CUPTI returns 10 records and then an error; the other 8
 * are counted as lost. */
static int program_with_18_launches(void)
{
    InitializeInjection();
    launch(18);
    return 0;
}

static void test_what_cupti_does_not_give_is_counted(void **state)
{
    struct fixture *f = *state;
    const char *const variables[] = {"FAKE_CUPTI_STOPS=10", NULL};
    run(f, program_with_18_launches, variables);
    assert_int_equal(wait_for_end(f), 0);
    int connection;
    struct occ_ring_consumer *consumer = accept_program(f, &connection);
    assert_int_equal(occ_ring_lost(consumer, OCC_LOSS_BAD_RECORD), 8);
    assert_int_equal(read_story(consumer).launches, 10);
    occ_ring_detach(consumer);
    close(connection);
}

/* A call before the driver is ready could hang: the guest neither flushes nor queries CUPTI before CUPTI
 * requests a buffer. */
static void test_cupti_is_not_asked_before_it_begins(void **state)
{
    struct fixture *f = *state;
    const char *const variables[] = {"FAKE_CUPTI_DROPPED=5", "FAKE_CUPTI_UNREADY=1", NULL};
    run(f, program_without_launches, variables);
    assert_int_equal(wait_for_end(f), 7);
    int connection;
    struct occ_ring_consumer *consumer = accept_program(f, &connection);
    assert_int_equal(occ_ring_lost(consumer, OCC_LOSS_CUPTI_DROPPED), 0);
    occ_ring_detach(consumer);
    close(connection);
}

static void linger(void)
{
    usleep(100000);
}

static int program_that_ends_slowly(void)
{
    (void)atexit(linger); /* runs after the guest's handler */
    InitializeInjection();
    launch(100);
    return 7;
}

/* CUPTI's per-thread data must not be destroyed while the program ends: the helper's thread does not end
 * before the program. */
static void test_the_helper_does_not_end_before_the_program(void **state)
{
    const char *const variables[] = {"FAKE_CUPTI_THREADS=1", NULL};
    struct story s = story_of(*state, program_that_ends_slowly, variables, 7);
    assert_int_equal(s.launches, 100);
}

/* ---- a main thread that ends first ---- */

static int program_whose_main_thread_ends(void)
{
    initialise_and_wait_for_helper();
    launch(100);
    pthread_exit(NULL);
}

static void test_a_process_ends_with_its_last_thread(void **state)
{
#if SANITIZED_THREAD
    print_message(
        "skipped: the sanitizer's own thread never ends, so the process would not end without us either\n");
    skip();
#endif
    struct story s = story_of(*state, program_whose_main_thread_ends, NULL, 0);
    assert_int_equal(s.launches, 100);
    assert_int_equal(s.closed, 1);
}

static int program_whose_main_thread_ends_early(void)
{
    InitializeInjection();
    pthread_exit(NULL);
}

static void *work_with_signals_blocked(void *release)
{
    int *fds = release;
    char byte;
    return read(fds[0], &byte, 1) == 1 ? NULL : NULL;
}

/* A thread with all signals blocked that is older than the guest belongs to the program, not to CUPTI. */
static int program_with_a_thread_like_a_worker(void)
{
    static int fds[2];
    sigset_t all, before;
    pthread_t thread;
    if (pipe(fds) != 0)
        return 1;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)pthread_create(&thread, NULL, work_with_signals_blocked, fds);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    InitializeInjection();
    if (fork() == 0) { /* lets the thread go after three rounds of the helper */
        sleep(3);
        _exit(write(fds[1], "x", 1) == 1 ? 0 : 1);
    }
    close(fds[1]);
    pthread_exit(NULL);
}

/* CUPTI has delivered no buffer yet: the guest knows CUPTI's worker only as a thread that started during
 * initialization. */
static void test_a_process_ends_with_its_last_thread_before_the_first_launch(void **state)
{
#if SANITIZED_THREAD
    print_message("skipped: as above\n");
    skip();
#endif
    static const char *const variables[][2] = {{NULL}, {"FAKE_CUPTI_WORKER=1", NULL}};
    for (size_t i = 0; i < 2; i++) {
        struct story s = story_of(*state, program_whose_main_thread_ends_early, variables[i], 0);
        assert_int_equal(s.closed, 1);
    }
}

static void test_a_thread_of_the_program_keeps_the_process(void **state)
{
#if SANITIZED_THREAD
    print_message("skipped: as above\n");
    skip();
#endif
    static const char *const variables[] = {"FAKE_CUPTI_WORKER=1", NULL};
    struct timespec began, ended;
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    struct story s = story_of(*state, program_with_a_thread_like_a_worker, variables, 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    assert_int_equal(s.closed, 1);
    assert_true(ended.tv_sec - began.tv_sec >= 2);
}

/* ---- limits and signals of the program ---- */

static int program_with_small_files(void)
{
    const struct rlimit small = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &small);
    InitializeInjection();
    return 7;
}

static void test_a_limit_of_file_size_does_not_end_the_program(void **state)
{
    struct fixture *f = *state;
    run(f, program_with_small_files, NULL);
    assert_int_equal(wait_for_end(f), 7);
}

static int program_whose_stderr_nobody_reads(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    InitializeInjection();
    return 7;
}

static void test_a_log_that_nobody_reads_does_not_end_the_program(void **state)
{
    const char *const variables[] = {"OCCTRACE_LOG=stderr", NULL};
    struct story s = story_of(*state, program_whose_stderr_nobody_reads, variables, 7);
    assert_int_equal(s.closed, 1);
}

/* Reuses descriptor 0 repeatedly, during three attempts of the helper to find a daemon. */
static int program_that_counts_on_a_number(void)
{
    unsetenv("OCCTRACE_SOCKET");
    setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
    initialise_and_wait_for_helper();
    time_t until = time(NULL) + 4;
    while (time(NULL) < until) {
        close(STDIN_FILENO);
        if (open("/dev/null", O_RDONLY) != STDIN_FILENO)
            return 1;
    }
    return 0;
}

static void test_numbers_of_descriptors_are_the_programs(void **state)
{
    struct fixture *f = *state;
    run(f, program_that_counts_on_a_number, NULL);
    assert_int_equal(wait_for_end(f), 0);
}

/* Exits with the errno of a forked child after the parent closed all descriptors that it did not open itself.
 */
static int program_that_closes_all_and_forks(void)
{
    initialise_and_wait_for_helper();
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
        close(fd);
    errno = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(errno);
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void test_a_forked_child_keeps_errno(void **state)
{
    struct fixture *f = *state;
    run(f, program_that_closes_all_and_forks, NULL);
    assert_int_equal(wait_for_end(f), 0);
}

static int program_in_real_time(void)
{
    const struct sched_param first = {1};
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        return 77;
    initialise_and_wait_for_helper();
    launch(20000); /* the helper has begun its work when these are in the ring */
    while (atomic_load(&occ_guest()->ring.header->head) == 0)
        usleep(1000);
    return sched_getscheduler(find_helper()) == SCHED_OTHER ? 0 : 1;
}

static void test_the_helper_is_not_real_time(void **state)
{
    struct fixture *f = *state;
    run(f, program_in_real_time, NULL);
    int code = wait_for_end(f);
    if (code == 77)
        skip();
    assert_int_equal(code, 0);
}

/* Exits with 0 if the helper blocks every signal that can be blocked, so that it never runs the program's
 * handlers. */
static int program_that_looks_at_the_helper(void)
{
    unsigned long long blocked = 0;
    char path[64], line[256];
    initialise_and_wait_for_helper();
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)find_helper());
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status) && sscanf(line, "SigBlk: %llx", &blocked) != 1)
        ;
    for (int number = 1; number < SIGRTMIN - 2; number++)
        if (number != SIGKILL && number != SIGSTOP && !(blocked >> (number - 1) & 1))
            return number;
    return 0;
}

static void test_the_helper_takes_no_signals(void **state)
{
    struct fixture *f = *state;
    run(f, program_that_looks_at_the_helper, NULL);
    assert_int_equal(wait_for_end(f), 0);
}

/* The helper's own flush returns buffers, which must not make the helper pass for CUPTI's worker: its time
 * would count twice. */
static int program_whose_helper_flushes(void)
{
    initialise_and_wait_for_helper();
    launch(10);
    while (atomic_load(&occ_guest()->ring.header->head) < 10)
        usleep(1000);
    return atomic_load(&occ_guest()->worker_clock) == 0 ? 0 : 1;
}

static void test_the_helper_is_not_taken_for_the_worker(void **state)
{
    struct fixture *f = *state;
    run(f, program_whose_helper_flushes, NULL);
    assert_int_equal(wait_for_end(f), 0);
}

/* The first full buffer starts CUPTI's worker, with the launching thread's signal mask, as if the context had
 * started it. */
static int program_whose_worker_is_late(void)
{
    initialise_and_wait_for_helper();
    launch(20000);
    _Atomic pid_t *worker = fake("fake_late_worker");
    for (int ms = 0; ms < 20000 && atomic_load(&occ_guest()->worker_clock) == 0; ms++)
        usleep(1000);
    int clock = atomic_load(&occ_guest()->worker_clock);
    if (atomic_load(worker) == 0 || clock == 0 || ~(clock >> 3) != atomic_load(worker))
        return 1;
    pthread_exit(NULL);
}

/* The worker's CPU time counts as overhead, and the process ends with the program's last thread. */
static void test_a_late_worker_is_found(void **state)
{
#if SANITIZED_THREAD
    print_message("skipped: as above\n");
    skip();
#endif
    static const char *const variables[] = {"FAKE_CUPTI_LATE=1", NULL};
    struct story s = story_of(*state, program_whose_worker_is_late, variables, 0);
    assert_int_equal(s.launches, 20000);
    assert_int_equal(s.closed, 1);
}

/* If CUPTI starts its worker during initialization, no other thread is taken for the worker: here a thread
 * that launches and returns full buffers, and a thread that only flushes. */
static void *flush_once(void *unused)
{
    uint32_t (*flush)(uint32_t flags);
    void *symbol = fake("cuptiActivityFlushAll");
    memcpy(&flush, &symbol, sizeof flush);
    (void)flush(0);
    return unused;
}

static int program_whose_own_threads_return_buffers(void)
{
    pthread_t thread;
    initialise_and_wait_for_helper();
    launch(20000);
    launch(1);
    if (pthread_create(&thread, NULL, flush_once, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    return atomic_load(&occ_guest()->worker_clock) == 0 ? 0 : 1;
}

static void test_no_thread_of_the_program_is_taken_for_the_worker(void **state)
{
    struct fixture *f = *state;
    static const char *const variables[] = {"FAKE_CUPTI_WORKER=1", NULL};
    run(f, program_whose_own_threads_return_buffers, variables);
    assert_int_equal(wait_for_end(f), 0);
}

/* The pool of device buffers is small only if graphs do not leak them. Exits with its limit. */
static int program_that_tells_the_pool_limit(void)
{
    InitializeInjection();
    const uint64_t *limit = fake("fake_pool_limit");
    return limit ? (int)*limit : 1;
}

static void test_the_pool_of_device_buffers(void **state)
{
    static const struct {
        const char *version, *copies;
        int limit;
    } cases[] = {{"FAKE_CUPTI_VERSION=130201", NULL, 32},
                 {"FAKE_CUPTI_VERSION=130201", "FAKE_CUPTI_COPIES=1", 250},
                 {"FAKE_CUPTI_VERSION=130300", "FAKE_CUPTI_COPIES=1", 32}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const variables[] = {cases[i].version, cases[i].copies, NULL};
        struct story s = story_of(*state, program_that_tells_the_pool_limit, variables, cases[i].limit);
        assert_int_equal(s.closed, 1);
    }
}

static int program_with_a_short_window(void)
{
    InitializeInjection();
    sleep(2);
    return (int)(occ_guest()->recording.began_ns == 0);
}

/* The helper wakes at the end of a window, not with its next second. A busy machine may wake it late: one of
 * 20 tries must be in time. */
static void test_a_window_ends_in_time(void **state)
{
    const char *const variables[] = {"OCCTRACE_DURATION_MS=200", NULL};
    uint64_t lasted_ns = UINT64_MAX;
    for (int i = 0; i < 20 && lasted_ns >= UINT64_C(900000000); i++) {
        struct timespec began;
        (void)clock_gettime(CLOCK_REALTIME, &began);
        struct story s = story_of(*state, program_with_a_short_window, variables, 0);
        assert_non_null(strstr(s.reason, "--duration"));
        lasted_ns = s.level_ns - ((uint64_t)began.tv_sec * UINT64_C(1000000000) + (uint64_t)began.tv_nsec);
    }
    assert_true(lasted_ns < UINT64_C(900000000));
}

static int program_whose_cupti_is_taken(void)
{
    InitializeInjection();
    launch(10);
    void *symbol = fake("fake_deliver_foreign");
    void (*deliver)(void);
    memcpy(&deliver, &symbol, sizeof deliver);
    deliver();
    return wait_for_kill();
}

static void test_another_profiler_takes_over(void **state)
{
    struct fixture *f = *state;
    run(f, program_whose_cupti_is_taken, NULL);
    int connection;
    struct occ_ring_consumer *consumer = accept_program(f, &connection);
    struct story s = {0};
    while (s.states < 2) { /* the second one comes with the helper's next second */
        const struct occ_log_record *record;
        while (occ_ring_next_log_record(consumer, &record) == OCC_RING_OK)
            hear_record(&s, record);
        usleep(10000);
    }
    assert_int_equal(s.level, OCC_LEVEL_NOTHING);
    assert_non_null(strstr(s.reason, "another profiler"));
    occ_ring_detach(consumer);
    close(connection);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* The argument `seconds` runs the cases that wait for rounds of the helper or for the program's timeout. */
int main(int argc, char **argv)
{
    const struct CMUnitTest seconds[] = {
        TEST(test_a_daemon_that_never_answers_does_not_keep_the_program),
        TEST(test_what_was_pushed_survives_a_kill),
        TEST(test_the_next_daemon_takes_over),
        TEST(test_a_process_ends_with_its_last_thread),
        TEST(test_a_process_ends_with_its_last_thread_before_the_first_launch),
        TEST(test_a_thread_of_the_program_keeps_the_process),
        TEST(test_numbers_of_descriptors_are_the_programs),
        TEST(test_the_helper_is_not_taken_for_the_worker),
        TEST(test_a_window_ends_in_time),
        TEST(test_another_profiler_takes_over),
    };
    const struct CMUnitTest tests[] = {
        TEST(test_every_launch_arrives),
        TEST(test_records_of_every_version),
        TEST(test_the_leak_of_graphs_by_version),
        TEST(test_an_unmet_option_is_a_reason_only),
        TEST(test_it_is_silent),
        TEST(test_reasons_to_record_nothing),
        TEST(test_disabled_is_disabled),
        TEST(test_no_other_daemon_for_an_invalid_socket),
        TEST(test_errno_signals_and_name_are_kept),
        TEST(test_a_second_call_does_nothing),
        TEST(test_a_forked_child_leaves_its_parent_alone),
        TEST(test_a_cloned_child_leaves_its_parent_alone),
        TEST(test_a_forked_child_may_begin_anew),
        TEST(test_a_cupti_that_hangs_does_not_keep_the_program),
        TEST(test_the_last_round_looks_for_a_daemon),
        TEST(test_losses_at_the_end),
        TEST(test_what_cupti_does_not_give_is_counted),
        TEST(test_cupti_is_not_asked_before_it_begins),
        TEST(test_the_helper_does_not_end_before_the_program),
        TEST(test_a_limit_of_file_size_does_not_end_the_program),
        TEST(test_a_log_that_nobody_reads_does_not_end_the_program),
        TEST(test_a_forked_child_keeps_errno),
        TEST(test_the_helper_is_not_real_time),
        TEST(test_the_helper_takes_no_signals),
        TEST(test_a_late_worker_is_found),
        TEST(test_no_thread_of_the_program_is_taken_for_the_worker),
        TEST(test_the_pool_of_device_buffers),
    };
    return argc > 1 && strcmp(argv[1], "seconds") == 0
               ? cmocka_run_group_tests_name("injector, seconds", seconds, NULL, NULL)
               : cmocka_run_group_tests_name("injector", tests, NULL, NULL);
}
