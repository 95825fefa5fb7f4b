/* Conditions under which the guest does not start. Each case is a process of its own, which drops its own
 * rights. */
#include "injector/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { NOTHING = 0, DESCRIPTORS = 1, SECCOMP = 2, CHANGED = 3 };

static int asks(void)
{
    errno = ENOTTY;
    int dumpable = prctl(PR_GET_DUMPABLE);
    const char *refusal = occ_preflight_refusal();
    if (errno != ENOTTY || waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD ||
        prctl(PR_GET_DUMPABLE) != dumpable)
        return CHANGED;
    if (!refusal)
        return NOTHING;
    return strstr(refusal, "seccomp") ? SECCOMP : DESCRIPTORS;
}

/* Runs the program in a child, which may be killed. Returns its wait status. */
static int in_child(int (*program)(int), int argument)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(program(argument));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int with_free_descriptors(int n)
{
    const struct rlimit limit = {64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    int null = open("/dev/null", O_RDONLY);
    while (null >= 0 && dup(null) >= 0)
        ;
    for (int i = 0; i < n; i++)
        close(i % 2 ? 63 - i : i); /* alternately from both ends */
    return asks();
}

static void test_free_descriptors(void **state)
{
    (void)state;
    static const struct {
        int n, answer;
    } cases[] = {{0, DESCRIPTORS}, {1, DESCRIPTORS}, {15, DESCRIPTORS}, {16, NOTHING}, {17, NOTHING}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = in_child(with_free_descriptors, cases[i].n);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].answer);
    }
}

static int ignored; /* calls of the program's SIGCHLD handler; 0 is expected */

static void on_child(int number)
{
    (void)number;
    ignored++;
}

static int under_filter(struct sock_filter *code, unsigned short n)
{
    struct sock_fprog filter = {n, code};
    signal(SIGCHLD, on_child);
    signal(SIGSYS, SIG_IGN);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return CHANGED + 1;
    int answered = asks();
    return ignored == 0 ? answered : CHANGED;
}

/* Runs under a filter that returns `answer` for memfd_create(2) and allows all other calls. */
static int with_filter(int answer)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, (unsigned int)answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return under_filter(code, sizeof code / sizeof code[0]);
}

/* Runs under a filter that returns `answer` for a clone(2) without `flag` and allows all other calls. */
static int with_clone_filter(unsigned int flag, unsigned int answer)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)), /* little endian */
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flag, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return under_filter(code, sizeof code / sizeof code[0]);
}

/* Runs with a clone(2) that fails, as with a limit of processes or memory, or a filter with an error: not a
 * filter that kills. */
static int with_refused_clone(int error)
{
    return with_clone_filter(CLONE_THREAD, SECCOMP_RET_ERRNO | (unsigned int)error);
}

/* Kills the process if the preflight copies the program's page tables, which takes long for a program with
 * much memory. */
static int without_copy(int unused)
{
    (void)unused;
    return with_clone_filter(CLONE_VM, SECCOMP_RET_KILL_PROCESS);
}

/* Runs in a program that protects its memory, which must stay protected. */
static int with_protected_memory(int answer)
{
    prctl(PR_SET_DUMPABLE, 0);
    return with_filter(answer);
}

static void assert_filtered(int (*program)(int), int argument, int answer)
{
    int status = in_child(program, argument);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHANGED + 1)
        skip(); /* this machine has no filters */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), answer);
}

static void test_filters(void **state)
{
    (void)state;
    static const struct {
        unsigned int action;
        int answer;
    } cases[] = {{SECCOMP_RET_ALLOW, NOTHING},
                 {SECCOMP_RET_ERRNO | EPERM, NOTHING},
                 {SECCOMP_RET_KILL_PROCESS, SECCOMP},
                 {SECCOMP_RET_KILL_THREAD, SECCOMP},
                 {SECCOMP_RET_TRAP, SECCOMP}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_filtered(with_filter, (int)cases[i].action, cases[i].answer);
}

static void test_a_refused_clone_is_no_filter_that_kills(void **state)
{
    (void)state;
    static const int errors[] = {EAGAIN, ENOMEM, EPERM, ENOSYS};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        assert_filtered(with_refused_clone, errors[i], NOTHING);
}

static void test_memory_is_not_copied(void **state)
{
    (void)state;
    assert_filtered(without_copy, 0, NOTHING);
}

static void test_protected_memory_stays_protected(void **state)
{
    (void)state;
    assert_filtered(with_protected_memory, (int)SECCOMP_RET_ALLOW, NOTHING);
    assert_filtered(with_protected_memory, (int)SECCOMP_RET_KILL_PROCESS, SECCOMP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_descriptors), cmocka_unit_test(test_filters),
        cmocka_unit_test(test_a_refused_clone_is_no_filter_that_kills),
        cmocka_unit_test(test_memory_is_not_copied), cmocka_unit_test(test_protected_memory_stays_protected)};
    return cmocka_run_group_tests_name("injector_preflight", tests, NULL, NULL);
}
