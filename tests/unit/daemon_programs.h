/*
 * Programs that report to a daemon (daemon_served.h), as children of a test: each offers its own rings. A
 * child reports failure by its exit code. Include cmocka.h first.
 */
#pragma once

#include <sys/prctl.h>
#include <sys/socket.h>

#include "daemon_served.h"
#include "ring/handshake.h"
#include "ring_samples.h"

static inline void check_at(bool good, const char *file, int line, const char *condition)
{
    if (good)
        return;
    (void)fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
    _exit(99);
}
#define check(condition) check_at(condition, __FILE__, __LINE__, #condition)

/* Creates a ring with the records of one configuration and `n` launches. */
static inline void make_ring(struct occ_ring_producer *ring, uint64_t n)
{
    static const char text[] = "session\0" SESSION;
    check(occ_ring_create(ring, 256, 64u << 10) == 0);
    check(log_process(ring, 1, text, sizeof text) && log_device(ring, 0) &&
          log_kernel(ring, 0, "_Z4axpyPf") && log_config(ring, 0));
    for (uint64_t i = 0; i < n; i++) {
        struct occ_ring_launch launch = sample_launch(i);
        check(occ_ring_push(ring, &launch));
    }
}

static inline void send_hello(int fd, const struct occ_ring_producer *ring)
{
    const struct occ_hello hello = occ_hello_of(ring);
    check(occ_hello_send(fd, &hello, ring->fd));
}

static inline int connect_to(const struct place *p)
{
    int fd = -1, status = 0;
    for (int ms = 0; (status = occ_control_connect(p->socket, &fd, NULL)) != 0 && ms < DEADLINE_MS; ms += 5)
        pause_ms(5); /* the daemon's queue of connections is full */
    check(status == 0);
    return fd;
}

static inline int offer(const struct place *p, const struct occ_ring_producer *ring)
{
    int fd = connect_to(p);
    send_hello(fd, ring);
    return fd;
}

/* Waits until the daemon has handled all earlier messages of the connection. */
static inline void meet(int fd)
{
    char answer[64];
    check(occ_control_request(fd, "ping", DEADLINE_MS, answer, sizeof answer, NULL) == 0);
}

static inline void wait_for_end(const struct place *p)
{
    char byte;
    (void)!read(p->leave[0], &byte, 1);
}

/* Runs `program` in a child; wait_for_end() there waits for let_go() here. Returns its pid. */
static inline pid_t run(struct place *p, void (*program)(const struct place *p, int variant), int variant)
{
    (void)fflush(NULL);
    assert_int_equal(pipe(p->leave), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that dies leaves no process that holds its output */
        (void)close(p->leave[1]);
        program(p, variant);
        _exit(0);
    }
    return pid;
}

static inline void let_go(struct place *p, pid_t pid)
{
    int status = -1;
    for (int i = 0; i < 2; i++) {
        (void)close(p->leave[i]);
        p->leave[i] = -1;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}
