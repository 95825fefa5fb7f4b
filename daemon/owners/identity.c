/* See identity.h. */
#include "identity.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/clock.h"
#include "support/paths.h"
#include "support/process.h"
#include "support/text.h"

#define CGROUP_BYTES 8192

/* ---- control groups ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t hex_digits(const char *text)
{
    size_t n = 0;
    while (is_hex(text[n]))
        n++;
    return n;
}

/* The first sequence of exactly 64 hexadecimal digits up to `end`: the id of the outermost container (an
 * inner one may be named by the container's own processes). NULL: none. */
static const char *find_container(const char *text, const char *end)
{
    for (const char *at = text; *at && at < end;) {
        size_t run = hex_digits(at);
        if (run == OCC_CONTAINER_ID_DIGITS)
            return at;
        at += run ? run : 1;
    }
    return NULL;
}

static const char *line_of(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n')
        at--;
    return at;
}

/* A daemon with a cgroup namespace of its own (a DaemonSet) reads paths relative to its control group:
 * "/../../user.slice" for "/user.slice". */
static const char *without_parents(const char *path)
{
    while (strncmp(path, "/../", 4) == 0)
        path += 3;
    return path;
}

/* Returns the path in a line HIERARCHY:CONTROLLERS:PATH; "" if the line has another format. */
static const char *path_of(const char *line)
{
    const char *end = line + strcspn(line, "\n");
    for (int colons = 0; line < end; line++)
        if (*line == ':' && ++colons == 2)
            return without_parents(line + 1);
    return "";
}

/* true below the slice of systemd-logind for all logins: there users name the control groups. */
static bool is_of_users(const char *path)
{
    static const char slice[] = "/user.slice/";
    return strncmp(path, slice, sizeof slice - 1) == 0;
}

/* Finds "pod" and a uuid (systemd slices have underscores for its dashes) outside of any container and login.
 */
static void find_pod(const char *text, char pod[37])
{
    static const size_t dashes[] = {8, 13, 18, 23, 36};
    for (const char *at = text; (at = strstr(at, "pod")); at += 3) {
        size_t from = 0, group = 0;
        const char *uid = at + 3;
        while (group < 5 && hex_digits(uid + from) == dashes[group] - from) {
            from = dashes[group] + 1;
            if (group < 4 && uid[dashes[group]] != '-' && uid[dashes[group]] != '_')
                break;
            group++;
        }
        if (group < 5 || find_container(line_of(text, at), at) || is_of_users(path_of(line_of(text, at))))
            continue;
        for (size_t i = 0; i < 36; i++)
            pod[i] = uid[i];
        pod[36] = '\0';
        for (size_t i = 0; i < 4; i++)
            pod[dashes[i]] = '-';
        return;
    }
}

/* true if a control group lies in the login slice of `uid` and every container id lies in that slice too. The
 * path must begin with /user.slice, where systemd-logind makes the slice: a container can use the same name
 * further down. */
static bool is_in_login(const char *text, uint32_t uid)
{
    char login[48];
    size_t length = (size_t)snprintf(login, sizeof login, "/user.slice/user-%u.slice/", uid);
    bool is_login = false;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *path = path_of(line), *end = line + strcspn(line, "\n");
        if (strncmp(path, login, length) == 0)
            is_login = true;
        else if (find_container(line, end))
            return false;
    }
    return is_login;
}

/* Copies the word after `prefix`, which begins a component of the path, in one line. " (deleted)" may follow
 * it: the control group of a process that has ended was removed. */
static void find_word(const char *path, const char *prefix, char *word, size_t size)
{
    const char *at = strstr(path, prefix);
    if (at && at < path + strcspn(path, "\n"))
        (void)snprintf(word, size, "%.*s", (int)strcspn(at + strlen(prefix), "/ \n"), at + strlen(prefix));
}

/* True for a control group that Slurm's daemon makes at the hierarchy's root: "/slurm" or "/slurm_NODE"
 * (version 1), "/system.slice/slurmstepd.scope" or "/system.slice/NODE_slurmstepd.scope". Further down, users
 * and containers can give the same names. */
static bool is_slurms(const char *path)
{
    static const char slice[] = "/system.slice/", scope[] = "slurmstepd.scope";
    if (strncmp(path, "/slurm", 6) == 0)
        return path[6] == '/' || path[6] == '_';
    if (strncmp(path, slice, sizeof slice - 1) != 0)
        return false;
    const char *name = path + sizeof slice - 1;
    size_t length = strcspn(name, "/\n"), tail = sizeof scope - 1;
    return length >= tail && memcmp(name + length - tail, scope, tail) == 0 &&
           (length == tail || name[length - tail - 1] == '_');
}

/* "/slurm/uid_U/job_J/step_S" or ".../slurmstepd.scope/job_J/step_S" */
static void find_job(const char *text, struct occ_identity *identity)
{
    for (const char *line = text; *line && !identity->slurm_job[0];
         line += strcspn(line, "\n"), line += *line == '\n') {
        if (!is_slurms(path_of(line)))
            continue;
        find_word(path_of(line), "/job_", identity->slurm_job, sizeof identity->slurm_job);
        find_word(path_of(line), "/step_", identity->slurm_step, sizeof identity->slurm_step);
    }
}

void occ_identity_parse_cgroups(const char *text, struct occ_identity *identity)
{
    const char *container = find_container(text, text + strlen(text));
    if (container)
        (void)snprintf(identity->container, sizeof identity->container, "%.64s", container);
    find_pod(text, identity->pod);
    find_job(text, identity);
    identity->is_rootless |= is_in_login(text, identity->owner_uid);
}

/* A label of RFC 1123, which Kubernetes requires for a namespace; safe as the name of a directory. */
static bool is_namespace(const char *name, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return length > 0 && length < 64 && strspn(name, letters) >= length && name[0] != '-' &&
           name[length - 1] != '-';
}

/* true if the directory belongs to root or the daemon's user and only its owner may write to it. Other
 * directories prove nothing about a pod. */
static bool is_kubelets(int directory, const char *name)
{
    struct stat status;
    return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
           (status.st_uid == 0 || status.st_uid == geteuid()) && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

/* Finds the pod's name and namespace. Kubelet names a pod's log directory NAMESPACE_POD_UID for every
 * container engine. */
static void find_pod_name(const char *root, struct occ_identity *identity)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/var/log/pods", root);
    DIR *directory = opendir(path);
    bool is_trusted = directory && is_kubelets(dirfd(directory), ".");
    for (const struct dirent *entry; is_trusted && (entry = readdir(directory));) {
        const char *first = strchr(entry->d_name, '_'), *last = strrchr(entry->d_name, '_');
        if (!first || first == last || strcmp(last + 1, identity->pod) != 0 ||
            !is_namespace(entry->d_name, (size_t)(first - entry->d_name)) ||
            !is_kubelets(dirfd(directory), entry->d_name))
            continue;
        (void)snprintf(identity->pod_namespace, sizeof identity->pod_namespace, "%.*s",
                       (int)(first - entry->d_name), entry->d_name);
        (void)snprintf(identity->pod_name, sizeof identity->pod_name, "%.*s", (int)(last - first - 1),
                       first + 1);
        break;
    }
    if (directory)
        (void)closedir(directory);
}

/* ---- a process ---- */

static char *read_text(const char *root, const char *path, size_t max)
{
    char whole[4096], *text = NULL;
    size_t n;
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    (void)occ_path_read(whole, max, &text, &n, NULL);
    return text;
}

bool occ_identity_outlasts_process(const char *cgroups)
{
    const char *end = strchr(cgroups, '\n');
    return strncmp(cgroups, "0::", 3) == 0 && end && end[1] == '\0';
}

void occ_identity_read(struct occ_accounts *accounts, int32_t pid, uint32_t uid,
                       struct occ_identity *ret_identity)
{
    const char *root = occ_accounts_root(accounts);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    _cleanup_(occ_freep) char *cgroups = pid > 0 ? read_text(root, path, CGROUP_BYTES) : NULL;
    *ret_identity = (struct occ_identity){
        .start_boot_ns = -1, .uid = uid, .owner_uid = occ_accounts_owner_uid(accounts, uid)};
    if (pid > 0) {
        ret_identity->start_boot_ns = occ_process_start_boot_ns(root, pid);
        ret_identity->is_nested = occ_process_is_nested(root, pid);
    }
    ret_identity->is_rootless = ret_identity->owner_uid != uid;
    if (cgroups) { /* read before the flag: a process that is ending stays so */
        ret_identity->is_uncertain =
            !occ_identity_outlasts_process(cgroups) && occ_process_is_ending(root, pid);
        occ_identity_parse_cgroups(cgroups, ret_identity);
        ret_identity->has_control_groups = true;
    }
    if (ret_identity->pod[0])
        find_pod_name(root, ret_identity);
}

void occ_identity_owner(const struct occ_identity *identity, struct occ_owner *ret_owner)
{
    const struct occ_identity *id = identity;
    bool is_users_own =
        /* an unprivileged user may create and name control groups below the user's own slice */
        id->is_rootless && id->owner_uid != 0;
    *ret_owner = (struct occ_owner){.uid = -1};
    if (id->pod[0] && !is_users_own)
        (void)snprintf(ret_owner->name, sizeof ret_owner->name, "pod-%s", id->pod);
    else if (id->container[0] && !is_users_own)
        (void)snprintf(ret_owner->name, sizeof ret_owner->name, "container-%s", id->container);
    else {
        (void)snprintf(ret_owner->name, sizeof ret_owner->name, "u%u", id->owner_uid);
        ret_owner->uid = id->owner_uid;
    }
}

void occ_identity_history(const struct occ_identity *identity, struct occ_owner *ret_owner)
{
    occ_identity_owner(identity, ret_owner);
    if (identity->pod_namespace[0] && strncmp(ret_owner->name, "pod-", 4) == 0)
        (void)snprintf(ret_owner->name, sizeof ret_owner->name, "ns-%s", identity->pod_namespace);
}

bool occ_identity_parse_owner(const char *name, struct occ_owner *ret_owner)
{
    static const char *const kinds[] = {"pod-", "container-", "ns-"};
    uint64_t uid = 0;
    bool is_user = name[0] == 'u' && occ_parse_u64(name + 1, 0, UINT32_MAX, &uid, NULL) == 0;
    bool is_other = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        is_other |= strncmp(name, kinds[i], strlen(kinds[i])) == 0;
    if (strlen(name) >= sizeof ret_owner->name || (!is_user && !is_other))
        return false;
    *ret_owner = (struct occ_owner){.uid = is_user ? (int64_t)uid : -1};
    (void)snprintf(ret_owner->name, sizeof ret_owner->name, "%s", name);
    return true;
}
