/*
 * E10: is the occupancy of PM sampling correct? Kernels with an occupancy known by construction, 5 to 500 us
 * long, even and uneven: for each the construction, the counters read directly on an otherwise idle device,
 * and ncu's measurement of the same program by replay (without clock control). One thread.
 */
#include "load_child.h"
#include "ncu_csv.h"
#include "sampled.h"
#include "stop.h"
#include "verdict.h"

#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/clock.h"
#include "support/text.h"

#define METRIC     "sm__warps_active.avg.pct_of_peak_sustained_active"
#define NEAR_NCU   0.01 /* for kernels of SHORT_NS and more */
#define NEAR_BLOCK 0.1  /* relative, for a block's duration by the counter of launched blocks */
#define NEAR       0.02 /* to the construction, for kernels of LONG_NS and more */

enum {
    SHORT_NS = 20000,
    LONG_NS = 100000,
    NCU_S = 20,
    NCU_SKIPS = 1,
    NCU_LAUNCHES = 3,
    LIMIT_S = 34,
    QUICK_LIMIT_S = 8
};

/* The first QUICK_SUBJECTS are the short form. */
static const struct subject {
    const char *name, *kernel, *percent, *blocks, *ns, *short_ns; /* blocks "0": one wave */
} subjects[] = {
    {"half_100us", "spin", "50", "0", "100000", "0"},
    {"uneven_blocks_100us", "uneven-blocks", "100", "0", "100000", "50000"},
    {"quarter_5us", "spin", "25", "0", "5000", "0"},
    {"full_500us", "spin", "100", "0", "500000", "0"},
    {"uneven_warps_100us", "uneven-warps", "50", "0", "100000", "25000"},
    {"eighth_20us", "spin", "12", "0", "20000", "0"},
    {"half_20us", "spin", "50", "0", "20000", "0"},
    {"full_5us", "spin", "100", "0", "5000", "0"},
    {"one_block_500us", "spin", "100", "1", "500000", "0"},
    {"quarter_500us", "spin", "25", "0", "500000", "0"},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects, QUICK_SUBJECTS = 3, MOST_WORDS = 40 };

struct found {
    double constructed, direct, ncu; /* NaN: not measured */
    double block_us;                 /* NaN: the chip has no pass with launched and resident blocks */
    bool simulated;                  /* a simulated device runs no code, so its blocks are even */
};

static size_t load_words(const struct subject *s, const char **words)
{
    const char *const all[] = {"--kernel", s->kernel, "--percent", s->percent,   "--blocks",
                               s->blocks,  "--ns",    s->ns,       "--short-ns", s->short_ns};
    memcpy(words, all, sizeof all);
    return sizeof all / sizeof *all;
}

/* ---- directly ---- */

/* Returns 0, or the exit code of an experiment that cannot continue. */
static int read_directly(const struct subject *subject, struct found *found)
{
    static const char *const sampling[] = {"--interval-us", "100", "--ms", "500", NULL};
    const char *words[MOST_WORDS] = {NULL};
    char ready[512];
    struct gpu_child load;
    struct gpu_sampled seen;
    struct occ_error err = OCC_ERROR_INIT;
    (void)load_words(subject, words);
    int code = gpu_load_start(&load, words, ready, sizeof ready, &err);
    if (code == 0)
        code = gpu_sampled_run(sampling, NULL, 0.5, &seen, &err);
    (void)gpu_child_stop(&load);
    if (code != 0)
        return gpu_cannot("%s", err.message);
    if (!seen.ended)
        return gpu_cannot_sample("PM sampling", &seen);
    found->constructed = gpu_line_number(ready, "achieved");
    found->simulated = gpu_line_number(ready, "simulated") != 0;
    found->direct = seen.achieved;
    found->block_us = seen.block_us;
    return 0;
}

/* ---- with ncu ---- */

static bool find_program(const char *pattern, char path[PATH_MAX])
{
    glob_t matches;
    bool found = false;
    if (glob(pattern, 0, NULL, &matches) == 0 && matches.gl_pathc > 0) {
        const char *last = matches.gl_pathv[matches.gl_pathc - 1]; /* the newest by its version */
        found = access(last, X_OK) == 0 && snprintf(path, PATH_MAX, "%s", last) < PATH_MAX;
    }
    globfree(&matches);
    return found;
}

static bool find_in_path(char path[PATH_MAX])
{
    const char *list = getenv("PATH");
    for (size_t length; list && *list; list += length + (list[length] == ':')) {
        length = strcspn(list, ":");
        if (snprintf(path, PATH_MAX, "%.*s/ncu", (int)length, list) < PATH_MAX && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static bool find_ncu(char path[PATH_MAX])
{
    static const char *const patterns[] = {"/usr/local/cuda/bin/ncu", "/usr/local/cuda-*/bin/ncu",
                                           "/opt/nvidia/nsight-compute/*/ncu"};
    bool found = find_in_path(path);
    for (size_t i = 0; !found && i < sizeof patterns / sizeof *patterns; i++)
        found = find_program(patterns[i], path);
    return found;
}

/* Returns the mean over the launches; NaN, with ncu's last line in the report, if ncu gives no values. */
static double ask_ncu(const char *ncu, const char *gpu_load, const struct subject *subject)
{
    char skip[8], count[8], launches[8], line[4096];
    const char *words[MOST_WORDS] = {
        ncu,      "--csv",         "--metrics", METRIC,           "--clock-control",
        "none",   "--launch-skip", skip,        "--launch-count", count,
        gpu_load, "--launches",    launches,    "--batch",        "1"};
    struct gpu_child child;
    struct ncu_csv csv = NCU_CSV_INIT;
    struct occ_error err = OCC_ERROR_INIT;
    double sum = 0, value = 0;
    int n = 0;
    (void)snprintf(skip, sizeof skip, "%d", NCU_SKIPS);
    (void)snprintf(count, sizeof count, "%d", NCU_LAUNCHES);
    (void)snprintf(launches, sizeof launches, "%d", NCU_LAUNCHES);
    (void)load_words(subject, words + 15);
    int64_t until_ns = occ_now_ns() + NCU_S * INT64_C(1000000000);
    int code = gpu_child_start(&child, words, NULL, &err);
    while (code == 0 && occ_now_ns() < until_ns &&
           gpu_child_line(&child, NCU_S, line, sizeof line, &err) == 0)
        if (ncu_csv_line(&csv, line, METRIC, &value)) {
            sum += value / 100;
            n++;
        }
    if (n == 0)
        gpu_report_text("ncu", "%s: no value: %s", subject->name, code == 0 ? child.last_words : err.message);
    (void)gpu_child_stop(&child);
    return n ? sum / n : (double)NAN;
}

/* ---- together ---- */

static void judge_one(struct gpu_checks *checks, const struct subject *s, const struct found *f,
                      double *worst)
{
    double ns = strtod(s->ns, NULL);
    gpu_report_value_of(s->name, "constructed", f->constructed, "ratio");
    gpu_report_value_of(s->name, "direct", f->direct, "ratio");
    gpu_report_value_of(s->name, "ncu", f->ncu, "ratio");
    gpu_report_value_of(s->name, "block", f->block_us, "us");
    if (ns >= SHORT_NS && !isnan(f->ncu)) {
        gpu_check(checks, gpu_is_near(f->direct, f->ncu, NEAR_NCU),
                  "%s: counters %.2f %%, ncu %.2f %%, expected within %.0f", s->name, f->direct * 100,
                  f->ncu * 100, NEAR_NCU * 100);
        *worst = fmax(*worst, fabs(f->direct - f->ncu));
    }
    bool as_constructed = !f->simulated || strcmp(s->short_ns, "0") == 0;
    if (ns >= LONG_NS && as_constructed)
        gpu_check(checks, gpu_is_near(f->direct, f->constructed, NEAR),
                  "%s: counters %.2f %%, construction %.2f %%, expected within %.0f", s->name,
                  f->direct * 100, f->constructed * 100, NEAR * 100);
    if (ns >= LONG_NS && strcmp(s->short_ns, "0") == 0 && !isnan(f->block_us))
        gpu_check(checks, gpu_is_near(f->block_us * 1e3 / ns, 1, NEAR_BLOCK),
                  "%s: a block seems to take %.1f us, expected %.0f within a tenth", s->name, f->block_us,
                  ns / 1e3);
}

static const struct gpu_decisions decisions = {
    .of = {[GPU_CONFIRMED] = "achieved occupancy is taken from the counters as they are",
           [GPU_REFUTED] = "the counters are not what the kernels were built for (or what ncu measures): see "
                           "the checks before any achieved occupancy is shown",
           [GPU_UNCLEAR] = "no kernel could be compared"}};

static int conclude(const struct gpu_checks *checks, bool with_ncu, double worst)
{
    enum gpu_verdict verdict = gpu_checks_verdict(checks);
    if (!with_ncu)
        return gpu_report_decide(verdict, &decisions, "compared with the construction only, without ncu");
    return gpu_report_decide(verdict, &decisions,
                             "at most %.2f points from ncu for kernels of 20 us and more", worst * 100);
}

int main(void)
{
    char ncu[PATH_MAX], gpu_load[PATH_MAX];
    struct gpu_checks checks = {0};
    double worst = 0;
    bool quick = gpu_report_quick();
    gpu_stop_catch();
    gpu_report_expect(
        "counters agree with ncu to 1 point from 20 us on, with the construction to 2 points from 100 us "
        "on");
    bool with_ncu = find_ncu(ncu) && gpu_child_path_beside("gpu_load", gpu_load);
    gpu_report_text("ncu", "%s", with_ncu ? ncu : "not found");
    for (size_t i = 0; i < (quick ? QUICK_SUBJECTS : SUBJECTS); i++) {
        struct found found = {NAN, NAN, NAN, NAN, false};
        if (gpu_elapsed_s() > (quick ? QUICK_LIMIT_S : LIMIT_S)) {
            gpu_report_text("left out", "%s and what follows: no time", subjects[i].name);
            break;
        }
        int code = gpu_stopped() ? 1 : read_directly(&subjects[i], &found);
        if (code != 0)
            return code;
        if (with_ncu)
            found.ncu = ask_ncu(ncu, gpu_load, &subjects[i]);
        judge_one(&checks, &subjects[i], &found, &worst);
    }
    return conclude(&checks, with_ncu, worst);
}
