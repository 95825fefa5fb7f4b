/* See competing_profilers.h. Recognises tools by the names of processes in /proc. */
#include "competing_profilers.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cleanup.h"

#define DCGM_MODULE    "/libdcgmmoduleprofiling.so"
#define DCGM           "DCGM watches profiling fields (dcgmi profile --pause)"
#define HOPPER         9u
#define MAPS_MAX_BYTES (8u << 20) /* limit for reading a process's maps */

static const struct {
    const char *comm;   /* name in /proc/PID/comm: at most 15 characters */
    const char *module; /* library that the process must have loaded; NULL: any */
    const char *text;
    uint32_t before_cc; /* the tool uses the counters only of GPUs before this compute capability */
} competitors[] = {
    {"ncu", NULL, "Nsight Compute runs", UINT32_MAX},
    {"ncu-ui", NULL, "Nsight Compute runs", UINT32_MAX},
    {"nv-nsight-cu-cl", NULL, "Nsight Compute runs", UINT32_MAX},
    {"nsys", NULL, "Nsight Systems runs", UINT32_MAX},
    {"nsys-launcher", NULL, "Nsight Systems runs", UINT32_MAX},
    {"nv-hostengine", DCGM_MODULE, DCGM, HOPPER},
    {"dcgm-exporter", DCGM_MODULE, DCGM, HOPPER},
};
#define COMPETITORS (sizeof competitors / sizeof *competitors)
static_assert(COMPETITORS <= 32, "a bit for each");

static bool has_loaded(int proc, const char *pid, const char *module)
{
    char path[32];
    (void)snprintf(path, sizeof path, "%.16s/maps", pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t allocated = 0, seen = 0;
    bool found = false;
    if (!maps) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    for (ssize_t n; !found && seen < MAPS_MAX_BYTES && (n = getline(&line, &allocated, maps)) > 0;) {
        found = strstr(line, module) != NULL;
        seen += (size_t)n;
    }
    free(line);
    (void)fclose(maps);
    return found;
}

/* A zombie has a name but no executable. */
static bool is_zombie(int proc, const char *pid)
{
    char path[32], exe[8];
    (void)snprintf(path, sizeof path, "%.16s/exe", pid);
    return readlinkat(proc, path, exe, sizeof exe) < 0 && errno == ENOENT;
}

static bool counts(int proc, const char *pid, const struct occ_profiler_users *users)
{
    struct stat status;
    size_t i = 0;
    if (!users)
        return true;
    if (fstatat(proc, pid, &status, 0) != 0)
        return false;
    while (i < users->n && users->uids[i] != status.st_uid)
        i++;
    return i < users->n || status.st_uid == 0 || status.st_uid == geteuid();
}

/* The bits of the tools that match this process. */
static uint32_t profilers_of(int proc, const char *pid, uint32_t cc_major,
                             const struct occ_profiler_users *users)
{
    char path[32], comm[32];
    (void)snprintf(path, sizeof path, "%.16s/comm", pid);
    _cleanup_(occ_closep) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, comm, sizeof comm - 1) : -1;
    if (n <= 0)
        return 0;
    comm[n] = '\0';
    comm[strcspn(comm, "\n")] = '\0';
    for (size_t i = 0; i < COMPETITORS; i++)
        if (cc_major < competitors[i].before_cc && strcmp(comm, competitors[i].comm) == 0 &&
            counts(proc, pid, users) && !is_zombie(proc, pid) &&
            (!competitors[i].module || has_loaded(proc, pid, competitors[i].module)))
            return UINT32_C(1) << i;
    return 0;
}

uint32_t occ_competing_profilers(const char *proc, uint32_t cc_major, const struct occ_profiler_users *users)
{
    DIR *processes = opendir(proc);
    uint32_t found = 0;
    if (!processes)
        return 0;
    for (struct dirent *entry; (entry = readdir(processes));)
        if (isdigit((unsigned char)entry->d_name[0]))
            found |= profilers_of(dirfd(processes), entry->d_name, cc_major, users);
    (void)closedir(processes);
    return found;
}

const char *occ_competing_profiler_text(uint32_t profilers, uint32_t cc_major)
{
    for (size_t i = 0; i < COMPETITORS; i++)
        if ((profilers & UINT32_C(1) << i) && cc_major < competitors[i].before_cc)
            return competitors[i].text;
    return NULL;
}
