/*
 * Fuzzes the scheduler's files of GPUs and jobs, and the driver's file of a GPU: any bytes give at most the
 * header's maximum of jobs, each with printable letters only. The files are refused for every user but root,
 * as only root's files are trusted.
 *
 * Input: the driver's file, a zero byte, the file of jobs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz_bytes.h"
#include "support/gpu_jobs.h"

#define GPU "proc/driver/nvidia/gpus/0000:01:00.0"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[64] = "/tmp/occtrace-fuzz-XXXXXX";

static void must(int good)
{
    if (!good)
        abort();
}

static const char *const directories[] = {
    "proc", "proc/driver", "proc/driver/nvidia", "proc/driver/nvidia/gpus", GPU, "jobs"};

static void clean_up(void)
{
    must(chdir(root) == 0);
    (void)unlink(GPU "/information");
    (void)unlink("jobs/0");
    for (size_t i = sizeof directories / sizeof *directories; i-- > 0;)
        (void)rmdir(directories[i]);
    (void)rmdir(root);
}

/* Makes the directories without chdir(2): the paths of libFuzzer's inputs are relative. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    must(mkdtemp(root) != NULL);
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0 && atexit(clean_up) == 0);
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        must(mkdirat(fd, directories[i], 0755) == 0);
    (void)close(fd);
    return 0;
}

static void put_file(const char *name, struct fuzz_bytes content)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(fd >= 0 && write(fd, content.data, content.n) == (ssize_t)content.n);
    (void)close(fd);
}

static void check(const struct occ_gpu_jobs *gpu)
{
    must(gpu->number == 0 && gpu->n <= OCC_GPU_JOBS_MAX);
    for (size_t i = 0; i < gpu->n; i++) {
        size_t n = strnlen(gpu->names[i], OCC_JOB_BYTES);
        must(n > 0 && n < OCC_JOB_BYTES);
        for (size_t k = 0; k < n; k++)
            must(gpu->names[i][k] > ' ' && gpu->names[i][k] <= '~');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_gpu_jobs gpus[4];
    char jobs[80];
    struct fuzz_bytes input = {data, size};
    struct fuzz_bytes information = fuzz_part(&input);
    put_file(GPU "/information", information);
    put_file("jobs/0", input);
    (void)snprintf(jobs, sizeof jobs, "%s/jobs", root);
    size_t n = occ_jobs_read(root, jobs, gpus, 4);
    must(n <= 1);
    if (n == 1)
        check(&gpus[0]);
    return 0;
}
