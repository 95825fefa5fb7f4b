/*
 * Fuzzes the daemon's socket: connections, rings and text requests of one process in any order, then the
 * process's end. A private daemon serves them with a store in memory. The daemon must end by itself, with
 * every run ended.
 *
 * Input: two bytes per action. First: the action (low 3 bits, see `actions`), the place of connection and
 * ring (next 2 bits); second: an argument. The letters @ABCDEFG are the eight actions of the first place,
 * HIJKLMNO of the second.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/server.h"
#include "daemon_fake_store.h"
#include "ring/handshake.h"
#include "ring_samples.h"
#include "support/control.h"
#include "support/log.h"

#define PLACES         4 /* places of connections and rings */
#define MAX_ACTIONS    48
#define SESSION        "0123456789abcdef0123456789abcdef"
#define MILLISECOND_NS INT64_C(1000000)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct occ_store *store;
static char directory[64] = "/tmp/occtrace-fuzz-XXXXXX", socket_path[80];

static void must(bool good)
{
    if (!good)
        abort();
}

static void remove_directory(void)
{
    (void)rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    occ_log_set_level(OCC_LOG_ERROR);
    store = fake_store_new();
    must(mkdtemp(directory) && atexit(remove_directory) == 0);
    (void)snprintf(socket_path, sizeof socket_path, "%s/socket", directory);
    return 0;
}

/* ---- the client process ---- */

struct place {
    int fd; /* -1: no connection */
    struct occ_ring_producer ring;
};

static void make_ring(struct occ_ring_producer *ring)
{
    static const char text[] = "session\0" SESSION;
    must(occ_ring_create(ring, 256, 1u << 14) == 0 && log_process(ring, 1, text, sizeof text) &&
         log_device(ring, 0) && log_kernel(ring, 0, "_Z4axpyPf") && log_config(ring, 0));
}

static void do_connect(struct place *p, uint8_t argument)
{
    (void)argument;
    if (p->fd >= 0)
        (void)close(p->fd);
    if (occ_control_connect(socket_path, &p->fd, NULL) != 0)
        p->fd = -1;
}

/* Sends a hello with one changed byte; an argument beyond the hello changes no byte. */
static void do_hello(struct place *p, uint8_t argument)
{
    struct occ_hello hello = occ_hello_of(&p->ring);
    if (argument < sizeof hello)
        ((uint8_t *)&hello)[argument] ^= 1;
    (void)occ_hello_send(p->fd, &hello, p->ring.fd);
}

static void do_hang_up(struct place *p, uint8_t argument)
{
    (void)argument;
    (void)close(p->fd);
    p->fd = -1;
}

static void do_close_ring(struct place *p, uint8_t argument)
{
    (void)argument;
    occ_ring_close(&p->ring);
}

static void do_push(struct place *p, uint8_t argument)
{
    for (unsigned int i = 0; i < argument; i++) {
        struct occ_ring_launch launch = sample_launch(p->ring.head);
        (void)occ_ring_push(&p->ring, &launch);
    }
}

/* Changes a word of the ring's header. */
static void do_spoil(struct place *p, uint8_t argument)
{
    ((uint32_t *)p->ring.header)[argument] ^= 0x10001;
}

static void do_request(struct place *p, uint8_t argument)
{
    static const char flush[] = "flush " SESSION;
    static const char *const requests[] = {"ping",   "status",     flush,         "sampler 0", "pause 1",
                                           "resume", "pause_run ", "resume_run ", "flush",     "history 0",
                                           ""};
    const char *text = requests[argument % (sizeof requests / sizeof *requests)];
    char own[32];
    (void)snprintf(own, sizeof own, "%s%d", text, (int)getpid());
    text = strstr(text, "_run") ? own : text;
    (void)send(p->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Pauses up to 7 ms: longer than the daemon's grace for a program without a connection. */
static void do_pause(struct place *p, uint8_t argument)
{
    (void)p;
    (void)nanosleep(&(struct timespec){.tv_nsec = argument % 8 * MILLISECOND_NS}, NULL);
}

static _Noreturn void act(const uint8_t *data, size_t size)
{
    static void (*const actions[])(struct place *, uint8_t) = {
        do_connect, do_hello, do_hang_up, do_close_ring, do_push, do_spoil, do_request, do_pause};
    struct place places[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        places[i].fd = -1;
        make_ring(&places[i].ring);
    }
    for (size_t i = 0; i + 1 < size && i < 2 * (size_t)MAX_ACTIONS; i += 2)
        actions[data[i] & 7](&places[data[i] >> 3 & 3], data[i + 1]);
    _exit(0);
}

/* ---- the daemon ---- */

int occ_store_open(const char *path, const struct occ_store_options *options, struct occ_store **ret_store,
                   struct occ_error *err)
{
    (void)path;
    (void)options;
    (void)err;
    *ret_store = store;
    return 0;
}

int occ_store_open_later(const char *path, const struct occ_store_options *options,
                         struct occ_store **ret_store, struct occ_error *err)
{
    return occ_store_open(path, options, ret_store, err);
}

bool occ_store_create(const char *path, const struct occ_store_options *options)
{
    (void)path;
    (void)options;
    return true;
}

bool occ_store_is_spent(struct occ_store *open, int64_t now_ns)
{
    (void)open;
    (void)now_ns;
    return false;
}

void occ_store_close(struct occ_store *closed)
{
    (void)closed; /* stays open for check_history() */
}

static void *serve(void *private_fd)
{
    const struct occ_server_options options = {
        .histories = {.path = "memory",
                      .collector = {.commit_interval_ns = MILLISECOND_NS,
                                    .memory_bytes = 1u << 20,
                                    .max_producers = 3,
                                    .max_ring_bytes = 1u << 20,
                                    .orphan_grace_ns = MILLISECOND_NS}},
        .socket_path = socket_path,
        .socket_mode = 0600,
        .private_fd = *(int *)private_fd,
        .sampler = {.mode = OCC_SAMPLER_NONE, .interval_ns = MILLISECOND_NS}};
    must(occ_server_run(&options, NULL) == 0);
    return NULL;
}

static void check_history(void)
{
    for (size_t i = 0; i < store->committed.n_runs; i++)
        must(store->committed.runs[i].ended);
    memset(&store->now, 0, sizeof store->now);
    memset(&store->committed, 0, sizeof store->committed);
}

/* Waits for the process. libFuzzer's alarm for slow inputs interrupts waitpid(2) and read(2). */
static void wait_for(pid_t pid)
{
    int status = -1;
    pid_t ended;
    while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    must(ended == pid && status == 0);
}

static void read_byte(int fd)
{
    char byte;
    ssize_t n;
    while ((n = read(fd, &byte, 1)) < 0 && errno == EINTR)
        ;
    must(n == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2], go[2];
    pthread_t daemon;
    (void)mkdir(directory, 0700);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 && pipe(go) == 0);
    pid_t pid = fork(); /* fork before the second thread starts */
    must(pid >= 0);
    if (pid == 0) {
        (void)close(go[1]);
        read_byte(go[0]);
        act(data, size);
    }
    must(pthread_create(&daemon, NULL, serve, &ends[1]) == 0);
    read_byte(ends[0]);
    must(write(go[1], "g", 1) == 1); /* never blocks, as the pipe is empty */
    wait_for(pid);
    (void)close(ends[0]); /* a private daemon ends after its last program */
    must(pthread_join(daemon, NULL) == 0);
    (void)close(go[0]);
    (void)close(go[1]);
    check_history();
    return 0;
}
