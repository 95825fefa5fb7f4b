/* See process.h. */
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "paths.h"

#define STAT_BYTES     4096
#define CLOCK_ERROR_NS INT64_C(60000000000)

/* Fields of /proc/PID/stat, see proc(5). */
enum { FIELD_NAME = 2, FIELD_FLAGS = 9, FIELD_START = 22 };

#define PF_EXITING 0x4 /* of the flags: include/linux/sched.h of the kernel */

/* The text of a field after the name, which may contain any bytes. NULL: no such field. */
static const char *field_of(const char *text, int field)
{
    const char *at = strrchr(text, ')');
    for (int i = FIELD_NAME; at && i < field; i++)
        at = strchr(at + 1, ' ');
    return at;
}

int64_t occ_process_parse_start(const char *text)
{
    const char *start = field_of(text, FIELD_START);
    return start ? strtoll(start, NULL, 10) : -1;
}

bool occ_process_parse_ending(const char *text)
{
    const char *flags = field_of(text, FIELD_FLAGS);
    return !flags || (strtoull(flags, NULL, 10) & PF_EXITING) != 0;
}

/* The text of /proc/PID/stat, malloc'ed; NULL: not readable. */
static char *read_stat(const char *root, int32_t pid)
{
    char path[4096], *text = NULL;
    size_t n = 0;
    (void)snprintf(path, sizeof path, "%s/proc/%d/stat", root, pid);
    (void)occ_path_read(path, STAT_BYTES, &text, &n, NULL);
    return text;
}

/* Read in pieces: a line with up to 65536 groups comes before the pids. The process chooses its name in the
 * first line; the kernel escapes a newline there. */
bool occ_process_is_nested(const char *root, int32_t pid)
{
    static const char key[] = "NSpid:\t";
    char path[4096], piece[256];
    bool is_nested = false, begins_line = true;
    (void)snprintf(path, sizeof path, "%s/proc/%d/status", root, pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(piece, sizeof piece, file)) {
        if (begins_line && strncmp(piece, key, sizeof key - 1) == 0) {
            is_nested = strchr(piece + sizeof key - 1, '\t') != NULL;
            break;
        }
        begins_line = strchr(piece, '\n') != NULL;
    }
    if (file)
        (void)fclose(file);
    return is_nested;
}

bool occ_process_is_ending(const char *root, int32_t pid)
{
    _cleanup_(occ_freep) char *text = read_stat(root, pid);
    return !text || occ_process_parse_ending(text);
}

int64_t occ_process_start_boot_ns(const char *root, int32_t pid)
{
    _cleanup_(occ_freep) char *text = read_stat(root, pid);
    int64_t ticks = text ? occ_process_parse_start(text) : -1, hz = sysconf(_SC_CLK_TCK);
    if (ticks < 0 || hz <= 0 || ticks / hz > INT32_MAX)
        return -1;
    return ticks * (INT64_C(1000000000) / hz);
}

int64_t occ_process_start_ns(const char *root, int32_t pid)
{
    int64_t start_ns = occ_process_start_boot_ns(root, pid);
    return start_ns < 0 ? 0 : start_ns + occ_now_ns() - occ_boot_ns();
}

bool occ_process_is_gone(int32_t pid, int64_t observed_ns)
{
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return true;
    return occ_process_start_ns("", pid) - CLOCK_ERROR_NS > observed_ns;
}

static bool shares(const char *root, int32_t pid, const char *what)
{
    char its_path[4096], own_path[4096];
    struct stat its, own;
    (void)snprintf(its_path, sizeof its_path, "%s/proc/%d/%s", root, pid, what);
    (void)snprintf(own_path, sizeof own_path, "%s/proc/self/%s", root, what);
    return stat(its_path, &its) == 0 && stat(own_path, &own) == 0 && its.st_dev == own.st_dev &&
           its.st_ino == own.st_ino;
}

bool occ_process_shares_files(const char *root, int32_t pid)
{
    return pid > 0 && shares(root, pid, "ns/mnt") && shares(root, pid, "root");
}
