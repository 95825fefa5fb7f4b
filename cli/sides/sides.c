/* The sides of a comparison, from a history; see sides.h. One thread. */
#include "sides.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "cli/history/known.h"
#include "compare/neighbours.h"
#include "groups.h"
#include "support/array.h"
#include "support/map.h"
#include "support/text.h"
#include "uses.h"

/* ---- runs and their launch configurations ---- */

static const char runs_sql[] =
    "SELECT run_id, lost, coalesce(label, program, '') FROM run WHERE run_id IN " OCC_FILTER_RUN_IDS
    " ORDER BY run_id DESC";

static int fail_sql(const struct side *side, struct occ_error *err)
{
    return occ_fail(err, OCC_E_CORRUPT, "%s", sqlite3_errmsg(occ_store_sqlite(side->store)));
}

static bool is_same_history(const struct side *side, const struct side *other)
{
    const char *db = side->where.db, *other_db = other->where.db;
    return db && other_db ? strcmp(db, other_db) == 0 : db == other_db;
}

/* True if `run` is a run of the other side, in the same history. */
static bool is_of_other(const struct side *side, const struct side *other, int64_t run)
{
    bool is_same = is_same_history(side, other);
    for (uint32_t i = 0; i < other->n_runs && is_same; i++)
        if (other->runs[i] == run)
            return true;
    return false;
}

uint32_t sides_shared_runs(const struct sides *sides)
{
    const struct side *a = &sides->side[DIFF_A], *b = &sides->side[DIFF_B];
    const char *gpu_a = a->filter.gpu ? a->filter.gpu : "", *gpu_b = b->filter.gpu ? b->filter.gpu : "";
    bool are_all = !sides->cluster && a->filter.since_ns == b->filter.since_ns &&
                   a->filter.until_ns == b->filter.until_ns && strcmp(gpu_a, gpu_b) == 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_runs && are_all; i++)
        n += is_of_other(a, b, a->runs[i]);
    return n;
}

static void name_side(struct side *side, const char *name)
{
    if (side->n_runs == 1)
        (void)snprintf(side->facts.title, sizeof side->facts.title, "run %" PRId64 " %s", side->runs[0],
                       name);
    else
        (void)snprintf(side->facts.title, sizeof side->facts.title, "%s, %" PRIu32 " runs",
                       side->text ? side->text : "all", side->n_runs);
}

static int add_part(struct sides *sides, uint32_t which, uint32_t run, size_t at, struct occ_error *err)
{
    struct diff_facts *facts = &sides->side[which].facts;
    struct occ_config_row *row = &sides->side[which].rows[run].rows[at];
    const struct side_range *ranges = sides->side[which].ranges[run];
    const struct side_range range = ranges ? ranges[at] : (struct side_range){.id = 0};
    bool is_folded = sides->cluster && row->kernel.device_name[0] == '\0'; /* "(other)": many kernels */
    if (row->launches == 0 || is_folded) /* rows of ranges have taken all of its launches */
        return 0;
    if (!occ_grow((void **)&sides->parts, &sides->parts_allocated, sides->n_parts, DIFF_NO_PAIR,
                  sizeof *sides->parts))
        return occ_no_memory(err);
    kernel_names_apply(sides->side[which].names, &row->kernel);
    struct diff_row *compared = &sides->side[which].compared[run][at];
    *compared = diff_row_of(row);
    compared->family = side_family(row->kernel.demangled, &sides->side[which].texts);
    if (sides->side[which].texts.failed)
        return occ_no_memory(err);
    sides->parts[sides->n_parts++] = (struct diff_part){.row = compared,
                                                        .side = which,
                                                        .run = run,
                                                        .range = range.path,
                                                        .layer = range.layer,
                                                        .range_id = range.id,
                                                        .where = range.id ? &ranges[at] : NULL};
    if (facts->device &&
        (strcmp(facts->device, row->kernel.device_name) != 0 || facts->sm_count != row->limits.sm_count))
        return occ_fail(err, OCC_E_INVALID, "%s: launches on several GPU models (%s, %s): choose with gpu:ID",
                        facts->title, facts->device, row->kernel.device_name);
    facts->device = row->kernel.device_name;
    facts->sm_count = row->limits.sm_count;
    facts->simulated |= row->kernel.simulated;
    facts->serialised |= row->measured.exact > 0 || row->measured.ncu > 0;
    facts->launches += row->launches;
    diff_add_device(facts, row->kernel.device, row->launches);
    return 0;
}

/* Adds a run to the side if the side's filter matches launches of the run. */
static int take_run(struct sides *sides, uint32_t which, sqlite3_stmt *stmt, struct occ_error *err)
{
    struct side *side = &sides->side[which];
    struct occ_filter filter = side->filter;
    uint32_t at = side->n_runs;
    filter.run = sqlite3_column_int64(stmt, 0);
    if (side->last && is_of_other(side, &sides->side[1 - which], filter.run)) {
        side->skips = at > 0;
        return 0;
    }
    side->skips_inside |= side->skips;
    if (at == DIFF_RUNS_MAX)
        return occ_fail(err, OCC_E_INVALID, "more than %d runs: last:N takes the newest N", DIFF_RUNS_MAX);
    int status = occ_store_configs(side->store, &filter, &side->rows[at], err);
    if (status != 0 || side->rows[at].n == 0) {
        occ_config_rows_free(&side->rows[at]);
        return status;
    }
    side->runs[side->n_runs++] = filter.run;
    side->facts.lost += (uint64_t)sqlite3_column_int64(stmt, 1);
    side->facts.is_loss_unknown |= sqlite3_column_type(stmt, 1) == SQLITE_NULL;
    name_side(side, (const char *)sqlite3_column_text(stmt, 2));
    if (sides->by_range)
        status =
            side_split_by_range(side->store, &filter, &side->rows[at], &side->texts, &side->ranges[at], err);
    side->compared[at] = status == 0 ? calloc(side->rows[at].n, sizeof *side->compared[at]) : NULL;
    if (status == 0 && !side->compared[at])
        status = occ_no_memory(err);
    for (size_t i = 0; i < side->rows[at].n && status == 0; i++)
        status = add_part(sides, which, at, i, err);
    return status;
}

/* Fails for a side without launches; lists the labels and runs if the side chose one. */
static int fail_empty(const struct sides *sides, const struct side *side, struct occ_error *err)
{
    bool chooses = !sides->cluster && (side->filter.run > 0 || side->filter.label);
    const char *text = side->text ? side->text : "the history";
    char known[HISTORY_KNOWN_BYTES] = "";
    return occ_fail(err, OCC_E_NOT_FOUND, "%.96s: no launches%s", text,
                    chooses ? history_known_text(side->store, text, known) : known);
}

static int read_side(struct sides *sides, uint32_t which, struct occ_error *err)
{
    struct side *side = &sides->side[which];
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_DONE, status = side_open(sides, side, err);
    if (status != 0)
        return status;
    if (sqlite3_prepare_v2(occ_store_sqlite(side->store), runs_sql, -1, &stmt, NULL) != SQLITE_OK)
        return fail_sql(side, err);
    occ_filter_bind_runs(stmt, &side->filter);
    while (status == 0 && (side->last == 0 || side->n_runs < side->last) &&
           (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = take_run(sides, which, stmt, err);
    if (status == 0 && rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = fail_sql(side, err);
    (void)sqlite3_finalize(stmt);
    if (sides->cluster)
        (void)snprintf(side->facts.title, sizeof side->facts.title, "%s", side->text);
    diff_list_devices(&side->facts);
    side->facts.is_of_other_history = !is_same_history(side, &sides->side[1 - which]);
    if (status == 0 && side->facts.launches == 0)
        return fail_empty(sides, side, err);
    return status;
}

/* ---- launches in their order ---- */

struct launch {
    uint32_t item, run;
    uint64_t device, stream, duration_ns; /* stream: unique over devices */
    int64_t start_ns;
};
typedef int visit_launch(void *context, const struct launch *launch);

static const char launches_sql[] =
    "SELECT config_id, duration_ns, device_id, stream_id, iif(?4, coalesce(range_id, 0), 0), "
    "start_ns FROM launch "
    "WHERE run_id = ?1 AND start_ns >= ?2 AND start_ns < ?3 ORDER BY start_ns";

static uint64_t key_of(int64_t config, uint32_t range)
{
    return (uint64_t)config << 32 | range;
}

/* Maps configuration and range to the item, for a run. */
static int map_items(const struct sides *sides, uint32_t which, uint32_t run, struct occ_map *items,
                     struct occ_error *err)
{
    occ_map_clear(items);
    for (size_t i = 0; i < sides->n_parts; i++) {
        const struct diff_part *part = &sides->parts[i];
        if (part->side == which && part->run == run &&
            occ_map_put(items, key_of(part->row->id, part->range_id), part->item) == OCC_MAP_NONE)
            return occ_no_memory(err);
    }
    return 0;
}

static int visit_run(const struct side *side, uint32_t run, const struct occ_map *items, visit_launch *visit,
                     void *context)
{
    sqlite3_stmt *stmt = NULL;
    struct launch launch = {.run = run};
    int rc = sqlite3_prepare_v2(occ_store_sqlite(side->store), launches_sql, -1, &stmt, NULL);
    (void)sqlite3_bind_int64(stmt, 1, side->runs[run]);
    (void)sqlite3_bind_int64(stmt, 2, side->filter.since_ns);
    (void)sqlite3_bind_int64(stmt, 3, side->filter.until_ns > 0 ? side->filter.until_ns : INT64_MAX);
    (void)sqlite3_bind_int(stmt, 4, side->ranges[run] != NULL);
    while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        launch.item = occ_map_get(
            items, key_of(sqlite3_column_int64(stmt, 0), (uint32_t)sqlite3_column_int64(stmt, 4)));
        launch.duration_ns = (uint64_t)sqlite3_column_int64(stmt, 1);
        launch.device = (uint64_t)sqlite3_column_int64(stmt, 2);
        launch.stream = launch.device << 32 | (uint32_t)sqlite3_column_int64(stmt, 3);
        launch.start_ns = sqlite3_column_int64(stmt, 5);
        if (launch.item != OCC_MAP_NONE)
            rc = visit(context, &launch);
    }
    return sqlite3_finalize(stmt) == SQLITE_OK && rc == SQLITE_OK ? 0 : -1;
}

/* Calls `visit` for each launch of a side that the history still has: by run, oldest run first. */
static int visit_side(struct sides *sides, uint32_t which, visit_launch *visit, void *context,
                      struct occ_error *err)
{
    struct side *side = &sides->side[which];
    struct occ_map items = {0};
    int status = 0;
    for (uint32_t i = side->n_runs; i > 0 && status == 0; i--) {
        status = map_items(sides, which, i - 1, &items, err);
        if (status == 0 && visit_run(side, i - 1, &items, visit, context) != 0)
            status = fail_sql(side, err);
    }
    occ_map_free(&items);
    return status;
}

/* ---- neighbours ---- */

static int note_neighbours(void *context, const struct launch *launch)
{
    return diff_neighbours_add(context, launch->stream, launch->item) == 0 ? SQLITE_OK : SQLITE_NOMEM;
}

static int match_by_neighbours(struct sides *sides, struct occ_error *err)
{
    int status = 0;
    for (uint32_t which = 0; which < DIFF_SIDES && status == 0; which++) {
        struct diff_neighbours neighbours = {.diff = &sides->diff};
        status = visit_side(sides, which, note_neighbours, &neighbours, err);
        diff_neighbours_free(&neighbours);
    }
    return status == 0 ? diff_match(&sides->diff, DIFF_PLACE, err) : status;
}

/* ---- blocks ---- */

struct blocks {
    struct diff *diff;
    uint32_t side;
    uint64_t *seen; /* number of launches of each pair */
    struct side_uses uses;
};

static int add_to_block(void *context, const struct launch *launch)
{
    struct blocks *blocks = context;
    uint32_t pair = blocks->diff->items[launch->item].pair;
    const struct side_use use = {.device = launch->device,
                                 .start_ns = launch->start_ns,
                                 .end_ns = launch->start_ns + (int64_t)launch->duration_ns,
                                 .pair = pair};
    diff_add_launch(blocks->diff, blocks->side, pair, blocks->seen[pair]++, launch->duration_ns);
    return side_uses_add(&blocks->uses, launch->run, &use) ? SQLITE_OK : SQLITE_NOMEM;
}

static int fill_blocks(struct sides *sides, uint32_t which, struct diff_uses *uses, struct occ_error *err)
{
    _cleanup_(occ_freep) uint64_t *seen = calloc(sides->diff.n_pairs + 1, sizeof *seen);
    struct blocks blocks = {.diff = &sides->diff,
                            .side = which,
                            .seen = seen,
                            .uses = {.uses = uses, .side = which, .run = UINT32_MAX}};
    if (!seen)
        return occ_no_memory(err);
    int status = visit_side(sides, which, add_to_block, &blocks, err);
    side_uses_end(&blocks.uses);
    return status;
}

static int conclude_runs(struct sides *sides, struct occ_error *err)
{
    int status = diff_conclude(&sides->diff, err);
    return status == 0 ? diff_find_gpu_work(&sides->diff, &sides->work, err) : status;
}

/* Fills the blocks and the portions of both sides, and concludes. */
static int conclude_blocks(struct sides *sides, struct occ_error *err)
{
    _cleanup_(diff_uses_free) struct diff_uses uses = {.diff = NULL};
    int status = diff_uses_init(&uses, &sides->diff, err);
    for (uint32_t which = 0; which < DIFF_SIDES && status == 0; which++)
        status = fill_blocks(sides, which, &uses, err);
    if (status == 0)
        status = diff_conclude(&sides->diff, err);
    if (status == 0)
        status = diff_find_gpu_work(&sides->diff, &sides->work, err);
    if (status == 0)
        status = diff_uses_portions(&uses, sides->work, &sides->portions, err);
    return status;
}

/* ---- comparison ---- */

int sides_compare(struct sides *sides, struct occ_error *err)
{
    int status = sides_align_kernels(sides, err);
    status = status == 0 ? read_side(sides, DIFF_B, err) : status;
    if (status == 0 && sides->side[DIFF_A].text)
        status = read_side(sides, DIFF_A, err);
    const uint32_t runs[] = {sides->side[DIFF_A].n_runs, sides->side[DIFF_B].n_runs};
    if (status == 0)
        status = diff_collect_rows(&sides->diff, sides->parts, sides->n_parts, runs, err);
    sides->diff.by_minutes = sides->cluster != NULL;
    for (enum diff_level level = 0; level < DIFF_PLACE && status == 0; level++)
        status = diff_match(&sides->diff, level, err);
    if (status == 0 && diff_has_rest(&sides->diff))
        status = match_by_neighbours(sides, err);
    if (status == 0)
        status = diff_sample(&sides->diff, err);
    if (status == 0)
        status = sides->diff.by_runs ? conclude_runs(sides, err) : conclude_blocks(sides, err);
    return status;
}

void sides_free(struct sides *sides)
{
    diff_free(&sides->diff);
    free(sides->parts);
    for (struct side *side = sides->side; side < sides->side + DIFF_SIDES; side++) {
        for (uint32_t i = 0; i < side->n_runs; i++) {
            occ_config_rows_free(&side->rows[i]);
            free(side->ranges[i]);
            free(side->compared[i]);
        }
        occ_arena_free(side->texts.blocks);
        kernel_names_free(side->names);
        occ_store_close(side->store);
        free(side->words);
    }
}
