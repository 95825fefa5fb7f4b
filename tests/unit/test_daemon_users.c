/*
 * Root's daemon with programs of several users. Each user has a history that only he may read, and a share of
 * the daemon. A user's damage to his own history and demands beyond his share do not affect other users. Only
 * root can start such programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>

#include "cases.h"
#include "daemon_users.h"

#define ALICE 61001
#define BOB   61002
#define CAROL 61003

#define NOISE       UINT64_C(600000)
#define NOISE_SLOTS 65536

/* Runs a program of this user with 10 launches, until the daemon has committed them. */
static void launch_ten(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    int asking = connect_to(p);
    uint64_t before = flushed(asking);
    make_ring(&ring, 10);
    (void)offer(p, &ring);
    while (flushed(asking) != before + 10)
        pause_ms(1);
}

/* Runs a program with 10 launches that ends as soon as the daemon has its ring. */
static void end_with_ten(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    make_ring(&ring, 10);
    meet(offer(p, &ring));
}

static int64_t count_launches(const struct place *p, int uid)
{
    char path[160];
    struct occ_store *store = NULL;
    uint64_t launches = 0;
    path_of(p, uid, path);
    assert_int_equal(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    assert_int_equal(occ_store_session_launches(store, SESSION, &launches, NULL), 0);
    occ_store_close(store);
    return (int64_t)launches;
}

static int64_t count_chunks(const struct place *p, int uid)
{
    char path[160];
    struct occ_store *store = NULL;
    sqlite3_stmt *stmt = NULL;
    path_of(p, uid, path);
    assert_int_equal(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    assert_int_equal(
        sqlite3_prepare_v2(occ_store_sqlite(store), "SELECT count(*) FROM stored_chunk", -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return n;
}

static void read_histories(const struct place *p, int uid)
{
    for (int owner = ALICE; owner <= BOB; owner++) {
        char path[160];
        path_of(p, owner, path);
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            be_user(uid);
            if (uid == owner) {
                int fd = open(path, O_RDONLY | O_CLOEXEC);
                check(fd >= 0 && open(path, O_RDWR | O_CLOEXEC) < 0);
            } else {
                check(open(path, O_RDONLY | O_CLOEXEC) < 0);
            }
            _exit(0);
        }
        int status = -1;
        check(waitpid(pid, &status, 0) == pid && status == 0);
    }
}

static void each_user_has_a_history_that_he_alone_may_read(void **state)
{
    struct place *p = *state;
    start_for_all(p);
    let_go(p, run(p, launch_ten, ALICE));
    let_go(p, run(p, launch_ten, BOB));
    let_go(p, run(p, launch_ten, BOB));
    await_status(p, "\nhistories 3\n");
    let_go(p, run(p, read_histories, ALICE));
    let_go(p, run(p, read_histories, BOB));
    assert_int_equal(count_launches(p, ALICE), 10);
    assert_int_equal(count_launches(p, BOB), 20);
    assert_stops(p);
    let_go(p, run(p, read_histories, ALICE)); /* also while no daemon writes them */
    assert_int_equal(count_launches(p, BOB), 20);
}

static void a_history_is_closed_and_opened_again(void **state)
{
    struct place *p = *state;
    p->idle_ns = 1;
    start_for_all(p);
    for (int i = 1; i <= 3; i++) {
        let_go(p, run(p, launch_ten, ALICE));
        await_status(p, "\nhistories 1\n");
        assert_int_equal(count_launches(p, ALICE), 10 * i);
    }
    assert_stops(p);
}

static void stay_with_ten(const struct place *p, int uid)
{
    launch_ten(p, uid);
    wait_for_end(p);
}

/* The restarted daemon ends the run although its user does not return. */
static void runs_of_a_killed_daemon_end_in_every_history(void **state)
{
    struct place *p = *state;
    static const char without_end[] = "SELECT count(*) FROM stored_run WHERE end_ns IS NULL";
    start_for_all(p);
    pid_t program = run(p, stay_with_ten, ALICE);
    await_status(p, "\nhistories 2\n");
    while (count_launches(p, ALICE) != 10)
        pause_ms(5);
    assert_int_equal(kill(p->daemon, SIGKILL), 0);
    assert_int_equal(waitpid(p->daemon, NULL, 0), p->daemon);
    let_go(p, program);
    if (p->control >= 0)
        (void)close(p->control);
    p->control = -1;
    assert_int_equal(count_in(p, ALICE, without_end), 1);
    start_for_all(p);
    assert_int_equal(count_in(p, ALICE, without_end), 0);
    assert_stops(p);
}

/* The daemon reads a new program's ring in one of the loop's next rounds, although the next poll of an idle
 * history is up to 30 s away: 1000 answers take less than these 30 s, unless the machine is busy. */
static void be_read_at_once(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    char answer[OCC_CONTROL_BYTES];
    be_user(uid);
    make_ring(&ring, 10);
    int fd = offer(p, &ring);
    bool is_read = false;
    for (int i = 0; i < 1000 && !is_read; i++) {
        check(occ_control_request(fd, "status", DEADLINE_MS, answer, sizeof answer, NULL) == 0);
        is_read = strstr(answer, "\nlaunches 20\n") != NULL;
    }
    check(is_read);
}

/* Launches age out of closed histories: no client of their owners connects after the restart. */
static void closed_histories_age(void **state)
{
    struct place *p = *state;
    start_for_all(p);
    let_go(p, run(p, launch_ten, ALICE));
    let_go(p, run(p, launch_ten, BOB));
    assert_stops(p);
    (void)close(p->control);
    p->raw_age_ns = 24 * INT64_C(3600000000000); /* the launches are of 2023 */
    p->closed_upkeep_ns = 100000000;
    p->idle_ns = 50000000; /* shorter than the upkeep's interval: else each visit keeps the history open */
    start_for_all(p);
    for (int uid = ALICE; uid <= BOB; uid++)
        for (int ms = 0; count_chunks(p, uid) > 0; ms += 5) {
            assert_true(ms < DEADLINE_MS);
            pause_ms(5);
        }
    assert_stops(p);
}

/* Histories are removed once their launches have aged out. Their owners do not return: a user has left, a pod
 * has ended. */
static void spent_histories_are_removed(void **state)
{
    struct place *p = *state;
    char directory[128];
    start_for_all(p);
    let_go(p, run(p, launch_ten, ALICE));
    let_go(p, run(p, launch_ten, BOB));
    assert_stops(p);
    (void)close(p->control);
    p->hours_age_ns = 1;
    p->closed_upkeep_ns = 100000000;
    p->idle_ns = 50000000; /* shorter than the upkeep's interval: else each visit keeps the history open */
    start_for_all(p);
    for (int uid = ALICE; uid <= BOB; uid++) {
        (void)snprintf(directory, sizeof directory, "%s/u%d", p->directory, uid);
        for (int ms = 0; access(directory, F_OK) == 0; ms += 5) {
            assert_true(ms < DEADLINE_MS);
            pause_ms(5);
        }
    }
    assert_int_equal(access(p->directory, F_OK), 0);
    assert_stops(p);
}

/* Pushes launches that the codec cannot compress. */
static void launch_noise(const struct place *p, int uid)
{
    static const char text[] = "session\0" SESSION;
    struct occ_ring_producer ring;
    uint64_t random = (uint64_t)uid;
    be_user(uid);
    check(occ_ring_create(&ring, NOISE_SLOTS, 64u << 10) == 0);
    check(log_process(&ring, 1, text, sizeof text) && log_device(&ring, 0) &&
          log_kernel(&ring, 0, "_Z4axpyPf") && log_config(&ring, 0));
    int fd = offer(p, &ring);
    for (uint64_t i = 0; i < NOISE; i++) {
        struct occ_ring_launch launch = sample_launch(i);
        random = random * 6364136223846793005u + 1442695040888963407u;
        launch.duration_ns = random >> 44;
        launch.graph_node = random;
        while (ring.head - atomic_load(&ring.header->tail) >= NOISE_SLOTS)
            pause_ms(1);
        check(occ_ring_push(&ring, &launch));
    }
    meet(fd);
}

/* Returns the bytes of the owner's file and write-ahead log; 0: neither exists. */
static int64_t bytes_of(const struct place *p, int uid)
{
    char path[160], log[176];
    struct stat file = {0}, other = {0};
    path_of(p, uid, path);
    (void)snprintf(log, sizeof log, "%s-wal", path);
    return (stat(path, &file) == 0 ? file.st_size : 0) + (stat(log, &other) == 0 ? other.st_size : 0);
}

/* Sets the time of the owner's last launch. */
static void set_use(const struct place *p, int uid, int64_t second)
{
    const struct timespec times[] = {{.tv_sec = second}, {.tv_sec = second}};
    char path[160];
    (void)snprintf(path, sizeof path, "%s/u%d/used", p->directory, uid);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void restart_with_total(struct place *p, int64_t max_bytes)
{
    (void)close(p->control);
    p->max_total_bytes = (uint64_t)max_bytes;
    p->census_ns = 20000000;
    p->idle_ns = 50000000;
    start_for_all(p);
}

/* Waits until the owner's history has at most `max_bytes`. */
static void await_bytes(const struct place *p, int uid, int64_t max_bytes)
{
    for (int ms = 0; bytes_of(p, uid) > max_bytes; ms += 5) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(5);
    }
}

/* The least recently used of four owners is below the equal share and keeps its history: eviction begins with
 * the least recently used owner above it. */
static void the_oldest_of_large_owners_gives_first(void **state)
{
    struct place *p = *state;
    char directory[128], asked[64];
    p->max_total_bytes = UINT64_C(1) << 40;
    start_for_all(p);
    let_go(p, run(p, launch_ten, ALICE));
    let_go(p, run(p, launch_noise, BOB));
    let_go(p, run(p, launch_noise, CAROL));
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_stops(p);
    set_use(p, ALICE, 1000);
    set_use(p, BOB, 2000);
    set_use(p, CAROL, 3000);
    const int64_t sizes[] = {bytes_of(p, 0), bytes_of(p, ALICE), bytes_of(p, BOB), bytes_of(p, CAROL)};
    const int64_t total = sizes[0] + sizes[1] + sizes[2] + sizes[3], chunks = count_chunks(p, CAROL);
    assert_true(sizes[2] > 4 * MEGABYTE && sizes[1] < MEGABYTE && chunks > 1);
    restart_with_total(p, total - 2 * MEGABYTE);
    await_bytes(p, BOB, sizes[2] - 2 * MEGABYTE);
    (void)snprintf(asked, sizeof asked, "\ntotal_quota_bytes %lld\n", (long long)(total - 2 * MEGABYTE));
    await_status(p, asked);
    assert_int_equal(count_chunks(p, CAROL), chunks);
    assert_int_equal(count_launches(p, ALICE), 10);
    assert_true(count_chunks(p, BOB) > 0);
    assert_stops(p);
    restart_with_total(p, 4 * sizes[1] + MEGABYTE / 4); /* below the least sum of the histories' sizes */
    await_bytes(p, BOB, 0);
    (void)snprintf(directory, sizeof directory, "%s/u%d", p->directory, BOB);
    for (int ms = 0; access(directory, F_OK) == 0; ms += 5) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(5);
    }
    assert_int_equal(count_launches(p, ALICE), 10);
    assert_stops(p);
}

static void a_new_program_is_read_at_once_beside_idle_histories(void **state)
{
    struct place *p = *state;
    start_for_all(p);
    let_go(p, run(p, launch_ten, ALICE));
    await_status(p, "\nclients 1\nprograms 0\n");
    let_go(p, run(p, be_read_at_once, ALICE));
    assert_stops(p);
}

/* Offers rings until the daemon refuses one; exits with the number of accepted rings. */
static void offer_many(const struct place *p, int uid)
{
    char answer[64];
    be_user(uid);
    for (int taken = 0; taken < 8; taken++) {
        struct occ_ring_producer ring;
        make_ring(&ring, 0);
        int fd = offer(p, &ring);
        if (occ_control_request(fd, "ping", DEADLINE_MS, answer, sizeof answer, NULL) != 0)
            _exit(taken);
    }
    _exit(98);
}

static int taken_of(struct place *p, int uid)
{
    int status = -1;
    pid_t pid = run(p, offer_many, uid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define OWNERS          24
#define OWNER_KERNELS   96
#define FIRST_OWNER     62000
#define OWNER_MAX_BYTES (19L << 16) /* 1.1875 MiB: docs/decisions/0017 */

/* Runs a program with long kernel names and 200 launches in each owner's history, until the daemon has
 * committed all launches. */
static void launch_as_each_owner(const struct place *p, int unused)
{
    static struct occ_ring_producer rings[OWNERS];
    (void)unused;
    for (int i = 0; i < OWNERS; i++) {
        struct occ_ring_producer *ring = &rings[i];
        char name[2000];
        check(occ_ring_create(ring, 256, 512u << 10) == 0 && log_process(ring, 0, "", 0) &&
              log_device(ring, 0));
        memset(name, 'k', sizeof name);
        for (uint32_t k = 0; k < OWNER_KERNELS; k++) {
            struct occ_record_config config = sample_config(k);
            config.kernel = k;
            (void)snprintf(name + sizeof name - 12, 12, "%u", k);
            check(log_kernel(ring, k, name) && occ_ring_log(ring, &config.record, sizeof config, NULL, 0));
        }
        for (uint64_t n = 0; n < 200; n++) {
            struct occ_ring_launch launch = sample_launch(n);
            launch.config = (uint32_t)n % OWNER_KERNELS;
            check(occ_ring_push(ring, &launch));
        }
        check(seteuid((uid_t)(FIRST_OWNER + i)) == 0);
        (void)offer(p, ring);
        check(seteuid(0) == 0);
    }
    for (int i = 0; i < OWNERS; i++)
        while (atomic_load(&rings[i].header->tail) != 200)
            pause_ms(1);
    wait_for_end(p);
}

static void an_open_history_takes_little_memory(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES], committed[64];
    start_for_all(p);
    let_go(p, run(p, launch_ten, ALICE)); /* allocates the memory that histories share */
    long before = anonymous_bytes(p);
    pid_t program = run(p, launch_as_each_owner, 0);
    (void)snprintf(committed, sizeof committed, "\nlaunches %d\n", 10 + 200 * OWNERS);
    await_status(p, committed);
    for (uint64_t commits = 0; commits <= OWNERS;) {
        pause_ms(5);
        assert_true(ask(p, "status", answer));
        commits = strtoull(strstr(answer, "\ncommits ") + strlen("\ncommits "), NULL, 10);
    }
    long each = (anonymous_bytes(p) - before) / OWNERS;
    if (!SANITIZED && each > OWNER_MAX_BYTES)
        fail_msg("%ld bytes for each history", each);
    let_go(p, program);
    assert_stops(p);
}

static void a_user_has_a_share_of_programs(void **state)
{
    struct place *p = *state;
    p->max_user_producers = 3;
    start_for_all(p);
    assert_int_equal(taken_of(p, ALICE), 3);
    assert_int_equal(taken_of(p, BOB), 3);
    assert_stops(p);
}

static void a_user_has_a_share_of_ring_memory(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer ring;
    struct stat status;
    make_ring(&ring, 0);
    assert_int_equal(fstat(ring.fd, &status), 0);
    p->max_user_ring_bytes = (uint64_t)status.st_size * 2;
    start_for_all(p);
    assert_int_equal(taken_of(p, ALICE), 2);
    assert_int_equal(taken_of(p, BOB), 2);
    assert_stops(p);
}

/* A lock on one history delays only its owner's launches; the owner can take the lock in many ways. */
static void a_locked_history_keeps_its_owner_alone(void **state)
{
    struct place *p = *state;
    char path[160];
    sqlite3 *db = NULL;
    start_for_all(p);
    let_go(p, run(p, launch_ten, ALICE));
    path_of(p, ALICE, path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, DEADLINE_MS); /* the daemon may be committing */
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    let_go(p, run(p, end_with_ten, ALICE));
    await_status(p, "\nstalled yes\n");
    let_go(p, run(p, launch_ten, BOB));
    assert_int_equal(count_launches(p, BOB), 10);
    assert_int_equal(count_launches(p, ALICE), 10);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    await_status(p, "\nstalled no\n");
    assert_stops(p);
    assert_int_equal(count_launches(p, ALICE), 20);
}

/* Reports a command line with a secret in its arguments. */
static void send_secrets(const struct place *p, int uid)
{
    static const char text[] = "session\0" SESSION "\0cmdline\0train --token=hunter2";
    struct occ_ring_producer ring;
    be_user(uid);
    check(occ_ring_create(&ring, 256, 64u << 10) == 0);
    check(log_process(&ring, 2, text, sizeof text));
    meet(offer(p, &ring));
}

static void command_lines_are_kept_as_far_as_is_set(void **state)
{
    struct place *p = *state;
    static const char *const kept[] = {"train --token=hunter2", "train", NULL};
    p->command_lines = OCC_COMMAND_LINES_FULL;
    start_for_all(p);
    for (int i = 0;; i++) {
        struct occ_store *store = NULL;
        sqlite3_stmt *stmt = NULL;
        char path[160];
        path_of(p, ALICE + i, path);
        let_go(p, run(p, send_secrets, ALICE + i));
        assert_stops(p);
        assert_int_equal(
            occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL), 0);
        assert_int_equal(
            sqlite3_prepare_v2(occ_store_sqlite(store), "SELECT command_line FROM run", -1, &stmt, NULL),
            SQLITE_OK);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        if (kept[i])
            assert_string_equal((const char *)sqlite3_column_text(stmt, 0), kept[i]);
        else
            assert_null(sqlite3_column_text(stmt, 0));
        (void)sqlite3_finalize(stmt);
        occ_store_close(store);
        if (i == 2)
            return;
        p->command_lines++;
        (void)close(p->control);
        start(p, NEVER_NS);
    }
}

/* Pushes launches with arbitrary times; the daemon keeps only the launches that a current process may have
 * made. */
static void launch_at_odd_times(const struct place *p, int uid)
{
    const int64_t second_ns = INT64_C(1000000000), now_ns = occ_now_ns();
    const struct {
        int64_t start_ns, duration_ns;
    } times[] = {
        {now_ns, 1000},
        {now_ns - second_ns, second_ns / 2},
        {now_ns - INT64_C(86400) * second_ns * 400, 1000}, /* long before the process */
        {1, 1},
        {now_ns + 3600 * second_ns, 1000},
        {now_ns, 3600 * second_ns},
        {INT64_C(9000000000000000000), 1000},
    };
    struct occ_ring_producer ring;
    be_user(uid);
    int asking = connect_to(p);
    make_ring(&ring, 0);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct occ_ring_launch launch = sample_launch(i);
        launch.start_ns = (uint64_t)times[i].start_ns;
        launch.duration_ns = (uint64_t)times[i].duration_ns;
        check(occ_ring_push(&ring, &launch));
    }
    (void)offer(p, &ring);
    while (flushed(asking) < 2)
        pause_ms(1);
}

static void launches_have_possible_times(void **state)
{
    struct place *p = *state;
    struct occ_store *store = NULL;
    sqlite3_stmt *stmt = NULL;
    char path[160];
    p->skew_ns = INT64_C(60000000000);
    start_for_all(p);
    let_go(p, run(p, launch_at_odd_times, ALICE));
    assert_stops(p);
    assert_int_equal(count_launches(p, ALICE), 2);
    path_of(p, ALICE, path);
    assert_int_equal(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store),
                                        "SELECT launches FROM loss WHERE cause = 'bad_times'", -1, &stmt,
                                        NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(stmt, 0), 5);
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
}

/* Locks the daemon's directory as another user. The lock that keeps a second daemon from starting must be out
 * of this user's reach. */
static void hold_locks(const struct place *p, int uid)
{
    be_user(uid);
    int fd = open(p->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    wait_for_end(p);
}

static void nobody_else_can_keep_the_daemon_from_starting(void **state)
{
    struct place *p = *state;
    int leave[2];
    needs_root();
    assert_int_equal(chmod(p->directory, 0755), 0);
    pid_t holder = run(p, hold_locks, BOB);
    memcpy(leave, p->leave, sizeof leave);
    start_for_all(p);
    let_go(p, run(p, launch_ten, ALICE));
    assert_stops(p);
    memcpy(p->leave, leave, sizeof leave);
    let_go(p, holder);
}

/* Locks the file in the socket's directory for reading, as the root of a container can that mounts it. */
static void hold_the_sockets_lock(const struct place *p, int is_shared)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/run/occtraced.lock", p->directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd >= 0 && flock(fd, (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 &&
          fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_RDLCK}) == 0);
    begin();
    wait_for_end(p);
}

/* A lock on the histories' directory is a daemon's. */
static void hold_the_histories_lock(const struct place *p, int unused)
{
    char path[160];
    (void)unused;
    (void)snprintf(path, sizeof path, "%s/occtraced.lock", p->directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    check(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    begin();
    wait_for_end(p);
}

static void a_container_cannot_keep_the_daemon_from_starting(void **state)
{
    struct place *p = *state;
    char directory[96], path[160];
    int leave[2];
    needs_root();
    (void)snprintf(directory, sizeof directory, "%s/run", p->directory);
    (void)snprintf(p->socket, sizeof p->socket, "%s/occtraced.sock", directory);
    assert_int_equal(mkdir(directory, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/occtraced.lock", directory);
    assert_int_equal(close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)), 0);
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        pid_t holder = run(p, hold_the_sockets_lock, is_shared);
        memcpy(leave, p->leave, sizeof leave);
        await_byte();
        start_for_all(p);
        assert_stops(p);
        (void)close(p->control);
        memcpy(p->leave, leave, sizeof leave);
        let_go(p, holder);
    }
    pid_t holder = run(p, hold_the_histories_lock, 0);
    await_byte();
    pid_t daemon = fork();
    if (daemon == 0)
        _exit(serve(p, NEVER_NS));
    int status = 0;
    assert_int_equal(waitpid(daemon, &status, 0), daemon);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_int_equal(access(p->socket, F_OK), -1);
    let_go(p, holder);
    p->control = -1;
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_user_has_a_history_that_he_alone_may_read),
        T(a_history_is_closed_and_opened_again),
        T(closed_histories_age),
        T(spent_histories_are_removed),
        T(the_oldest_of_large_owners_gives_first),
        T(runs_of_a_killed_daemon_end_in_every_history),
        T(a_new_program_is_read_at_once_beside_idle_histories),
        T(an_open_history_takes_little_memory),
        T(a_user_has_a_share_of_programs),
        T(a_user_has_a_share_of_ring_memory),
        T(a_locked_history_keeps_its_owner_alone),
        T(launches_have_possible_times),
        T(command_lines_are_kept_as_far_as_is_set),
        T(nobody_else_can_keep_the_daemon_from_starting),
        T(a_container_cannot_keep_the_daemon_from_starting),
    };
#undef T
    choose_cases(argc, argv);
    return cmocka_run_group_tests_name("daemon users", tests, open_in_place, NULL);
}
