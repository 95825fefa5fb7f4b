/* See gpu_jobs.h. */
#include "gpu_jobs.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/driver_gpus.h"

#define FILE_BYTES 1024
#define GPUS_MAX   32

static bool is_roots(int fd, mode_t type, struct stat *status)
{
    return fd >= 0 && fstat(fd, status) == 0 && (status->st_mode & S_IFMT) == type && status->st_uid == 0 &&
           (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool is_job(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return n > 0 && n < OCC_JOB_BYTES;
}

static void read_jobs(int directory, struct occ_gpu_jobs *gpu)
{
    char name[16], text[FILE_BYTES + 1];
    struct stat status = {0};
    (void)snprintf(name, sizeof name, "%u", gpu->number);
    _cleanup_(occ_closep) int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = is_roots(fd, S_IFREG, &status) ? read(fd, text, FILE_BYTES) : 0;
    gpu->since_s = status.st_mtim.tv_sec;
    text[n > 0 ? n : 0] = '\0';
    for (const char *line = text; *line && gpu->n < OCC_GPU_JOBS_MAX;) {
        size_t length = strcspn(line, "\n");
        bool is_cut = n == FILE_BYTES && line[length] == '\0';
        if (!is_cut && is_job(line, length))
            (void)snprintf(gpu->names[gpu->n++], OCC_JOB_BYTES, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

size_t occ_jobs_read(const char *root, const char *directory, struct occ_gpu_jobs *gpus, size_t max)
{
    struct stat status;
    struct occ_driver_gpu found[GPUS_MAX];
    _cleanup_(occ_closep) int fd =
        directory[0] ? open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (!is_roots(fd, S_IFDIR, &status))
        return 0;
    size_t n = occ_driver_gpus_read(root, found, max < GPUS_MAX ? max : GPUS_MAX);
    for (size_t i = 0; i < n; i++) {
        gpus[i] = (struct occ_gpu_jobs){.number = found[i].number};
        memcpy(gpus[i].gpu, found[i].uuid, sizeof gpus[i].gpu);
        if (!found[i].has_instances)
            read_jobs(fd, &gpus[i]);
    }
    return n;
}
