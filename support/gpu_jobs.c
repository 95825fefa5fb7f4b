/* See gpu_jobs.h. */
#include "gpu_jobs.h"

#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/text.h"

#define FILE_BYTES 1024

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

static bool decode_uuid(const char *text, uint8_t uuid[16])
{
    char hex[33];
    size_t n = 0;
    for (; *text && n < sizeof hex - 1; text++)
        if (*text != '-')
            hex[n++] = *text;
    hex[n] = '\0';
    return occ_hex_decode(hex, uuid, 16);
}

/* "GPU UUID:   GPU-8-4-4-4-12" and "Device Minor:  NUMBER", in lines of the driver's file. */
static bool read_information(const char *path, uint8_t uuid[16], int *ret_minor)
{
    char line[256], digits[37];
    bool has_uuid = false;
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "re");
    *ret_minor = -1;
    while (file && fgets(line, sizeof line, file)) {
        (void)sscanf(line, "Device Minor: %d", ret_minor);
        if (sscanf(line, "GPU UUID: GPU-%36s", digits) == 1)
            has_uuid = decode_uuid(digits, uuid);
    }
    return has_uuid;
}

/* NVIDIA's MIG User Guide, "Device Nodes and Capabilities":
 * /proc/driver/nvidia/capabilities/gpu0/mig/gi1/access. */
static bool has_instances(const char *root, int minor)
{
    char pattern[4096];
    glob_t found = {0};
    (void)snprintf(pattern, sizeof pattern, "%s/proc/driver/nvidia/capabilities/gpu%d/mig/gi*", root, minor);
    bool has = minor >= 0 && glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return has;
}

size_t occ_jobs_read(const char *root, const char *directory, struct occ_gpu_jobs *gpus, size_t max)
{
    char pattern[4096];
    struct stat status;
    glob_t found = {0};
    size_t n = 0;
    int minor = -1;
    _cleanup_(occ_closep) int fd =
        directory[0] ? open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    (void)snprintf(pattern, sizeof pattern, "%s/proc/driver/nvidia/gpus/*/information", root);
    if (!is_roots(fd, S_IFDIR, &status) || glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc && n < max; i++) { /* sorted */
        struct occ_gpu_jobs *gpu = &gpus[n];
        *gpu = (struct occ_gpu_jobs){.number = (unsigned int)i};
        if (!read_information(found.gl_pathv[i], gpu->gpu, &minor))
            continue;
        if (!has_instances(root, minor))
            read_jobs(fd, gpu);
        n++;
    }
    globfree(&found);
    return n;
}
