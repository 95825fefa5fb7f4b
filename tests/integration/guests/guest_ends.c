/* Ways to end a program, also with threads and signals; see guests.h. */
#include "guests.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { LAUNCHES = 20 };

static int number_of(const char *argument)
{
    return argument ? atoi(argument) : 0;
}

static void print_at_exit(void)
{
    guest_print("exit handler");
}

__attribute__((destructor)) static void print_at_unload(void)
{
    if (getenv("GUESTS_DESTRUCTOR"))
        guest_print("destructor");
}

static int ends_by_return(const char *argument)
{
    atexit(print_at_exit);
    setenv("GUESTS_DESTRUCTOR", "1", 1);
    guest_launch(LAUNCHES);
    puts("buffered");
    fprintf(stderr, "on stderr\n");
    return number_of(argument);
}

static int ends_at_once(const char *argument)
{
    guest_launch(LAUNCHES);
    puts("lost: still buffered");
    _exit(number_of(argument));
}

static int ends_by_system_call(const char *argument)
{
    guest_launch(LAUNCHES);
    syscall(SYS_exit_group, number_of(argument));
    return 1;
}

static int ends_quickly(const char *argument)
{
    at_quick_exit(print_at_exit);
    guest_launch(LAUNCHES);
    quick_exit(number_of(argument));
}

static int ends_in_handler(const char *argument)
{
    guest_launch(LAUNCHES);
    atexit(print_at_exit);
    exit(number_of(argument));
}

static int aborts(const char *argument)
{
    (void)argument;
    guest_launch(LAUNCHES);
    abort();
}

static int reads_null(const char *argument)
{
    guest_launch(LAUNCHES);
    return *(const volatile char *)argument; /* NULL: a segmentation fault */
}

/* Sends itself a signal: most signals kill, some are ignored. */
static int raises(const char *argument)
{
    guest_launch(LAUNCHES);
    guest_print("raises %s", argument);
    kill(getpid(), number_of(argument));
    guest_print("goes on");
    return 0;
}

static int writes_to_nobody(const char *argument)
{
    int ends[2];
    (void)argument;
    guest_launch(LAUNCHES);
    if (pipe(ends) == 0 && close(ends[0]) == 0)
        guest_print("wrote %zd", write(ends[1], "x", 1));
    return 0;
}

/* ---- threads ---- */

static pthread_barrier_t together;

static void *exits(void *code)
{
    pthread_barrier_wait(&together);
    exit((int)(long)code);
}

static void *sleeps(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void *launches(void *unused)
{
    guest_launch(1);
    return unused;
}

static void *ends_soon(void *unused)
{
    usleep(20000);
    guest_print("the last thread");
    return unused;
}

static void make_threads(int n, void *(*run)(void *), long argument, pthread_t *threads)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], &small, run, (void *)argument) != 0)
            _exit(94);
}

static pthread_t threads[1000];

static int threads_exit_at_once(const char *argument)
{
    int n = number_of(argument);
    pthread_barrier_init(&together, NULL, (unsigned int)n + 1);
    guest_launch(LAUNCHES);
    make_threads(n, exits, 5, threads);
    exits((void *)5);
    return 0;
}

static int thread_exits(const char *argument)
{
    guest_launch(LAUNCHES);
    pthread_barrier_init(&together, NULL, 1);
    make_threads(1, exits, number_of(argument), threads);
    pause();
    return 1;
}

static int many_threads(const char *argument)
{
    int n = number_of(argument);
    guest_launch(LAUNCHES);
    make_threads(n, launches, 0, threads);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    guest_print("%d threads", n);
    return 0;
}

static int threads_are_cancelled(const char *argument)
{
    void *result = NULL;
    (void)argument;
    guest_launch(LAUNCHES);
    make_threads(50, sleeps, 0, threads);
    for (int i = 0; i < 50; i++)
        pthread_cancel(threads[i]);
    for (int i = 0; i < 50; i++)
        pthread_join(threads[i], &result);
    guest_print("cancelled: %d", result == PTHREAD_CANCELED);
    return 0;
}

static int threads_are_left(const char *argument)
{
    guest_launch(LAUNCHES);
    make_threads(50, sleeps, 0, threads);
    return number_of(argument);
}

static int main_thread_leaves_early(const char *argument)
{
    (void)argument;
    guest_launch(0);
    pthread_exit(NULL);
}

static int main_thread_leaves(const char *argument)
{
    guest_launch(LAUNCHES);
    if (argument)
        make_threads(1, ends_soon, 0, threads);
    pthread_exit(NULL);
}

static void *works_for_long(void *unused)
{
    usleep(2500000); /* the guest looks for the last thread once a second */
    guest_print("the result is written");
    return unused;
}

static void *makes_a_worker(void *us)
{
    sigset_t all;
    pthread_t worker;
    usleep((useconds_t)(long)us);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    make_threads(1, works_for_long, 0, &worker);
    return NULL;
}

/* A thread with all signals blocked begins while the main thread initialises CUDA, and outlives it. */
static int main_thread_leaves_a_worker(const char *argument)
{
    guest_open();
    make_threads(1, makes_a_worker, number_of(argument), threads);
    guest_launch(LAUNCHES);
    pthread_exit(NULL);
}

static void *starts_and_exits(void *unused)
{
    guest_launch(LAUNCHES);
    guest_print("exits");
    exit(6);
    return unused;
}

/* Initialises CUDA, launches and exits in a thread with a stack of `argument` KiB. */
static int thread_with_a_small_stack(const char *argument)
{
    pthread_attr_t small;
    guest_open();
    pthread_attr_init(&small);
    if (pthread_attr_setstacksize(&small, (size_t)number_of(argument) << 10) != 0 ||
        pthread_create(&threads[0], &small, starts_and_exits, NULL) != 0)
        return 94;
    pthread_join(threads[0], NULL);
    return 0;
}

/* ---- signals ---- */

static volatile sig_atomic_t signals;
static sigjmp_buf back;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

static void jump_back(int number)
{
    siglongjmp(back, number);
}

static int is_interrupted(const char *argument)
{
    const struct itimerval each = {{0, 500}, {0, 500}};
    signal(SIGALRM, count_signal);
    setitimer(ITIMER_REAL, &each, NULL);
    for (int i = 0; i < 20; i++)
        guest_launch(number_of(argument));
    while (signals < 20)
        pause();
    guest_print("interrupted");
    return 0;
}

/* The signals go on while the guest waits for its last round. */
static int is_interrupted_at_its_end(const char *argument)
{
    const struct itimerval each = {{0, 500}, {0, 500}};
    signal(SIGALRM, count_signal);
    guest_launch(number_of(argument));
    setitimer(ITIMER_REAL, &each, NULL);
    guest_launch(LAUNCHES);
    exit(0);
}

static int catches_a_fault(const char *argument)
{
    static char stack[64 << 10];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = jump_back, .sa_flags = SA_ONSTACK};
    guest_launch(LAUNCHES);
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, NULL);
    int number = sigsetjmp(back, 1);
    if (number == 0)
        guest_print("%d", *(const volatile char *)argument); /* NULL: a segmentation fault */
    guest_launch(LAUNCHES);
    guest_print("caught %d", number);
    return 0;
}

/* Prints all handlers, the mask and pending signals after CUDA has started. */
static int prints_signals(const char *argument)
{
    sigset_t mask, pending;
    char name[16] = "";
    (void)argument;
    errno = 0;
    guest_launch(LAUNCHES);
    guest_print("errno %d", errno);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigpending(&pending);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            guest_print("signal %d is handled", i);
        if (sigismember(&mask, i) > 0 || sigismember(&pending, i) > 0)
            guest_print("signal %d is blocked or pending", i);
    }
    prctl(PR_GET_NAME, name);
    guest_print("%s", name);
    return 0;
}

/* Blocks all signals and waits for one with sigwait(3). */
static int waits_for_signals(const char *argument)
{
    sigset_t all;
    int number = 0;
    (void)argument;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    guest_launch(LAUNCHES);
    kill(getpid(), SIGTERM);
    sigwait(&all, &number);
    guest_print("took %d", number);
    return 0;
}

const struct guest_row guests_that_end[] = {
    {"return", ends_by_return},
    {"_exit", ends_at_once},
    {"exit_group", ends_by_system_call},
    {"quick_exit", ends_quickly},
    {"exit", ends_in_handler},
    {"abort", aborts},
    {"segv", reads_null},
    {"raise", raises},
    {"sigpipe", writes_to_nobody},
    {"threads_exit", threads_exit_at_once},
    {"thread_exits", thread_exits},
    {"threads", many_threads},
    {"cancel", threads_are_cancelled},
    {"threads_left", threads_are_left},
    {"pthread_exit", main_thread_leaves},
    {"pthread_exit_early", main_thread_leaves_early},
    {"pthread_exit_worker", main_thread_leaves_a_worker},
    {"small_stack", thread_with_a_small_stack},
    {"sigalrm", is_interrupted},
    {"sigalrm_exit", is_interrupted_at_its_end},
    {"fault", catches_a_fault},
    {"signals", prints_signals},
    {"sigwait", waits_for_signals},
    {NULL, NULL},
};
