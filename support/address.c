/* See address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "cleanup.h"
#include "text.h"

static int fail(const char *text, struct occ_error *err)
{
    return occ_fail(err, OCC_E_INVALID, "'%.64s' is not ADDRESS:PORT, as 127.0.0.1:9469 or [::1]:9469", text);
}

int occ_address_parse(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_size,
                      struct occ_error *err)
{
    char host[INET6_ADDRSTRLEN];
    uint64_t port = 0;
    const char *colon = strrchr(text, ':');
    const bool is_ipv6 = text[0] == '[';
    if (!colon || (is_ipv6 && colon[-1] != ']'))
        return fail(text, err);
    const char *from = text + is_ipv6;
    const size_t n = (size_t)(colon - from) - is_ipv6;
    if (n >= sizeof host || occ_parse_u64(colon + 1, 0, UINT16_MAX, &port, NULL) != 0)
        return fail(text, err);
    memcpy(host, from, n);
    host[n] = '\0';
    *ret_address = (struct sockaddr_storage){.ss_family = is_ipv6 ? AF_INET6 : AF_INET};
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)ret_address;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)ret_address;
    *ret_size = is_ipv6 ? sizeof *ipv6 : sizeof *ipv4;
    *(is_ipv6 ? &ipv6->sin6_port : &ipv4->sin_port) = htons((uint16_t)port);
    void *number = is_ipv6 ? (void *)&ipv6->sin6_addr : (void *)&ipv4->sin_addr;
    return inet_pton(ret_address->ss_family, host, number) == 1 ? 0 : fail(text, err);
}

/* All addresses of IPv6: on a kernel without it (ipv6.disable=1) all addresses of IPv4. */
static int open_socket(struct sockaddr_storage *address, socklen_t *size)
{
    const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)address;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 || errno != EAFNOSUPPORT || address->ss_family != AF_INET6 ||
        !IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr))
        return fd;
    const in_port_t port = ipv6->sin6_port;
    *address = (struct sockaddr_storage){.ss_family = AF_INET};
    ((struct sockaddr_in *)address)->sin_port = port;
    *size = sizeof(struct sockaddr_in);
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int occ_address_listen(const char *text, int *ret_fd, uint16_t *ret_port, struct occ_error *err)
{
    struct sockaddr_storage address;
    socklen_t size;
    int status = occ_address_parse(text, &address, &size, err);
    if (status != 0)
        return status;
    struct sockaddr *any = (struct sockaddr *)&address;
    _cleanup_(occ_closep) int fd = open_socket(&address, &size);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) != 0 ||
        bind(fd, any, size) != 0 || listen(fd, SOMAXCONN) != 0 || getsockname(fd, any, &size) != 0)
        return occ_fail_errno(err, errno, "cannot listen at %s", text);
    *ret_port = ntohs(any->sa_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                                 : ((struct sockaddr_in *)&address)->sin_port);
    *ret_fd = fd;
    fd = -1;
    return 0;
}
