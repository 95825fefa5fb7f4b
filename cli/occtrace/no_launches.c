/*
 * Why no launches were recorded. The driver is tried in a child process: loading it has effects (threads,
 * memory, device files) that occtrace must not have. One thread.
 */
#include "no_launches.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "support/cleanup.h"

enum { DRIVER_PATIENCE_S = 10 };

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool search(const char *name, char *path, size_t size)
{
    const char *at = getenv("PATH");
    if (!at)
        at = "/bin:/usr/bin"; /* what execvp(3) does */
    for (;;) {
        int length = (int)strcspn(at, ":");
        int n = snprintf(path, size, "%.*s%s%s", length, at, length ? "/" : "./", name);
        if (n > 0 && (size_t)n < size && is_program(path))
            return true;
        if (at[length] == '\0')
            return false;
        at += length + 1;
    }
}

void no_launches_find_program(const char *name, char *path, size_t size)
{
    char found[PATH_MAX], full[PATH_MAX];
    bool is_there = strchr(name, '/') ? snprintf(found, sizeof found, "%s", name) < (int)sizeof found
                                      : search(name, found, sizeof found);
    (void)snprintf(path, size, "%s", is_there ? (realpath(found, full) ? full : found) : "");
}

/* The kernel ignores LD_PRELOAD for programs that gain rights by being executed. */
static bool gains_rights(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    bool other_user = (status.st_mode & S_ISUID) && status.st_uid != getuid();
    bool other_group =
        (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getgid();
    return other_user || other_group || getxattr(path, "security.capability", NULL, 0) > 0;
}

/* An ELF program without an interpreter: nothing can be preloaded. */
static bool is_static(const char *path)
{
    _cleanup_(occ_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf64_Ehdr header;
    if (fd < 0 || pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    for (unsigned int i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        off_t at = (off_t)(header.e_phoff + (Elf64_Off)i * sizeof segment);
        if (pread(fd, &segment, sizeof segment, at) != (ssize_t)sizeof segment)
            return false;
        if (segment.p_type == PT_INTERP)
            return false;
    }
    return true;
}

static void try_driver(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
    }
    (void)alarm(DRIVER_PATIENCE_S);
    _exit(dlopen("libcuda.so.1", RTLD_LAZY) ? 0 : 1);
}

static bool driver_loads(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        try_driver();
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const char *no_launches_reason(const char *path)
{
    if (path[0] && gains_rights(path))
        return "the program is setuid, setgid or has capabilities: nothing can be preloaded into it";
    if (path[0] && is_static(path))
        return "the program is statically linked: nothing can be preloaded into it";
    if (!driver_loads())
        return "no CUDA driver: libcuda.so.1 cannot be loaded";
    return "the program did not initialise CUDA";
}
