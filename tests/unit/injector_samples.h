/* Helpers of the injector's tests: a kernel record, and the daemon's end of the handshake. */
#pragma once

#include "cupti/activity_abi.h"
#include "ring/handshake.h"
#include "ring/producer.h"

#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SAMPLE_START_NS UINT64_C(1700000000000000000)

static inline struct occ_cupti_kernel sample_kernel(const char *name, uint32_t grid_x, uint64_t n)
{
    return (struct occ_cupti_kernel){
        .kind = OCC_CUPTI_KIND_CONCURRENT_KERNEL,
        .cache_config = 0x21,
        .registers_per_thread = 40,
        .start_ns = SAMPLE_START_NS + n * 1000,
        .end_ns = SAMPLE_START_NS + n * 1000 + 500,
        .device = 0,
        .context = 1,
        .stream = 7,
        .grid = {grid_x, 2, 1},
        .block = {128, 1, 1},
        .static_smem_bytes = 1024,
        .dynamic_smem_bytes = 2048,
        .local_bytes_per_thread = 16,
        .correlation = (uint32_t)n,
        .name = name,
        .smem_executed_bytes = 65536,
        .graph_node = 5,
        .max_active_clusters = 3,
        .max_cluster_size = 8,
    };
}

/* Returns a listening socket at `path`, or -1. */
static inline int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    (void)unlink(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 8) != 0)
        return -1;
    return fd;
}

#define DEADLINE_MS 600000 /* only a fault reaches it */

/* Waits for a connection. Returns -1 after `timeout_ms`. */
static inline int accept_within(int listener, int timeout_ms)
{
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    return poll(&ready, 1, timeout_ms) == 1 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

/* Receives hello and memfd (*ret_memfd; the caller closes it). */
static inline bool receive_hello(int fd, struct occ_hello *hello, int *ret_memfd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec body = {hello, sizeof *hello};
    struct msghdr message = {
        .msg_iov = &body, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *hello)
        return false;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (!rights || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(sizeof(int)))
        return false;
    memcpy(ret_memfd, CMSG_DATA(rights), sizeof(int));
    return true;
}
