/*
 * cli_fake_daemon SOCKET DIRECTORY: listens like a daemon and answers each request with the content of a
 * file: "sampler 3" with DIRECTORY/sampler_3 (blanks become underscores), or with "error" if the file does
 * not exist. Runs until it is killed. Only for tests of occq.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/control.h"

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 8) != 0)
        return -1;
    return fd;
}

static size_t find_answer(const char *directory, const char *request, char answer[OCC_CONTROL_BYTES])
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", directory, request);
    for (char *at = path + strlen(directory) + 1; *at; at++)
        if (*at == ' ' || *at == '/')
            *at = '_';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, answer, OCC_CONTROL_BYTES) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (n > 0)
        return (size_t)n;
    memcpy(answer, "error no such answer", 20);
    return 20;
}

static void serve(int fd, const char *directory)
{
    char request[128], answer[OCC_CONTROL_BYTES];
    for (ssize_t n; (n = recv(fd, request, sizeof request - 1, 0)) > 0;) {
        request[n] = '\0';
        if (send(fd, answer, find_answer(directory, request, answer), MSG_NOSIGNAL) < 0)
            return;
    }
}

int main(int argc, char **argv)
{
    int listener = argc == 3 ? listen_at(argv[1]) : -1;
    if (listener < 0)
        return 2;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; (void)close(fd))
        serve(fd, argv[2]);
    return 1;
}
