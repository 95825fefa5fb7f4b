/*
 * Plays a recording to the daemon that $OCCTRACE_SOCKET names, as the recorded program's injector would: same
 * devices, kernels, shapes and launches, its own process row, times moved so that the last launch ends now.
 * Prints "launches: N". Run it as `occtrace replay FILE`. One thread.
 */
#include "recording.h"
#include "ring/handshake.h"
#include "ring/producer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int complain(const char *what)
{
    (void)fprintf(stderr, "replay: %s\n", what);
    return 1;
}

static void *read_exactly(FILE *file, size_t bytes)
{
    void *data = malloc(bytes ? bytes : 1);
    if (data && fread(data, 1, bytes, file) != bytes) {
        free(data);
        return NULL;
    }
    return data;
}

/* The daemon's end of a socket, or -1. */
static int connect_daemon(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || strlen(path) >= sizeof address.sun_path)
        return -1;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static size_t put_pair(char *text, size_t at, size_t size, const char *key, const char *value)
{
    int n = snprintf(text + at, size - at, "%s%c%s", key, 0, value);
    return n < 0 || at + (size_t)n + 1 >= size ? at : at + (size_t)n + 1;
}

static void log_process(struct occ_ring_producer *ring, const char *file)
{
    char text[8192], command[4200];
    size_t used = 0;
    struct occ_record_process process = {.record.type = OCC_RECORD_PROCESS};
    const char *session = secure_getenv("OCCTRACE_SESSION"), *label = secure_getenv("OCCTRACE_LABEL");
    (void)snprintf(command, sizeof command, "replay %s", file);
    used = put_pair(text, used, sizeof text, "exe", "replay");
    used = put_pair(text, used, sizeof text, "cmdline", command);
    process.count = 2;
    if (session) {
        used = put_pair(text, used, sizeof text, "session", session);
        process.count++;
    }
    if (label) {
        used = put_pair(text, used, sizeof text, "label", label);
        process.count++;
    }
    process.text_bytes = (uint32_t)used;
    (void)occ_ring_log(ring, &process.record, sizeof process, text, (uint32_t)used);
}

/* Says every recorded record again but for PROCESS (ours is another one) and CLOSED (we say it ourselves). */
static int log_records(struct occ_ring_producer *ring, uint8_t *log, uint64_t bytes)
{
    for (uint64_t at = 0; at + sizeof(struct occ_log_record) <= bytes;) {
        struct occ_log_record *record = (struct occ_log_record *)(void *)(log + at);
        if (record->bytes < sizeof *record || record->bytes > bytes - at || record->bytes % 8)
            return -1;
        at += record->bytes;
        if (record->type != OCC_RECORD_PROCESS && record->type != OCC_RECORD_CLOSED &&
            !occ_ring_log(ring, record, record->bytes, NULL, 0))
            return -1;
    }
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void push_launches(struct occ_ring_producer *ring, struct occ_ring_launch *launches, uint64_t n)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < n; i++)
        if (launches[i].start_ns + launches[i].duration_ns > last)
            last = launches[i].start_ns + launches[i].duration_ns;
    uint64_t shift = now_ns() - last;
    for (uint64_t i = 0; i < n; i++) {
        launches[i].start_ns += shift;
        (void)occ_ring_push(ring, &launches[i]);
    }
}

/* The daemon closes nothing while it reads; it has everything when the ring's tail has reached the head. */
static void wait_until_read(const struct occ_ring_producer *ring)
{
    struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < 1000; i++) {
        if (atomic_load_explicit(&ring->header->tail, memory_order_acquire) >= ring->head)
            return;
        (void)nanosleep(&pause, NULL);
    }
}

static int play(const char *path, FILE *file)
{
    struct occ_recording_header header;
    if (fread(&header, sizeof header, 1, file) != 1 || memcmp(header.magic, OCC_RECORDING_MAGIC, 8) != 0 ||
        header.log_bytes > OCC_RING_DEFAULT_LOG_BYTES || header.launches > OCC_RING_DEFAULT_SLOTS)
        return complain("not a recording");
    uint8_t *log = read_exactly(file, header.log_bytes);
    struct occ_ring_launch *launches = read_exactly(file, header.launches * sizeof *launches);
    struct occ_ring_producer ring;
    int status = 1;
    if (!log || !launches)
        status = complain("the recording is cut off");
    else if (occ_ring_create(&ring, OCC_RING_DEFAULT_SLOTS, OCC_RING_DEFAULT_LOG_BYTES) != 0)
        status = complain("no ring could be made");
    else {
        int fd = connect_daemon(secure_getenv("OCCTRACE_SOCKET"));
        log_process(&ring, path);
        if (log_records(&ring, log, header.log_bytes) != 0)
            status = complain("the recording is damaged");
        else {
            push_launches(&ring, launches, header.launches);
            occ_ring_close(&ring);
            const struct occ_hello hello = occ_hello_of(&ring);
            if (fd >= 0 && occ_hello_send(fd, &hello, ring.fd))
                wait_until_read(&ring);
            else
                (void)complain("no daemon: run it as `occtrace replay FILE`");
            (void)printf("launches: %llu\n", (unsigned long long)header.launches);
            status = 0;
        }
        if (fd >= 0)
            (void)close(fd);
        occ_ring_destroy(&ring);
    }
    free(launches);
    free(log);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)complain("usage: replay RECORDING");
        return 2;
    }
    FILE *file = fopen(argv[1], "rbe");
    if (!file)
        return complain(strerror(errno));
    int status = play(argv[1], file);
    (void)fclose(file);
    return status;
}
