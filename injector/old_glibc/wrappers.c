/*
 * Replaces functions that glibc 2.17 lacks, so that the guest library loads with it. The linker binds the
 * guest's calls to these functions; no other library sees them.
 *
 * Headers of glibc 2.38 and newer rename the functions that parse numbers (strtoull() is
 * __isoc23_strtoull()), because C23 has binary numbers. The guest parses no binary numbers.
 */
#include <fcntl.h>
#include <features.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "is struct stat the kernel's on this architecture?"
#endif

int stat(const char *restrict path, struct stat *restrict ret_status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret_status, 0);
}

int fstat(int fd, struct stat *ret_status)
{
    return (int)syscall(SYS_fstat, fd, ret_status);
}

int statx(int directory, const char *restrict path, int flags, unsigned mask,
          struct statx *restrict ret_status)
{
    return (int)syscall(SYS_statx, directory, path, flags, mask, ret_status);
}

int memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}

ssize_t getrandom(void *ret_bytes, size_t size, unsigned flags)
{
    return syscall(SYS_getrandom, ret_bytes, size, flags);
}

#if __GLIBC_PREREQ(2, 38)
unsigned long long old_strtoull(const char *, char **, int) __asm__("strtoull");
long old_strtol(const char *, char **, int) __asm__("strtol");
int old_vsscanf(const char *, const char *, va_list) __asm__("__isoc99_vsscanf");
int old_vfscanf(FILE *, const char *, va_list) __asm__("__isoc99_vfscanf");
unsigned long long __isoc23_strtoull(const char *text, char **ret_end, int base);
long __isoc23_strtol(const char *text, char **ret_end, int base);
int __isoc23_sscanf(const char *text, const char *format, ...);
int __isoc23_fscanf(FILE *file, const char *format, ...);

unsigned long long __isoc23_strtoull(const char *text, char **ret_end, int base)
{
    return old_strtoull(text, ret_end, base);
}

long __isoc23_strtol(const char *text, char **ret_end, int base)
{
    return old_strtol(text, ret_end, base);
}

int __isoc23_sscanf(const char *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int n = old_vsscanf(text, format, values);
    va_end(values);
    return n;
}

int __isoc23_fscanf(FILE *file, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int n = old_vfscanf(file, format, values);
    va_end(values);
    return n;
}
#endif
