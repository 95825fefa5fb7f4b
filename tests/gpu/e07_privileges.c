/*
 * E7: which users may sample? gpu_sample runs as several kinds of user: the current user, root without the
 * profiling capabilities, nobody, nobody with CAP_PERFMON alone. The results are the source's state and the
 * library's message. Changing the user needs root. One thread.
 */
#include "load_child.h"
#include "public_copy.h"
#include "sampled.h"
#include "stop.h"
#include "verdict.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CAP_PERFMON /* headers before Linux 5.8 */
#define CAP_PERFMON 38
#endif

enum { NOBODY = 65534, NO_CAPABILITY = -1, NOT_CHANGED = 126, NOT_STARTED = 127 };

static const struct identity {
    const char *name;
    bool change;               /* false: the current user */
    bool nobody;               /* another user, without capabilities except `keep` */
    bool no_admin, no_perfmon; /* dropped capabilities */
    int keep;
} identities[] = {
    {"as_we_are", .keep = NO_CAPABILITY},
    {"nobody", .change = true, .nobody = true, .keep = NO_CAPABILITY},
    {"nobody_with_perfmon", .change = true, .nobody = true, .keep = CAP_PERFMON},
    {"without_sys_admin_and_perfmon", .change = true, .no_admin = true, .no_perfmon = true,
     .keep = NO_CAPABILITY},
    {"without_sys_admin", .change = true, .no_admin = true, .keep = NO_CAPABILITY},
};
enum { AS_WE_ARE, PLAIN, PERFMON, NO_ADMIN_NO_PERFMON, NO_ADMIN, IDENTITIES };

static const char *const sources[] = {"pm", "gpm"};
enum { PM, GPM, SOURCES };

enum { LIMIT_S = 36, QUICK_LIMIT_S = 10 };

/* ---- changing the user: in the child, before the program ---- */

static void insist(bool done, const char *what)
{
    if (done)
        return;
    (void)fprintf(stderr, "cannot change privileges: %s: %s\n", what, strerror(errno));
    _exit(NOT_CHANGED);
}

static void drop_bounding(int capability)
{
    insist(prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0, "PR_CAPBSET_DROP");
}

static void set_capabilities(int only)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (only != NO_CAPABILITY) {
        __u32 bit = (__u32)1 << (only % 32);
        data[only / 32] = (struct __user_cap_data_struct){bit, bit, bit};
    }
    insist(syscall(SYS_capset, &header, data) == 0, "capset");
}

static void become_nobody(int keep)
{
    insist(prctl(PR_SET_KEEPCAPS, keep != NO_CAPABILITY, 0, 0, 0) == 0, "PR_SET_KEEPCAPS");
    insist(setgroups(0, NULL) == 0, "setgroups");
    insist(setresgid(NOBODY, NOBODY, NOBODY) == 0, "setresgid");
    insist(setresuid(NOBODY, NOBODY, NOBODY) == 0, "setresuid");
    set_capabilities(keep);
    if (keep != NO_CAPABILITY)
        insist(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, keep, 0, 0) == 0, "PR_CAP_AMBIENT");
}

static void become(const void *context)
{
    const struct identity *identity = context;
    if (identity->no_admin)
        drop_bounding(CAP_SYS_ADMIN); /* at exec root gets the capabilities of the bounding set */
    if (identity->no_perfmon)
        drop_bounding(CAP_PERFMON);
    if (identity->nobody)
        become_nobody(identity->keep);
}

/* ---- asking ---- */

/* Returns 1 if sampling works, 0 if it fails, -1 if no process could start. `program`: a copy that every user
 * can start. */
static int try_source(const struct identity *identity, const char *source, const char *program)
{
    static const char *const interval_us[] = {"1000", "100000"};
    struct gpu_child child;
    struct gpu_sampled seen;
    struct occ_error err = OCC_ERROR_INIT;
    char key[96];
    bool gpm = strcmp(source, "gpm") == 0;
    const char *const words[] = {"--source",          source, "--interval-us", interval_us[gpm], "--ms",
                                 gpm ? "250" : "100", NULL};
    const struct gpu_identity other = {become, identity, program};
    int code = gpu_sampled_start(&child, words, NULL, identity->change ? &other : NULL, &seen, &err);
    if (code == 0)
        gpu_sampled_finish(&child, 1, &seen);
    (void)snprintf(key, sizeof key, "%s.%s", identity->name, source);
    gpu_report_text(key, "%s", code == 0 ? seen.state : err.message);
    if (code == 0 && seen.why[0]) {
        (void)snprintf(key, sizeof key, "%s.%s.words", identity->name, source);
        gpu_report_text(key, "%s", seen.why);
    }
    bool never_ran = code != 0 || seen.exit_code == NOT_STARTED || seen.exit_code == NOT_CHANGED;
    return never_ran ? -1 : seen.ended;
}

/* Reads "RmProfilingAdminOnly: 1" of the driver's parameters. */
static bool driver_restricts(void)
{
    char line[256], value[32] = "not said";
    FILE *file = fopen("/proc/driver/nvidia/params", "re");
    while (file && fgets(line, sizeof line, file))
        (void)sscanf(line, "RmProfilingAdminOnly: %31s", value);
    if (file)
        (void)fclose(file);
    gpu_report_text("RmProfilingAdminOnly", "%s", value);
    return strcmp(value, "1") == 0;
}

static void report_capabilities(void)
{
    char line[256], value[32] = "not said";
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        (void)sscanf(line, "CapEff: %31s", value);
    if (file)
        (void)fclose(file);
    gpu_report_text("CapEff", "%s", value);
}

/* Results by identity and source; -1: not tried. */
struct answers {
    int can[IDENTITIES][SOURCES];
};

static void ask(const char *program, struct answers *answers)
{
    bool root = geteuid() == 0;
    double limit_s = gpu_report_quick() ? QUICK_LIMIT_S : LIMIT_S;
    for (int i = 0; i < IDENTITIES; i++)
        for (int s = 0; s < SOURCES; s++) {
            bool worth_it = s == PM || i <= PLAIN; /* for GPM only the user may matter */
            bool possible = (root || !identities[i].change) && !gpu_stopped() && gpu_elapsed_s() < limit_s;
            answers->can[i][s] = worth_it && possible ? try_source(&identities[i], sources[s], program) : -1;
        }
}

static const struct gpu_decisions decisions = {
    .of = {[GPU_CONFIRMED] = "the daemon asks for CAP_PERFMON, and plain users get GPM",
           [GPU_REFUTED] = "the rights that docs and messages name are not the driver's: correct them",
           [GPU_UNCLEAR] = "other users could not be tried"}};

static int judge(const struct answers *a, bool restricted)
{
    static const char *const words[] = {"not tried", "no", "yes"};
    struct gpu_checks checks = {0};
    if (a->can[PLAIN][PM] >= 0 && restricted)
        gpu_check(&checks, !a->can[PLAIN][PM], "PM sampling by a plain user: %s, expected no",
                  words[a->can[PLAIN][PM] + 1]);
    if (a->can[PLAIN][GPM] >= 0 && a->can[AS_WE_ARE][GPM] == 1)
        gpu_check(&checks, a->can[PLAIN][GPM], "GPM by a plain user: %s, expected yes",
                  words[a->can[PLAIN][GPM] + 1]);
    if (a->can[PERFMON][PM] >= 0 && a->can[AS_WE_ARE][PM] == 1)
        gpu_check(&checks, a->can[PERFMON][PM], "PM sampling with CAP_PERFMON alone: %s, expected yes",
                  words[a->can[PERFMON][PM] + 1]);
    return gpu_report_decide(
        gpu_checks_verdict(&checks), &decisions,
        "PM sampling works as we are: %s; as root without CAP_SYS_ADMIN: %s, and without "
        "CAP_PERFMON: %s; as nobody: %s, with CAP_PERFMON: %s",
        words[a->can[AS_WE_ARE][PM] + 1], words[a->can[NO_ADMIN][PM] + 1],
        words[a->can[NO_ADMIN_NO_PERFMON][PM] + 1], words[a->can[PLAIN][PM] + 1],
        words[a->can[PERFMON][PM] + 1]);
}

int main(void)
{
    struct answers answers;
    struct gpu_public_copy copy;
    struct occ_error err = OCC_ERROR_INIT;
    gpu_stop_catch();
    gpu_report_expect(
        "PM sampling wants root, CAP_SYS_ADMIN or CAP_PERFMON unless RmProfilingAdminOnly is 0; GPM wants "
        "nothing");
    bool restricted = driver_restricts();
    report_capabilities();
    gpu_report_text("user", "%s", geteuid() == 0 ? "root" : "not root: other users cannot be tried");
    if (gpu_public_copy_make(&copy, "gpu_sample", &err) != 0)
        gpu_report_text("other users", "%s", err.message);
    ask(copy.program, &answers);
    gpu_public_copy_remove(&copy);
    return gpu_stopped() ? 1 : judge(&answers, restricted);
}
