/*
 * Preloaded into a program under test: fails one allocation, or three consecutive writes, counted from the
 * start of main(). OCC_FAULT_ALLOCATION and OCC_FAULT_WRITE select them (from 1); at the program's end both
 * counts go to the file OCC_FAULT_COUNTS. The shim calls glibc's internal names of the allocator, since
 * dlsym(), which would find the next malloc, allocates itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WRITES_THAT_FAIL 3

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static atomic_long allocations, writes; /* counts since the start of main() */
static long bad_allocation, bad_write;  /* 0: none */
static atomic_bool is_counting;

__attribute__((constructor)) static void begin(void)
{
    const char *allocation = getenv("OCC_FAULT_ALLOCATION"), *write = getenv("OCC_FAULT_WRITE");
    bad_allocation = allocation ? atol(allocation) : 0;
    bad_write = write ? atol(write) : 0;
    is_counting = true;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("OCC_FAULT_COUNTS");
    int fd = -1;
    is_counting = false;
    if (path)
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)dprintf(fd, "%ld %ld\n", allocations, writes);
        (void)close(fd);
    }
}

static int must_fail(void)
{
    return is_counting && atomic_fetch_add(&allocations, 1) + 1 == bad_allocation;
}

static int write_must_fail(void)
{
    if (!is_counting)
        return 0;
    long nth = atomic_fetch_add(&writes, 1) + 1;
    if (bad_write == 0 || nth < bad_write || nth >= bad_write + WRITES_THAT_FAIL)
        return 0;
    errno = EIO;
    return 1;
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    return must_fail() ? no_memory() : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return must_fail() ? no_memory() : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return must_fail() ? no_memory() : __libc_realloc(old, size);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    return write_must_fail() ? -1 : syscall(SYS_pwrite64, fd, data, n, at);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    return write_must_fail() ? -1 : syscall(SYS_pwrite64, fd, data, n, at);
}

int fsync(int fd)
{
    return write_must_fail() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return write_must_fail() ? -1 : (int)syscall(SYS_fdatasync, fd);
}
