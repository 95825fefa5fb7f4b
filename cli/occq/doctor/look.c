/* Checks that need more than a pattern; see doctor.h. One thread. */
#include "doctor.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config/config.h"
#include "store/filesystem.h"
#include "store/store.h"
#include "support/cleanup.h"
#include "support/control.h"
#include "support/paths.h"
#include "support/text.h"

enum { PATIENCE_MS = 2000 };

/* Appends the version of the kernel's driver. Both files exist with the driver, but a sandbox may show only
 * the second file, or none. Returns false if neither has a version. */
static bool driver_version(const struct doctor_machine *machine, char *version)
{
    static const struct doctor_check module = {.source = "/sys/module/nvidia/version",
                                               .pattern = "^([0-9]+\\.[0-9.]+)$"},
                                     nvrm = {.source = "/proc/driver/nvidia/version",
                                             .pattern = "^NVRM version: .*  ([0-9]+\\.[0-9.]+) "};
    return !doctor_must_not(machine, &module, version) || !doctor_must_not(machine, &nvrm, version);
}

/* Fault: neither the kernel has the driver, nor the probe got an answer from libcuda. Shows both. */
bool doctor_driver(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    (void)check;
    bool has_module = driver_version(machine, found);
    bool answers = doctor_match(machine->probe, "^cuda\t(.*)", found);
    if (!has_module && !answers)
        doctor_append(found, "none");
    return has_module || answers;
}

/* Fault: the kernel driver's version matches the pattern. */
bool doctor_driver_not(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    char version[DOCTOR_FOUND_BYTES] = "";
    return !driver_version(machine, version) || !doctor_match(version, check->pattern, found);
}

/* Fault: the driver is loaded, but fewer than three of its device nodes exist, or this user may not open one
 * of the nodes. */
bool doctor_node(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    glob_t paths;
    size_t n = doctor_glob(machine, "/{sys/module,proc/driver}/nvidia/version", &paths);
    globfree(&paths);
    bool lacks = n > 0 && doctor_glob(machine, check->source, &paths) < 3;
    if (n == 0)
        return true;
    if (lacks)
        doctor_append(found, "not all of %s", check->source);
    for (size_t i = 0; i < paths.gl_pathc; i++)
        if (access(paths.gl_pathv[i], R_OK | W_OK) != 0)
            doctor_append(found, "%s: permission denied", paths.gl_pathv[i]);
    globfree(&paths);
    return !found[0];
}

/* Fault: there are more compute instances than GPU instances, so that some share a GPU instance. */
bool doctor_mig(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    glob_t instances, computes;
    size_t n = doctor_glob(machine, "/proc/driver/nvidia/capabilities/gpu*/mig/gi*/access", &instances);
    size_t c = doctor_glob(machine, "/proc/driver/nvidia/capabilities/gpu*/mig/gi*/ci*/access", &computes);
    (void)check;
    globfree(&instances);
    globfree(&computes);
    if (n > 0)
        doctor_append(found, "%zu GPU instances, %zu compute instances", n, c);
    return c <= n;
}

/* Fault: the driver restricts counters to administrators, and this process is none. CapEff is hexadecimal:
 * CAP_SYS_ADMIN is bit 21, CAP_PERFMON bit 38; drivers accept CAP_PERFMON since version 565. */
bool doctor_counters(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    static const struct doctor_check restricted = {.source = "/proc/driver/nvidia/params",
                                                   .pattern = "^(RmProfilingAdminOnly: [^0].*)"},
                                     admin = {.source = "/proc/self/status",
                                              .pattern = "^CapEff:.*([2367abef])[0-9a-f]{5}$"},
                                     perfmon = {.source = "/proc/self/status",
                                                .pattern = "^CapEff:.*([4-7c-f])[0-9a-f]{9}$"};
    char unused[DOCTOR_FOUND_BYTES] = "", version[DOCTOR_FOUND_BYTES] = "";
    (void)check;
    return doctor_must_not(machine, &restricted, found) || doctor_must(machine, &admin, unused) ||
           (doctor_must(machine, &perfmon, unused) && driver_version(machine, version) &&
            doctor_match(version, "^(56[5-9]|5[7-9].|[6-9]..|....+)\\.", unused));
}

/* Fault: memfd_create(2) fails. Rings are sealed memory files, so the size of /dev/shm and RLIMIT_MEMLOCK do
 * not matter. */
bool doctor_memfd(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    (void)check;
    if (machine->memfd_errno)
        doctor_append(found, "memfd_create: %s", strerror(machine->memfd_errno));
    return !machine->memfd_errno;
}

/* ---- the history ---- */

/* Fault: the history is on a network file system. */
bool doctor_local(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    const char *network = occ_filesystem_network(machine->history);
    (void)check;
    if (network)
        doctor_append(found, "%s is on %s, a network file system", machine->history, network);
    return !network;
}

/* Fault: there is a history, and it cannot be opened. */
bool doctor_readable(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    const struct occ_store_options options = {.mode = OCC_STORE_READ};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    (void)check;
    if (access(machine->history, F_OK) == 0 && occ_store_open(machine->history, &options, &store, &err) != 0)
        doctor_append(found, "%s", err.message);
    occ_store_close(store);
    return !found[0];
}

/* Finds the path, or the nearest existing directory above it. */
static void find_existing(const char *path, char existing[PATH_MAX])
{
    (void)snprintf(existing, PATH_MAX, "%s", path);
    for (char *slash; access(existing, F_OK) != 0 && (slash = strrchr(existing, '/'));)
        slash[slash == existing] = '\0';
}

/* Fault: this user may not write the history, or may not make it. */
bool doctor_writable(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    char existing[PATH_MAX];
    (void)check;
    find_existing(machine->history, existing);
    bool writable = access(existing, W_OK) == 0;
    doctor_append(found, "%s%s", writable ? machine->history : existing,
                  !writable                                 ? " may not be written"
                  : strcmp(existing, machine->history) == 0 ? ""
                                                            : " (the first run makes it)");
    return writable;
}

/* Loads the settings over the defaults; OCC_E_NOT_FOUND: no file. */
static int load_settings(const struct doctor_machine *machine, struct occ_config *config,
                         struct occ_error *err)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s%s", machine->root, machine->settings);
    occ_config_defaults(config);
    return occ_config_load(path, config, err);
}

/* Fault: the disk has less room than the limit of the history in the settings, or by default. */
bool doctor_space(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    char existing[PATH_MAX], space[32], limit[32];
    struct occ_config config;
    struct statvfs status;
    (void)check;
    (void)load_settings(machine, &config, NULL);
    find_existing(machine->history, existing);
    if (statvfs(existing, &status) != 0)
        return true;
    uint64_t bytes = (uint64_t)status.f_bavail * status.f_frsize;
    doctor_append(found, "%s free, the history's limit is %s", occ_format_bytes(bytes, space, sizeof space),
                  occ_format_bytes(config.database_max_bytes, limit, sizeof limit));
    return bytes >= config.database_max_bytes;
}

/* ---- the daemon ---- */

/* Fault: the settings file is wrong. */
bool doctor_settings(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_config config;
    (void)check;
    int status = load_settings(machine, &config, &err);
    if (status != OCC_E_NOT_FOUND)
        doctor_append(found, "%s", status == 0 ? machine->settings : err.message);
    return status == 0 || status == OCC_E_NOT_FOUND;
}

/* Asks the user's own daemon for its version, or the service if there is none, like traced programs. Faults:
 * the daemon does not answer; another user has the own daemon's place. No fault: no daemon listens. */
bool doctor_daemon(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    const char *sockets[] = {machine->socket, machine->service_socket};
    struct occ_error err = OCC_ERROR_INIT;
    char version[OCC_CONTROL_BYTES];
    int status = OCC_E_NOT_FOUND;
    bool is_taken = false;
    (void)check;
    for (size_t i = 0; i < 2 && (status == OCC_E_NOT_FOUND || status == OCC_E_DENIED); i++) {
        _cleanup_(occ_closep) int fd = -1;
        status = occ_path_connect(sockets[i], &fd, &err);
        if (status == OCC_E_DENIED)
            doctor_append(found, "%s", err.message);
        is_taken |= status == OCC_E_DENIED;
        if (status == 0)
            status = occ_control_request(fd, "ping", PATIENCE_MS, version, sizeof version, &err);
        if (status == 0)
            doctor_append(found, "version %.64s (occq: " OCC_VERSION ") at %s", version, sockets[i]);
    }
    if (status != 0 && status != OCC_E_DENIED)
        doctor_append(found, "%s",
                      status == OCC_E_NOT_FOUND ? "none; occtrace starts one for each run" : err.message);
    return !is_taken && (status == 0 || status == OCC_E_NOT_FOUND);
}

/* Returns true if a daemon listens at the service's socket, such as one that a person started. */
static bool answers_as_service(const struct doctor_machine *machine)
{
    _cleanup_(occ_closep) int fd = -1;
    return occ_path_connect(machine->service_socket, &fd, NULL) == 0;
}

/* Fault: the service is installed, but does not run, and no other daemon answers at its socket. systemd
 * creates a unit's control group when it starts the unit, and removes it when the unit ends. */
bool doctor_unit(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    glob_t unit, group;
    size_t n =
        doctor_glob(machine, "/{etc,lib,usr/lib,usr/local/lib}/systemd/system/occtraced.service", &unit);
    bool runs = doctor_glob(machine, "/sys/fs/cgroup{,/systemd}/system.slice/occtraced.service", &group) > 0;
    (void)check;
    bool answers = !runs && n > 0 && answers_as_service(machine);
    if (n > 0)
        doctor_append(found, "%s %s", unit.gl_pathv[0],
                      runs      ? "runs"
                      : answers ? "does not run; another daemon answers at its socket"
                                : "does not run");
    globfree(&unit);
    globfree(&group);
    return n == 0 || runs || answers;
}

/* ---- identity and time ---- */

/* Fault: the control group shows a job or a pod, but the variable that labels its runs is not set. */
bool doctor_identity(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    const struct doctor_check group = {.source = "/proc/self/cgroup", .pattern = check->pattern};
    const char *label = getenv(check->source);
    if (!label)
        return doctor_must_not(machine, &group, found);
    doctor_append(found, "%s=%s", check->source, label);
    return true;
}

/* Fault: neither NTP nor PTP adjusts the clock. */
bool doctor_clock(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    (void)check;
    doctor_append(found, "%ssynchronised", machine->clock_synchronised ? "" : "not ");
    return machine->clock_synchronised;
}
