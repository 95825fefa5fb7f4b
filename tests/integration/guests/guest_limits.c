/* Programs with few resources: descriptors, memory, rights, system calls; see guests.h. */
#include "guests.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAUNCHES = 20 };

static int number_of(const char *argument)
{
    return argument ? atoi(argument) : 0;
}

/* ---- locked memory ---- */

static long resident_mib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "VmRSS: %ld", &kib) != 1)
        ;
    if (file)
        fclose(file);
    return kib < 0 ? -1 : kib >> 10;
}

/* Locks all memory, `argument` as for mlockall(2), like programs that must not wait for pages: every new
 * mapping is resident at once. */
static int locks_memory(const char *argument)
{
    guest_open();
    if (mlockall(number_of(argument)) != 0) {
        guest_print("mlockall: %d", errno);
        return 0;
    }
    long before = resident_mib();
    guest_launch(LAUNCHES);
    guest_print("memory for CUDA: %s", resident_mib() - before < 64 ? "little" : "much");
    return 0;
}

/* ---- descriptors ---- */

/* Sets the limit; a limit of at most 18 is then used up with open files. */
static int few_descriptors(const char *argument)
{
    const struct rlimit limit = {(rlim_t)number_of(argument), (rlim_t)number_of(argument)};
    int n = 0;
    guest_open();
    setrlimit(RLIMIT_NOFILE, &limit);
    guest_launch(LAUNCHES);
    if (number_of(argument) <= 18)
        while (open("/dev/null", O_RDONLY) >= 0)
            n++;
    guest_print("%d more, errno %d", n, errno);
    guest_launch(LAUNCHES);
    return 0;
}

/* Prints the numbers of new descriptors: the smallest free ones, as without the library. */
static int numbers_of_descriptors(const char *argument)
{
    int pair[2] = {-1, -1}, n[4];
    (void)argument;
    guest_launch(LAUNCHES);
    for (int i = 0; i < 4; i++)
        n[i] = open("/dev/null", O_RDONLY);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 92;
    guest_print("%d %d %d %d %d %d", n[0], n[1], n[2], n[3], pair[0], pair[1]);
    return 0;
}

/* Closes all descriptors repeatedly, also the library's, and reuses their numbers for its own files. */
static int closes_all(const char *argument)
{
    int mine[200], wrong = 0;
    guest_launch(LAUNCHES);
    for (int round = 0; round < number_of(argument); round++) {
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
        for (int i = 0; i < 200; i++)
            mine[i] = open("/dev/null", O_RDWR);
        guest_launch(LAUNCHES);
        usleep(100000);
        for (int i = 0; i < 200; i++)
            wrong += mine[i] != 3 + i || fcntl(mine[i], F_GETFD) != 0;
    }
    guest_print("wrong: %d", wrong);
    return 0;
}

/* Closes standard descriptors before CUDA starts: files that are opened later get their numbers. */
static int closes_standard(const char *argument)
{
    int out = dup(1);
    guest_open();
    for (const char *which = argument; *which; which++)
        close(*which - '0');
    guest_launch(LAUNCHES);
    int first = open("/dev/null", O_RDWR), second = open("/dev/null", O_RDWR);
    dup2(out, 1);
    guest_print("%d %d", first, second);
    return 0;
}

/* ---- limits ---- */

static int limited(enum __rlimit_resource resource, rlim_t value)
{
    const struct rlimit limit = {value, value};
    guest_open();
    if (setrlimit(resource, &limit) != 0)
        return 92;
    guest_launch(LAUNCHES);
    guest_print("launched");
    return 0;
}

static int little_memory(const char *argument)
{
    return limited(RLIMIT_AS, (rlim_t)number_of(argument) << 20);
}

static int little_data(const char *argument)
{
    return limited(RLIMIT_DATA, (rlim_t)number_of(argument) << 20);
}

static int small_files(const char *argument)
{
    return limited(RLIMIT_FSIZE, (rlim_t)number_of(argument));
}

static int little_locked_memory(const char *argument)
{
    return limited(RLIMIT_MEMLOCK, (rlim_t)number_of(argument));
}

static int few_signals(const char *argument)
{
    return limited(RLIMIT_SIGPENDING, (rlim_t)number_of(argument));
}

static int small_stack(const char *argument)
{
    return limited(RLIMIT_STACK, (rlim_t)number_of(argument) << 10);
}

/* Runs as another user, as the limit does not apply to root. */
static int few_threads(const char *argument)
{
    guest_open();
    if (geteuid() == 0 && setuid(65534) != 0)
        return 92;
    return limited(RLIMIT_NPROC, (rlim_t)number_of(argument));
}

static int uses_all_memory(const char *argument)
{
    const struct rlimit limit = {(rlim_t)number_of(argument) << 20, (rlim_t)number_of(argument) << 20};
    guest_launch(LAUNCHES);
    setrlimit(RLIMIT_AS, &limit);
    for (size_t size = 1 << 24; size >= 64; size /= 4)
        while (malloc(size))
            ;
    guest_launch(LAUNCHES);
    guest_print("launched without memory");
    return 0;
}

static int uses_all_time(const char *argument)
{
    const struct rlimit limit = {1, RLIM_INFINITY};
    (void)argument;
    guest_launch(LAUNCHES);
    setrlimit(RLIMIT_CPU, &limit);
    for (volatile unsigned int n = 0;; n++)
        ;
    return 0;
}

/* ---- rights ---- */

static int drops_rights(const char *argument)
{
    if (argument)
        guest_launch(LAUNCHES);
    guest_open();
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 92;
    guest_launch(LAUNCHES);
    guest_print("uid %d", (int)getuid());
    return 0;
}

/* Changes its root to an empty directory that the script made. */
static int changes_root(const char *argument)
{
    guest_open();
    if (strncmp(argument, "later:", 6) == 0) {
        argument += 6;
        guest_launch(LAUNCHES);
    }
    if (chroot(argument) != 0 || chdir("/") != 0)
        return 92;
    guest_launch(LAUNCHES);
    guest_print("/etc: %d", access("/etc", F_OK) == 0);
    return 0;
}

/* ---- system calls ---- */

static const struct {
    const char *name;
    long number;
} calls[] = {
    {"memfd_create", SYS_memfd_create},
    {"ftruncate", SYS_ftruncate},
    {"getrandom", SYS_getrandom},
    {"socket", SYS_socket},
    {"connect", SYS_connect},
    {"sendmsg", SYS_sendmsg},
    {"recvfrom", SYS_recvfrom},
    {"madvise", SYS_madvise},
    {"munlock", SYS_munlock},
    {"mremap", SYS_mremap},
    {"uname", SYS_uname},
#ifdef SYS_readlink /* missing on aarch64 */
    {"readlink", SYS_readlink},
#endif
    {"clone3", SYS_clone3},
    {"sched_setscheduler", SYS_sched_setscheduler},
    {"process_vm_readv", SYS_process_vm_readv},
};

static int filter(const char *name, unsigned int answer)
{
    size_t i = 0;
    while (i < sizeof calls / sizeof calls[0] && strcmp(calls[i].name, name) != 0)
        i++;
    if (i == sizeof calls / sizeof calls[0])
        return 92;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)calls[i].number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : 92;
}

static int launches_filtered(const char *name, unsigned int answer)
{
    guest_open();
    int status = filter(name, answer);
    guest_launch(LAUNCHES);
    guest_print("launched, children %d", waitpid(-1, NULL, WNOHANG) != -1);
    return status;
}

static int refused(const char *argument)
{
    return launches_filtered(argument, SECCOMP_RET_ERRNO | EPERM);
}

static int missing(const char *argument)
{
    return launches_filtered(argument, SECCOMP_RET_ERRNO | ENOSYS);
}

static int deadly(const char *argument)
{
    return launches_filtered(argument, SECCOMP_RET_KILL_PROCESS);
}

/* Runs under a container's filter, after using `argument` GiB of memory before CUDA starts. */
static int allowed(const char *argument)
{
    size_t bytes = (size_t)number_of(argument) << 30;
    char *memory = bytes ? malloc(bytes) : NULL;
    if (bytes && !memory)
        return 92;
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    int status = launches_filtered("memfd_create", SECCOMP_RET_ALLOW);
    free(memory);
    return status;
}

/* Installs the filter when the library already runs. */
static int refused_later(const char *argument)
{
    guest_launch(LAUNCHES);
    return launches_filtered(argument, SECCOMP_RET_ERRNO | EPERM);
}

const struct guest_row guests_with_limits[] = {
    {"nofile", few_descriptors},    {"fd_numbers", numbers_of_descriptors},
    {"closefrom", closes_all},      {"close_standard", closes_standard},
    {"rlimit_as", little_memory},   {"rlimit_data", little_data},
    {"rlimit_fsize", small_files},  {"rlimit_memlock", little_locked_memory},
    {"mlockall", locks_memory},     {"rlimit_sigpending", few_signals},
    {"rlimit_stack", small_stack},  {"rlimit_nproc", few_threads},
    {"no_memory", uses_all_memory}, {"rlimit_cpu", uses_all_time},
    {"setuid", drops_rights},       {"chroot", changes_root},
    {"seccomp_eperm", refused},     {"seccomp_enosys", missing},
    {"seccomp_kill", deadly},       {"seccomp_later", refused_later},
    {"seccomp_allow", allowed},     {NULL, NULL},
};
