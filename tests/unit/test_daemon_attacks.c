/*
 * Attacks on root's daemon that need no flood (those are in test_daemon_hostile.c): descriptors whose closing
 * waits, identities of processes that have ended, connections under many uids. After each the daemon serves a
 * victim at once, and what belongs to him is his. Only root can start programs of several users.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "daemon_users.h"

/* ---- descriptors whose closing waits ---- */

/* A TCP connection whose other end reads nothing: who closes it last waits for SO_LINGER's time. */
static int make_lingering(void)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 3600};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    static char bytes[65536];
    int listening = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listening, (const struct sockaddr *)&address, size) == 0 && listen(listening, 1) == 0 &&
          getsockname(listening, (struct sockaddr *)&address, &size) == 0 &&
          connect(fd, (const struct sockaddr *)&address, size) == 0 && accept(listening, NULL, NULL) >= 0);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    return fd;
}

enum { WITH_HELLO, WITH_REQUEST, WITH_NOTHING, N_PACKETS };

/* As a ring, beside a request, and with an empty packet; the daemon has the last copy. */
static void pass_lingering(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    make_ring(&ring, 0);
    const struct occ_hello hello = occ_hello_of(&ring);
    const struct {
        const void *bytes;
        size_t n;
    } packets[N_PACKETS] = {[WITH_HELLO] = {&hello, sizeof hello}, [WITH_REQUEST] = {"ping", 4}};
    for (int i = 0; i < N_PACKETS; i++) {
        int fd = make_lingering();
        send_packet(connect_to(p), packets[i].bytes, packets[i].n, &fd, 1);
        (void)close(fd);
    }
    begin();
    wait_for_end(p);
}

static void a_descriptor_that_does_not_close_keeps_its_sender_alone(void **state)
{
    struct place *p = *state;
    start_service(p);
    size_t descriptors = count_descriptors(p);
    assert_int_equal(kill(p->daemon, SIGSTOP), 0); /* so that the daemon has the last copies */
    pid_t attacker = run(p, pass_lingering, ATTACKER);
    await_byte();
    assert_int_equal(kill(p->daemon, SIGCONT), 0);
    run_beside(p, launch_in_portions, VICTIM);
    run_beside(p, launch_in_portions, VICTIM);
    assert_true(count_descriptors(p) < descriptors + 32);
    let_go(p, attacker); /* which ends the connections' other ends, too */
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), 2 * VICTIM_ROUNDS * ROUND_LAUNCHES);
    assert_stops(p);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_descriptor_that_does_not_close_keeps_its_sender_alone),
    };
#undef T
    return cmocka_run_group_tests_name("daemon attacks", tests, open_in_place, NULL);
}
