/*
 * Rows a second of `occq calc --batch`: the whole process from exec to exit, a file in, a file out, both in a memory
 * file system. Rows differ in everything; one in eight has an empty optional field. Prints JSON. One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_report.h"

#define ROWS        2000000
#define TARGET_ROWS 1e6

enum { ROUNDS = 5 };

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_calc: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static int make_rows(void)
{
    static const char *const gpus[] = {"t4",      "v100", "a100",    "h200",
                                       "rtx3090", "b200", "gtx1080", "a100-3g.20gb"};
    int fd = memfd_create("rows", MFD_CLOEXEC);
    FILE *out = fd < 0 ? NULL : fdopen(dup(fd), "w");
    uint64_t random = 1;
    if (!out)
        fail("memfd_create");
    (void)fputs("gpu,threads,regs,static_smem,dynamic_smem,grid,barriers\n", out);
    for (int i = 0; i < ROWS; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        (void)fprintf(out, "%s,%u,%u,%u,%u,%u,%s\n", gpus[random >> 61],
                      32 * (1 + (unsigned)(random >> 56 & 31)), 16 + (unsigned)(random >> 50 & 47),
                      (unsigned)(random >> 38 & 4095), (unsigned)(random >> 24 & 16383),
                      1 + (unsigned)(random >> 8 & 0xffff), (random & 7) == 0 ? "" : "1");
    }
    if (fclose(out) != 0)
        fail("rows");
    return fd;
}

static double run(int rows)
{
    int results = memfd_create("results", MFD_CLOEXEC), status = 0;
    double started = bench_now_ns();
    (void)lseek(rows, 0, SEEK_SET);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(rows, STDIN_FILENO);
        (void)dup2(results, STDOUT_FILENO);
        (void)execl(BENCH_OCCQ, "occq", "calc", "--batch", (char *)NULL);
        _exit(127);
    }
    if (results < 0 || child < 0 || waitpid(child, &status, 0) != child)
        fail("cannot run occq");
    double seconds = (bench_now_ns() - started) / 1e9;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "bench_calc: occq calc --batch failed\n");
        exit(EXIT_FAILURE);
    }
    (void)close(results);
    return ROWS / seconds;
}

int main(void)
{
    double rates[ROUNDS];
    int rows = make_rows();
    for (int i = 0; i < ROUNDS; i++)
        rates[i] = run(rows);
    double rate = bench_median(rates, ROUNDS);
    (void)printf("{\n  \"benchmark\": \"calc\",\n  \"batch_rows_per_second\": %.0f, "
                 "\"target_batch_rows_per_second\": %.0f, \"met\": %s,\n",
                 rate, TARGET_ROWS, rate >= TARGET_ROWS ? "true" : "false");
    bench_print_machine();
    (void)printf("\n}\n");
    return EXIT_SUCCESS;
}
