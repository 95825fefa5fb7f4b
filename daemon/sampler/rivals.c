/* Looks through /proc for profilers by the name of their process. Any thread. */
#include "rivals.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/cleanup.h"

/* As /proc/PID/comm has them: at most 15 characters. */
static const char *const names[] = {"ncu", "ncu-ui", "nsys", "nsys-launcher", "nv-nsight-cu-cl"};

static bool is_rival(const char *comm)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(comm, names[i]) == 0)
            return true;
    return false;
}

static bool process_is_rival(int proc, const char *pid)
{
    char path[32], comm[32];
    (void)snprintf(path, sizeof path, "%.16s/comm", pid);
    _cleanup_(occ_closep) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, comm, sizeof comm - 1) : -1;
    if (n <= 0)
        return false;
    comm[n] = '\0';
    comm[strcspn(comm, "\n")] = '\0';
    return is_rival(comm);
}

bool occ_rivals_are_here(void)
{
    DIR *proc = opendir("/proc");
    bool found = false;
    if (!proc)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(proc));)
        if (isdigit((unsigned char)entry->d_name[0]))
            found = process_is_rival(dirfd(proc), entry->d_name);
    (void)closedir(proc);
    return found;
}
