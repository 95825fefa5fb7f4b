/* See evidence.h. */
#include "evidence.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/paths.h"
#include "support/process.h"
#include "support/text.h"

#define STATUS_BYTES  ((size_t)16 << 10)
#define AUXV_BYTES    ((size_t)4096)
#define ENVIRON_BYTES ((size_t)1 << 20)
#define USERS_BYTES   ((size_t)16 << 10) /* the kernel has at most 340 lines */
#define MAPS_LINES    (1u << 16)

#define GUEST "libocctrace.so"

/* ---- reading ---- */

/* Text of /proc/PID/NAME, malloc'ed; NULL: not readable, or longer than `max` bytes. */
static char *read_file(const char *root, int32_t pid, const char *name, size_t max, size_t *ret_n)
{
    char path[4096], *text = NULL;
    (void)snprintf(path, sizeof path, "%s/proc/%d/%s", root, pid, name);
    *ret_n = 0;
    if (occ_path_read(path, max + 1, &text, ret_n, NULL) == 0 && *ret_n <= max)
        return text;
    free(text);
    return NULL;
}

static void read_name(const char *root, int32_t pid, struct occ_evidence *e)
{
    size_t n;
    _cleanup_(occ_freep) char *text = read_file(root, pid, "comm", 64, &n);
    if (!text)
        return;
    text[strcspn(text, "\n")] = '\0';
    (void)snprintf(e->name, sizeof e->name, "%s", text);
    occ_text_sanitise(e->name);
}

/* "Uid:" and the real uid, in a line of /proc/PID/status; the name in the first line has no newline. */
static bool read_uid(const char *root, int32_t pid, struct occ_evidence *e)
{
    size_t n;
    _cleanup_(occ_freep) char *text = read_file(root, pid, "status", STATUS_BYTES, &n);
    const char *line = text ? strstr(text, "\nUid:") : NULL;
    return line && sscanf(line, "\nUid: %u", &e->uid) == 1;
}

/* The text after "NAME=", if the variable is this one and not empty. */
static const char *value_of(const char *variable, const char *name)
{
    size_t n = strlen(name);
    return strncmp(variable, name, n) == 0 && variable[n] == '=' && variable[n + 1] ? variable + n + 1 : NULL;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void take_variable(const char *variable, struct occ_evidence *e)
{
    const char *disable = value_of(variable, "OCCTRACE_DISABLE");
    const char *injection = value_of(variable, "CUDA_INJECTION64_PATH");
    const char *preload = value_of(variable, "LD_PRELOAD"), *socket = value_of(variable, "OCCTRACE_SOCKET");
    e->environment.is_disabled |= disable && strcmp(disable, "0") != 0;
    if (injection) {
        e->environment.is_injected = true;
        e->environment.names_guest |= strcmp(base_of(injection), GUEST) == 0;
    }
    if (preload && strstr(preload, "libocctrace-preload.so"))
        e->environment.names_guest = true;
    if (socket)
        (void)snprintf(e->environment.socket, sizeof e->environment.socket, "%s", socket);
}

void occ_evidence_parse_environment(const char *text, size_t n, struct occ_evidence *evidence)
{
    for (size_t at = 0; at < n; at += strlen(text + at) + 1)
        take_variable(text + at, evidence);
}

static bool read_environment(const char *root, int32_t pid, struct occ_evidence *e)
{
    size_t n;
    _cleanup_(occ_freep) char *text = read_file(root, pid, "environ", ENVIRON_BYTES, &n);
    if (text)
        occ_evidence_parse_environment(text, n, e);
    return text != NULL;
}

/* The kernel puts AT_BASE into each vector: the address of the dynamic loader, 0 without one. */
void occ_evidence_parse_vector(const void *bytes, size_t n, struct occ_evidence *evidence)
{
    Elf64_auxv_t entry;
    for (size_t at = 0; at + sizeof entry <= n; at += sizeof entry) {
        memcpy(&entry, (const char *)bytes + at, sizeof entry);
        if (entry.a_type == AT_BASE)
            evidence->is_static = entry.a_un.a_val == 0;
    }
}

static bool read_vector(const char *root, int32_t pid, struct occ_evidence *e)
{
    size_t n;
    _cleanup_(occ_freep) char *bytes = read_file(root, pid, "auxv", AUXV_BYTES, &n);
    if (bytes)
        occ_evidence_parse_vector(bytes, n, e);
    return bytes != NULL;
}

/* Debian's musl is a file libc.so in a directory of its own. */
static void take_mapping(const char *path, struct occ_evidence *e)
{
    const char *name = base_of(path);
    unsigned int minor;
    int end = 0;
    e->has_musl |= strncmp(name, "ld-musl-", 8) == 0 || strstr(path, "-linux-musl/") != NULL;
    /* up to 2.33 the file's name has the version */
    e->has_old_glibc |= sscanf(name, "libc-2.%u.so%n", &minor, &end) == 1 && end && minor < 17;
    e->maps_driver |= strncmp(name, "libcuda.so", 10) == 0;
    e->maps_guest |= strncmp(name, GUEST, sizeof GUEST - 1) == 0;
    e->maps_cupti |= strncmp(name, "libcupti.so", 11) == 0;
}

void occ_evidence_parse_mapping(char *line, struct occ_evidence *evidence)
{
    const char *path = strchr(line, '/');
    line[strcspn(line, "\n")] = '\0';
    if (path)
        take_mapping(path, evidence);
}

static bool read_mappings(const char *root, int32_t pid, struct occ_evidence *e)
{
    char line[4096 + 256];
    unsigned int n = 0;
    (void)snprintf(line, sizeof line, "%s/proc/%d/maps", root, pid);
    _cleanup_(occ_fclosep) FILE *file = fopen(line, "re");
    while (file && n < MAPS_LINES && fgets(line, sizeof line, file)) {
        occ_evidence_parse_mapping(line, e);
        n++;
    }
    return file && n > 0 && n < MAPS_LINES; /* the kernel refuses some readers only at the first read */
}

void occ_evidence_parse_users(const char *text, uint32_t daemon_uid, struct occ_evidence *evidence)
{
    unsigned long long inside, outside, n;
    int end = 0;
    bool is_known = false, has_user = false;
    for (; sscanf(text, "%llu %llu %llu%n", &inside, &outside, &n, &end) == 3; text += end) {
        is_known = true;
        has_user |= outside <= daemon_uid && daemon_uid - outside < n;
    }
    evidence->is_rootless = is_known && !has_user;
}

/* An older kernel has no such file, and no such namespaces. */
static void read_users(const char *root, int32_t pid, struct occ_evidence *e)
{
    size_t n;
    _cleanup_(occ_freep) char *text = read_file(root, pid, "uid_map", USERS_BYTES, &n);
    if (text)
        occ_evidence_parse_users(text, geteuid(), e);
}

void occ_evidence_identify(const char *root, int32_t pid, struct occ_evidence *ret_evidence)
{
    struct occ_evidence *e = ret_evidence;
    *e = (struct occ_evidence){.start_boot_ns = occ_process_start_boot_ns(root, pid)};
    e->exists = e->start_boot_ns >= 0 && read_uid(root, pid, e);
    read_name(root, pid, e);
}

void occ_evidence_read(const char *root, int32_t pid, struct occ_evidence *ret_evidence)
{
    struct occ_evidence *e = ret_evidence;
    occ_evidence_identify(root, pid, e);
    e->is_readable =
        read_environment(root, pid, e) && read_vector(root, pid, e) && read_mappings(root, pid, e);
    read_users(root, pid, e);
    e->exists &= occ_process_start_boot_ns(root, pid) == e->start_boot_ns;
}

/* ---- the reason ---- */

static enum occ_coverage_reason judge_guest(const struct occ_evidence *e, const char *socket)
{
    bool is_elsewhere = e->environment.socket[0] && strcmp(e->environment.socket, socket) != 0;
    /* without a path the guest trusts daemons of root and of its user alone (injector/daemon_link.c) */
    if (!e->environment.socket[0] && e->is_rootless)
        return OCC_COVERAGE_ROOTLESS;
    if (!e->environment.socket[0]) /* its user's own daemon comes before this one */
        return OCC_COVERAGE_NOT_REPORTING;
    return is_elsewhere ? OCC_COVERAGE_OTHER_DAEMON : OCC_COVERAGE_NOT_RECORDING;
}

/* A process without the guest library. A binary that cannot take the library comes before its environment. */
static enum occ_coverage_reason judge_absence(const struct occ_evidence *e, int64_t daemon_start_boot_ns)
{
    bool is_early = e->start_boot_ns < daemon_start_boot_ns;
    const struct {
        bool applies;
        enum occ_coverage_reason reason;
    } rows[] = {
        {e->has_musl, OCC_COVERAGE_MUSL},
        {e->has_old_glibc, OCC_COVERAGE_OLD_GLIBC},
        {e->is_static, OCC_COVERAGE_STATIC},
        {e->environment.names_guest, OCC_COVERAGE_NOT_LOADED},
        {e->environment.is_injected, OCC_COVERAGE_OTHER_PROFILER},
        {is_early, OCC_COVERAGE_STARTED_BEFORE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].applies)
            return rows[i].reason;
    return OCC_COVERAGE_ENVIRONMENT;
}

enum occ_coverage_reason occ_evidence_judge(const struct occ_evidence *e,
                                            const struct occ_evidence_view *view)
{
    bool is_known = e->exists && e->is_readable;
    if (view->is_reporting && !view->is_quiet)
        return OCC_COVERAGE_RECORDED;
    if (view->is_reporting)
        return is_known && !e->maps_cupti ? OCC_COVERAGE_NO_LIBCUPTI : OCC_COVERAGE_NOT_RECORDING;
    /* NVML means another process if this one lacks the driver's library: the pid was reused, or belongs to
     * another pid namespace */
    if (!is_known || !e->maps_driver)
        return OCC_COVERAGE_UNKNOWN;
    if (e->environment.is_disabled)
        return OCC_COVERAGE_OPTED_OUT;
    return e->maps_guest ? judge_guest(e, view->socket) : judge_absence(e, view->daemon_start_boot_ns);
}
