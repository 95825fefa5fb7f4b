/*
 * E11: is NVML's GPM a fallback? GPM is read as a plain user (nobody, if the current user is root), at three
 * intervals, while gpu_load holds half of the warps and PM sampling reads the same device. Both should have
 * the same results. One thread.
 */
#include "load_child.h"
#include "public_copy.h"
#include "sampled.h"
#include "stop.h"
#include "verdict.h"

#include <grp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NEAR 0.02

enum { NOBODY = 65534, NOT_CHANGED = 126, NOT_STARTED = 127 };

static const struct reading {
    const char *name, *interval_us;
    double seconds, quick_seconds;
} readings[] = {
    {"gpm_100ms", "100000", 3, 1.5},
    {"gpm_200ms", "200000", 3, 2},
    {"gpm_1000ms", "1000000", 5, 0}, /* 0: not in the short form */
};

enum { READINGS = sizeof readings / sizeof *readings };

static void become_nobody(const void *unused)
{
    (void)unused;
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0)
        _exit(NOT_CHANGED);
}

struct pair {
    struct gpu_sampled gpm, pm;
};

/* Reads GPM as that user and PM samples beside it. Returns 0, or the error that kept a process from starting.
 */
static int read_both(const struct reading *reading, double seconds, const struct gpu_identity *user,
                     struct pair *pair, struct occ_error *err)
{
    struct gpu_child gpm, pm;
    char ms[24];
    const char *const gpm_words[] = {"--source", "gpm", "--interval-us", reading->interval_us, "--ms",
                                     ms,         NULL};
    const char *const pm_words[] = {"--interval-us", "1000", "--ms", ms, NULL};
    (void)snprintf(ms, sizeof ms, "%.0f", seconds * 1e3);
    int code = gpu_sampled_start(&pm, pm_words, NULL, NULL, &pair->pm, err);
    if (code != 0)
        return code;
    code = gpu_sampled_start(&gpm, gpm_words, NULL, user, &pair->gpm, err);
    if (code == 0)
        gpu_sampled_finish(&gpm, seconds, &pair->gpm);
    gpu_sampled_finish(&pm, seconds, &pair->pm);
    return code;
}

/* True if the process could not run as the user: no result about GPM. */
static bool never_ran(const struct gpu_sampled *seen)
{
    return seen->exit_code == NOT_CHANGED || seen->exit_code == NOT_STARTED;
}

static void judge_one(struct gpu_checks *checks, const struct reading *reading, const struct pair *pair)
{
    const struct gpu_sampled *gpm = &pair->gpm, *pm = &pair->pm;
    char beside[64];
    (void)snprintf(beside, sizeof beside, "%s.pm", reading->name);
    gpu_report_sampled(reading->name, gpm);
    gpu_report_sampled(beside, pm);
    if (!pm->ended) {
        gpu_report_text(beside, "%s: %s", pm->state, pm->why);
        gpu_check(checks, gpu_is_near(gpm->elapsed, 0.5, NEAR),
                  "%s: occupancy %.2f %%, constructed 50, expected within %.0f", reading->name,
                  gpm->elapsed * 100, NEAR * 100);
        return;
    }
    gpu_check(checks, gpu_is_near(gpm->elapsed, pm->elapsed, NEAR),
              "%s: occupancy %.2f %%, PM sampling %.2f %%, expected within %.0f", reading->name,
              gpm->elapsed * 100, pm->elapsed * 100, NEAR * 100);
    gpu_check(checks, gpu_is_near(gpm->sm_active, pm->sm_active, NEAR),
              "%s: SMs active %.2f %%, PM sampling %.2f %%, expected within %.0f", reading->name,
              gpm->sm_active * 100, pm->sm_active * 100, NEAR * 100);
}

static const struct gpu_decisions decisions = {
    .of = {[GPU_CONFIRMED] = "GPM is a fallback without privileges, at 100 ms, beside PM sampling",
           [GPU_REFUTED] = "GPM is no equal of PM sampling: its values are kept apart by their source",
           [GPU_UNCLEAR] = "nothing could be compared"}};

/* Runs the readings; returns the exit code. `user` NULL: the current user. */
static int run(bool quick, const struct gpu_identity *user)
{
    struct gpu_checks checks = {0};
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t i = 0; i < READINGS; i++) {
        struct pair pair;
        double seconds = quick ? readings[i].quick_seconds : readings[i].seconds;
        if (seconds == 0)
            continue;
        if (gpu_stopped())
            return 1;
        int code = read_both(&readings[i], seconds, user, &pair, &err);
        if (code == 0 && user && never_ran(&pair.gpm)) {
            gpu_report_text("user", "as we are: nobody cannot start it: %s", pair.gpm.why);
            user = NULL;
            code = read_both(&readings[i], seconds, user, &pair, &err);
        }
        if (code != 0)
            return gpu_cannot("%s", err.message);
        if (!pair.gpm.ended)
            return gpu_cannot_sample("GPM", &pair.gpm);
        judge_one(&checks, &readings[i], &pair);
    }
    return gpu_report_decide(gpu_checks_verdict(&checks), &decisions, "%d of %d checks hold", checks.held,
                             checks.held + checks.failed);
}

/* Runs as a plain user; returns the exit code. */
static int run_as_plain_user(bool quick)
{
    struct gpu_public_copy copy = {.directory = ""};
    struct occ_error err = OCC_ERROR_INIT;
    bool root = geteuid() == 0;
    gpu_report_text("user", "%s", root ? "nobody" : "as we are");
    if (root && gpu_public_copy_make(&copy, "gpu_sample", &err) != 0) {
        gpu_report_text("user", "as we are: %s", err.message);
        root = false;
    }
    const struct gpu_identity nobody = {.prepare = become_nobody, .program = copy.program};
    int code = run(quick, root ? &nobody : NULL);
    gpu_public_copy_remove(&copy);
    return code;
}

int main(void)
{
    static const char *const half[] = {"--percent", "50", "--ns", "1000000", "--seconds", "120", NULL};
    struct gpu_child load = GPU_CHILD_INIT;
    struct occ_error err = OCC_ERROR_INIT;
    char ready[512];
    gpu_stop_catch();
    gpu_report_expect("GPM works as a plain user, beside PM sampling, and agrees with it to 2 points");
    int code = gpu_load_start(&load, half, ready, sizeof ready, &err) == 0
                   ? run_as_plain_user(gpu_report_quick())
                   : gpu_cannot("%s", err.message);
    (void)gpu_child_stop(&load);
    return code;
}
