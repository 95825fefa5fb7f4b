/*
 * The verdicts of occq diff: false alarms on recordings in which nothing changed, and changes found that were
 * put in.
 *
 *   bench_diff HISTORY...    every run of each history is a recording; prints Markdown
 *
 * No change: the launches of a run as a circle, cut into halves, or into two thirds and a third, at 100
 * places; and two ranks of a job, made from one run in 100 ways: each rank has every second launch at each
 * place of the run's period. All with exchanged sides. An alarm is a comparison with any group of a scope
 * that is worse or better. A change: one layer of one side takes 10 % longer, for each layer that has 1 % of
 * the time.
 *
 * With other work, launches of one side do as much work in all as the other side's, in another number: a half
 * of the kernels makes one launch for every two, or one kernel stands for two that follow each other.
 *
 * The worlds are ten launch configurations of one family that get 20 % faster, with 2 % noise, beside eighty
 * others.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_random.h"
#include "cli/sides/report.h"
#include "diff_sides.h"
#include "support/text.h"

enum { WAYS = 100, FOUND_WAYS = 10, PARTS_MAX = 64, WORLDS = 1000 };
enum kind { HALVES, THIRDS, RANKS, KINDS };
static const char *const kind_words[] = {"halves", "thirds", "ranks"};
static const char *const work_words[] = {"the same", "longer launches", "fused kernels"};

/* What is judged. The first are those of enum diff_scope. */
enum { LINES = DIFF_SCOPE_COUNT, ROWS, GPU_TIME, SCOPES };
static const char *const scope_words[] = {DIFF_SCOPES(OCC_WORD) "lines of the tree", "rows", "GPU time"};

/* ---- sides without a change ---- */

static void take(struct side sides[DIFF_SIDES], size_t side, size_t launch)
{
    sides[side].launches[sides[side].n++] = (uint32_t)launch;
}

/* Returns the side of launch `i` of the run's circle from `start`. */
static size_t side_of(const struct recording *r, enum kind kind, size_t i, const unsigned char *odd,
                      size_t parts)
{
    if (kind == RANKS)
        return (i / r->period + odd[i % r->period * parts / r->period]) % 2;
    return kind == HALVES ? i >= (r->n + 1) / 2 : i >= (2 * r->n + 2) / 3;
}

/* One of `ways` ways to make sides; false: there is none. The launches of a kernel that one side may fuse
 * stay together. */
static bool make_sides(const struct recording *r, enum kind kind, size_t way, size_t ways,
                       struct side sides[DIFF_SIDES])
{
    uint64_t random = way + 1; /* the seed */
    unsigned char odd[PARTS_MAX];
    size_t start = kind == RANKS ? 0 : way * r->n / ways, parts = 1 + way % PARTS_MAX;
    sides[DIFF_A].n = sides[DIFF_B].n = 0;
    sides[DIFF_A].layer = sides[DIFF_B].layer = NULL;
    if (kind == RANKS && r->period == 0)
        return false;
    for (size_t i = 0; i < PARTS_MAX; i++)
        odd[i] = random_bits(&random) & 1;
    for (size_t i = 0, side = 0; i < r->n; i++) {
        size_t launch = (start + i) % r->n;
        bool is_second = i > 0 && launch > 0 && r->launches[launch - 1].is_fused;
        side = is_second ? side : side_of(r, kind, i, odd, parts);
        take(sides, side, launch);
    }
    return sides[DIFF_A].n > 0 && sides[DIFF_B].n > 0;
}

/* ---- counts ---- */

struct counts {
    unsigned comparisons[SCOPES]; /* with a group that could be judged */
    unsigned alarms[SCOPES], judged[SCOPES], same[SCOPES];
    unsigned known_work;                          /* comparisons with a known ratio of the work */
    unsigned found, steady_found, layers, steady; /* steady: layers that are the same without the change */
};

/* What a comparison has of a scope. */
struct seen {
    bool is_judged, has_alarm;
};

static void count(struct counts *counts, struct seen seen[SCOPES], int scope, enum diff_verdict verdict)
{
    counts->judged[scope]++;
    counts->same[scope] += verdict == DIFF_SAME ? 1 : 0;
    seen[scope].is_judged = true;
    seen[scope].has_alarm |= diff_is_change(verdict);
}

static void count_alarms(const struct compared *c, struct counts *counts)
{
    struct seen seen[SCOPES] = {{false, false}};
    const struct diff_levels *tree = &c->layers.verdicts;
    for (size_t i = 0; i < c->levels.n; i++)
        if (!isnan(c->levels.groups[i].q))
            count(counts, seen, (int)c->levels.groups[i].scope, c->levels.groups[i].verdict);
    for (size_t i = 0; i < tree->n; i++)
        if (!isnan(tree->groups[i].q))
            count(counts, seen, LINES, tree->groups[i].verdict);
    for (uint32_t i = 0; i < c->diff.n_pairs; i++) {
        const struct diff_pair *pair = &c->diff.pairs[i];
        if (!isnan(pair->ratio[DIFF_METRIC_TIME].low) && diff_share(&c->diff, pair) >= DIFF_MIN_SHARE)
            count(counts, seen, ROWS,
                  diff_verdict_of(&c->diff, pair, DIFF_METRIC_TIME, DIFF_FLOOR, DIFF_MIN_SHARE));
    }
    if (!isnan(c->gpu_time.ratio.p))
        count(counts, seen, GPU_TIME, c->gpu_time.verdict);
    for (int scope = 0; scope < SCOPES; scope++) {
        counts->comparisons[scope] += seen[scope].is_judged ? 1 : 0;
        counts->alarms[scope] += seen[scope].has_alarm ? 1 : 0;
    }
    counts->known_work += isnan(c->diff.work) ? 0 : 1;
}

static void look_for_alarms(struct recording *r, enum kind kind, enum other_work other, struct counts *counts)
{
    struct side sides[DIFF_SIDES];
    sides_new(r, sides);
    sides[DIFF_B].is_other = true;
    for (size_t way = 0; way < WAYS; way++) {
        size_t chosen = recording_choose(r, other, way, NULL);
        if ((other != OTHER_NONE && chosen == 0) || !make_sides(r, kind, way, WAYS, sides))
            continue;
        for (int first = 0; first < DIFF_SIDES; first++) {
            struct compared c;
            compare(r, &sides[first], &sides[1 - first], &c);
            count_alarms(&c, counts);
            compared_free(&c);
        }
    }
    sides_drop(sides);
}

static bool is_worse(const struct diff_levels *levels, const char *layer)
{
    bool worse = false;
    for (size_t i = 0; i < levels->n; i++)
        worse |= levels->groups[i].scope == DIFF_SCOPE_LAYER && strcmp(levels->groups[i].name, layer) == 0 &&
                 levels->groups[i].verdict == DIFF_WORSE;
    return worse;
}

static void look_for_changes(struct recording *r, enum kind kind, enum other_work other,
                             struct counts *counts)
{
    struct side sides[DIFF_SIDES];
    sides_new(r, sides);
    sides[DIFF_B].is_other = true;
    for (size_t way = 0; way < FOUND_WAYS; way++) {
        struct compared before, after;
        size_t chosen = recording_choose(r, other, way, NULL);
        if ((other != OTHER_NONE && chosen == 0) || !make_sides(r, kind, way, FOUND_WAYS, sides))
            continue;
        compare(r, &sides[DIFF_A], &sides[DIFF_B], &before);
        for (size_t i = 0; i < before.levels.n; i++) {
            const struct diff_group *g = &before.levels.groups[i];
            if (g->scope != DIFF_SCOPE_LAYER)
                continue;
            sides[DIFF_B].layer = g->name;
            compare(r, &sides[DIFF_A], &sides[DIFF_B], &after);
            bool found = is_worse(&after.levels, g->name), steady = g->verdict == DIFF_SAME;
            counts->layers++;
            counts->found += found ? 1 : 0;
            counts->steady += steady ? 1 : 0;
            counts->steady_found += found && steady ? 1 : 0;
            compared_free(&after);
        }
        compared_free(&before);
    }
    sides_drop(sides);
}

/* The upper end of the one-sided 95 % interval of Clopper and Pearson, by bisection. */
static double upper_bound(unsigned alarms, unsigned n)
{
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        double p = (low + high) / 2, below = 0, term = pow(1 - p, n);
        for (unsigned k = 0; k <= alarms; k++) {
            below += term;
            term *= (double)(n - k) / (k + 1) * p / (1 - p);
        }
        *(below > 0.05 ? &low : &high) = p;
    }
    return alarms < n ? high : 1;
}

static void add_counts(struct counts *all, const struct counts *more)
{
    for (int scope = 0; scope < SCOPES; scope++) {
        all->comparisons[scope] += more->comparisons[scope];
        all->alarms[scope] += more->alarms[scope];
        all->judged[scope] += more->judged[scope];
        all->same[scope] += more->same[scope];
    }
    all->known_work += more->known_work;
    all->found += more->found;
    all->layers += more->layers;
    all->steady += more->steady;
    all->steady_found += more->steady_found;
}

/* ---- tables ---- */

static void print_counts(const char *title, const char *kind, const char *work, const struct counts *c)
{
    (void)printf("| %.40s | %s | %s | %u |", title, kind, work, c->known_work);
    for (int scope = 0; scope < SCOPES; scope++)
        (void)printf(" %u of %u (%u of %u) |", c->alarms[scope], c->comparisons[scope], c->same[scope],
                     c->judged[scope]);
    (void)printf(" %u of %u | %u of %u |\n", c->steady_found, c->steady, c->found, c->layers);
    (void)fflush(stdout);
}

static void judge_recording(struct recording *r, struct counts all[OTHER_WORKS][KINDS])
{
    for (enum other_work other = 0; other < OTHER_WORKS; other++)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            struct counts counts = {.found = 0};
            look_for_alarms(r, kind, other, &counts);
            look_for_changes(r, kind, other, &counts);
            if (counts.comparisons[DIFF_SCOPE_TOTAL] > 0)
                print_counts(r->title, kind_words[kind], work_words[other], &counts);
            add_counts(&all[other][kind], &counts);
        }
}

static void judge_histories(int n, char *const *histories)
{
    static struct counts all[OTHER_WORKS][KINDS];
    (void)printf("| recording | sides | work | work known |");
    for (int scope = 0; scope < SCOPES; scope++)
        (void)printf(" %s |", scope_words[scope]);
    (void)printf(
        " steady layers found | layers found |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (int i = 0; i < n; i++) {
        struct recording *r;
        for (size_t at = 0; (r = recording_read(histories[i], at)); at++) {
            judge_recording(r, all);
            recording_free(r);
        }
    }
    (void)printf("\n| work | scope | comparisons | alarms | at most (95 %%) | groups judged | the same |\n"
                 "|---|---|--:|--:|--:|--:|--:|\n");
    for (enum other_work other = 0; other < OTHER_WORKS; other++) {
        struct counts sum = {.found = 0};
        for (enum kind kind = 0; kind < KINDS; kind++)
            add_counts(&sum, &all[other][kind]);
        for (int scope = 0; scope < SCOPES; scope++)
            (void)printf("| %s | %s | %u | %u | %.2f %% | %u | %u |\n", work_words[other], scope_words[scope],
                         sum.comparisons[scope], sum.alarms[scope],
                         100 * upper_bound(sum.alarms[scope], sum.comparisons[scope]), sum.judged[scope],
                         sum.same[scope]);
    }
    (void)printf("\n| work | sides | steady layers found | layers found |\n|---|---|--:|--:|\n");
    for (enum other_work other = 0; other < OTHER_WORKS; other++)
        for (enum kind kind = 0; kind < KINDS; kind++)
            (void)printf("| %s | %s | %u of %u | %u of %u |\n", work_words[other], kind_words[kind],
                         all[other][kind].steady_found, all[other][kind].steady, all[other][kind].found,
                         all[other][kind].layers);
}

/* ---- worlds ---- */

enum { WORLD_FAMILIES = 9, WORLD_CONFIGS = 10, OTHER_LAUNCHES = 40 };

/* Launches of family 0 in a step; with other work an even number of each kernel. */
static uint32_t changed_launches(enum other_work other)
{
    return other == OTHER_NONE ? 53 : 60;
}

static void add_step(struct recording *r, enum other_work other, double factor_0, uint64_t *random)
{
    for (uint32_t k = 0; k < WORLD_FAMILIES; k++) {
        uint32_t family = (k + 5) % WORLD_FAMILIES; /* the changed family is within a step */
        for (uint32_t i = 0; i < (family ? OTHER_LAUNCHES : changed_launches(other)); i++)
            recording_add_launch(
                r, &(struct launch){.place = family * WORLD_CONFIGS + i % WORLD_CONFIGS,
                                    .ns = 1000.0 * (20 + i % WORLD_CONFIGS * 11) * (family ? 1 : factor_0) *
                                          random_lognormal(random, 0.02)});
    }
}

/* A run of three steps and a run of `steps`, one after the other; family 0 is 20 % faster in the second.
 * *ret_n: launches of the first. */
static struct recording *make_world(uint64_t seed, enum other_work other, uint32_t steps, size_t *ret_n)
{
    struct recording *r = recording_new();
    uint64_t random = seed;
    for (int64_t i = 0; i < (int64_t)WORLD_FAMILIES * WORLD_CONFIGS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "f%c_%c", (char)('a' + i / WORLD_CONFIGS), (char)('a' + i % 10));
        struct place *place = recording_add_place(r, i, name, name);
        (void)snprintf(name, sizeof name, "family %d", (int)(i / WORLD_CONFIGS));
        place->row.family = occ_arena_copy(&r->texts, name);
    }
    for (uint32_t step = 0; step < 3; step++)
        add_step(r, other, 1, &random);
    *ret_n = r->n;
    for (uint32_t step = 0; step < steps; step++)
        add_step(r, other, 0.8, &random);
    if (other != OTHER_NONE && recording_choose(r, other, seed, "family 0") == 0)
        bench_fail("no kernel of the world does other work");
    return r;
}

struct outcome {
    double worst, widest;
    unsigned found, covered, alarms, known;
};

static void judge_world(const struct compared *c, struct outcome *o)
{
    o->known += isnan(c->diff.work) ? 0 : 1;
    for (size_t i = 0; i < c->levels.n; i++) {
        const struct diff_group *g = &c->levels.groups[i];
        bool is_changed = g->scope == DIFF_SCOPE_FAMILY && strcmp(g->name, "family 0") == 0;
        o->alarms += g->scope == DIFF_SCOPE_FAMILY && !is_changed && diff_is_change(g->verdict) ? 1 : 0;
        if (!is_changed)
            continue;
        o->found += g->verdict == DIFF_BETTER ? 1 : 0;
        o->covered += g->ratio.low <= 0.8 && g->ratio.high >= 0.8 ? 1 : 0;
        o->worst = fmax(o->worst, fabs(g->ratio.ratio - 0.8));
        o->widest = fmax(o->widest, (g->ratio.high - g->ratio.low) / 2);
    }
}

static void judge_worlds(enum other_work other, uint32_t steps)
{
    struct outcome o = {.found = 0};
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct side sides[DIFF_SIDES];
        struct compared c;
        size_t n_a;
        struct recording *r = make_world(seed, other, steps, &n_a);
        sides_new(r, sides);
        sides[DIFF_B].is_other = true;
        for (size_t i = 0; i < r->n; i++)
            take(sides, i >= n_a, i);
        compare(r, &sides[DIFF_A], &sides[DIFF_B], &c);
        judge_world(&c, &o);
        compared_free(&c);
        sides_drop(sides);
        recording_free(r);
    }
    (void)printf("| %s | 3 and %u | %u | %u | %.2f | %.2f | %u | %u |\n", work_words[other], steps, o.known,
                 o.found, 100 * o.worst, 100 * o.widest, o.covered, o.alarms);
}

int main(int argc, char **argv)
{
    judge_histories(argc - 1, argv + 1);
    (void)printf(
        "\nThe planted -20 %% in %d worlds (seeds 1 to %d):\n\n"
        "| work | steps | work known | found | off by at most, points | half of the interval, points | "
        "interval has it | other families: alarms |\n|---|---|--:|--:|--:|--:|--:|--:|\n",
        WORLDS, WORLDS);
    for (enum other_work other = 0; other < OTHER_WORKS; other++)
        for (uint32_t steps = 3; steps <= 5; steps += 2)
            judge_worlds(other, steps);
    return 0;
}
