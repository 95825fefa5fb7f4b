/*
 * E5: does PM sampling reduce the programs' clocks or speed?
 *
 * gpu_load repeats a fixed amount of arithmetic; its launches per second follow the SM clock.
 * Beside it PM sampling runs in alternate phases: at 1 ms, at 100 us, and with
 * CUPTI_DISABLE_POWER_FEATURES=1. NVML is only read; no clock is set. One thread.
 */
#include "load_child.h"
#include "nvml.h"
#include "sampled.h"
#include "stop.h"
#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/clock.h"
#include "support/text.h"

#define SAME 0.01 /* smaller changes of rate or clock count as none */

enum { ASK_MS = 100, SETTLE_MS = 300 };

static const char *const powerless[] = {"CUPTI_DISABLE_POWER_FEATURES=1", NULL};

static const struct phase {
    const char *name, *interval_us; /* NULL: no sampling */
    const char *const *environment;
} phases[] = {
    {"before", NULL, NULL},    {"pm_1ms", "1000", NULL},  {"between_1", NULL, NULL},
    {"pm_100us", "100", NULL}, {"between_2", NULL, NULL}, {"pm_1ms_no_power_features", "1000", powerless},
    {"after", NULL, NULL},
};

/* The short form ends before the phases with a changed environment. */
enum { PHASES = sizeof phases / sizeof *phases, QUICK_PHASES = PHASES - 2 };

struct measured {
    double rate;                 /* launches a second */
    double clock_mhz, least_mhz; /* NVML's; NaN without it */
    double counted_ghz;          /* by the counters */
    uint64_t reasons;            /* union of NVML's clock reasons */
};

/* First and last report of the load that lie in the phase. */
struct progress {
    double first_ns, last_ns, first, last;
};

static void take_reports(struct gpu_child *load, double seconds, struct progress *progress)
{
    char line[256];
    int64_t until_ns = occ_now_ns() + (int64_t)(seconds * 1e9);
    while (!gpu_stopped() && occ_now_ns() < until_ns) {
        double left = (double)(until_ns - occ_now_ns()) / 1e9;
        if (gpu_child_expect(load, "rate", left > 0 ? left : 0, line, sizeof line, NULL) != 0)
            return;
        progress->last_ns = gpu_line_number(line, "t_ns");
        progress->last = gpu_line_number(line, "launches");
        if (progress->first_ns == 0) {
            progress->first_ns = progress->last_ns;
            progress->first = progress->last;
        }
    }
}

static void ask_clocks(const struct gpu_nvml *nvml, struct measured *m, double *sum, int *n)
{
    double mhz = nvml ? gpu_nvml_sm_clock(nvml) : (double)NAN;
    if (isnan(mhz))
        return;
    *sum += mhz;
    ++*n;
    m->least_mhz = fmin(m->least_mhz, mhz); /* the other value if one is NaN */
    m->reasons |= gpu_nvml_clock_reasons(nvml);
}

static struct measured watch(struct gpu_child *load, const struct gpu_nvml *nvml, double seconds)
{
    struct measured m = {NAN, NAN, NAN, NAN, 0};
    struct progress progress = {0}, unsettled = {0};
    double sum = 0;
    int n = 0;
    take_reports(load, SETTLE_MS / 1e3, &unsettled);
    for (int left_ms = (int)(seconds * 1e3); left_ms > 0 && !gpu_stopped(); left_ms -= ASK_MS) {
        take_reports(load, ASK_MS / 1e3, &progress);
        ask_clocks(nvml, &m, &sum, &n);
    }
    if (progress.last_ns > progress.first_ns)
        m.rate = (progress.last - progress.first) / (progress.last_ns - progress.first_ns) * 1e9;
    m.clock_mhz = n ? sum / n : (double)NAN;
    return m;
}

static void report_phase(const char *name, const struct measured *m)
{
    const struct {
        const char *name, *unit;
        double value;
    } values[] = {{"rate", "launches/s", m->rate},
                  {"sm_clock", "MHz", m->clock_mhz},
                  {"sm_clock_least", "MHz", m->least_mhz},
                  {"sm_clock_counted", "GHz", m->counted_ghz},
                  {"clock_reasons", "bits", (double)m->reasons}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        gpu_report_value_of(name, values[i].name, values[i].value, values[i].unit);
}

/* Returns 0, or an error: the source does not open (*ret_seen has the state), or a process does not start. */
static int do_phase(const struct phase *phase, struct gpu_child *load, const struct gpu_nvml *nvml,
                    double seconds, struct measured *ret, struct gpu_sampled *ret_seen, struct occ_error *err)
{
    struct gpu_child sampler = GPU_CHILD_INIT;
    char ms[24];
    const char *const words[] = {"--interval-us", phase->interval_us, "--ms", ms, NULL};
    double sampled_s = seconds + SETTLE_MS / 1e3 + 0.5;
    (void)snprintf(ms, sizeof ms, "%.0f", sampled_s * 1e3);
    int code =
        phase->interval_us ? gpu_sampled_start(&sampler, words, phase->environment, NULL, ret_seen, err) : 0;
    if (code != 0)
        return code;
    *ret = watch(load, nvml, seconds);
    if (!phase->interval_us)
        return 0;
    gpu_sampled_finish(&sampler, sampled_s, ret_seen);
    ret->counted_ghz = ret_seen->ghz;
    return ret_seen->ended ? 0
                           : occ_fail(err, OCC_E_IO, "PM sampling (%s): %s: %s", phase->name, ret_seen->state,
                                      ret_seen->why);
}

/* Returns the slowdown against the mean of the two neighbouring phases without sampling. */
static double slowdown(const struct measured *m, size_t i)
{
    return 1 - m[i].rate / ((m[i - 1].rate + m[i + 1].rate) / 2);
}

static const struct gpu_decisions decisions = {
    .of = {[GPU_CONFIRMED] = "PM sampling may be on by default",
           [GPU_REFUTED] = "PM sampling costs speed or clocks: only in bursts, or with "
                           "CUPTI_DISABLE_POWER_FEATURES=1 if that is better above",
           [GPU_UNCLEAR] = "the rates above decide nothing"}};

static int judge(const struct measured *m, size_t n)
{
    struct gpu_checks checks = {0};
    double worst = 0;
    for (size_t i = 1; i + 1 < n; i++) {
        if (!phases[i].interval_us)
            continue;
        double lost = slowdown(m, i);
        gpu_report_value_of(phases[i].name, "slowdown", lost, "ratio");
        if (phases[i].environment || isnan(lost)) /* a remedy, not a part of the question; or no rate */
            continue;
        gpu_check(&checks, lost < SAME, "%s: the load is %.2f %% slower, expected less than %.0f",
                  phases[i].name, lost * 100, SAME * 100);
        worst = fmax(worst, lost);
    }
    double before = m[0].clock_mhz, during = m[1].clock_mhz;
    if (!isnan(before) && !isnan(during))
        gpu_check(&checks, fabs(during / before - 1) < SAME,
                  "SM clock %.0f MHz before, %.0f MHz while sampling at 1 ms", before, during);
    return gpu_report_decide(gpu_checks_verdict(&checks), &decisions, "%.1f %% slower at most", worst * 100);
}

/* Runs the phases; returns the exit code. */
static int run(const struct gpu_nvml *nvml, struct gpu_child *load, size_t n, double seconds)
{
    struct measured m[PHASES];
    struct gpu_sampled seen = {.state = ""};
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        if (do_phase(&phases[i], load, nvml, seconds, &m[i], &seen, &err) != 0)
            return seen.state[0] ? gpu_cannot_sample("PM sampling", &seen) : gpu_cannot("%s", err.message);
        if (gpu_stopped())
            return 1;
        report_phase(phases[i].name, &m[i]);
    }
    return judge(m, n);
}

int main(void)
{
    static const char *const words[] = {"--kernel",    "fma", "--ns",      "200", "--batch", "512",
                                        "--report-ms", "20",  "--seconds", "120", NULL};
    struct gpu_nvml *nvml = NULL;
    struct gpu_child load = GPU_CHILD_INIT;
    struct occ_error err = OCC_ERROR_INIT;
    char ready[512];
    bool quick = gpu_report_quick();
    gpu_stop_catch();
    gpu_report_expect("clocks and throughput do not change by 1 %% while PM sampling runs");
    if (gpu_nvml_open(&nvml, &err) == 0)
        gpu_report_value("sm_clock_most", gpu_nvml_sm_clock_most(nvml), "MHz");
    else
        gpu_report_text("nvml", "%s", err.message);
    int code = gpu_load_start(&load, words, ready, sizeof ready, &err) == 0
                   ? run(nvml, &load, quick ? QUICK_PHASES : PHASES, quick ? 0.5 : 3)
                   : gpu_cannot("%s", err.message);
    (void)gpu_child_stop(&load);
    gpu_nvml_close(nvml);
    return code;
}
