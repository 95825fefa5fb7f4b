/*
 * E8: how short can PM sampling's interval be, with which buffer, and at which cost? Every interval with
 * several sizes of the hardware buffer, while gpu_load keeps all SMs full. Results: received samples of the
 * expected ones, time without samples, overflows, processor time of the whole sampling process as part of a
 * core. One thread.
 */
#include "load_child.h"
#include "sampled.h"
#include "stop.h"
#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COMPLETE 0.95 /* part of the expected samples */

static const char *const intervals_us[] = {"1000", "200", "100", "50", "20", "10"};
static const char *const buffers_mb[] = {"64", "16", "256"};
static const char *const busy[] = {"--percent", "100", "--ns", "50000", "--seconds", "120", NULL};

enum {
    INTERVALS = sizeof intervals_us / sizeof *intervals_us,
    BUFFERS = sizeof buffers_mb / sizeof *buffers_mb,
    LIMIT_S = 36,
    QUICK_LIMIT_S = 9
};

struct best {
    double finest_us;   /* the shortest interval with complete samples */
    double core_at_1ms; /* part of a core */
    double core_at_finest;
    int runs;
};

static void report_run(const char *interval_us, const char *buffer_mb, const struct gpu_sampled *seen,
                       struct best *best)
{
    char key[64];
    double interval = strtod(interval_us, NULL);
    double complete = seen->samples / (seen->wall_s * 1e6 / interval);
    double core = seen->cpu_s / seen->wall_s;
    const struct {
        const char *name, *unit;
        double value;
    } values[] = {
        {"came", "ratio", complete},
        {"interval", "us", seen->covered_s / seen->samples * 1e6},
        {"overflows", "", seen->overflows},
        {"gaps", "", seen->gaps},
        {"bad", "", seen->bad},
        {"core", "ratio", core},
        {"per_sample", "us of a core", seen->cpu_s / seen->samples * 1e6},
        {"decoded", "bytes/sample", seen->bytes_per_sample > 0 ? seen->bytes_per_sample : (double)NAN},
        {"achieved", "ratio", seen->achieved}};
    (void)snprintf(key, sizeof key, "%sus_%sMB", interval_us, buffer_mb);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        gpu_report_value_of(key, values[i].name, values[i].value, values[i].unit);
    if (!(complete >= COMPLETE) || seen->overflows > 0)
        return;
    if (interval == 1000)
        best->core_at_1ms = fmin(best->core_at_1ms, core);
    if (interval < best->finest_us) {
        best->finest_us = interval;
        best->core_at_finest = core;
    }
}

/* Returns 0, or the exit code of an experiment that cannot continue. */
static int try_one(const char *interval_us, const char *buffer_mb, double seconds, struct best *best)
{
    struct gpu_sampled seen;
    struct occ_error err = OCC_ERROR_INIT;
    char ms[24];
    const char *const words[] = {"--interval-us", interval_us, "--buffer-mb", buffer_mb, "--ms", ms, NULL};
    (void)snprintf(ms, sizeof ms, "%.0f", seconds * 1e3);
    if (gpu_sampled_run(words, NULL, seconds, &seen, &err) != 0)
        return gpu_cannot("%s", err.message);
    if (seen.ended) {
        best->runs++;
        report_run(interval_us, buffer_mb, &seen, best);
        return 0;
    }
    if (best->runs == 0)
        return gpu_cannot_sample("PM sampling", &seen);
    char key[64];
    (void)snprintf(key, sizeof key, "%sus_%sMB", interval_us, buffer_mb);
    gpu_report_text(key, "%s: %s", seen.state, seen.why);
    return 0;
}

static const struct gpu_decisions decisions = {
    .of = {[GPU_CONFIRMED] = "continuously at 1 ms, bursts at 50 us",
           [GPU_REFUTED] = "longer intervals than 1 ms, or than 50 us in bursts, or a cheaper way of reading",
           [GPU_UNCLEAR] = "no interval could be tried"}};

static int judge(const struct best *best)
{
    struct gpu_checks checks = {0};
    gpu_check(&checks, best->core_at_1ms < 0.01, "1 ms costs %.2f %% of a core, expected less than 1",
              best->core_at_1ms * 100);
    gpu_check(&checks, best->finest_us <= 50,
              "the shortest interval of which all samples come is %.0f us, "
              "expected 50 or less",
              best->finest_us);
    return gpu_report_decide(
        gpu_checks_verdict(&checks), &decisions,
        "1 ms costs %.2f %% of a core; the shortest complete interval is %.0f us (%.1f %% of a core)",
        best->core_at_1ms * 100, best->finest_us, best->core_at_finest * 100);
}

/* Runs all combinations; returns the exit code. */
static int run(bool quick)
{
    struct best best = {INFINITY, INFINITY, NAN, 0};
    /* all intervals with the first buffer come first, in case time runs out */
    for (size_t b = 0; b < (quick ? 1 : BUFFERS); b++)
        for (size_t i = 0; i < INTERVALS; i++) {
            if (gpu_elapsed_s() > (quick ? QUICK_LIMIT_S : LIMIT_S)) {
                gpu_report_text("left out", "%sus_%sMB: no time", intervals_us[i], buffers_mb[b]);
                continue;
            }
            int code = gpu_stopped() ? 1 : try_one(intervals_us[i], buffers_mb[b], quick ? 0.5 : 1, &best);
            if (code != 0)
                return code;
        }
    return judge(&best);
}

int main(void)
{
    struct gpu_child load = GPU_CHILD_INIT;
    struct occ_error err = OCC_ERROR_INIT;
    char ready[512];
    gpu_stop_catch();
    gpu_report_expect("at 1 ms all samples come for less than 1 %% of a core; 50 us is possible in bursts");
    int code = gpu_load_start(&load, busy, ready, sizeof ready, &err) == 0 ? run(gpu_report_quick())
                                                                           : gpu_cannot("%s", err.message);
    (void)gpu_child_stop(&load);
    return code;
}
