/*
 * Programs of several users that report to root's daemon (daemon_programs.h): an honest program, and queries
 * of a history. Only root can start them. Include cmocka.h first.
 */
#pragma once

#include <poll.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "daemon_programs.h"
#include "support/clock.h"

#define NEVER_NS       INT64_C(3600000000000)
#define SECOND_NS      INT64_C(1000000000)
#define VICTIM         61001
#define ATTACKER       61003
#define VICTIM_ROUNDS  4
#define ROUND_LAUNCHES 500
#define SHARE_PROGRAMS 128 /* like the service */
#define MEGABYTE       (1 << 20)
#define BEGIN_MS       180000 /* maximum time until an attack begins */
#define RAW_LAUNCHES   "SELECT coalesce(sum(launches), 0) FROM stored_chunk"

static int in_place[2] = {-1, -1}; /* an attacker writes a byte here once its attack has begun */

static inline int open_in_place(void **state)
{
    (void)state;
    return pipe(in_place);
}

static inline void begin(void)
{
    check(write(in_place[1], "b", 1) == 1);
}

static inline void await_byte(void)
{
    char byte;
    struct pollfd ready = {.fd = in_place[0], .events = POLLIN};
    assert_int_equal(poll(&ready, 1, BEGIN_MS), 1);
    assert_int_equal(read(in_place[0], &byte, 1), 1);
}

static inline bool goes_on(const struct place *p)
{
    struct pollfd end = {.fd = p->leave[0], .events = POLLIN};
    return poll(&end, 1, 0) == 0;
}

static inline void needs_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("skipped: only root can start programs of other users\n");
    skip();
}

static inline void be_user(int uid)
{
    struct rlimit limit;
    check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0 && setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) == 0 &&
          setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) == 0);
}

/* Starts a daemon for all users, without shares. */
static inline void start_for_all(struct place *p)
{
    needs_root();
    p->split = true;
    assert_int_equal(chmod(p->directory, 0755), 0);
    start(p, NEVER_NS);
}

/* Starts a daemon with the service's shares and limits (daemon/main.c). */
static inline void start_service(struct place *p)
{
    p->max_producers = 1024;
    p->max_user_producers = SHARE_PROGRAMS;
    p->max_user_ring_bytes = UINT64_C(2) << 30;
    p->round_ns = 250000;
    p->skew_ns = 60 * SECOND_NS;
    p->idle_ns = NEVER_NS; /* histories stay open, since the test counts descriptors */
    start_for_all(p);
}

/* Sends the bytes with up to 8 descriptors, without waiting. */
static inline void send_packet(int socket, const void *bytes, size_t n, const int *fds, size_t n_fds)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    (void)sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- the victim ---- */

/* Returns the number of the session's launches in the asking user's history. */
static inline uint64_t flushed(int fd)
{
    char answer[64];
    uint64_t launches = 0;
    check(occ_control_request(fd, "flush " SESSION, DEADLINE_MS, answer, sizeof answer, NULL) == 0);
    check(occ_parse_u64(answer, 0, UINT64_MAX, &launches, NULL) == 0);
    return launches;
}

static inline struct occ_ring_launch launch_now(uint64_t n)
{
    struct occ_ring_launch launch = sample_launch(n);
    launch.start_ns = (uint64_t)occ_now_ns();
    return launch;
}

static inline void await_committed(const struct occ_ring_producer *ring)
{
    while (atomic_load(&ring->header->tail) != ring->head)
        pause_ms(1);
}

/* Pushes launches in portions, each after the previous one's commit, and checks that none is lost. */
static inline void launch_in_portions(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    int asking = connect_to(p);
    uint64_t before = flushed(asking);
    make_ring(&ring, 0);
    (void)offer(p, &ring);
    for (int i = 0; i < VICTIM_ROUNDS; i++) {
        for (int k = 0; k < ROUND_LAUNCHES; k++) {
            struct occ_ring_launch launch = launch_now(ring.head);
            while (ring.head - atomic_load(&ring.header->tail) > ring.mask)
                pause_ms(1);
            check(occ_ring_push(&ring, &launch));
        }
        await_committed(&ring);
    }
    check(flushed(asking) == before + VICTIM_ROUNDS * ROUND_LAUNCHES);
}

/* Runs the program to its end while the test's earlier programs keep waiting. */
static inline void run_beside(struct place *p, void (*program)(const struct place *p, int variant),
                              int variant)
{
    int leave[2];
    memcpy(leave, p->leave, sizeof leave);
    let_go(p, run(p, program, variant));
    memcpy(p->leave, leave, sizeof leave);
}

/* ---- contents of a history ---- */

static inline void path_of(const struct place *p, int uid, char path[160])
{
    (void)snprintf(path, 160, "%s/u%d/history.db", p->directory, uid);
}

static inline int64_t count_in_file(const char *path, const char *sql)
{
    struct occ_store *store = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return n;
}

static inline int64_t count_in(const struct place *p, int uid, const char *sql)
{
    char path[160];
    path_of(p, uid, path);
    return count_in_file(path, sql);
}
