/* injector/daemon_link: the handshake with a daemon (this test) that answers, is missing, goes and returns.
 */
#include "ring_samples.h"
#include "injector_samples.h"
#include "injector/daemon_link.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)

struct fixture {
    char directory[32];
    char path[64];
    int listener;
    struct occ_ring_producer ring;
    struct occ_fd memfd;
    struct occ_link link;
};

static char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    (void)snprintf(f->directory, sizeof f->directory, "/tmp/occ-link-XXXXXX");
    if (!mkdtemp(f->directory) || occ_ring_create(&f->ring, 256, 4096) != 0)
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/d.sock", f->directory);
    f->listener = listen_at(f->path);
    f->memfd = occ_fd_adopt(f->ring.fd);
    f->ring.fd = f->memfd.fd;
    occ_link_init(&f->link, f->path, no_variable);
    return f->listener < 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    occ_link_close(&f->link);
    occ_ring_destroy(&f->ring);
    if (f->listener >= 0)
        close(f->listener);
    unlink(f->path);
    rmdir(f->directory);
    free(f);
    return 0;
}

static bool tend(struct fixture *f, uint64_t second)
{
    return occ_link_poll(&f->link, &f->ring, &f->memfd, second * SECOND_NS);
}

/* Accepts a connection and checks the handshake. Returns the connection. */
static int accept_ring(struct fixture *f)
{
    struct occ_hello hello;
    int memfd = -1, fd = accept_within(f->listener, DEADLINE_MS);
    assert_true(fd >= 0);
    assert_true(receive_hello(fd, &hello, &memfd));
    assert_int_equal(hello.magic, OCC_HELLO_MAGIC);
    assert_int_equal(hello.bytes, sizeof hello);
    assert_int_equal(hello.version_major, OCC_RING_VERSION_MAJOR);
    struct occ_ring_consumer *consumer = NULL;
    assert_int_equal(occ_ring_attach(memfd, 0, &consumer, NULL), 0);
    assert_memory_equal(occ_ring_uuid(consumer), hello.uuid, sizeof hello.uuid);
    occ_ring_detach(consumer);
    return fd;
}

static void test_handshake(void **state)
{
    struct fixture *f = *state;
    assert_true(tend(f, 1));
    assert_true(f->link.socket.fd > 2);
    assert_true(fcntl(f->link.socket.fd, F_GETFD) & FD_CLOEXEC);
    int fd = accept_ring(f);
    assert_true(tend(f, 2));
    assert_true(tend(f, 3));
    close(fd);
}

/* A daemon that answers without end must not hold the program: each look reads a few answers. */
static void test_a_flood_of_answers_is_read_in_parts(void **state)
{
    struct fixture *f = *state;
    char byte;
    int unread = 0;
    assert_true(tend(f, 1));
    int fd = accept_ring(f);
    for (int i = 0; i < 10; i++)
        assert_int_equal(send(fd, OCC_HELLO_TAKEN, strlen(OCC_HELLO_TAKEN), MSG_NOSIGNAL), 5);
    assert_true(tend(f, 2));
    assert_true(f->link.is_taken);
    while (recv(f->link.socket.fd, &byte, 1, MSG_DONTWAIT) == 1)
        unread++;
    assert_int_equal(unread, 6);
    close(fd);
}

/* An answer that no daemon gives: the ring is not taken, and nobody waits. */
static void test_another_answer_is_a_refusal(void **state)
{
    static const char *const answers[] = {"x", "take", "taken\n", "takem", "ok taken"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        f->link.retry_ns = 0;
        assert_true(tend(f, 1));
        int fd = accept_ring(f);
        assert_true(send(fd, answers[i], strlen(answers[i]), MSG_NOSIGNAL) > 0);
        assert_false(tend(f, 1));
        assert_false(f->link.is_taken);
        assert_true(f->link.is_refused);
        close(fd);
    }
}

static void test_nobody_listens(void **state)
{
    struct fixture *f = *state;
    close(f->listener);
    assert_false(tend(f, 1)); /* a socket without a listener */
    unlink(f->path);
    assert_false(tend(f, 2)); /* no socket */
    f->listener = listen_at(f->path);
    assert_true(tend(f, 3));
    close(accept_ring(f));
}

static void test_the_next_daemon_gets_the_same_ring(void **state)
{
    struct fixture *f = *state;
    assert_true(tend(f, 1));
    close(accept_ring(f));
    assert_true(tend(f, 20)); /* the first daemon stayed: the next is tried at once */
    close(accept_ring(f));
}

/* A daemon starts after a long time without one, and is then upgraded: the new daemon is found within the
 * next second, as at first. */
static void test_a_daemon_that_stayed_makes_tries_frequent_again(void **state)
{
    struct fixture *f = *state;
    uint64_t second = 1;
    unlink(f->path);
    close(f->listener);
    while (f->link.tries < 70)
        assert_false(tend(f, second++));
    f->listener = listen_at(f->path);
    while (!tend(f, second))
        second++;
    close(accept_ring(f));
    unlink(f->path);
    close(f->listener);
    second += 10;
    for (int i = 0; i < 5; i++)
        assert_false(tend(f, second++));
    f->listener = listen_at(f->path);
    assert_true(tend(f, second));
    close(accept_ring(f));
}

static void test_tries_grow_rare(void **state)
{
    struct fixture *f = *state;
    close(f->listener);
    f->listener = -1;
    unlink(f->path);
    for (uint64_t second = 1; second <= 600; second++)
        assert_false(tend(f, second));
    assert_in_range(f->link.tries, 100, 120); /* 60 in the first minute, then every ten seconds */
}

static void test_a_daemon_that_refuses_is_not_pressed(void **state)
{
    struct fixture *f = *state;
    for (uint64_t second = 1; second <= 300; second++)
        if (tend(f, second)) {
            int fd = accept_within(f->listener, 0);
            if (fd >= 0)
                close(fd);
        }
    assert_in_range(f->link.tries, 30, 90);
}

static void test_a_descriptor_that_the_program_closed(void **state)
{
    struct fixture *f = *state;
    assert_true(tend(f, 1));
    close(accept_ring(f));
    int number = f->link.socket.fd;
    int theirs = memfd_create("theirs", 0);
    dup2(theirs, number);
    assert_true(tend(f, 20)); /* reconnects, and leaves the reused number alone */
    assert_true(f->link.socket.fd != number);
    assert_true(fcntl(number, F_GETFD) >= 0);
    close(accept_ring(f));
    close(number);
    close(theirs);
}

/* Starts a daemon in a child process, which takes a ring, answers `answer` ("": hangs up), and stays until
 * the guest hangs up. */
static pid_t take_ring_and_say(struct fixture *f, const char *answer)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    occ_link_close(&f->link); /* else the child's copy would keep the connection open */
    int fd = accept_within(f->listener, DEADLINE_MS), memfd;
    struct occ_hello hello;
    if (fd < 0 || !receive_hello(fd, &hello, &memfd))
        _exit(1);
    if (answer[0] && send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
        _exit(2);
    char byte;
    _exit(answer[0] && recv(fd, &byte, 1, 0) != 0 ? 3 : 0);
}

static void assert_ended_well(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Ends the link without a time limit: the test hangs if the end waits for an answer that does not come. */
static bool finish(struct fixture *f)
{
    return occ_link_finish(&f->link, &f->ring, &f->memfd, UINT64_MAX);
}

static void test_the_end_waits_for_the_answer(void **state)
{
    struct fixture *f = *state;
    assert_true(tend(f, 1));
    assert_false(f->link.is_taken);
    pid_t pid = take_ring_and_say(f, OCC_HELLO_TAKEN);
    assert_true(finish(f));
    assert_true(finish(f)); /* already answered */
    occ_link_close(&f->link);
    assert_ended_well(pid);
}

static void test_the_end_does_not_wait_without_a_daemon(void **state)
{
    struct fixture *f = *state;
    close(f->listener);
    assert_false(finish(f)); /* a socket without a listener */
    unlink(f->path);
    assert_false(finish(f)); /* no socket */
    f->listener = -1;
}

static void test_the_end_does_not_wait_for_one_that_refuses(void **state)
{
    struct fixture *f = *state;
    assert_true(tend(f, 1));
    pid_t pid = take_ring_and_say(f, "");
    assert_false(finish(f));
    assert_ended_well(pid);
}

/* The program has called closefrom(3): the guest cannot offer its ring to another daemon. */
static void test_the_end_does_not_wait_without_a_ring(void **state)
{
    struct fixture *f = *state;
    assert_true(tend(f, 1));
    close(accept_ring(f));
    close(f->link.socket.fd);
    int number = f->memfd.fd, kept = dup(number);
    close(number);
    f->link.is_busy = true; /* the last try met a full queue */
    assert_false(finish(f));
    dup2(kept, number); /* for tear_down() */
    close(kept);
}

static void test_the_end_finds_the_next_daemon(void **state)
{
    struct fixture *f = *state;
    assert_true(tend(f, 1));
    close(accept_ring(f)); /* this daemon ends with the ring */
    f->link.is_taken = true;
    pid_t pid = take_ring_and_say(f, OCC_HELLO_TAKEN);
    assert_true(finish(f));
    occ_link_close(&f->link);
    assert_ended_well(pid);
}

/* The queue of the listening socket is full until its daemon accepts. */
static void test_the_end_tries_a_busy_daemon_again(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, f->path, sizeof f->path);
    int others[64], n = 0;
    assert_int_equal(listen(f->listener, 0), 0);
    do {
        others[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    } while (connect(others[n++], (struct sockaddr *)&address, sizeof address) == 0 && n < 64);
    assert_true(n < 64);
    assert_false(tend(f, 1));
    assert_true(f->link.is_busy);
    pid_t pid = fork();
    if (pid == 0) {
        occ_link_close(&f->link); /* else the child's copy would keep the connection open */
        for (int i = 0; i < n - 1; i++)
            close(accept_within(f->listener, DEADLINE_MS));
        int memfd, fd = accept_within(f->listener, DEADLINE_MS);
        struct occ_hello hello;
        bool is_answered = receive_hello(fd, &hello, &memfd) && send(fd, OCC_HELLO_TAKEN, 5, 0) == 5;
        char byte;
        _exit(!is_answered || recv(fd, &byte, 1, 0) != 0); /* stays: a daemon that ends is tried again */
    }
    assert_true(finish(f));
    occ_link_close(&f->link);
    assert_ended_well(pid);
    while (n > 0)
        close(others[--n]);
}

static const char *xdg;

static char *runtime_directory(const char *name)
{
    return strcmp(name, "XDG_RUNTIME_DIR") == 0 ? (char *)(uintptr_t)xdg : NULL;
}

static void test_where_it_looks(void **state)
{
    (void)state;
    struct occ_link link;
    char expected[108];
    occ_link_init(&link, "/a/b.sock", runtime_directory);
    assert_string_equal(link.paths[OCC_LINK_OWN], "/a/b.sock");
    assert_string_equal(link.paths[OCC_LINK_SERVICE], ""); /* a configured path excludes all others */
    xdg = "/run/user/7";
    occ_link_init(&link, "", runtime_directory);
    assert_string_equal(link.paths[OCC_LINK_OWN], "/run/user/7/occtrace/occtraced.sock");
    assert_string_equal(link.paths[OCC_LINK_SERVICE], "/run/occtrace/occtraced.sock");
    xdg = "relative";
    occ_link_init(&link, "", runtime_directory);
    expected[0] = '\0'; /* root's own daemon is the service */
    if (geteuid() != 0)
        (void)snprintf(expected, sizeof expected, "/tmp/occtrace-%u/occtraced.sock", (unsigned int)geteuid());
    assert_string_equal(link.paths[OCC_LINK_OWN], expected);
    assert_string_equal(link.paths[OCC_LINK_SERVICE], "/run/occtrace/occtraced.sock");
    static char long_path[200];
    memset(long_path, '/', sizeof long_path - 1);
    xdg = long_path;
    occ_link_init(&link, "", runtime_directory);
    assert_string_equal(link.paths[OCC_LINK_OWN], "");
    assert_string_equal(link.paths[OCC_LINK_SERVICE], "/run/occtrace/occtraced.sock");
    occ_link_init(&link, long_path, no_variable);
    assert_string_equal(link.paths[OCC_LINK_OWN], "");
    assert_string_equal(link.paths[OCC_LINK_SERVICE], "");
}

/* Two daemons' paths instead of a configured one: `own` below the fixture's directory, and the service, which
 * the fixture's listener stands for. */
static void look_for_both(struct fixture *f, const char *own)
{
    occ_link_close(&f->link);
    occ_link_init(&f->link, "", no_variable);
    (void)snprintf(f->link.paths[OCC_LINK_OWN], sizeof f->link.paths[0], "%s/%s", f->directory, own);
    (void)snprintf(f->link.paths[OCC_LINK_SERVICE], sizeof f->link.paths[0], "%s", f->path);
}

static void test_without_an_own_daemon_the_service_gets_the_ring(void **state)
{
    struct fixture *f = *state;
    look_for_both(f, "no/directory.sock");
    assert_true(tend(f, 1));
    close(accept_ring(f));
    look_for_both(f, "own.sock"); /* a directory without a socket */
    assert_true(tend(f, 1));
    close(accept_ring(f));
    char own[128];
    (void)snprintf(own, sizeof own, "%s/own.sock", f->directory);
    close(listen_at(own)); /* a socket without a listener */
    look_for_both(f, "own.sock");
    assert_true(tend(f, 1));
    close(accept_ring(f));
    unlink(own);
    look_for_both(f, "own.sock");
    pid_t pid = take_ring_and_say(f, OCC_HELLO_TAKEN); /* a short program: its end makes the first try */
    assert_true(finish(f));
    occ_link_close(&f->link);
    assert_ended_well(pid);
}

static void test_the_own_daemon_comes_first(void **state)
{
    struct fixture *f = *state;
    char own[128];
    (void)snprintf(own, sizeof own, "%s/own.sock", f->directory);
    int service = f->listener;
    f->listener = listen_at(own);
    look_for_both(f, "own.sock");
    assert_true(tend(f, 1));
    close(accept_ring(f)); /* it ends, and its successor starts within OCC_LINK_RESTART_NS */
    close(f->listener);
    assert_false(tend(f, 20));
    assert_false(tend(f, 21));
    assert_int_equal(accept_within(service, 0), -1);
    f->listener = service;
    assert_true(tend(f, 23)); /* none started */
    close(accept_ring(f));
    unlink(own);
}

/* Only root can make the directory of another user. */
static void test_a_directory_of_another_user_is_passed_over(void **state)
{
    struct fixture *f = *state;
    char directory[128], own[160];
    if (geteuid() != 0)
        skip();
    (void)snprintf(directory, sizeof directory, "%s/theirs", f->directory);
    (void)snprintf(own, sizeof own, "%s/occtraced.sock", directory);
    assert_int_equal(mkdir(directory, 0777), 0);
    int theirs = listen_at(own);
    assert_int_equal(chown(directory, 12345, 12345), 0);
    look_for_both(f, "theirs/occtraced.sock");
    assert_true(tend(f, 1));
    close(accept_ring(f));
    assert_int_equal(accept_within(theirs, 0), -1);
    close(theirs);
    unlink(own);
    rmdir(directory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_handshake),
        TEST(test_a_flood_of_answers_is_read_in_parts),
        TEST(test_another_answer_is_a_refusal),
        TEST(test_nobody_listens),
        TEST(test_the_next_daemon_gets_the_same_ring),
        TEST(test_a_daemon_that_stayed_makes_tries_frequent_again),
        TEST(test_tries_grow_rare),
        TEST(test_a_daemon_that_refuses_is_not_pressed),
        TEST(test_a_descriptor_that_the_program_closed),
        TEST(test_the_end_waits_for_the_answer),
        TEST(test_the_end_does_not_wait_without_a_daemon),
        TEST(test_the_end_does_not_wait_for_one_that_refuses),
        TEST(test_the_end_does_not_wait_without_a_ring),
        TEST(test_the_end_finds_the_next_daemon),
        TEST(test_the_end_tries_a_busy_daemon_again),
        TEST(test_without_an_own_daemon_the_service_gets_the_ring),
        TEST(test_the_own_daemon_comes_first),
        TEST(test_a_directory_of_another_user_is_passed_over),
        cmocka_unit_test(test_where_it_looks),
    };
    return cmocka_run_group_tests_name("injector_link", tests, NULL, NULL);
}
