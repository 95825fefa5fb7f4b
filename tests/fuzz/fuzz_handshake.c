/*
 * Fuzzes the daemon's input from a client: a packet with descriptors over a real socket, and after an
 * accepted handshake a ring with the input's log and launches. Afterwards the collector must have ended every
 * run and hold no resources.
 *
 * Input: [0] number of descriptors (low 2 bits), text instead of a handshake (bit 2), the ring's own launches
 * too (bit 3), number of polls of the program (bits 4, 5); [1...32] xor of a valid handshake, or the text;
 * the rest: the bytes of the log.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/collect/collector.h"
#include "daemon/serve/control.h"
#include "daemon/serve/packet.h"
#include "daemon_fake_store.h"
#include "ring/handshake.h"
#include "ring/producer.h"
#include "support/log.h"

#define SECOND_NS INT64_C(1000000000)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct occ_store *store;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    occ_log_set_level(OCC_LOG_ERROR);
    store = fake_store_new();
    return 0;
}

static void forget_history(void)
{
    memset(&store->now, 0, sizeof store->now);
    memset(&store->committed, 0, sizeof store->committed);
}

static void fill_ring(struct occ_ring_producer *ring, const uint8_t *log, size_t n, bool launches)
{
    n = n < ring->log_bytes ? n & ~(size_t)7 : ring->log_bytes;
    memcpy(ring->log, log, n);
    ring->header->log_head = n;
    for (uint32_t i = 0; launches && i < 20; i++) {
        struct occ_ring_launch l = {.start_ns = 1000 - i, .duration_ns = 5, .config = i % 3};
        (void)occ_ring_push(ring, &l);
    }
}

static void send_packet(int fd, const void *bytes, size_t n, int descriptor, size_t n_fds)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    int fds[3] = {descriptor, descriptor, descriptor};
    if (n_fds) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    (void)sendmsg(fd, &message, MSG_NOSIGNAL);
}

static struct occ_collector *make_collector(void)
{
    struct occ_collector *collector = NULL;
    const struct occ_collector_options options = {.commit_interval_ns = SECOND_NS,
                                                  .memory_bytes = 1u << 20,
                                                  .max_producers = 2,
                                                  .max_ring_bytes = 1u << 20,
                                                  .orphan_grace_ns = SECOND_NS};
    if (occ_collector_new(store, &options, &collector, NULL) != 0)
        abort();
    return collector;
}

static void let_in(struct occ_packet *packet, const uint8_t uuid[16], unsigned int looks)
{
    struct occ_offer offer = {.fd = packet->fds[0], .peer = {.pid = 1, .uid = 1}};
    struct occ_collector *collector = make_collector();
    struct occ_producer *producer = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t now_ns = SECOND_NS;
    memcpy(offer.uuid, uuid, sizeof offer.uuid);
    if (occ_collector_offer(collector, &offer, now_ns, &producer, &err) == 0) {
        for (; looks > 0; looks--)
            occ_collector_poll(collector, now_ns += SECOND_NS);
        if (occ_collector_stop(collector, now_ns, &err) != 0)
            abort();
    } else if (err.message[0] == '\0') {
        abort();
    }
    if (occ_collector_wait_ns(collector, 0) >= 0)
        abort();
    for (size_t i = 0; i < store->committed.n_runs; i++)
        if (!store->committed.runs[i].ended)
            abort();
    occ_collector_free(collector);
    forget_history();
}

static void receive(int fd, unsigned int looks)
{
    static struct occ_packet packet;
    struct occ_request request;
    struct occ_error err = OCC_ERROR_INIT;
    uint8_t uuid[16];
    bool is_one = occ_packet_receive(fd, &packet) == OCC_PACKET_ONE;
    bool is_hello = is_one && occ_packet_is_hello(&packet);
    if (is_hello && occ_packet_check_hello(&packet, uuid) == NULL) {
        let_in(&packet, uuid, looks);
        return;
    }
    for (size_t i = 0; i < packet.n_fds; i++)
        (void)close(packet.fds[i]);
    bool is_text = is_one && !is_hello && occ_packet_check_text(&packet) == NULL;
    if (is_text && occ_request_parse(packet.bytes, &request, &err) != 0 && err.message[0] == '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_ring_producer ring;
    uint8_t hello_bytes[sizeof(struct occ_hello)];
    struct occ_hello hello;
    int ends[2];
    if (size < 1 + sizeof hello || occ_ring_create(&ring, 256, 1u << 15) != 0)
        return 0;
    fill_ring(&ring, data + 1 + sizeof hello, size - 1 - sizeof hello, data[0] & 8);
    hello = occ_hello_of(&ring);
    memcpy(hello_bytes, &hello, sizeof hello);
    for (size_t i = 0; i < sizeof hello; i++)
        hello_bytes[i] ^= data[1 + i];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    if (data[0] & 4)
        send_packet(ends[0], data + 1, size - 1, ring.fd, data[0] & 3);
    else
        send_packet(ends[0], hello_bytes, sizeof hello_bytes, ring.fd, data[0] & 3);
    receive(ends[1], data[0] >> 4 & 3);
    (void)close(ends[0]);
    (void)close(ends[1]);
    occ_ring_destroy(&ring);
    return 0;
}
