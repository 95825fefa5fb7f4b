/* See diff_sides.h. */
#include "diff_sides.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_random.h"
#include "cli/sides/groups.h"
#include "cli/sides/report.h"
#include "compare/neighbours.h"
#include "store/store.h"
#include "support/array.h"
#include "support/cleanup.h"

#define OTHER_IDS INT64_C(1000000) /* ids of configurations with other work begin here */

void bench_fail(const char *what)
{
    (void)fprintf(stderr, "bench_diff: %s\n", what);
    exit(2);
}

void bench_check(bool has_memory)
{
    if (!has_memory)
        bench_fail("out of memory");
}

/* ---- recordings ---- */

static const char launches_sql[] =
    "SELECT l.config_id, coalesce(l.range_id, 0), l.kernel_mangled, l.kernel_demangled, r.range, r.phase, "
    "l.duration_ns, l.device_id << 32 | l.stream_id, "
    "coalesce(lead(l.start_ns) OVER (PARTITION BY l.device_id ORDER BY l.start_ns) - l.start_ns, "
    "l.duration_ns) "
    "FROM launch l LEFT JOIN range r ON r.run_id = l.run_id AND r.range_id = l.range_id "
    "WHERE l.run_id = ?1 ORDER BY l.start_ns";

struct recording *recording_new(void)
{
    struct recording *r = calloc(1, sizeof *r);
    bench_check(r != NULL);
    return r;
}

void recording_free(struct recording *r)
{
    free(r->places);
    free(r->launches);
    occ_arena_free(r->texts.blocks);
    free(r);
}

void recording_add_launch(struct recording *r, const struct launch *launch)
{
    bench_check(
        occ_grow((void **)&r->launches, &r->launches_allocated, r->n, UINT32_MAX, sizeof *r->launches));
    r->launches[r->n++] = *launch;
}

struct place *recording_add_place(struct recording *r, int64_t config, const char *mangled,
                                  const char *demangled)
{
    bench_check(
        occ_grow((void **)&r->places, &r->places_allocated, r->n_places, UINT32_MAX, sizeof *r->places));
    struct place *place = &r->places[r->n_places++];
    *place = (struct place){.row = {.id = config,
                                    .launch = {config},
                                    .mangled = occ_arena_copy(&r->texts, mangled),
                                    .demangled = occ_arena_copy(&r->texts, demangled),
                                    .family = side_family(demangled, &r->texts)},
                            .other = UINT32_MAX};
    r->n_own_places = r->n_places;
    return place;
}

static const char *text_of(sqlite3_stmt *s, int column)
{
    return (const char *)sqlite3_column_text(s, column);
}

static void add_row(struct recording *r, struct occ_map *places, sqlite3_stmt *s)
{
    uint64_t key = (uint64_t)sqlite3_column_int64(s, 0) << 32 | (uint32_t)sqlite3_column_int64(s, 1);
    uint32_t at = occ_map_get(places, key);
    if (at == OCC_MAP_NONE) {
        const char *range = text_of(s, 4), *phase = text_of(s, 5);
        struct place *place =
            recording_add_place(r, sqlite3_column_int64(s, 0), text_of(s, 2), text_of(s, 3));
        char path[32]; /* stands for the path and its phase */
        (void)snprintf(path, sizeof path, "%" PRIu64, key & UINT32_MAX);
        if (range)
            place->range = (struct side_range){.id = (uint32_t)key,
                                               .path = occ_arena_copy(&r->texts, path),
                                               .layer = side_layer(range, phase, &r->texts),
                                               .names = occ_arena_copy(&r->texts, range),
                                               .is_backward = phase && strcmp(phase, "backward") == 0};
        at = (uint32_t)(place - r->places);
        bench_check(occ_map_put(places, key, at) != OCC_MAP_NONE);
    }
    recording_add_launch(r, &(struct launch){.place = at,
                                             .ns = sqlite3_column_double(s, 6),
                                             .stream = sqlite3_column_int64(s, 7),
                                             .gpu_ns = sqlite3_column_double(s, 8)});
}

static int64_t config_at(const struct recording *r, size_t launch)
{
    return r->places[r->launches[launch].place].row.id;
}

static size_t period_of(const struct recording *r)
{
    size_t best = 0;
    double most = 0.5;
    for (size_t p = 2; p <= r->n / 2; p++) {
        size_t same = 0;
        for (size_t i = 0; i + p < r->n; i++)
            same += config_at(r, i) == config_at(r, i + p) ? 1 : 0;
        double ratio = (double)same / (double)(r->n - p);
        if (ratio > most * 1.02 || (best == 0 && ratio > most)) { /* not a multiple of the period */
            most = ratio;
            best = p;
        }
    }
    return best;
}

static struct recording *read_run(sqlite3 *db, int64_t run, const char *program)
{
    struct recording *r = recording_new();
    struct occ_map places = {0};
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, launches_sql, -1, &s, NULL) != SQLITE_OK)
        bench_fail(sqlite3_errmsg(db));
    (void)snprintf(r->title, sizeof r->title, "%s", program ? program : "?");
    (void)sqlite3_bind_int64(s, 1, run);
    while (sqlite3_step(s) == SQLITE_ROW)
        add_row(r, &places, s);
    (void)sqlite3_finalize(s);
    occ_map_free(&places);
    r->period = period_of(r);
    return r;
}

struct recording *recording_read(const char *history, size_t at)
{
    struct occ_store *store;
    struct recording *r = NULL;
    sqlite3_stmt *s = NULL;
    if (occ_store_open(history, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL) != 0)
        bench_fail("a history cannot be read");
    sqlite3 *db = occ_store_sqlite(store);
    if (sqlite3_prepare_v2(db, "SELECT run_id, program FROM run ORDER BY run_id LIMIT 1 OFFSET ?1", -1, &s,
                           NULL) != SQLITE_OK)
        bench_fail(sqlite3_errmsg(db));
    (void)sqlite3_bind_int64(s, 1, (int64_t)at);
    if (sqlite3_step(s) == SQLITE_ROW)
        r = read_run(db, sqlite3_column_int64(s, 0), text_of(s, 1));
    (void)sqlite3_finalize(s);
    occ_store_close(store);
    return r;
}

/* ---- other work ---- */

static bool is_chosen(const struct place *place, uint64_t seed, const char *family)
{
    uint64_t hash = seed;
    for (const char *at = place->row.mangled; *at; at++)
        hash = hash * 31 + (unsigned char)*at;
    return family ? strcmp(place->row.family, family) == 0 : random_bits(&hash) & 1;
}

/* Adds the place of launches with other work for the place `of`, with its range. */
static struct place *add_other(struct recording *r, uint32_t of, const char *mangled)
{
    const struct place like = r->places[of];
    size_t own = r->n_own_places;
    struct place *other = recording_add_place(r, OTHER_IDS + of, mangled, mangled);
    r->n_own_places = own;
    r->places[of].other = (uint32_t)(other - r->places);
    other->range = like.range;
    other->row.threads = 1; /* own places have none: the number differs */
    other->row.demangled = strcmp(mangled, like.row.mangled) == 0 ? like.row.demangled : other->row.mangled;
    other->row.family = like.row.family;
    return other;
}

static size_t choose_longer(struct recording *r, uint64_t seed, const char *family)
{
    size_t n = 0;
    for (uint32_t p = 0; p < r->n_own_places; p++) {
        if (!is_chosen(&r->places[p], seed, family))
            continue;
        (void)add_other(r, p, r->places[p].row.mangled);
        n++;
    }
    return n;
}

/* next[p]: the place that always follows p, on its stream, in its layer, and after no other; UINT32_MAX:
 * there is none. */
static void find_followers(const struct recording *r, uint32_t *next)
{
    enum { UNSEEN = UINT32_MAX - 1 };
    uint32_t *before = calloc(r->n_own_places + 1, sizeof *before);
    bench_check(before != NULL);
    for (size_t p = 0; p < r->n_own_places; p++)
        next[p] = before[p] = UNSEEN;
    for (size_t i = 0; i < r->n; i++) {
        const struct launch *l = &r->launches[i], *m = i + 1 < r->n ? l + 1 : NULL;
        uint32_t p = l->place, q = m && m->stream == l->stream ? m->place : UINT32_MAX;
        next[p] = next[p] == UNSEEN || next[p] == q ? q : UINT32_MAX;
        if (i == 0)
            before[p] = UINT32_MAX;
        if (m && q == UINT32_MAX)
            before[m->place] = UINT32_MAX;
        if (q != UINT32_MAX)
            before[q] = before[q] == UNSEEN || before[q] == p ? p : UINT32_MAX;
    }
    for (size_t p = 0; p < r->n_own_places; p++) {
        uint32_t q = next[p];
        const char *layer = r->places[p].range.layer,
                   *other = q < r->n_own_places ? r->places[q].range.layer : 0;
        bool is_same_layer = layer && other ? strcmp(layer, other) == 0 : layer == other;
        if (q >= r->n_own_places || q == p || before[q] != p || !is_same_layer)
            next[p] = UINT32_MAX;
    }
    free(before);
}

static size_t choose_fused(struct recording *r, uint64_t seed, const char *family)
{
    uint32_t *next = calloc(r->n_own_places + 1, sizeof *next);
    bool *is_used = calloc(r->n_own_places + 1, sizeof *is_used);
    size_t n = 0;
    bench_check(next && is_used);
    find_followers(r, next);
    for (uint32_t p = 0; p < r->n_own_places; p++) {
        uint32_t q = next[p];
        char name[64];
        if (q == UINT32_MAX || is_used[p] || is_used[q] || !is_chosen(&r->places[p], seed, family) ||
            (family && strcmp(r->places[q].row.family, family) != 0))
            continue;
        is_used[p] = is_used[q] = true;
        (void)snprintf(name, sizeof name, "replacement of %" PRIi64 " and %" PRIi64, r->places[p].row.id,
                       r->places[q].row.id);
        bool is_same_family = strcmp(r->places[p].row.family, r->places[q].row.family) == 0;
        struct place *other = add_other(r, p, name);
        other->row.family = is_same_family ? other->row.family : "fused";
        n++;
    }
    for (size_t i = 0; i < r->n; i++)
        r->launches[i].is_fused = r->places[r->launches[i].place].other != UINT32_MAX;
    free(next);
    free(is_used);
    return n;
}

size_t recording_choose(struct recording *r, enum other_work other, uint64_t seed, const char *family)
{
    r->other = other;
    r->n_places = r->n_own_places;
    for (size_t p = 0; p < r->n_places; p++)
        r->places[p].other = UINT32_MAX;
    for (size_t i = 0; i < r->n; i++)
        r->launches[i].is_fused = false;
    return other == OTHER_NONE     ? 0
           : other == OTHER_LONGER ? choose_longer(r, seed, family)
                                   : choose_fused(r, seed, family);
}

/* ---- sides ---- */

void sides_new(const struct recording *r, struct side sides[DIFF_SIDES])
{
    for (int i = 0; i < DIFF_SIDES; i++) {
        sides[i] = (struct side){.launches = calloc(r->n + 1, sizeof *sides[i].launches)};
        bench_check(sides[i].launches != NULL);
    }
}

void sides_drop(const struct side sides[DIFF_SIDES])
{
    free(sides[DIFF_A].launches);
    free(sides[DIFF_B].launches);
}

/* The side's launches as a program with its work makes them. */
struct made {
    struct launch *all;
    size_t n;
};

/* Makes a launch of the injected layer slower. */
static void slow_down(const struct recording *r, const struct side *side, size_t i, struct launch *launch)
{
    const char *layer = r->places[r->launches[side->launches[i]].place].range.layer;
    if (!side->layer || !layer || strcmp(side->layer, layer) != 0)
        return;
    launch->gpu_ns += launch->ns * (INJECTED - 1);
    launch->ns *= INJECTED;
}

static struct made make_launches(const struct recording *r, const struct side *side)
{
    struct made made = {.all = calloc(side->n + 1, sizeof *made.all)};
    struct launch *waiting = calloc(r->n_places + 1, sizeof *waiting); /* the first of two launches */
    bench_check(made.all && waiting);
    for (size_t i = 0; i < side->n; i++) {
        struct launch launch = r->launches[side->launches[i]];
        uint32_t own = launch.place, other = side->is_other ? r->places[own].other : UINT32_MAX;
        bool has_next = i + 1 < side->n && side->launches[i + 1] == side->launches[i] + 1;
        slow_down(r, side, i, &launch);
        if (other != UINT32_MAX && r->other == OTHER_FUSED && has_next) {
            struct launch next = r->launches[side->launches[++i]];
            slow_down(r, side, i, &next);
            launch = (struct launch){.place = other,
                                     .ns = launch.ns + next.ns,
                                     .gpu_ns = launch.gpu_ns + next.gpu_ns,
                                     .stream = launch.stream};
        }
        if (other != UINT32_MAX && r->other == OTHER_LONGER) {
            bool is_second = waiting[own].ns > 0;
            launch.place = other;
            launch.ns += waiting[own].ns;
            launch.gpu_ns += waiting[own].gpu_ns;
            waiting[own] = is_second ? (struct launch){.ns = 0} : launch;
            if (!is_second)
                continue;
        }
        made.all[made.n++] = launch;
    }
    for (uint32_t p = 0; p < r->n_places; p++) /* an odd launch has a half of the work */
        if (waiting[p].ns > 0)
            made.all[made.n++] = waiting[p];
    free(waiting);
    return made;
}

/* ---- a comparison ---- */

static uint64_t whole_ns(const struct launch *launch)
{
    return (uint64_t)llround(launch->ns);
}

static void add_parts(struct compared *c, const struct recording *r, const struct made *made, uint32_t which)
{
    c->rows[which] = calloc(r->n_places + 1, sizeof **c->rows);
    c->part_of[which] = calloc(r->n_places + 1, sizeof **c->part_of);
    bench_check(c->rows[which] && c->part_of[which]);
    for (size_t p = 0; p < r->n_places; p++)
        c->rows[which][p] = r->places[p].row;
    for (size_t i = 0; i < made->n; i++) {
        struct diff_row *row = &c->rows[which][made->all[i].place];
        row->launches++;
        row->total_ns += whole_ns(&made->all[i]);
    }
    for (size_t p = 0; p < r->n_places; p++) {
        const struct side_range *range = &r->places[p].range;
        c->part_of[which][p] = (uint32_t)c->n_parts;
        if (c->rows[which][p].launches > 0)
            c->parts[c->n_parts++] = (struct diff_part){.row = &c->rows[which][p],
                                                        .side = which,
                                                        .range = range->path,
                                                        .layer = range->layer,
                                                        .where = range->id ? range : NULL};
    }
}

static uint32_t item_of(const struct compared *c, uint32_t which, const struct launch *launch)
{
    return c->parts[c->part_of[which][launch->place]].item;
}

static void match(struct compared *c, const struct made made[DIFF_SIDES])
{
    for (enum diff_level level = 0; level < DIFF_PLACE; level++)
        bench_check(diff_match(&c->diff, level, NULL) == 0);
    for (uint32_t which = 0; which < DIFF_SIDES && diff_has_rest(&c->diff); which++) {
        struct diff_neighbours places = {.diff = &c->diff};
        for (size_t i = 0; i < made[which].n; i++)
            bench_check(diff_neighbours_add(&places, (uint64_t)made[which].all[i].stream,
                                            item_of(c, which, &made[which].all[i])) == 0);
        diff_neighbours_free(&places);
    }
    bench_check(diff_match(&c->diff, DIFF_PLACE, NULL) == 0 && diff_sample(&c->diff, NULL) == 0);
}

/* Returns the GPU time of the side. */
static double add_launches(struct compared *c, const struct made *made, uint32_t which,
                           struct diff_uses *uses)
{
    double gpu_ns = 0;
    uint64_t *seen = calloc(c->diff.n_pairs + 1, sizeof *seen);
    bench_check(seen != NULL);
    for (size_t i = 0; i < made->n; i++) {
        uint32_t pair = c->diff.items[item_of(c, which, &made->all[i])].pair;
        diff_add_launch(&c->diff, which, pair, seen[pair]++, whole_ns(&made->all[i]));
        diff_uses_add(uses, which, diff_uses_next(uses, which), pair, made->all[i].gpu_ns);
        gpu_ns += made->all[i].gpu_ns;
    }
    free(seen);
    return gpu_ns;
}

/* Adds the launches of both sides, and judges their GPU time. */
static void judge_gpu_time(struct compared *c, const struct made made[DIFF_SIDES])
{
    struct diff_uses uses;
    static struct diff_portions portions;
    double gpu_ns[DIFF_SIDES], work;
    bench_check(diff_uses_init(&uses, &c->diff, NULL) == 0);
    for (uint32_t i = 0; i < DIFF_SIDES; i++)
        gpu_ns[i] = add_launches(c, &made[i], i, &uses);
    bench_check(diff_conclude(&c->diff, NULL) == 0);
    bench_check(diff_find_gpu_work(&c->diff, &work, NULL) == 0);
    bench_check(diff_uses_portions(&uses, work, &portions, NULL) == 0);
    double ratio = gpu_ns[DIFF_B] / gpu_ns[DIFF_A] / work;
    const struct diff_gpu_change change = diff_gpu_time_change(&c->diff, ratio, &portions);
    c->gpu_time = diff_judge_gpu_time(&change, DIFF_FLOOR);
    diff_uses_free(&uses);
}

void compare(const struct recording *r, const struct side *a, const struct side *b, struct compared *ret)
{
    const struct made made[] = {make_launches(r, a), make_launches(r, b)};
    *ret = (struct compared){.parts = calloc(2 * r->n_places + 1, sizeof *ret->parts)};
    bench_check(ret->parts != NULL);
    for (uint32_t i = 0; i < DIFF_SIDES; i++)
        add_parts(ret, r, &made[i], i);
    bench_check(diff_collect(&ret->diff, ret->parts, ret->n_parts, (const uint32_t[]){1, 1}, NULL) == 0);
    for (size_t i = 0; i < ret->n_parts; i++)
        diff_add_sums(&ret->diff, &ret->parts[i],
                      &(struct diff_sums){.launches = ret->parts[i].row->launches,
                                          .total_ns = ret->parts[i].row->total_ns});
    match(ret, made);
    judge_gpu_time(ret, made);
    bench_check(diff_levels_make(&ret->diff, DIFF_FLOOR, DIFF_MIN_SHARE, &ret->levels, NULL) == 0 &&
                diff_layers_make(&ret->diff, DIFF_FLOOR, DIFF_MIN_SHARE, &ret->layers, NULL) == 0);
    free(made[DIFF_A].all);
    free(made[DIFF_B].all);
}

void compared_free(struct compared *c)
{
    diff_levels_free(&c->levels);
    diff_layers_free(&c->layers);
    diff_free(&c->diff);
    free(c->parts);
    for (uint32_t i = 0; i < DIFF_SIDES; i++) {
        free(c->rows[i]);
        free(c->part_of[i]);
    }
}
