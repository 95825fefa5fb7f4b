/*
 * E9: how far are the times of PM samples from the times of kernels that CUPTI traces in another process?
 *
 * gpu_load alternately holds the whole device for 1 ms and leaves it idle for 1 ms, under occtrace;
 * gpu_sample reads the counters at 50 us. The time at which the SMs become active (within a sample: by its
 * active part) is compared with the kernel's start in the trace, and the same for
 * ends. Then again with sampling in the traced process itself. One thread.
 */
#include "edges.h"
#include "load_child.h"
#include "sampled.h"
#include "stop.h"
#include "verdict.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cleanup.h"

#define INTERVAL_US "50"

enum {
    WINDOW_NS = 400000,
    LEAST_EDGES = 100,
    MOST_KERNELS = 100000,
    MOST_SAMPLES = 4000000,
    QUERY_S = 30,
    START_S = 30
};

struct place {
    char directory[PATH_MAX - 64];
    char history[PATH_MAX], samples[PATH_MAX];
    char program[3][PATH_MAX]; /* occtrace, occq, gpu_load */
};

struct seen {
    struct gpu_span *kernels, *rising, *falling;
    struct occ_sample *samples;
    size_t n_kernels, n_samples, n_rising, n_falling;
    uint32_t sms;
};

/* ---- the two recordings ---- */

static int start_traced(const struct place *place, const char *seconds, bool samples_itself,
                        struct gpu_child *load, struct seen *seen, struct occ_error *err)
{
    char ready[512];
    const char *words[] = {place->program[0],
                           "--counters=none", /* this experiment samples the counters */
                           "-q",
                           "-d",
                           place->history,
                           "--",
                           place->program[2],
                           "--ns",
                           "1000000",
                           "--pause-ns",
                           "1000000",
                           "--seconds",
                           seconds,
                           NULL,
                           NULL,
                           NULL,
                           NULL,
                           NULL};
    if (samples_itself) {
        size_t n = 0;
        while (words[n])
            n++;
        words[n++] = "--sample-us";
        words[n++] = INTERVAL_US;
        words[n++] = "--dump";
        words[n] = place->samples;
    }
    int code = gpu_child_start(load, words, NULL, err);
    if (code == 0)
        code = gpu_child_expect(load, "ready", START_S, ready, sizeof ready, err);
    if (code == 0)
        seen->sms = (uint32_t)gpu_line_number(ready, "sms");
    return code;
}

/* Reads two times in ns around `separator`. Returns the text behind them, or NULL without times. */
static char *take_span(char *text, char separator, struct gpu_span *span)
{
    char *end = NULL, *rest = NULL;
    span->start_ns = strtoll(text, &end, 10);
    if (end == text || *end != separator)
        return NULL;
    span->end_ns = strtoll(end + 1, &rest, 10);
    return rest != end + 1 ? rest : NULL;
}

static int read_samples(const char *path, struct seen *seen, struct occ_error *err)
{
    static const enum occ_counter dumped[] = {OCC_COUNTER_WARPS, OCC_COUNTER_ACTIVE, OCC_COUNTER_ELAPSED};
    char line[256];
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "re");
    seen->samples = calloc(MOST_SAMPLES, sizeof *seen->samples);
    if (!file || !seen->samples)
        return occ_fail(err, OCC_E_IO, "no samples were written");
    while (seen->n_samples < MOST_SAMPLES && fgets(line, sizeof line, file)) {
        struct occ_sample *s = &seen->samples[seen->n_samples];
        struct gpu_span span = {0, 0};
        char *rest = take_span(line, ' ', &span);
        s->start_ns = span.start_ns;
        s->end_ns = span.end_ns;
        for (size_t v = 0; rest && v < sizeof dumped / sizeof *dumped; v++)
            s->value[dumped[v]] = strtod(rest, &rest);
        if (rest)
            seen->n_samples++;
    }
    return 0;
}

/* Reads the launches of the history; the first one is gpu_load's warm-up. */
static int read_kernels(const struct place *place, struct seen *seen, struct occ_error *err)
{
    char line[256];
    struct gpu_child occq;
    const char *const words[] = {place->program[1],
                                 "sql",
                                 "-d",
                                 place->history,
                                 "--csv",
                                 "SELECT start_ns, end_ns FROM launch ORDER BY start_ns",
                                 NULL};
    seen->kernels = calloc(MOST_KERNELS, 3 * sizeof *seen->kernels);
    if (!seen->kernels)
        return occ_fail(err, OCC_E_NO_MEMORY, "no memory");
    seen->rising = seen->kernels + MOST_KERNELS;
    seen->falling = seen->rising + MOST_KERNELS;
    int code = gpu_child_start(&occq, words, NULL, err);
    while (code == 0 && seen->n_kernels < MOST_KERNELS &&
           gpu_child_line(&occq, QUERY_S, line, sizeof line, NULL) == 0) {
        if (take_span(line, ',', &seen->kernels[seen->n_kernels]))
            seen->n_kernels++;
    }
    if (code == 0 && gpu_child_wait(&occq, QUERY_S) != 0)
        code = occ_fail(err, OCC_E_IO, "occq cannot read the history: %s", occq.last_words);
    return code;
}

static void free_seen(struct seen *seen)
{
    free(seen->kernels);
    free(seen->samples);
}

/* ---- one comparison ---- */

static void report_offset(const char *name, const char *edge, const struct gpu_offset *o)
{
    char prefix[96];
    const struct {
        const char *name, *unit;
        double value;
    } values[] = {{"edges", "", (double)o->n},    {"mean", "ns", o->mean_ns},   {"sd", "ns", o->sd_ns},
                  {"median", "ns", o->median_ns}, {"least", "ns", o->least_ns}, {"most", "ns", o->most_ns},
                  {"drift", "ppm", o->drift_ppm}};
    (void)snprintf(prefix, sizeof prefix, "%s.%s", name, edge);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        gpu_report_value_of(prefix, values[i].name, values[i].value, values[i].unit);
}

/* Returns the range of the offset: the difference between the largest and the smallest median of two-second
 * periods. */
static double wander_ns(const struct gpu_span *edges, size_t n)
{
    double least = INFINITY, most = -INFINITY;
    struct gpu_offset stretch;
    for (size_t from = 0, to = 0; from < n; from = to) {
        while (to < n && edges[to].start_ns - edges[from].start_ns < INT64_C(2000000000))
            to++;
        gpu_offset_of(edges + from, to - from, &stretch);
        least = fmin(least, stretch.median_ns);
        most = fmax(most, stretch.median_ns);
    }
    return most >= least ? most - least : (double)NAN;
}

static int compare(const char *name, const struct place *place, struct seen *seen,
                   struct gpu_offset *ret_rising, struct occ_error *err)
{
    struct gpu_offset falling;
    int code = read_kernels(place, seen, err);
    if (code == 0)
        code = read_samples(place->samples, seen, err);
    if (code != 0)
        return code;
    gpu_edges_find(seen->samples, seen->n_samples, seen->sms, seen->kernels, seen->n_kernels, WINDOW_NS,
                   seen->rising, &seen->n_rising, seen->falling, &seen->n_falling);
    gpu_offset_of(seen->rising, seen->n_rising, ret_rising);
    gpu_offset_of(seen->falling, seen->n_falling, &falling);
    gpu_report_value_of(name, "kernels", (double)seen->n_kernels, "");
    gpu_report_value_of(name, "samples", (double)seen->n_samples, "");
    report_offset(name, "rising", ret_rising);
    report_offset(name, "falling", &falling);
    gpu_report_value_of(name, "wander", wander_ns(seen->rising, seen->n_rising), "ns");
    return 0;
}

static void forget(const struct place *place)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    char path[PATH_MAX + 8];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        (void)snprintf(path, sizeof path, "%s%s", place->history, endings[i]);
        (void)unlink(path);
    }
    (void)unlink(place->samples);
}

/* Samples in a separate process, from before the first marker until after the last one. */
static int sample_apart(const struct place *place, int seconds, struct seen *seen,
                        struct gpu_sampled *sampled, struct occ_error *err)
{
    struct gpu_child sampler, load = GPU_CHILD_INIT;
    char ms[24], limit[24];
    const char *const words[] = {"--interval-us", INTERVAL_US, "--ms", ms, "--dump", place->samples, NULL};
    (void)snprintf(ms, sizeof ms, "%d", seconds * 1000);
    (void)snprintf(limit, sizeof limit, "%d", seconds + 1);
    int code = start_traced(place, limit, false, &load, seen, err);
    if (code == 0)
        code = gpu_sampled_start(&sampler, words, NULL, NULL, sampled, err);
    if (code == 0)
        gpu_sampled_finish(&sampler, seconds, sampled);
    bool done = code == 0 && sampled->ended;
    int exit_code = done ? gpu_child_wait(&load, START_S) : gpu_child_stop(&load);
    if (done && exit_code != 0)
        return occ_fail(err, OCC_E_IO, "occtrace ends with %d: %s", exit_code, load.last_words);
    return code;
}

static int sample_within(const struct place *place, int seconds, struct seen *seen, struct occ_error *err)
{
    struct gpu_child load = GPU_CHILD_INIT;
    char limit[24], line[512], state[32];
    (void)snprintf(limit, sizeof limit, "%d", seconds);
    int code = start_traced(place, limit, true, &load, seen, err);
    if (code == 0)
        code = gpu_child_expect(&load, "sampled", seconds + START_S, line, sizeof line, err);
    int exit_code = code == 0 ? gpu_child_wait(&load, START_S) : gpu_child_stop(&load);
    if (code != 0)
        return code;
    gpu_line_word(line, "state", state, sizeof state);
    if (exit_code != 0 || strcmp(state, "ok") != 0)
        return occ_fail(err, OCC_E_IO, "sampling in the traced process: %s, exit code %d", state, exit_code);
    return 0;
}

/* ---- the experiment ---- */

static int find_place(struct place *place)
{
    const char *bin = getenv("OCC_BIN"), *kit = getenv("OCC_KIT"), *temporary = getenv("TMPDIR");
    (void)snprintf(place->directory, sizeof place->directory, "%s/occ-e09-XXXXXX",
                   temporary ? temporary : "/tmp");
    if (!bin || !kit || !mkdtemp(place->directory))
        return -1;
    (void)snprintf(place->program[0], PATH_MAX, "%s/occtrace", bin);
    (void)snprintf(place->program[1], PATH_MAX, "%s/occq", bin);
    (void)snprintf(place->program[2], PATH_MAX, "%s/gpu_load", kit);
    (void)snprintf(place->history, PATH_MAX, "%s/history.db", place->directory);
    (void)snprintf(place->samples, PATH_MAX, "%s/samples", place->directory);
    return 0;
}

static const struct gpu_decisions decisions = {
    .of = {[GPU_CONFIRMED] =
               "samples and launches share a clock to less than a sample of 1 ms; the offset is "
               "fitted before finer samples are joined with launches",
           [GPU_REFUTED] = "the clocks are further apart than the attribution takes them to be: the offset "
                           "must be fitted for each process before any samples are joined with its launches",
           [GPU_UNCLEAR] = "the device was not idle between the markers, or the clocks are far apart"}};

static int judge(const struct gpu_offset *apart, const struct gpu_offset *within)
{
    struct gpu_checks checks = {0};
    if (apart->n < LEAST_EDGES)
        return gpu_report_decide(GPU_UNCLEAR, &decisions, "only %zu edges were seen", apart->n);
    gpu_check(&checks, fabs(apart->median_ns) <= 16000,
              "across processes: median offset %.1f us of %zu edges, expected within 16",
              apart->median_ns / 1e3, apart->n);
    if (within->n >= LEAST_EDGES)
        gpu_check(&checks, fabs(within->median_ns) <= 2000,
                  "in one process: median offset %.1f us, expected within 2", within->median_ns / 1e3);
    return gpu_report_decide(gpu_checks_verdict(&checks), &decisions, "offset %.1f us, sd %.1f us",
                             apart->median_ns / 1e3, apart->sd_ns / 1e3);
}

static int run(const struct place *place)
{
    struct seen seen = {0}, seen_within = {0};
    struct gpu_offset apart = {0}, within = {0};
    struct gpu_sampled sampled = {.state = ""};
    struct occ_error err = OCC_ERROR_INIT;
    bool quick = gpu_report_quick();
    int code = sample_apart(place, quick ? 3 : 20, &seen, &sampled, &err);
    if (code == 0 && sampled.ended)
        code = compare("across_processes", place, &seen, &apart, &err);
    free_seen(&seen);
    forget(place);
    if (code != 0)
        return gpu_cannot("%s", err.message);
    if (!sampled.ended)
        return gpu_cannot_sample("PM sampling", &sampled);
    code = sample_within(place, quick ? 2 : 4, &seen_within, &err);
    if (code == 0)
        code = compare("one_process", place, &seen_within, &within, &err);
    free_seen(&seen_within);
    forget(place);
    if (code != 0)
        gpu_report_text("one_process", "%s", err.message);
    return gpu_stopped() ? 1 : judge(&apart, &within);
}

int main(void)
{
    struct place place;
    gpu_stop_catch();
    gpu_report_expect("across processes the offset is below 16 us, in one process below 2 us");
    if (find_place(&place) != 0)
        return gpu_cannot("OCC_BIN and OCC_KIT must be set (scripts/gpu-report does) and /tmp writable");
    int code = run(&place);
    (void)rmdir(place.directory);
    return code;
}
