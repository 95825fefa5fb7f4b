/* See handshake.h. Runs inside other people's processes too, so it allocates nothing. Any thread. */
#include "handshake.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct occ_hello occ_hello_of(const struct occ_ring_producer *ring)
{
    struct occ_hello hello = {
        .magic = OCC_HELLO_MAGIC,
        .version_major = OCC_RING_VERSION_MAJOR,
        .version_minor = OCC_RING_VERSION_MINOR,
        .bytes = sizeof hello,
    };
    memcpy(hello.uuid, ring->header->uuid, sizeof hello.uuid);
    return hello;
}

bool occ_hello_send(int socket, const struct occ_hello *hello, int memfd)
{
    union {
        struct cmsghdr header; /* aligns the buffer */
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec body = {(void *)(uintptr_t)hello, sizeof *hello};
    struct msghdr message = {.msg_iov = &body,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &memfd, sizeof memfd);
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *hello;
}

/* A socket reports ECONNRESET if its other end died before reading our packet. */
enum occ_hello_answer occ_hello_receive(int socket)
{
    char answer[sizeof OCC_HELLO_TAKEN];
    ssize_t n = recv(socket, answer, sizeof answer, MSG_DONTWAIT);
    if (n == sizeof OCC_HELLO_TAKEN - 1 && memcmp(answer, OCC_HELLO_TAKEN, (size_t)n) == 0)
        return OCC_HELLO_OWNED;
    if (n >= 0)
        return OCC_HELLO_ENDED;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? OCC_HELLO_WAITS : OCC_HELLO_BROKEN;
}

void occ_hello_accept(int socket)
{
    (void)send(socket, OCC_HELLO_TAKEN, sizeof OCC_HELLO_TAKEN - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}
