/*
 * Makes a recording: plays the daemon for one program and writes what its ring says to a file.
 *
 *   record FILE LIBOCCTRACE program args...
 *
 * The program runs with the injector preloaded; the first process that connects is the one that is recorded.
 * One thread.
 */
#include "recording.h"
#include "ring/handshake.h"
#include "ring/consumer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what)
{
    (void)fprintf(stderr, "record: %s: %s\n", what, strerror(errno));
    return 1;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4) != 0)
        return -1;
    return fd;
}

static int receive_ring(int connection)
{
    struct occ_hello hello;
    struct iovec data = {&hello, sizeof hello};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof hello ||
        hello.magic != OCC_HELLO_MAGIC)
        return -1;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (!rights || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(sizeof(int)))
        return -1;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    occ_hello_accept(connection);
    return fd;
}

struct growing {
    uint8_t *data;
    size_t used, size;
};

static int append(struct growing *to, const void *data, size_t bytes)
{
    if (to->used + bytes > to->size) {
        size_t size = (to->used + bytes) * 2;
        uint8_t *larger = realloc(to->data, size);
        if (!larger)
            return -1;
        to->data = larger;
        to->size = size;
    }
    memcpy(to->data + to->used, data, bytes);
    to->used += bytes;
    return 0;
}

static int drain(struct occ_ring_consumer *ring, struct growing *log, struct growing *launches)
{
    const struct occ_log_record *record = NULL;
    enum occ_ring_status status;
    while ((status = occ_ring_next_log_record(ring, &record)) == OCC_RING_OK)
        if (append(log, record, record->bytes) != 0)
            return -1;
    struct occ_ring_launch batch[256];
    size_t n = 0;
    while (status != OCC_RING_BROKEN && (status = occ_ring_read(ring, batch, 256, &n)) == OCC_RING_OK && n)
        if (append(launches, batch, n * sizeof *batch) != 0)
            return -1;
    occ_ring_release(ring, occ_ring_position(ring));
    return status == OCC_RING_BROKEN ? -1 : 0;
}

static int write_recording(const char *path, const struct growing *log, const struct growing *launches)
{
    struct occ_recording_header header = {.log_bytes = log->used,
                                          .launches = launches->used / sizeof(struct occ_ring_launch)};
    memcpy(header.magic, OCC_RECORDING_MAGIC, sizeof header.magic);
    FILE *file = fopen(path, "wbe");
    if (!file)
        return fail(path);
    int bad = fwrite(&header, sizeof header, 1, file) != 1 ||
              fwrite(log->data, 1, log->used, file) != log->used ||
              fwrite(launches->data, 1, launches->used, file) != launches->used;
    if (fclose(file) != 0 || bad)
        return fail(path);
    (void)fprintf(stderr, "record: %llu launches\n", (unsigned long long)header.launches);
    return 0;
}

static int record(const char *path, int listener, pid_t child)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    if (poll(&wait, 1, 60000) != 1)
        return fail("the program did not connect");
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int fd = connection < 0 ? -1 : receive_ring(connection);
    struct occ_ring_consumer *ring = NULL;
    const char *why = "";
    if (fd < 0 || occ_ring_attach(fd, 0, &ring, &why) != 0)
        return fail(why);
    struct growing log = {0}, launches = {0};
    int bad = 0;
    while (!bad && waitpid(child, NULL, WNOHANG) == 0) {
        bad = drain(ring, &log, &launches);
        (void)usleep(10000);
    }
    bad = bad || drain(ring, &log, &launches) != 0;
    int status = bad ? fail("the ring is broken") : write_recording(path, &log, &launches);
    occ_ring_detach(ring);
    free(log.data);
    free(launches.data);
    (void)close(connection);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void)fprintf(stderr, "usage: record FILE LIBOCCTRACE program args...\n");
        return 2;
    }
    char directory[] = "/tmp/occ-record-XXXXXX", path[64];
    if (!mkdtemp(directory))
        return fail("mkdtemp");
    (void)snprintf(path, sizeof path, "%s/sock", directory);
    int listener = listen_at(path);
    if (listener < 0)
        return fail(path);
    pid_t child = fork();
    if (child == 0) {
        (void)setenv("OCCTRACE_SOCKET", path, 1);
        (void)setenv("LD_PRELOAD", argv[2], 1);
        (void)execvp(argv[3], argv + 3);
        _exit(127);
    }
    int status = child < 0 ? fail("fork") : record(argv[1], listener, child);
    (void)close(listener);
    (void)unlink(path);
    (void)rmdir(directory);
    return status;
}
