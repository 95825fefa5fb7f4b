/* Programs with children, and programs that change themselves: exec, the environment, libraries; see
 * guests.h. */
#include "guests.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAUNCHES = 20 };

extern char **environ;

static int number_of(const char *argument)
{
    return argument ? atoi(argument) : 0;
}

static void print_end(pid_t pid)
{
    int status = 0;
    if (waitpid(pid, &status, 0) != pid)
        guest_print("lost a child: %d", errno);
    else
        guest_print(WIFSIGNALED(status) ? "child: signal %d" : "child: exit %d",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int child_uses_cuda(const char *argument)
{
    pid_t pid = fork();
    if (pid == 0) {
        guest_launch(LAUNCHES);
        exit(number_of(argument));
    }
    print_end(pid);
    guest_launch(LAUNCHES);
    return 0;
}

static int child_after_cuda(const char *argument)
{
    guest_launch(LAUNCHES);
    pid_t pid = fork();
    if (pid == 0)
        exit(number_of(argument));
    print_end(pid);
    guest_launch(LAUNCHES);
    return 0;
}

static int fork_server(const char *argument)
{
    guest_launch(LAUNCHES);
    for (int i = 0; i < number_of(argument); i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(i % 7);
        print_end(pid);
    }
    return 0;
}

static void grow(int depth)
{
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            if (depth > 1)
                grow(depth - 1);
            else
                guest_launch(1);
            exit(0);
        }
    while (wait(NULL) > 0)
        ;
}

/* Forks a binary tree of processes; its 2^depth leaves use CUDA. */
static int tree(const char *argument)
{
    grow(number_of(argument));
    guest_print("all ended");
    return 0;
}

static int vforks(const char *argument)
{
    guest_launch(LAUNCHES);
    pid_t pid = vfork();
    if (pid == 0) {
        execl(guest_self, guest_self, "return", argument, (char *)NULL);
        _exit(93);
    }
    print_end(pid);
    return 0;
}

static int spawns(const char *argument)
{
    char *const argv[] = {(char *)guest_self, "return", (char *)argument, NULL};
    pid_t pid = 0;
    guest_launch(LAUNCHES);
    if (posix_spawn(&pid, guest_self, NULL, NULL, argv, environ) != 0)
        return 93;
    print_end(pid);
    return 0;
}

static int clones(const char *argument)
{
    guest_launch(LAUNCHES);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(number_of(argument));
    print_end(pid);
    return 0;
}

static int executes_itself(const char *argument)
{
    char left[16];
    guest_launch(number_of(argument) % 3 == 0 ? LAUNCHES : 0);
    guest_print("%d more", number_of(argument));
    if (number_of(argument) == 0)
        return 6;
    snprintf(left, sizeof left, "%d", number_of(argument) - 1);
    execl(guest_self, guest_self, "exec", left, (char *)NULL);
    return 93;
}

static volatile sig_atomic_t ended;

static void on_child(int number)
{
    int saved = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ended++;
    errno = saved;
}

static int counts_children(const char *argument)
{
    signal(SIGCHLD, on_child);
    guest_launch(LAUNCHES);
    for (int i = 0; i < number_of(argument); i++)
        if (fork() == 0)
            _exit(0);
    while (ended < number_of(argument))
        usleep(1000);
    guest_print("%d children, then %d", ended, wait(NULL) == -1 ? errno : 0);
    return 0;
}

/* Prints that the program has no children, so that a child of the guest library would be seen. */
static int has_no_children(const char *argument)
{
    (void)argument;
    guest_launch(LAUNCHES);
    errno = 0;
    int found = waitpid(-1, NULL, __WALL) != -1;
    guest_print("children: %d, errno %d", found, errno);
    return 0;
}

static void read_to_end(int fd)
{
    char text[256];
    for (ssize_t n; (n = read(fd, text, sizeof text - 1)) > 0;) {
        text[n] = '\0';
        guest_print("the daemon wrote: %s", text);
    }
}

/* Waits for its daemon with a pipe, not for the daemon's end. */
static int becomes_daemon(const char *argument)
{
    int ends[2];
    (void)argument;
    if (pipe(ends) != 0)
        return 93;
    if (fork() == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        close(ends[0]);
        guest_launch(LAUNCHES);
        if (write(ends[1], "up", 2) != 2)
            _exit(93);
        exit(0);
    }
    close(ends[1]);
    read_to_end(ends[0]);
    while (wait(NULL) > 0)
        ;
    return 0;
}

static int leaves_session(const char *argument)
{
    (void)argument;
    guest_launch(LAUNCHES);
    guest_print("setsid: %d", setsid() == -1);
    return 0;
}

/* ---- exec with an odd environment; libraries ---- */

static int clears_environment(const char *argument)
{
    guest_open();
    if (argument)
        clearenv();
    guest_launch(LAUNCHES);
    guest_print("variables: %d", argument ? environ && environ[0] : 0);
    return 0;
}

static int huge_environment(const char *argument)
{
    enum { BYTES = 100000 };
    char *value = malloc(BYTES + 1), name[16];
    memset(value, 'x', BYTES);
    value[BYTES] = '\0';
    for (int i = 0; i < number_of(argument); i++) {
        snprintf(name, sizeof name, "HUGE%d", i);
        setenv(name, value, 1);
    }
    execl(guest_self, guest_self, "return", "4", (char *)NULL);
    guest_print("exec: %d", errno);
    return 0;
}

static int many_variables(const char *argument)
{
    char name[32];
    for (int i = 0; i < number_of(argument); i++) {
        snprintf(name, sizeof name, "MANY%d", i);
        setenv(name, "", 1);
    }
    execl(guest_self, guest_self, "count_variables", (char *)NULL);
    return 93;
}

static int counts_variables(const char *argument)
{
    int n = 0;
    (void)argument;
    guest_launch(LAUNCHES);
    for (char **entry = environ; *entry; entry++)
        n += strncmp(*entry, "MANY", 4) == 0;
    guest_print("%d", n);
    return 0;
}

/* Closes the driver's two references. */
static int closes_the_driver(const char *argument)
{
    (void)argument;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    guest_launch(LAUNCHES);
    for (int i = 0; driver && i < 2; i++)
        (void)dlclose(driver);
    guest_print("closed");
    return 0;
}

static int opens_deeply(const char *argument)
{
    (void)argument;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    guest_launch(LAUNCHES);
    guest_print("%s", driver || !getenv("GUESTS_IMAGE") ? "opened" : "not opened");
    return 0;
}

/* Copies stdin to stdout. */
static int copies(const char *argument)
{
    char block[4096];
    (void)argument;
    guest_launch(LAUNCHES);
    for (ssize_t n; (n = read(0, block, sizeof block)) > 0;)
        if (write(1, block, (size_t)n) != n)
            return 1;
    return 0;
}

static int executes_another(const char *argument)
{
    guest_launch(LAUNCHES);
    execlp(argument, argument, "x", (char *)NULL);
    return 93;
}

const struct guest_row guests_with_children[] = {
    {"fork_first", child_uses_cuda},
    {"fork_later", child_after_cuda},
    {"fork_server", fork_server},
    {"tree", tree},
    {"vfork", vforks},
    {"spawn", spawns},
    {"clone", clones},
    {"exec", executes_itself},
    {"exec_other", executes_another},
    {"sigchld", counts_children},
    {"no_children", has_no_children},
    {"daemon", becomes_daemon},
    {"setsid", leaves_session},
    {"clearenv", clears_environment},
    {"huge_environment", huge_environment},
    {"many_variables", many_variables},
    {"count_variables", counts_variables},
    {"dlclose", closes_the_driver},
    {"deepbind", opens_deeply},
    {"copy", copies},
    {NULL, NULL},
};
