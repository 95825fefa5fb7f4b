/*
 * bench_attribution: measures the error of attributed occupancy and the coverage of its intervals, in worlds
 * with a known truth (attribution_world.h), which share no assumption with the attribution. Prints a table or
 * JSON on stdout; exit status 1 if a figure misses its target, 2 on a failure. The columns:
 *
 *   n          values of configurations, over all seeds
 *   cov, covt  share of values with the truth within +- 1.96 standard errors, by number and by launch time;
 *              the truth is the mean over all launches, also launches without a value
 *   >3se       share of values with an error of more than 3 standard errors
 *   err        mean |value - truth|, by launch time; percentage points of elapsed occupancy
 *   half       median half-width of the 95 % intervals; percentage points; above 10 counts as withheld
 *   mcov       cov with the mean over the launches with a value as truth
 *   own        share of launch time of launches with a value of their own
 *   val        share of launch time of configurations with a value
 *   grp, unl   share of launch time with a withheld value: a group's value; launches that differ from each
 *              other or from known totals
 *   wide       share of launch time with too wide an interval
 *   hcov, h>3, hhalf  cov, >3se and median half-width of the history's intervals, which users read and which
 *              include launches without a value
 *   acov, aerr cov and err of achieved occupancy
 *   direct     single launches with a direct measurement; dcov: share covered
 *   util       values of utilization (schedulers, DRAM, L2, L1, tensor cores); ucov, uerr, uhalf: share
 *              covered, mean error by launch time, mean half-width
 *   us, MiB    processor time per sample; peak of the heap
 */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_dump.h"
#include "attribution_worlds.h"
#include "bench_report.h"

#define TARGET_COVERED          0.95
#define TARGET_BEYOND           0.01
#define TARGET_COVERED_CHANGING 0.93
#define TARGET_BEYOND_CHANGING  0.02
#define TARGET_ERROR            0.01
#define TARGET_HALF             0.03
#define TARGET_VALUED           0.75

/* Worlds with few configurations have few values per run, so they run more often. */
#define FEW_CONFIGS      30
#define FEW_CONFIGS_RUNS 3
#define SEEDS_APART      100000

struct options {
    int seeds, first_seed;
    bool json, quick, dump;
    const char *recordings, *worlds;
    struct occ_attribution_assumptions assumptions;
};

struct figures {
    double covered, covered_time, beyond, error, half, valued, grouped, unlike, wide;
    double measured_covered, measured;
    double achieved_covered, achieved_error, direct_covered, us, mib;
    double history_covered, history_beyond, history_half;
    double utilization_covered, utilization_error, utilization_half;
    char missed[160]; /* names of missed figures, each after a space */
};

static double part(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

/* Returns the tolerance for a share of n trials: two standard deviations around its target. */
static double slack(double target, double n)
{
    return n > 0 ? 2 * sqrt(target * (1 - target) / n) : 1;
}

static void miss(struct figures *f, bool missed, const char *name)
{
    size_t length = strlen(f->missed);
    if (missed)
        (void)snprintf(f->missed + length, sizeof f->missed - length, " %s", name);
}

static void judge_intervals(const struct judge_tally *t, const char *prefix, bool is_changing,
                            struct figures *f)
{
    double covered = is_changing ? TARGET_COVERED_CHANGING : TARGET_COVERED;
    double beyond = is_changing ? TARGET_BEYOND_CHANGING : TARGET_BEYOND;
    char name[32];
    double n = (double)t->n, n_time = part(t->weight * t->weight, t->squared_weight);
    (void)snprintf(name, sizeof name, "%scov", prefix);
    miss(f, n > 0 && part((double)t->covered, n) < covered - slack(covered, n), name);
    (void)snprintf(name, sizeof name, "%scovt", prefix);
    miss(f, n > 0 && part(t->covered_weight, t->weight) < covered - slack(covered, n_time), name);
    (void)snprintf(name, sizeof name, "%s>3se", prefix);
    miss(f, n > 0 && part((double)t->beyond, n) > beyond + slack(beyond, n), name);
}

static struct figures figures_of(const struct worlds_entry *w, struct judge_result *r)
{
    const struct judge_tally *e = &r->elapsed;
    struct figures f = {
        .covered = part((double)e->covered, (double)e->n),
        .covered_time = part(e->covered_weight, e->weight),
        .beyond = part((double)e->beyond, (double)e->n),
        .error = part(e->error, e->weight),
        .half = r->n_half_widths ? bench_median(r->half_widths, r->n_half_widths) : NAN,
        .measured_covered = part((double)r->measured.covered, (double)r->measured.n),
        .measured = part(r->measured_ns, r->launch_ns),
        .valued = part(r->own_ns, r->launch_ns),
        .grouped = part(r->grouped_ns, r->launch_ns),
        .unlike = part(r->unlike_ns, r->launch_ns),
        .wide = part(r->wide_ns, r->launch_ns),
        .achieved_covered = part((double)r->achieved.covered, (double)r->achieved.n),
        .achieved_error = part(r->achieved.error, r->achieved.weight),
        .direct_covered = part((double)r->direct.covered, (double)r->direct.n),
        .history_covered = part((double)r->history.covered, (double)r->history.n),
        .history_beyond = part((double)r->history.beyond, (double)r->history.n),
        .history_half = r->n_half_widths ? bench_median(r->history_half_widths, r->n_half_widths) : NAN,
        .utilization_covered = part((double)r->utilization.covered, (double)r->utilization.n),
        .utilization_error = part(r->utilization.error, r->utilization.weight),
        .utilization_half = part(r->utilization_half_width, (double)r->utilization.n),
        .us = part(r->cpu_ns, (double)r->samples) * 1e-3,
        .mib = (double)r->heap_bytes / 1048576,
    };
    judge_intervals(&r->history, "h", w->kind == WORLDS_CHANGING, &f);
    judge_intervals(&r->direct, "d", false, &f);
    judge_intervals(&r->utilization, "u", false, &f);
    if (w->kind == WORLDS_CHANGING) /* the other intervals are for measured launches only */
        return f;
    judge_intervals(e, "", false, &f);
    judge_intervals(&r->achieved, "a", false, &f);
    if (w->kind != WORLDS_HARD) {
        miss(&f, f.error > TARGET_ERROR, "err");
        miss(&f, f.half > TARGET_HALF, "half");
        miss(&f, w->kind == WORLDS_ORDINARY && !(f.valued >= TARGET_VALUED), "val");
        miss(&f, f.mib > w->memory_mib, "MiB");
    }
    return f;
}

static void print_row(const struct worlds_entry *w, const struct judge_result *r, const struct figures *f)
{
    printf("%-17s %4.0f %6.0f %6.3f %6.3f %6.4f %5.2f %5.2f %6.3f %5.2f %5.2f %5.2f %5.2f %5.2f "
           "%6.3f %6.4f %5.2f %6.3f %5.2f %6.0f %6.3f %6.0f %6.3f %5.2f %5.2f %6.1f %5.1f %s\n",
           w->name, (double)r->configs, (double)r->elapsed.n, f->covered, f->covered_time, f->beyond,
           f->error * 100, f->half * 100, f->measured_covered, f->measured, f->valued, f->grouped, f->unlike,
           f->wide, f->history_covered, f->history_beyond, f->history_half * 100, f->achieved_covered,
           f->achieved_error * 100, (double)r->direct.n, f->direct_covered, (double)r->utilization.n,
           f->utilization_covered, f->utilization_error * 100, f->utilization_half * 100, f->us, f->mib,
           f->missed[0] ? f->missed + 1 : "ok");
}

static void print_number(const char *name, double value, double scale)
{
    if (isfinite(value))
        printf(", \"%s\": %.5g", name, value * scale);
    else
        printf(", \"%s\": null", name);
}

static void print_object(const struct worlds_entry *w, const struct judge_result *r, const struct figures *f)
{
    static const char *const kinds[] = {"ordinary", "collinear", "changing", "hard"};
    printf("    {\"world\": \"%s\", \"kind\": \"%s\", \"configs\": %.0f, \"runs\": %.0f", w->name,
           kinds[w->kind], (double)r->configs, (double)r->runs);
    print_number("launches", (double)r->launches, 1);
    print_number("samples", (double)r->samples, 1);
    print_number("values", (double)r->elapsed.n, 1);
    print_number("valued_s", r->elapsed.weight, 1e-9);
    print_number("covered", f->covered, 1);
    print_number("covered_time", f->covered_time, 1);
    print_number("beyond_3_se", f->beyond, 1);
    print_number("error_pp", f->error, 100);
    print_number("worst_pp", r->elapsed.worst, 100);
    print_number("median_half_width_pp", f->half, 100);
    print_number("measured_covered", f->measured_covered, 1);
    print_number("measured", f->measured, 1);
    print_number("valued", f->valued, 1);
    print_number("grouped", f->grouped, 1);
    print_number("unlike", f->unlike, 1);
    print_number("too_wide", f->wide, 1);
    print_number("history_covered", f->history_covered, 1);
    print_number("history_beyond_3_se", f->history_beyond, 1);
    print_number("history_half_width_pp", f->history_half, 100);
    print_number("achieved_values", (double)r->achieved.n, 1);
    print_number("achieved_covered", f->achieved_covered, 1);
    print_number("achieved_error_pp", f->achieved_error, 100);
    print_number("direct_launches", (double)r->direct.n, 1);
    print_number("direct_covered", f->direct_covered, 1);
    print_number("utilization_values", (double)r->utilization.n, 1);
    print_number("utilization_covered", f->utilization_covered, 1);
    print_number("utilization_error_pp", f->utilization_error, 100);
    print_number("utilization_half_width_pp", f->utilization_half, 100);
    print_number("us_a_sample", f->us, 1);
    print_number("heap_mib", f->mib, 1);
    printf(", \"missed\": \"%s\"}", f->missed[0] ? f->missed + 1 : "");
}

static void print_world(const struct options *o, const struct worlds_entry *w, struct judge_result *result,
                        const struct figures *figures, bool first)
{
    if (o->json) {
        printf("%s", first ? "" : ",\n");
        print_object(w, result, figures);
    } else
        print_row(w, result, figures);
    (void)fflush(stdout);
}

/* Groups of worlds that are judged together. */
enum pool { POOL_ORDINARY, POOL_CHANGING, POOL_HARD, POOLS };

static enum pool pool_of(const struct worlds_entry *w)
{
    return w->kind == WORLDS_HARD ? POOL_HARD : w->kind == WORLDS_CHANGING ? POOL_CHANGING : POOL_ORDINARY;
}

/* Runs a world with all seeds. Returns 1 if a figure misses its target. */
static int run(const struct options *o, size_t i, struct judge_result pools[POOLS], bool first)
{
    char path[512];
    struct worlds_entry w = worlds_get(i, o->recordings, path, sizeof path);
    w.judge.assumptions = &o->assumptions;
    struct judge_result result = {0};
    int runs = w.world.timeline.n_configs <= FEW_CONFIGS ? o->seeds * FEW_CONFIGS_RUNS : o->seeds;
    for (int n = 0; n < runs; n++) {
        int seed = o->first_seed + n % o->seeds + n / o->seeds * SEEDS_APART;
        struct world *world = world_make(&w.world, (uint64_t)seed);
        if (!world)
            exit(2);
        judge_run(&w.judge, world, &result);
        world_free(world);
    }
    struct figures figures = figures_of(&w, &result);
    print_world(o, &w, &result, &figures, first);
    judge_pool(&pools[pool_of(&w)], &result);
    judge_free(&result);
    return figures.missed[0] != '\0';
}

/* True if `list` has the name: names separated by commas; a * at the end stands for any ending. */
static bool is_wanted(const char *list, const char *name)
{
    if (!list)
        return true;
    while (*list) {
        size_t length = strcspn(list, ",");
        if (length > 0 && list[length - 1] == '*' && strncmp(list, name, length - 1) == 0)
            return true;
        if (strlen(name) == length && strncmp(list, name, length) == 0)
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

static int run_all(const struct options *o)
{
    static const struct worlds_entry all[POOLS] = {
        [POOL_ORDINARY] = {.name = "all ordinary", .kind = WORLDS_COLLINEAR},
        [POOL_CHANGING] = {.name = "all changing", .kind = WORLDS_CHANGING},
        [POOL_HARD] = {.name = "all hard", .kind = WORLDS_HARD}};
    struct judge_result pools[POOLS] = {0};
    int status = 0;
    bool first = true;
    if (o->json) {
        printf("{\n  \"benchmark\": \"attribution\",\n");
        bench_print_machine();
        printf(",\n  \"seeds\": %d,\n  \"worlds\": [\n", o->seeds);
    } else
        printf("%-17s %4s %6s %6s %6s %6s %5s %5s %6s %5s %5s %5s %5s %5s %6s %6s %5s %6s %5s %6s %6s %6s "
               "%6s %5s %5s %6s %5s missed\n",
               "world", "cfg", "n", "cov", "covt", ">3se", "err", "half", "mcov", "own", "val", "grp", "unl",
               "wide", "hcov", "h>3", "hhalf", "acov", "aerr", "direct", "dcov", "util", "ucov", "uerr",
               "uhalf", "us", "MiB");
    for (size_t i = 0; i < worlds_count(); i++) {
        char path[512];
        const struct worlds_entry w = worlds_get(i, o->recordings, path, sizeof path);
        if ((o->quick && !w.quick) || !is_wanted(o->worlds, w.name))
            continue;
        status |= run(o, i, pools, first);
        first = false;
    }
    for (int i = 0; i < POOLS; i++)
        if (pools[i].runs > 0) {
            struct figures figures = figures_of(&all[i], &pools[i]);
            print_world(o, &all[i], &pools[i], &figures, false);
            judge_free(&pools[i]);
        }
    if (o->json)
        printf("\n  ]\n}\n");
    return status;
}

/* Runs the first wanted world once and writes the rows of one solution. */
static int dump(const struct options *o)
{
    for (size_t i = 0; i < worlds_count(); i++) {
        char path[512];
        struct worlds_entry w = worlds_get(i, o->recordings, path, sizeof path);
        if (!is_wanted(o->worlds, w.name))
            continue;
        struct judge_result result = {0};
        struct world *world = world_make(&w.world, (uint64_t)o->first_seed);
        if (!world)
            return 2;
        w.judge.inspect = dump_solution;
        judge_run(&w.judge, world, &result);
        world_free(world);
        judge_free(&result);
        return 0;
    }
    return 2;
}

static const char usage[] =
    "bench_attribution [OPTIONS]: judges attributed occupancy in worlds where the truth is known\n"
    "  --seeds N          runs of each world (10; with --quick 2)\n"
    "  --first-seed N     seeds N and following (1)\n"
    "  --worlds A,B,C*    only these\n"
    "  --quick            only those of the quick test\n"
    "  --json             JSON instead of a table\n"
    "  --dump             JSON with the rows and the solution of one block of the first world\n"
    "  --recordings DIR   where the *.timeline are\n"
    "  --assume NAME=X    instead of the usual assumption (attribution.h), as often as wanted\n"
    "Exit status: 0 all figures are met, 1 one is missed, 2 failure.\n";

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"seeds", required_argument, NULL, 's'},  {"first-seed", required_argument, NULL, 'f'},
        {"worlds", required_argument, NULL, 'w'}, {"recordings", required_argument, NULL, 'r'},
        {"quick", no_argument, NULL, 'q'},        {"json", no_argument, NULL, 'j'},
        {"dump", no_argument, NULL, 'd'},         {"assume", required_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},         {0}};
    struct options o = {
        .first_seed = 1, .recordings = OCC_ATTRIBUTION_RECORDINGS, .assumptions = occ_attribution_usual};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (c) {
        case 's':
            o.seeds = atoi(optarg);
            break;
        case 'f':
            o.first_seed = atoi(optarg);
            break;
        case 'w':
            o.worlds = optarg;
            break;
        case 'r':
            o.recordings = optarg;
            break;
        case 'a':
            if (occ_attribution_assume(&o.assumptions, optarg))
                break;
            (void)fputs(usage, stderr);
            return 2;
        case 'q':
            o.quick = true;
            break;
        case 'j':
            o.json = true;
            break;
        case 'd':
            o.dump = true;
            break;
        default:
            (void)fputs(usage, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    if (o.seeds <= 0)
        o.seeds = o.quick ? 2 : 10;
    return o.dump ? dump(&o) : run_all(&o);
}
