/*
 * E22: can counter sets alternate, and can counters open again after a close? Public users of PM sampling
 * never reconfigure an object in place, since decoding then fails with some versions of CUPTI, and one user
 * reports that disabling finalizes all of CUPTI.
 *
 * Beside a load of half of the warps: the daemon's own source for longer than two switches, at 1 ms to the
 * end; then both manners of switching with the library itself (gpu_turns); then the daemon's source,
 * closed and opened again in one process. One thread.
 */
#include "load_child.h"
#include "sampled.h"
#include "stop.h"
#include "verdict.h"

#include <math.h>
#include <stdio.h>

#define COMPLETE 0.9 /* part of the expected samples; switches lose some */
#define SILENT_S 0.5 /* maximum time from the last sample to the end */

enum { SWITCHES = 2, PAUSE_MS = 1500, START_S = 30 };

static const char *const half_load[] = {"--percent", "50", "--ns", "500000", "--seconds", "120", NULL};

struct lengths {
    int shipped_ms; /* two switches of pm.c take at most 5.5 s */
    int turns, turn_ms, reopen_ms;
};
static const struct lengths full = {14000, 8, 700, 3000}, quick = {7000, 6, 300, 700};

/* Results of gpu_turns. */
struct turns {
    double done, of, sets;
    char words[256];
};

/* ---- the manners of switching ---- */

static int ask_turns(const char *manner, const struct lengths *lengths, struct turns *ret,
                     struct occ_error *err)
{
    char turns[16], ms[16], line[512] = "";
    const char *const words[] = {"--manner", manner, "--turns", turns, "--turn-ms", ms, NULL};
    struct gpu_child child;
    *ret = (struct turns){NAN, NAN, NAN, ""};
    (void)snprintf(turns, sizeof turns, "%d", lengths->turns);
    (void)snprintf(ms, sizeof ms, "%d", lengths->turn_ms);
    int code = gpu_child_start_beside(&child, "gpu_turns", words, NULL, NULL, err);
    if (code != 0)
        return code;
    double limit_s = START_S + lengths->turns * lengths->turn_ms / 1e3;
    bool said = gpu_child_expect(&child, "turns", limit_s, line, sizeof line, NULL) == 0;
    (void)snprintf(ret->words, sizeof ret->words, "%s", said ? line : child.last_words);
    ret->done = said ? gpu_line_number(line, "done") : 0;
    ret->of = lengths->turns;
    ret->sets = said ? gpu_line_number(line, "sets") : (double)NAN;
    int exit_code = gpu_child_stop(&child);
    if (!said)
        gpu_report_text(manner, "ended with %d", exit_code);
    gpu_report_value_of(manner, "turns", ret->done, "turns");
    gpu_report_text(manner, "%s", ret->words);
    return 0;
}

/* ---- the daemon's source ---- */

static double part_that_came(const struct gpu_sampled *seen)
{
    return seen->samples / (seen->wall_s * 1e3);
}

static void report_source(const char *name, const struct gpu_sampled *seen)
{
    gpu_report_sampled(name, seen);
    gpu_report_value_of(name, "came", part_that_came(seen), "ratio");
    gpu_report_value_of(name, "switches", seen->rotations, "");
    gpu_report_value_of(name, "silent", seen->silent_s, "s at the end");
    if (!seen->ended)
        gpu_report_text(name, "%s: %s", seen->state, seen->why);
}

static void check_source(struct gpu_checks *checks, const char *name, const struct gpu_sampled *seen)
{
    double came = part_that_came(seen);
    gpu_check(
        checks, seen->ended && came >= COMPLETE && seen->silent_s < SILENT_S,
        "%s: %s, %.1f %% of the samples came, the last one %.2f s before the end; expected %.0f %% or more, "
        "to the end",
        name, seen->state, came * 100, seen->silent_s, COMPLETE * 100);
}

/* Runs gpu_sample. Returns 0, or the error that kept the process from starting. */
static int sample(const char *name, int ms, int pause_ms, struct gpu_sampled *seen, struct gpu_sampled *again,
                  struct occ_error *err)
{
    struct gpu_child child;
    char length[16], pause[16];
    const char *const words[] = {"--interval-us", "1000", "--ms", length, "--reopen-after-ms", pause, NULL};
    (void)snprintf(length, sizeof length, "%d", ms);
    (void)snprintf(pause, sizeof pause, "%d", pause_ms);
    int code = gpu_sampled_start(&child, words, NULL, NULL, seen, err);
    if (code != 0)
        return code;
    if (again)
        gpu_sampled_twice(&child, ms / 1e3, pause_ms / 1e3, seen, again);
    else
        gpu_sampled_finish(&child, ms / 1e3, seen);
    report_source(name, seen);
    return 0;
}

/* ---- together ---- */

static const struct gpu_decisions decisions = {
    .of = {[GPU_CONFIRMED] =
               "counter sets take turns, and counters close and open again, as the daemon does it",
           [GPU_REFUTED] = "where a switch fails: the first counter set only, for good; where opening again "
                           "fails: counters stay open while the GPU is idle",
           [GPU_UNCLEAR] = "too few switches were seen"}};

struct seen {
    struct gpu_sampled shipped, first, again;
    struct turns in_place, enable;
};

static int judge(const struct seen *s)
{
    struct gpu_checks checks = {0};
    bool enough = s->shipped.rotations >= SWITCHES;
    check_source(&checks, "as shipped", &s->shipped);
    check_source(&checks, "opened again", &s->again);
    if (s->enable.sets > 1 && !(s->enable.done >= s->enable.of))
        gpu_check(&checks, enough, "as shipped: %.0f switches, though Disable and Enable fail",
                  s->shipped.rotations);
    if (s->shipped.failed_changes > 0)
        gpu_check(&checks, false, "as shipped: a change failed after %.0f switches", s->shipped.rotations);
    enum gpu_verdict verdict = gpu_checks_verdict(&checks);
    return gpu_report_decide(verdict == GPU_CONFIRMED && !enough ? GPU_UNCLEAR : verdict, &decisions,
                             "%.0f switches as shipped; turns in place %.0f of %.0f, with Disable and Enable "
                             "%.0f of %.0f",
                             s->shipped.rotations, s->in_place.done, s->in_place.of, s->enable.done,
                             s->enable.of);
}

/* Runs the three parts; returns the exit code. */
static int run(const struct lengths *lengths)
{
    struct seen s = {.shipped = {.state = ""}};
    struct occ_error err = OCC_ERROR_INIT;
    if (sample("as_shipped", lengths->shipped_ms, 0, &s.shipped, NULL, &err) != 0)
        return gpu_cannot("%s", err.message);
    if (!s.shipped.opened)
        return gpu_cannot_sample("PM sampling", &s.shipped);
    if (ask_turns("enable", lengths, &s.enable, &err) != 0 ||
        ask_turns("in-place", lengths, &s.in_place, &err) != 0 ||
        sample("before_the_close", lengths->reopen_ms, PAUSE_MS, &s.first, &s.again, &err) != 0)
        return gpu_cannot("%s", err.message);
    report_source("opened_again", &s.again);
    return gpu_stopped() ? 1 : judge(&s);
}

int main(void)
{
    struct gpu_child load = GPU_CHILD_INIT;
    struct occ_error err = OCC_ERROR_INIT;
    char ready[512];
    gpu_stop_catch();
    gpu_report_expect(
        "at 1 ms samples come to the end over two switches of counter sets, and again after a close");
    int code = gpu_load_start(&load, half_load, ready, sizeof ready, &err) == 0
                   ? run(gpu_report_quick() ? &quick : &full)
                   : gpu_cannot("%s", err.message);
    (void)gpu_child_stop(&load);
    return code;
}
