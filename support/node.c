/* See node.h. */
#include "node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cleanup.h"
#include "text.h"

#define NODE_CHARACTERS 253 /* of a DNS name */

static bool is_node_name(const char *text)
{
    size_t n = 0;
    while (text[n] > ' ' && text[n] <= '~' && n <= NODE_CHARACTERS)
        n++;
    return text[n] == '\0' && n > 0 && n <= NODE_CHARACTERS;
}

int occ_node_name(char name[OCC_NODE_NAME_BYTES], struct occ_error *err)
{
    const char *given = secure_getenv("OCCTRACE_NODE");
    memset(name, 0, OCC_NODE_NAME_BYTES);
    if (given && is_node_name(given)) {
        memcpy(name, given, strlen(given));
        return 0;
    }
    if (gethostname(name, OCC_NODE_NAME_BYTES - 1) == 0)
        return 0;
    int why = errno;
    name[0] = '\0';
    return occ_fail_errno(err, why, "cannot find out the host's name");
}

/* ---- sockets ---- */

union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static uint16_t port_of(const union address *address)
{
    return ntohs(address->any.sa_family == AF_INET ? address->four.sin_port : address->six.sin6_port);
}

/* Returns the address's length; 0: the text is no address and port. */
static socklen_t read_address(const char *text, union address *ret_address)
{
    char host[INET6_ADDRSTRLEN];
    uint64_t port = 0;
    const char *colon = strrchr(text, ':');
    if (!colon || occ_parse_u64(colon + 1, 0, UINT16_MAX, &port, NULL) != 0)
        return 0;
    bool is_six = text[0] == '[' && colon[-1] == ']';
    const char *begin = text + is_six, *end = colon - is_six;
    if (end <= begin || (size_t)(end - begin) >= sizeof host)
        return 0;
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *ret_address = (union address){.six = {.sin6_family = is_six ? AF_INET6 : AF_INET}};
    if (is_six) {
        ret_address->six.sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &ret_address->six.sin6_addr) == 1 ? sizeof ret_address->six : 0;
    }
    ret_address->four.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &ret_address->four.sin_addr) == 1 ? sizeof ret_address->four : 0;
}

int occ_node_listen(const char *text, int *ret_fd, uint16_t *ret_port, struct occ_error *err)
{
    union address address;
    socklen_t n = read_address(text, &address);
    int yes = 1;
    if (n == 0)
        return occ_fail(err, OCC_E_INVALID,
                        "'%.64s' is not ADDRESS:PORT or [ADDRESS]:PORT with a numeric address", text);
    _cleanup_(occ_closep) int fd =
        socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(fd, &address.any, n) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, &address.any, &n) != 0)
        return occ_fail_errno(err, errno, "cannot listen at %s", text);
    *ret_port = port_of(&address);
    *ret_fd = fd;
    fd = -1;
    return 0;
}
