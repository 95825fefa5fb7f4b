/*
 * Decides if the guest may start in this process. It must not start if it could end the program, take
 * resources that the program needs, or be reported as an error: a seccomp filter that kills, a nearly full
 * table of descriptors, a thread sanitizer.
 *
 * The filters of most containers return an error; filters of systemd's SystemCallFilter= and of sandboxes
 * often kill, and no process can read its own filter. A child made like vfork(2)'s tries the calls: it uses
 * the memory of this process, so no page table is copied, and only this thread waits for its eleven
 * system calls.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

enum { FREE_DESCRIPTORS_MIN = 16 };

/* System calls of the guest that a CUDA program need not make itself: all fail or have no effect. Signal
 * handlers are reset in the child: a trap must not enter the program's handler. */
static int try_calls(void *unused)
{
    static const long calls[][4] = {
        {SYS_memfd_create, 0, UINT_MAX},
        {SYS_ftruncate, -1},
        {SYS_fcntl, -1, F_ADD_SEALS, F_SEAL_SEAL},
        {SYS_getrandom, 0, 0, 1},
        {SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK},
        {SYS_connect, -1},
        {SYS_sendmsg, -1},
        {SYS_recvfrom, -1},
        {SYS_sched_setscheduler, 0, -1},
        {SYS_munlock, 0, 0},
        {SYS_mremap, 1}, /* not the address of a page */
    };
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    (void)unused;
    (void)sigaction(SIGSYS, &standard, NULL);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        (void)syscall(calls[i][0], calls[i][1], calls[i][2], calls[i][3], 0, 0, 0);
    _exit(0);
}

/* A killed child would write a core file, and before Linux 5.16 a core dump ends every process with the same
 * memory (coredump_wait() in fs/coredump.c), including this one. Neither happens while the memory is not
 * dumpable, a property of the shared memory; RLIMIT_CORE is checked too late. The value 2 (a program that
 * changed its rights) cannot be restored: then no call is tried. */
static bool has_deadly_filter(void)
{
    static _Alignas(16) char stack[16384];
    int status = 0, dumpable = prctl(PR_GET_DUMPABLE);
    if (prctl(PR_GET_SECCOMP) != SECCOMP_MODE_FILTER)
        return false;
    if (dumpable != 0 && dumpable != 1)
        return true;
    (void)prctl(PR_SET_DUMPABLE, 0);
    /* without an exit signal no handler of the program runs and no wait() sees the child */
    pid_t child = clone(try_calls, stack + sizeof stack, CLONE_VM | CLONE_VFORK, NULL);
    (void)prctl(PR_SET_DUMPABLE, dumpable);
    if (child < 0) /* a limit, or a filter that returns an error */
        return false;
    return waitpid(child, &status, (int)__WCLONE) != child || status != 0;
}

/* Starts at the top of the table, where free numbers are. */
static bool has_free_descriptors(void)
{
    struct rlimit limit = {0};
    int n_free = 0;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur : INT_MAX;
         fd-- > 0 && n_free < FREE_DESCRIPTORS_MIN;)
        n_free += fcntl(fd, F_GETFD) < 0;
    return n_free == FREE_DESCRIPTORS_MIN;
}

/* A thread sanitizer would report races between the guest's thread and CUPTI's, since it sees their accesses
 * but not their synchronisation. A guest built with the sanitizer is seen completely. */
static bool has_thread_sanitizer(void)
{
#ifdef __SANITIZE_THREAD__
    return false;
#else
    return dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
#endif
}

const char *occ_preflight_refusal(void)
{
    int saved = errno;
    const char *refusal = !has_free_descriptors()  ? "fewer than 16 descriptors are free"
                          : has_thread_sanitizer() ? "the program has a thread sanitizer"
                          : has_deadly_filter()
                              ? "a seccomp filter kills at system calls of recording, or they cannot be tried"
                              : NULL;
    errno = saved;
    return refusal;
}
