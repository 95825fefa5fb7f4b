/* See process.h. Every value is cut at its limit; a key without a value is left out. The text is built in
 * static memory: it is too large for a stack of unknown size, and only one thread runs here. */
#include "process.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define CMDLINE_BYTES 16384u
#define VALUE_BYTES   256u
#define CLAIMS_BYTES  2048u

static struct text {
    char bytes[2 * PATH_MAX + CMDLINE_BYTES + CLAIMS_BYTES + 10 * VALUE_BYTES];
    uint32_t used;
    uint32_t pairs;
} text;

static_assert(sizeof text.bytes + sizeof(struct occ_record_process) <= OCC_RECORD_MAX_BYTES, "fits a record");

/* Adds "key\0value\0"; an empty value adds nothing. */
static void add_bytes(const char *key, const char *value, size_t n)
{
    size_t key_bytes = strlen(key) + 1;
    if (n == 0 || key_bytes + n + 1 > sizeof text.bytes - text.used)
        return;
    memcpy(text.bytes + text.used, key, key_bytes);
    memmove(text.bytes + text.used + key_bytes, value, n); /* built in place, maybe */
    text.used += (uint32_t)(key_bytes + n);
    text.bytes[text.used++] = '\0';
    text.pairs++;
}

/* The place of the next value, to build it there: `key` is its key; *ret_bytes: how long it may be. */
static char *next_value(const char *key, size_t max, size_t *ret_bytes)
{
    size_t key_bytes = strlen(key) + 1, room = sizeof text.bytes - text.used;
    *ret_bytes = key_bytes + 1 > room ? 0 : room - key_bytes - 1 < max ? room - key_bytes - 1 : max;
    return text.bytes + text.used + key_bytes;
}

static void add(const char *key, const char *value)
{
    if (value)
        add_bytes(key, value, strnlen(value, VALUE_BYTES));
}

static void add_link(const char *key, const char *link)
{
    size_t room;
    char *path = next_value(key, PATH_MAX, &room);
    ssize_t n = room > 0 ? readlink(link, path, room) : 0;
    add_bytes(key, path, n > 0 ? (size_t)n : 0);
}

/* Reads a small file; returns the number of bytes, 0 if it does not exist. */
static size_t read_file(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, buffer, size) : -1;
    if (fd >= 0)
        (void)close(fd);
    return n > 0 ? (size_t)n : 0;
}

static void add_cmdline(void)
{
    size_t room;
    char *line = next_value("cmdline", CMDLINE_BYTES, &room);
    size_t n = room > 0 ? read_file("/proc/self/cmdline", line, room) : 0;
    while (n > 0 && line[n - 1] == '\0')
        n--;
    for (size_t i = 0; i < n; i++)
        if (line[i] == '\0')
            line[i] = ' ';
    add_bytes("cmdline", line, n);
}

static void add_kubernetes(char *(*get)(const char *name))
{
    if (!get("KUBERNETES_SERVICE_HOST"))
        return;
    char name[VALUE_BYTES];
    const char *pod = get("POD_NAME"), *namespace = get("POD_NAMESPACE");
    add("k8s_pod", pod ? pod : get("HOSTNAME")); /* a pod's host name is its name by default */
    if (namespace)
        add("k8s_namespace", namespace);
    else
        add_bytes("k8s_namespace", name,
                  read_file("/var/run/secrets/kubernetes.io/serviceaccount/namespace", name, sizeof name));
}

/* Variables that schedulers and launchers set for a job; the daemon compares them with the kernel's view. */
static void add_claims(char *(*get)(const char *name))
{
    static const char *const names[] = {
        "SLURM_JOB_ID",
        "SLURM_ARRAY_JOB_ID",
        "SLURM_ARRAY_TASK_ID",
        "SLURM_STEP_ID",
        "SLURM_JOB_ACCOUNT", /* before the name, whose text a user chooses */
        "SLURM_JOB_PARTITION",
        "SLURM_JOB_QOS",
        "SLURM_JOB_NAME",
        "SLURM_CLUSTER_NAME",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "POD_NAME",
        "POD_NAMESPACE",
        "POD_UID",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
    };
    size_t room, used = 0;
    char *claims = next_value("claims", CLAIMS_BYTES, &room);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = get(names[i]);
        size_t name = strlen(names[i]), n = value ? strnlen(value, VALUE_BYTES / 2) : 0;
        if (n == 0 || used + name + n + 2 > room)
            continue;
        if (used > 0)
            claims[used++] = ' ';
        memcpy(claims + used, names[i], name);
        claims[used + name] = '=';
        memcpy(claims + used + name + 1, value, n);
        used += name + 1 + n;
    }
    add_bytes("claims", claims, used);
    const char *rank = get("RANK");
    add("rank", rank ? rank : get("SLURM_PROCID"));
}

static void add_hostname(void)
{
    char name[VALUE_BYTES];
    if (gethostname(name, sizeof name) == 0)
        add("hostname", name);
}

static bool log_text(struct occ_ring_producer *ring)
{
    struct occ_record_process record = {
        .record.type = OCC_RECORD_PROCESS, .count = text.pairs, .text_bytes = text.used};
    return occ_ring_log(ring, &record.record, sizeof record, text.bytes, text.used);
}

bool occ_process_log_cupti(struct occ_ring_producer *ring, const char *path, const char *note, bool is_exact)
{
    text.used = 0;
    text.pairs = 0;
    add_bytes("cupti_path", path, strlen(path));
    add("cupti_note", note);
    add("exact", is_exact ? "1" : NULL);
    return log_text(ring);
}

bool occ_process_log(struct occ_ring_producer *ring, const struct occ_env *env,
                     char *(*get)(const char *name))
{
    text.used = 0;
    text.pairs = 0;
    add_link("exe", "/proc/self/exe");
    add_cmdline();
    add_link("cwd", "/proc/self/cwd");
    add("label", env->label);
    add("session", env->session);
    add("slurm_job", get("SLURM_JOB_ID"));
    add("slurm_step", get("SLURM_STEP_ID"));
    add_kubernetes(get);
    add_claims(get);
    add_hostname();
    return log_text(ring);
}
