/*
 * Verdicts of occq diff on recorded durations. The second half of a run is no change against its first half:
 * no alarm. If the second half is made 10 % slower, most kernels with MIN_SHARE of the time must show it.
 * Alternating parts of a run stand for two ranks of a job, with the same work at the same time: no alarm.
 *
 *   test_diff_traces [--table] FILE...
 *
 * FILE has "config_id,duration_ns" of each launch in order, printed by
 * occq sql --csv "SELECT config_id, duration_ns FROM launch ORDER BY start_ns". A line "all,NS" adds the time
 * of launches that FILE leaves out.
 *
 * The exit code is not 0 after an alarm without a change, if fewer than 80 % of the changes are found, or if
 * there is nothing to compare; with --table it is 0.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sides/diff_rows.h"

enum { MAX_LAUNCHES = 1 << 20, MAX_CONFIGS = 1 << 12, MAX_FILES = 16, PARTS = 24, FOUND_MIN_PERCENT = 80 };
#define FLOOR     0.05
#define MIN_SHARE 0.01

struct recording {
    uint32_t config[MAX_LAUNCHES];
    uint64_t ns[MAX_LAUNCHES];
    size_t n;
    uint64_t other_ns;
};

static void fail(const char *what, const char *file)
{
    (void)fprintf(stderr, "%s: %s\n", file, what);
    exit(2);
}

static struct recording *read_recording(const char *path)
{
    struct recording *r = calloc(1, sizeof *r);
    FILE *in = fopen(path, "r");
    char line[128];
    if (!r || !in)
        fail("cannot be read", path);
    while (fgets(line, sizeof line, in)) {
        unsigned config;
        uint64_t ns;
        if (sscanf(line, "all,%" SCNu64, &ns) == 1)
            r->other_ns += ns;
        if (sscanf(line, "%u,%" SCNu64, &config, &ns) != 2)
            continue;
        if (r->n == MAX_LAUNCHES || config >= MAX_CONFIGS)
            fail("too many launches", path);
        r->config[r->n] = config;
        r->ns[r->n++] = ns;
    }
    (void)fclose(in);
    return r;
}

/* ---- one comparison ---- */

struct slice {
    const struct recording *of;
    size_t from, until;
    double factor;    /* multiplies the durations */
    size_t part, odd; /* launches in a part, 0: all launches; which of two parts counts */
};

static bool is_in(const struct slice *slice, size_t i)
{
    return slice->part == 0 || i / slice->part % 2 == slice->odd;
}

struct side_rows {
    struct occ_config_row rows[MAX_CONFIGS];
    struct diff_row compared[MAX_CONFIGS];
    char names[MAX_CONFIGS][16];
};

static uint64_t duration(const struct slice *slice, size_t i)
{
    return (uint64_t)llround((double)slice->of->ns[i] * slice->factor);
}

static size_t add_rows(const struct slice *slice, uint32_t side, struct side_rows *side_rows,
                       struct diff_part *parts)
{
    size_t n = 0;
    memset(side_rows->rows, 0, sizeof side_rows->rows);
    for (size_t i = slice->from; i < slice->until; i++) {
        struct occ_config_row *row = &side_rows->rows[slice->of->config[i]];
        if (!is_in(slice, i))
            continue;
        row->launches++;
        row->total_ns += duration(slice, i);
    }
    for (uint32_t config = 0; config < MAX_CONFIGS; config++) {
        struct occ_config_row *row = &side_rows->rows[config];
        (void)snprintf(side_rows->names[config], sizeof side_rows->names[config], "k%u", config);
        row->id = config;
        row->kernel.mangled = row->kernel.demangled = row->kernel.short_name = side_rows->names[config];
        side_rows->compared[config] = diff_row_of(row);
        if (row->launches)
            parts[n++] = (struct diff_part){.row = &side_rows->compared[config], .side = side};
    }
    return n;
}

static void add_launches(struct diff *diff, const struct slice *slice, uint32_t side)
{
    static uint64_t seen[MAX_CONFIGS];
    uint32_t pair_of[MAX_CONFIGS] = {0};
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < diff->n_parts; i++)
        if (diff->parts[i].side == side)
            pair_of[diff->parts[i].row->id] = diff->items[diff->parts[i].item].pair;
    for (size_t i = slice->from; i < slice->until; i++) {
        uint32_t config = slice->of->config[i];
        if (!is_in(slice, i))
            continue;
        diff_add_launch(diff, side, pair_of[config], seen[config]++, duration(slice, i));
    }
}

/* Number of pairs by verdict: all kernels with enough launches, and the kernels among them with MIN_SHARE of
 * the time. */
struct counts {
    unsigned all[DIFF_VERDICT_COUNT], large[DIFF_VERDICT_COUNT];
};

static void add_counts(const struct diff *diff, struct counts *counts)
{
    for (uint32_t i = 0; i < diff->n_pairs; i++) {
        const struct diff_pair *pair = &diff->pairs[i];
        if (pair->level == DIFF_ONE_SIDE || isnan(pair->ratio[DIFF_METRIC_TIME].low))
            continue;
        enum diff_verdict verdict = diff_verdict_of(diff, pair, DIFF_METRIC_TIME, FLOOR, 0);
        counts->all[verdict]++;
        counts->large[verdict] += diff_share(diff, pair) >= MIN_SHARE ? 1 : 0;
    }
}

static void compare(const struct slice *a, const struct slice *b, struct counts *counts)
{
    static struct side_rows rows[DIFF_SIDES];
    static struct diff_part parts[DIFF_SIDES * MAX_CONFIGS];
    struct diff diff;
    size_t n = add_rows(a, DIFF_A, &rows[DIFF_A], parts);
    n += add_rows(b, DIFF_B, &rows[DIFF_B], parts + n);
    if (diff_collect_rows(&diff, parts, n, (const uint32_t[]){1, 1}, NULL) != 0 ||
        diff_match(&diff, DIFF_CONFIG, NULL) != 0 || diff_sample(&diff, NULL) != 0)
        fail("out of memory", "diff");
    add_launches(&diff, a, DIFF_A);
    add_launches(&diff, b, DIFF_B);
    if (diff_conclude(&diff, NULL) != 0)
        fail("out of memory", "diff");
    diff.total_ns[DIFF_A] += a->of->other_ns * (a->until - a->from) / a->of->n;
    diff.total_ns[DIFF_B] += b->of->other_ns * (b->until - b->from) / b->of->n;
    add_counts(&diff, counts);
    diff_free(&diff);
}

/* ---- all recordings ---- */

static unsigned sum(const unsigned counts[DIFF_VERDICT_COUNT])
{
    unsigned n = 0;
    for (int i = 0; i < DIFF_VERDICT_COUNT; i++)
        n += counts[i];
    return n;
}

static void print_row(const char *what, const struct counts *c)
{
    (void)printf("| %s |", what);
    for (int large = 0; large < 2; large++) {
        const unsigned *of = large ? c->large : c->all;
        (void)printf(" %u | %u | %u | %u | %u |", sum(of), of[DIFF_WORSE], of[DIFF_BETTER], of[DIFF_SAME],
                     of[DIFF_UNDECIDED]);
    }
    (void)printf("\n");
}

static void compare_halves(struct recording *const *recordings, size_t n, double factor,
                           struct counts *counts)
{
    for (size_t i = 0; i < n; i++) {
        size_t middle = recordings[i]->n / 2;
        compare(&(struct slice){recordings[i], 0, middle, 1, 0, 0},
                &(struct slice){recordings[i], middle, recordings[i]->n, factor, 0, 0}, counts);
    }
}

static void compare_parts(struct recording *const *recordings, size_t n, struct counts *counts)
{
    for (size_t i = 0; i < n; i++) {
        size_t all = recordings[i]->n, part = all / PARTS + 1;
        compare(&(struct slice){recordings[i], 0, all, 1, part, 0},
                &(struct slice){recordings[i], 0, all, 1, part, 1}, counts);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        double factor;
        const char *what;
    } injected[] = {
        {1.0, "halves"}, {1.1, "halves, second 10 % slower"}, {1.2, "halves, second 20 % slower"}};
    struct recording *recordings[MAX_FILES];
    struct counts halves[3] = {{{0}, {0}}}, parts = {{0}, {0}};
    bool table = argc > 1 && strcmp(argv[1], "--table") == 0;
    size_t n = 0;
    for (int i = table ? 2 : 1; i < argc && n < MAX_FILES; i++)
        recordings[n++] = read_recording(argv[i]);
    for (size_t i = 0; i < 3; i++)
        compare_halves(recordings, n, injected[i].factor, &halves[i]);
    (void)printf("| compared | kernels | worse | better | same | undecided | with 1 %% of the time | worse | "
                 "better | same | undecided |\n"
                 "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < 3; i++)
        print_row(injected[i].what, &halves[i]);
    compare_parts(recordings, n, &parts);
    print_row("parts in turn", &parts);
    for (size_t i = 0; i < n; i++)
        free(recordings[i]);
    unsigned alarms = halves[0].all[DIFF_WORSE] + halves[0].all[DIFF_BETTER];
    alarms += parts.large[DIFF_WORSE] + parts.large[DIFF_BETTER]; /* an alarm takes 1 % of the time */
    unsigned found = halves[1].large[DIFF_WORSE], present = sum(halves[1].large);
    return table ? 0
                 : alarms > 0 || present == 0 || sum(parts.large) == 0 ||
                       found * 100 < present * FOUND_MIN_PERCENT;
}
