/*
 * Measures the delay that occtrace adds before a program begins: milliseconds from the start of occtrace,
 * with a private daemon and a new history, to the program's main(), less the same without occtrace. The delay
 * includes the daemon's first access to the counters, where libcuda.so.1 can be loaded, and the disk: one
 * fdatasync(2) in the directory of the histories ($TMPDIR, else /tmp) is printed for comparison. Prints one
 * JSON object. An argument is the path of another occtrace, to compare two builds.
 */
#include "bench_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/wait.h>

#define RUNS       21
#define TARGET_MS  15.0
#define DESCRIPTOR "BENCH_STARTUP_FD" /* environment variable: descriptor for the time */

static const char *occtrace = OCC_TRACE;

/* The measured program: writes the time of its start. */
static int tell_time(const char *fd)
{
    double now_ns = bench_now_ns();
    return write(atoi(fd), &now_ns, sizeof now_ns) == (ssize_t)sizeof now_ns ? 0 : 1;
}

/* Executes the program in the child; `db` NULL: without occtrace. */
static void execute(const char *self, const char *db)
{
    if (db)
        (void)execl(occtrace, occtrace, "-q", "-d", db, self, (char *)NULL);
    else
        (void)execl(self, self, (char *)NULL);
    (void)fprintf(stderr, "bench_startup: %s: %s\n", db ? occtrace : self, strerror(errno));
    _exit(127);
}

/* Returns milliseconds until the program began; negative if it did not begin. */
static double start(const char *self, const char *db)
{
    int ends[2];
    char number[16];
    double told_ns = 0;
    if (pipe(ends) != 0)
        return -1;
    (void)snprintf(number, sizeof number, "%d", ends[1]);
    (void)setenv(DESCRIPTOR, number, 1);
    double began_ns = bench_now_ns();
    pid_t pid = fork();
    if (pid == 0)
        execute(self, db);
    (void)close(ends[1]);
    bool told = pid > 0 && read(ends[0], &told_ns, sizeof told_ns) == (ssize_t)sizeof told_ns;
    (void)close(ends[0]);
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    return told ? (told_ns - began_ns) / 1e6 : -1;
}

static void remove_history(const char *db)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (snprintf(path, sizeof path, "%s%s", db, suffixes[i]) < PATH_MAX)
            (void)unlink(path);
}

/* Returns the median of all runs; negative if a run failed. */
static double measure(const char *self, const char *db)
{
    double ms[RUNS];
    for (int run = 0; run < RUNS; run++) {
        if (db)
            remove_history(db);
        ms[run] = start(self, db);
        if (ms[run] < 0)
            return -1;
    }
    return bench_median(ms, RUNS);
}

/* Returns the median time in ms of a sync of 4 KiB in a new file. */
static double measure_sync(const char *path)
{
    static const char page[4096];
    double ms[RUNS];
    for (int run = 0; run < RUNS; run++) {
        int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
        bool written = fd >= 0 && write(fd, page, sizeof page) == (ssize_t)sizeof page;
        double began_ns = bench_now_ns();
        written = written && fdatasync(fd) == 0;
        ms[run] = (bench_now_ns() - began_ns) / 1e6;
        if (fd >= 0)
            (void)close(fd);
        (void)unlink(path);
        if (!written)
            return -1;
    }
    return bench_median(ms, RUNS);
}

int main(int argc, char **argv)
{
    const char *fd = getenv(DESCRIPTOR), *place = getenv("TMPDIR");
    char directory[PATH_MAX], db[PATH_MAX], self[PATH_MAX];
    if (fd)
        return tell_time(fd);
    occtrace = argc > 1 ? argv[1] : occtrace;
    if (snprintf(directory, sizeof directory, "%s/bench_startup-XXXXXX", place ? place : "/tmp") >=
            (int)sizeof directory - 16 ||
        !mkdtemp(directory) || !realpath(argv[0], self)) {
        (void)fprintf(stderr, "bench_startup: set-up failed\n");
        return 1;
    }
    (void)snprintf(db, sizeof db, "%.4000s/history.db", directory);
    double sync_ms = measure_sync(db), plain_ms = measure(self, NULL), traced_ms = measure(self, db);
    remove_history(db);
    (void)rmdir(directory);
    (void)printf("{\n  \"name\": \"startup\",\n  \"ready_ms\": %.1f, \"ready_ms_target\": %.0f,\n",
                 traced_ms - plain_ms, TARGET_MS);
    (void)printf("  \"plain_ms\": %.1f, \"fdatasync_ms\": %.2f,\n", plain_ms, sync_ms);
    bench_print_machine();
    (void)printf("\n}\n");
    return plain_ms < 0 || traced_ms < 0 || sync_ms < 0;
}
