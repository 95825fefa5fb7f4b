/* See packet.h. */
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "ring/handshake.h"
#include "ring/ring_abi.h"

static void take_descriptors(struct msghdr *message, struct occ_packet *packet)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            packet->fds[packet->n_fds++] = fd; /* `control` has room for no more */
        }
    }
}

enum occ_packet_status occ_packet_receive(int socket, struct occ_packet *packet)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(OCC_PACKET_MAX_FDS * sizeof(int))];
    struct iovec iov = {.iov_base = packet->bytes, .iov_len = OCC_CONTROL_BYTES};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n;
    packet->n_fds = 0;
    do
        n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? OCC_PACKET_NONE : OCC_PACKET_END;
    take_descriptors(&message, packet);
    if (n == 0) /* end of the connection; an empty packet counts as the end */
        return OCC_PACKET_END;
    packet->n = (size_t)n;
    packet->bytes[n] = '\0';
    packet->cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    return OCC_PACKET_ONE;
}

bool occ_packet_is_hello(const struct occ_packet *packet)
{
    return packet->n > 0 && (packet->bytes[0] < 'a' || packet->bytes[0] > 'z');
}

const char *occ_packet_check_hello(const struct occ_packet *packet, uint8_t ret_uuid[16])
{
    struct occ_hello hello;
    if (packet->cut)
        return "the packet is too long";
    if (packet->n != sizeof hello)
        return "the packet has the wrong size";
    memcpy(&hello, packet->bytes, sizeof hello);
    if (hello.magic != OCC_HELLO_MAGIC)
        return "bad magic";
    if (hello.version_major != OCC_RING_VERSION_MAJOR)
        return "another version of the ring";
    if (hello.bytes != sizeof hello)
        return "the packet says a wrong size";
    if (packet->n_fds != 1)
        return packet->n_fds == 0 ? "no descriptor" : "several descriptors";
    /* fails for other files without calling their file system, which might block */
    if (fcntl(packet->fds[0], F_GET_SEALS) < 0)
        return "not a memfd";
    memcpy(ret_uuid, hello.uuid, sizeof hello.uuid);
    return NULL;
}

const char *occ_packet_check_text(struct occ_packet *packet)
{
    if (packet->cut || packet->n_fds != 0)
        return packet->cut ? "the request is too long" : "a request takes no descriptors";
    if (packet->bytes[packet->n - 1] == '\n')
        packet->bytes[--packet->n] = '\0';
    return strlen(packet->bytes) == packet->n ? NULL : "the request holds a NUL";
}
