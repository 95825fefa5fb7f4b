/*
 * The verdicts of occq diff on groups: false alarms on recordings in which nothing changed, and changes found
 * that were put in.
 *
 *   bench_diff HISTORY...    every run of each history is a recording; prints Markdown
 *
 * No change: the launches of a run as a circle, cut into halves at 100 places; and two ranks of a job, made
 * from one run in 100 ways: each rank has every second launch at each place of the run's period. Both with
 * exchanged sides. An alarm is a comparison with any group of a scope that is worse or better. A change: one
 * layer of one side takes 10 % longer, for each layer that has 1 % of the time.
 *
 * The worlds are ten launch configurations of one family that get 20 % faster, with 2 % noise, beside eighty
 * others.
 */
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_random.h"
#include "cli/sides/groups.h"
#include "cli/sides/report.h"
#include "compare/levels.h"
#include "store/store.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/map.h"
#include "support/text.h"

enum { WAYS = 100, FOUND_WAYS = 10, PARTS_MAX = 64, WORLDS = 1000, WORLD_STEPS = 3 };
enum kind { HALVES, RANKS, KINDS };
static const char *const kind_words[] = {"halves", "ranks"};
#define INJECTED 1.1

/* Launches of one configuration in one range. */
struct place {
    struct diff_row row;
    const char *range, *layer;
};

struct recording {
    char title[64];
    struct place *places;
    uint32_t *place; /* of each launch */
    double *ns;
    size_t n, n_places, places_allocated, place_allocated, ns_allocated, period;
    struct occ_arena texts;
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_diff: %s\n", what);
    exit(2);
}

static void check(bool has_memory)
{
    if (!has_memory)
        fail("out of memory");
}

/* ---- recordings ---- */

static const char launches_sql[] =
    "SELECT l.config_id, coalesce(l.range_id, 0), l.kernel_mangled, l.kernel_demangled, r.range, r.phase, "
    "l.duration_ns FROM launch l LEFT JOIN range r ON r.run_id = l.run_id AND r.range_id = l.range_id "
    "WHERE l.run_id = ?1 ORDER BY l.start_ns";

static void add_launch(struct recording *r, uint32_t place, double ns)
{
    check(occ_grow((void **)&r->place, &r->place_allocated, r->n, UINT32_MAX, sizeof *r->place) &&
          occ_grow((void **)&r->ns, &r->ns_allocated, r->n, UINT32_MAX, sizeof *r->ns));
    r->place[r->n] = place;
    r->ns[r->n++] = ns;
}

static struct place *add_place(struct recording *r, int64_t config, const char *mangled,
                               const char *demangled)
{
    check(occ_grow((void **)&r->places, &r->places_allocated, r->n_places, UINT32_MAX, sizeof *r->places));
    struct place *place = &r->places[r->n_places++];
    *place = (struct place){.row = {.id = config,
                                    .launch = {config},
                                    .mangled = occ_arena_copy(&r->texts, mangled),
                                    .demangled = occ_arena_copy(&r->texts, demangled),
                                    .family = side_family(demangled, &r->texts)}};
    return place;
}

static void add_row(struct recording *r, struct occ_map *places, sqlite3_stmt *s)
{
    uint64_t key = (uint64_t)sqlite3_column_int64(s, 0) << 32 | (uint32_t)sqlite3_column_int64(s, 1);
    uint32_t at = occ_map_get(places, key);
    if (at == OCC_MAP_NONE) {
        const char *range = (const char *)sqlite3_column_text(s, 4),
                   *phase = (const char *)sqlite3_column_text(s, 5);
        struct place *place =
            add_place(r, sqlite3_column_int64(s, 0), (const char *)sqlite3_column_text(s, 2),
                      (const char *)sqlite3_column_text(s, 3));
        char id[32]; /* stands for the path and its phase */
        (void)snprintf(id, sizeof id, "%" PRIu64, key & UINT32_MAX);
        place->range = range ? occ_arena_copy(&r->texts, id) : NULL;
        place->layer = side_layer(range, phase, &r->texts);
        at = (uint32_t)(place - r->places);
        check(occ_map_put(places, key, at) != OCC_MAP_NONE);
    }
    add_launch(r, at, sqlite3_column_double(s, 6));
}

/* The distance at which launches recur best: a step of a training loop, a block of a model. 0: they do not.
 */
static size_t period_of(const struct recording *r)
{
    size_t best = 0;
    double most = 0.5;
    for (size_t p = 2; p <= r->n / 2; p++) {
        size_t same = 0;
        for (size_t i = 0; i + p < r->n; i++)
            same += r->places[r->place[i]].row.id == r->places[r->place[i + p]].row.id ? 1 : 0;
        double ratio = (double)same / (double)(r->n - p);
        if (ratio > most * 1.02 || (best == 0 && ratio > most)) { /* not a multiple of the period */
            most = ratio;
            best = p;
        }
    }
    return best;
}

static struct recording *read_recording(sqlite3 *db, int64_t run, const char *program)
{
    struct recording *r = calloc(1, sizeof *r);
    struct occ_map places = {0};
    sqlite3_stmt *s = NULL;
    check(r != NULL);
    if (sqlite3_prepare_v2(db, launches_sql, -1, &s, NULL) != SQLITE_OK)
        fail(sqlite3_errmsg(db));
    (void)snprintf(r->title, sizeof r->title, "%s", program ? program : "?");
    (void)sqlite3_bind_int64(s, 1, run);
    while (sqlite3_step(s) == SQLITE_ROW)
        add_row(r, &places, s);
    (void)sqlite3_finalize(s);
    occ_map_free(&places);
    r->period = period_of(r);
    return r;
}

static void free_recording(struct recording *r)
{
    free(r->places);
    free(r->place);
    free(r->ns);
    occ_arena_free(r->texts.blocks);
    free(r);
}

/* ---- a comparison ---- */

struct side {
    uint32_t *launches; /* in order */
    size_t n;
    const char *layer; /* its launches take INJECTED times as long; NULL: none */
};

static uint64_t duration(const struct recording *r, const struct side *side, size_t i)
{
    const char *layer = r->places[r->place[side->launches[i]]].layer;
    bool is_slower = side->layer && layer && strcmp(side->layer, layer) == 0;
    return (uint64_t)llround(r->ns[side->launches[i]] * (is_slower ? INJECTED : 1));
}

struct compared {
    struct diff diff;
    struct diff_row *rows[DIFF_SIDES];
    struct diff_part *parts;
    uint32_t *part_of[DIFF_SIDES]; /* place -> part */
    size_t n_parts;
};

static void add_parts(struct compared *c, const struct recording *r, const struct side *side, uint32_t which)
{
    c->rows[which] = calloc(r->n_places + 1, sizeof **c->rows);
    c->part_of[which] = calloc(r->n_places + 1, sizeof **c->part_of);
    check(c->rows[which] && c->part_of[which]);
    for (size_t p = 0; p < r->n_places; p++)
        c->rows[which][p] = r->places[p].row;
    for (size_t i = 0; i < side->n; i++) {
        struct diff_row *row = &c->rows[which][r->place[side->launches[i]]];
        row->launches++;
        row->total_ns += duration(r, side, i);
    }
    for (size_t p = 0; p < r->n_places; p++) {
        c->part_of[which][p] = (uint32_t)c->n_parts;
        if (c->rows[which][p].launches > 0)
            c->parts[c->n_parts++] = (struct diff_part){.row = &c->rows[which][p],
                                                        .side = which,
                                                        .range = r->places[p].range,
                                                        .layer = r->places[p].layer};
    }
}

static void add_launches(struct compared *c, const struct recording *r, const struct side *side,
                         uint32_t which)
{
    uint64_t *seen = calloc(c->diff.n_pairs + 1, sizeof *seen);
    check(seen != NULL);
    for (size_t i = 0; i < side->n; i++) {
        const struct diff_part *part = &c->parts[c->part_of[which][r->place[side->launches[i]]]];
        uint32_t pair = c->diff.items[part->item].pair;
        diff_add_launch(&c->diff, which, pair, seen[pair]++, duration(r, side, i));
    }
    free(seen);
}

/* As occq diff compares two runs. */
static void compare(const struct recording *r, const struct side *a, const struct side *b,
                    struct diff_levels *ret_levels)
{
    const struct side *const sides[] = {a, b};
    struct compared c = {.parts = calloc(2 * r->n_places + 1, sizeof *c.parts)};
    check(c.parts != NULL);
    for (uint32_t i = 0; i < DIFF_SIDES; i++)
        add_parts(&c, r, sides[i], i);
    check(diff_collect(&c.diff, c.parts, c.n_parts, (const uint32_t[]){1, 1}, NULL) == 0);
    for (size_t i = 0; i < c.n_parts; i++)
        diff_add_sums(
            &c.diff, &c.parts[i],
            &(struct diff_sums){.launches = c.parts[i].row->launches, .total_ns = c.parts[i].row->total_ns});
    check(diff_match(&c.diff, DIFF_RANGE, NULL) == 0 && diff_match(&c.diff, DIFF_CONFIG, NULL) == 0 &&
          diff_sample(&c.diff, NULL) == 0);
    for (uint32_t i = 0; i < DIFF_SIDES; i++)
        add_launches(&c, r, sides[i], i);
    check(diff_conclude(&c.diff, NULL) == 0 &&
          diff_levels_make(&c.diff, DIFF_FLOOR, DIFF_MIN_SHARE, ret_levels, NULL) == 0);
    diff_free(&c.diff);
    free(c.parts);
    for (uint32_t i = 0; i < DIFF_SIDES; i++) {
        free(c.rows[i]);
        free(c.part_of[i]);
    }
}

/* ---- sides without a change ---- */

static void new_sides(const struct recording *r, struct side sides[DIFF_SIDES])
{
    for (int i = 0; i < DIFF_SIDES; i++) {
        sides[i] = (struct side){.launches = calloc(r->n + 1, sizeof *sides[i].launches)};
        check(sides[i].launches != NULL);
    }
}

static void free_sides(const struct side sides[DIFF_SIDES])
{
    free(sides[DIFF_A].launches);
    free(sides[DIFF_B].launches);
}

static void take(struct side sides[DIFF_SIDES], size_t side, size_t launch)
{
    sides[side].launches[sides[side].n++] = (uint32_t)launch;
}

/* One of `ways` ways to make sides; false: there is none. */
static bool make_sides(const struct recording *r, enum kind kind, size_t way, size_t ways,
                       struct side sides[DIFF_SIDES])
{
    uint64_t random = way + 1; /* the seed */
    unsigned char odd[PARTS_MAX];
    size_t start = way * r->n / ways, parts = 1 + way % PARTS_MAX;
    sides[DIFF_A].n = sides[DIFF_B].n = 0;
    for (size_t i = 0; i < PARTS_MAX; i++)
        odd[i] = random_bits(&random) & 1;
    for (size_t i = 0; i < r->n && kind == HALVES; i++)
        take(sides, i >= (r->n + 1) / 2, (start + i) % r->n);
    for (size_t i = 0; i < r->n && kind == RANKS && r->period > 0; i++)
        take(sides, (i / r->period + odd[i % r->period * parts / r->period]) % 2, i);
    return sides[DIFF_A].n > 0 && sides[DIFF_B].n > 0;
}

/* ---- counts ---- */

struct counts {
    unsigned comparisons[DIFF_SCOPE_COUNT]; /* with a group that could be judged */
    unsigned alarms[DIFF_SCOPE_COUNT], judged[DIFF_SCOPE_COUNT], same[DIFF_SCOPE_COUNT];
    unsigned found, steady_found, layers, steady; /* steady: layers that are the same without the change */
};

static void count_alarms(const struct diff_levels *levels, struct counts *counts)
{
    bool is_judged[DIFF_SCOPE_COUNT] = {false}, has_alarm[DIFF_SCOPE_COUNT] = {false};
    for (size_t i = 0; i < levels->n; i++) {
        const struct diff_group *g = &levels->groups[i];
        if (isnan(g->q))
            continue;
        counts->judged[g->scope]++;
        counts->same[g->scope] += g->verdict == DIFF_SAME ? 1 : 0;
        is_judged[g->scope] = true;
        has_alarm[g->scope] |= diff_is_change(g->verdict);
    }
    for (int scope = 0; scope < DIFF_SCOPE_COUNT; scope++) {
        counts->comparisons[scope] += is_judged[scope] ? 1 : 0;
        counts->alarms[scope] += has_alarm[scope] ? 1 : 0;
    }
}

static void look_for_alarms(const struct recording *r, enum kind kind, struct counts *counts)
{
    struct side sides[DIFF_SIDES];
    new_sides(r, sides);
    for (size_t way = 0; way < WAYS; way++) {
        if (!make_sides(r, kind, way, WAYS, sides))
            continue;
        for (int first = 0; first < DIFF_SIDES; first++) {
            struct diff_levels levels;
            compare(r, &sides[first], &sides[1 - first], &levels);
            count_alarms(&levels, counts);
            diff_levels_free(&levels);
        }
    }
    free_sides(sides);
}

static bool is_worse(const struct diff_levels *levels, const char *layer)
{
    bool worse = false;
    for (size_t i = 0; i < levels->n; i++)
        worse |= levels->groups[i].scope == DIFF_SCOPE_LAYER && strcmp(levels->groups[i].name, layer) == 0 &&
                 levels->groups[i].verdict == DIFF_WORSE;
    return worse;
}

static void look_for_changes(const struct recording *r, enum kind kind, struct counts *counts)
{
    struct side sides[DIFF_SIDES];
    new_sides(r, sides);
    for (size_t way = 0; way < FOUND_WAYS; way++) {
        struct diff_levels before, after;
        if (!make_sides(r, kind, way, FOUND_WAYS, sides))
            continue;
        sides[DIFF_B].layer = NULL;
        compare(r, &sides[DIFF_A], &sides[DIFF_B], &before);
        for (size_t i = 0; i < before.n; i++) {
            const struct diff_group *g = &before.groups[i];
            if (g->scope != DIFF_SCOPE_LAYER)
                continue;
            sides[DIFF_B].layer = g->name;
            compare(r, &sides[DIFF_A], &sides[DIFF_B], &after);
            bool found = is_worse(&after, g->name), steady = g->verdict == DIFF_SAME;
            counts->layers++;
            counts->found += found ? 1 : 0;
            counts->steady += steady ? 1 : 0;
            counts->steady_found += found && steady ? 1 : 0;
            diff_levels_free(&after);
        }
        diff_levels_free(&before);
    }
    free_sides(sides);
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

static void print_counts(const char *title, const char *kind, size_t launches, const struct counts *c)
{
    (void)printf("| %.40s | %s | %zu |", title, kind, launches);
    for (int scope = 0; scope < DIFF_SCOPE_COUNT; scope++)
        (void)printf(" %u of %u (%u of %u) |", c->alarms[scope], c->comparisons[scope], c->same[scope],
                     c->judged[scope]);
    (void)printf(" %u of %u | %u of %u |\n", c->steady_found, c->steady, c->found, c->layers);
}

static void add_counts(struct counts *all, const struct counts *more)
{
    for (int scope = 0; scope < DIFF_SCOPE_COUNT; scope++) {
        all->comparisons[scope] += more->comparisons[scope];
        all->alarms[scope] += more->alarms[scope];
        all->judged[scope] += more->judged[scope];
        all->same[scope] += more->same[scope];
    }
    all->found += more->found;
    all->layers += more->layers;
    all->steady += more->steady;
    all->steady_found += more->steady_found;
}

static void judge_history(const char *path, struct counts *all)
{
    struct occ_store *store;
    sqlite3_stmt *s = NULL;
    if (occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL) != 0)
        fail("a history cannot be read");
    sqlite3 *db = occ_store_sqlite(store);
    if (sqlite3_prepare_v2(db, "SELECT run_id, program FROM run ORDER BY run_id", -1, &s, NULL) != SQLITE_OK)
        fail(sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        struct recording *r =
            read_recording(db, sqlite3_column_int64(s, 0), (const char *)sqlite3_column_text(s, 1));
        for (enum kind kind = 0; kind < KINDS; kind++) {
            struct counts counts = {.found = 0};
            look_for_alarms(r, kind, &counts);
            look_for_changes(r, kind, &counts);
            print_counts(r->title, kind_words[kind], r->n, &counts);
            add_counts(all, &counts);
        }
        free_recording(r);
    }
    (void)sqlite3_finalize(s);
    occ_store_close(store);
}

/* ---- worlds ---- */

enum { WORLD_FAMILIES = 9, WORLD_CONFIGS = 10, CHANGED_LAUNCHES = 159, OTHER_LAUNCHES = 120 };

/* Two runs of a program, one after the other; family 0 is 20 % faster in the second. */
static struct recording *make_world(uint64_t seed)
{
    struct recording *r = calloc(1, sizeof *r);
    uint64_t random = seed;
    check(r != NULL);
    for (int64_t i = 0; i < (int64_t)WORLD_FAMILIES * WORLD_CONFIGS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "f%d_%d", (int)(i / WORLD_CONFIGS), (int)i);
        struct place *place = add_place(r, i, name, name);
        (void)snprintf(name, sizeof name, "family %d", (int)(i / WORLD_CONFIGS));
        place->row.family = occ_arena_copy(&r->texts, name);
    }
    for (int side = 0; side < DIFF_SIDES; side++)
        for (uint32_t step = 0; step < WORLD_STEPS; step++)
            for (uint32_t family = 0; family < WORLD_FAMILIES; family++)
                for (uint32_t i = 0; i < (family ? OTHER_LAUNCHES : CHANGED_LAUNCHES) / WORLD_STEPS; i++) {
                    double factor = side == DIFF_B && family == 0 ? 0.8 : 1;
                    add_launch(r, family * WORLD_CONFIGS + i % WORLD_CONFIGS,
                               1000.0 * (20 + i % WORLD_CONFIGS * 11) * factor *
                                   random_lognormal(&random, 0.02));
                }
    return r;
}

static void judge_worlds(void)
{
    double worst = 0, widest = 0;
    unsigned found = 0, covered = 0, alarms = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct recording *r = make_world(seed);
        struct side sides[DIFF_SIDES];
        struct diff_levels levels;
        new_sides(r, sides);
        for (size_t i = 0; i < r->n; i++)
            take(sides, i >= r->n / 2, i);
        compare(r, &sides[DIFF_A], &sides[DIFF_B], &levels);
        for (size_t i = 0; i < levels.n; i++) {
            const struct diff_group *g = &levels.groups[i];
            bool is_changed = g->scope == DIFF_SCOPE_FAMILY && strcmp(g->name, "family 0") == 0;
            alarms += g->scope == DIFF_SCOPE_FAMILY && !is_changed && diff_is_change(g->verdict) ? 1 : 0;
            if (!is_changed)
                continue;
            found += g->verdict == DIFF_BETTER ? 1 : 0;
            covered += g->ratio.low <= 0.8 && g->ratio.high >= 0.8 ? 1 : 0;
            worst = fmax(worst, fabs(g->ratio.ratio - 0.8));
            widest = fmax(widest, (g->ratio.high - g->ratio.low) / 2);
        }
        diff_levels_free(&levels);
        free_sides(sides);
        free_recording(r);
    }
    (void)printf("\n%d worlds (seeds 1 to %d): the planted -20 %% is found in %u; it is off by at most %.2f "
                 "points, its "
                 "interval +- %.2f points at most and right in %u; %u false alarms of other families\n",
                 WORLDS, WORLDS, found, 100 * worst, 100 * widest, covered, alarms);
}

int main(int argc, char **argv)
{
    static const char *const scopes[] = {DIFF_SCOPES(OCC_WORD)};
    struct counts all = {.found = 0};
    (void)printf("| recording | sides | launches |");
    for (int scope = 0; scope < DIFF_SCOPE_COUNT; scope++)
        (void)printf(" %s |", scopes[scope]);
    (void)printf(" steady layers found | layers found |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for (int i = 1; i < argc; i++)
        judge_history(argv[i], &all);
    print_counts("all", "", 0, &all);
    for (int scope = 0; scope < DIFF_SCOPE_COUNT; scope++)
        (void)printf("\n%s: %u alarms in %u comparisons, at most %.2f %% (95 %%)", scopes[scope],
                     all.alarms[scope], all.comparisons[scope],
                     100 * upper_bound(all.alarms[scope], all.comparisons[scope]));
    (void)printf("\n");
    judge_worlds();
    return 0;
}
