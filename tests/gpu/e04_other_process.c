/*
 * E4: does PM sampling in one process count the kernels of another process? The daemon depends on it.
 *
 * gpu_load holds half of the warps of every SM; gpu_sample reads the counters beside it, without a context of
 * its own. Then two such loads at once, then load and sampling in one process. One thread.
 */
#include "load_child.h"
#include "sampled.h"
#include "stop.h"
#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CLOSE  0.02 /* tolerance for the occupancy of a single load */
#define SHARED 0.05 /* tolerance for two alternating processes */

enum { MOST_LOADS = 2 };

static const char *const half_load[] = {"--percent", "50", "--ns", "1000000", NULL};

struct watch {
    const char *name;
    int loads;
    double expected, tolerance; /* `achieved`, and its tolerance; NaN: expects an idle device */
};

static const struct watch watches[] = {
    {"idle", 0, NAN, 0},
    {"one_process", 1, 0.5, CLOSE},
    {"two_processes", 2, 0.5, SHARED}, /* not in the short form */
};

enum { WATCHES = sizeof watches / sizeof *watches, QUICK_WATCHES = WATCHES - 1 };

static int start_loads(struct gpu_child *loads, int n, struct occ_error *err)
{
    char ready[512];
    int code = 0;
    for (int i = 0; i < n && code == 0; i++)
        code = gpu_load_start(&loads[i], half_load, ready, sizeof ready, err);
    return code;
}

static void judge(struct gpu_checks *checks, const struct watch *watch, const struct gpu_sampled *seen)
{
    if (watch->loads == 0)
        gpu_check(checks, seen->sm_active < CLOSE, "%s: SMs are active %.2f %% of the time, expected 0",
                  watch->name, seen->sm_active * 100);
    else
        gpu_check(checks, gpu_is_near(seen->achieved, watch->expected, watch->tolerance),
                  "%s: achieved occupancy %.2f %%, expected %.0f +- %.0f", watch->name, seen->achieved * 100,
                  watch->expected * 100, watch->tolerance * 100);
    gpu_report_sampled(watch->name, seen);
}

/* Samples during one watch; *ret_seen: its result, if there is one. */
static int do_watch(struct gpu_checks *checks, const struct watch *watch, double seconds,
                    struct gpu_sampled *ret_seen, struct occ_error *err)
{
    struct gpu_child loads[MOST_LOADS] = {GPU_CHILD_INIT, GPU_CHILD_INIT};
    char ms[24];
    const char *const words[] = {"--interval-us", "1000", "--ms", ms, NULL};
    (void)snprintf(ms, sizeof ms, "%.0f", seconds * 1e3);
    int code = start_loads(loads, watch->loads, err);
    if (code == 0)
        code = gpu_sampled_run(words, NULL, seconds, ret_seen, err);
    for (int i = 0; i < MOST_LOADS; i++)
        (void)gpu_child_stop(&loads[i]);
    if (code == 0 && ret_seen->ended)
        judge(checks, watch, ret_seen);
    return code;
}

static void watch_itself(struct gpu_checks *checks, double seconds)
{
    char line[512], limit[24];
    struct gpu_child load;
    struct occ_error err = OCC_ERROR_INIT;
    const char *const words[] = {"--percent", "50",          "--ns", "1000000", "--seconds",
                                 limit,       "--sample-us", "1000", NULL};
    (void)snprintf(limit, sizeof limit, "%.0f", ceil(seconds));
    int code = gpu_load_start(&load, words, line, sizeof line, &err);
    if (code == 0)
        code = gpu_child_expect(&load, "sampled", seconds + 20, line, sizeof line, &err);
    (void)gpu_child_stop(&load);
    double achieved = code == 0 ? gpu_line_number(line, "achieved") : (double)NAN;
    gpu_report_value("same_process.achieved", achieved, "ratio");
    gpu_check(checks, gpu_is_near(achieved, 0.5, CLOSE),
              "same process: achieved occupancy %.2f %%, expected 50 +- 2%s%s", achieved * 100,
              code == 0 ? "" : "; ", err.message);
}

static const struct gpu_decisions decisions = {
    .of = {[GPU_CONFIRMED] = "one daemon may sample for all processes of the GPU",
           [GPU_REFUTED] = "counters of other processes are not (rightly) seen in each of these cases: PM "
                           "sampling by a daemon is no base for achieved occupancy",
           [GPU_UNCLEAR] = "something else uses this GPU: repeat it alone"}};

int main(void)
{
    double seconds = gpu_report_quick() ? 0.5 : 3;
    struct gpu_sampled seen[WATCHES];
    struct gpu_checks checks = {0};
    struct occ_error err = OCC_ERROR_INIT;
    gpu_stop_catch();
    gpu_report_expect(
        "a sampler without a context counts the warps of other processes: 50 %% for a load that holds "
        "half of the warps, about 0 without a load");
    for (size_t i = 0; i < (gpu_report_quick() ? QUICK_WATCHES : WATCHES) && !gpu_stopped(); i++) {
        if (do_watch(&checks, &watches[i], seconds, &seen[i], &err) != 0)
            return gpu_cannot("%s", err.message);
        if (!seen[i].ended)
            return gpu_cannot_sample("PM sampling", &seen[i]);
    }
    if (gpu_stopped())
        return 1;
    watch_itself(&checks, seconds);
    bool alone = seen[0].sm_active < CLOSE;
    return gpu_report_decide(alone ? gpu_checks_verdict(&checks) : GPU_UNCLEAR, &decisions,
                             "achieved occupancy %.2f %% of one process's load of half the warps",
                             seen[1].achieved * 100);
}
