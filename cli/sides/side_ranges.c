/* See side_ranges.h. */
#include "side_ranges.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "support/array.h"
#include "support/map.h"

static const char ranges_sql[] =
    "SELECT g.config_id, g.range_id, r.range || coalesce(' (' || r.phase || ')', ''), g.launches, "
    "g.total_ns, "
    "r.range, r.phase "
    "FROM (SELECT config_id, range_id, count(*) AS launches, sum(duration_ns) AS total_ns FROM launch "
    "WHERE run_id = ?1 AND start_ns >= ?2 AND start_ns < ?3 AND range_id IS NOT NULL GROUP BY 1, 2) AS g "
    "JOIN range AS r ON r.run_id = ?1 AND r.range_id = g.range_id";

struct split {
    struct occ_config_rows *rows;
    size_t rows_allocated, ranges_allocated;
    struct side_range *ranges;
    struct occ_map configs; /* configuration -> index in rows */
    struct occ_arena *texts;
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool grow(struct split *s)
{
    size_t n = s->rows->n;
    return occ_grow((void **)&s->rows->rows, &s->rows_allocated, n, UINT32_MAX, sizeof *s->rows->rows) &&
           occ_grow((void **)&s->ranges, &s->ranges_allocated, n, UINT32_MAX, sizeof *s->ranges);
}

/* Moves the launches of a row of ranges_sql to a new row. Returns false without memory. */
static bool add_range(struct split *s, sqlite3_stmt *stmt)
{
    uint32_t at = occ_map_get(&s->configs, (uint64_t)sqlite3_column_int64(stmt, 0));
    if (at == OCC_MAP_NONE) /* excluded by the filter */
        return true;
    if (!grow(s))
        return false;
    struct occ_config_row *rest = &s->rows->rows[at], *row = &s->rows->rows[s->rows->n];
    *row = *rest;
    row->launches = least((uint64_t)sqlite3_column_int64(stmt, 3), rest->launches);
    row->total_ns = least((uint64_t)sqlite3_column_int64(stmt, 4), rest->total_ns);
    rest->launches -= row->launches;
    rest->total_ns -= row->total_ns;
    const char *names = (const char *)sqlite3_column_text(stmt, 5),
               *phase = (const char *)sqlite3_column_text(stmt, 6);
    s->ranges[s->rows->n++] =
        (struct side_range){.id = (uint32_t)sqlite3_column_int64(stmt, 1),
                            .path = occ_arena_copy(s->texts, (const char *)sqlite3_column_text(stmt, 2)),
                            .layer = side_layer(names, phase, s->texts),
                            .names = occ_arena_copy(s->texts, names),
                            .is_backward = phase && strcmp(phase, "backward") == 0};
    return !s->texts->failed;
}

static bool index_rows(struct split *s)
{
    bool done = s->ranges != NULL;
    for (size_t i = 0; i < s->rows->n && done; i++)
        done = occ_map_put(&s->configs, (uint64_t)s->rows->rows[i].id, (uint32_t)i) != OCC_MAP_NONE;
    return done;
}

int side_split_by_range(struct occ_store *store, const struct occ_filter *filter,
                        struct occ_config_rows *rows, struct occ_arena *texts, struct side_range **ret_ranges,
                        struct occ_error *err)
{
    struct split s = {.rows = rows,
                      .rows_allocated = rows->n,
                      .ranges_allocated = rows->n,
                      .ranges = calloc(rows->n + 1, sizeof *s.ranges),
                      .texts = texts};
    sqlite3_stmt *stmt = NULL;
    bool has_memory = index_rows(&s);
    int rc = sqlite3_prepare_v2(occ_store_sqlite(store), ranges_sql, -1, &stmt, NULL);
    (void)sqlite3_bind_int64(stmt, 1, filter->run);
    (void)sqlite3_bind_int64(stmt, 2, filter->since_ns);
    (void)sqlite3_bind_int64(stmt, 3, filter->until_ns > 0 ? filter->until_ns : INT64_MAX);
    while (has_memory && rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        has_memory = add_range(&s, stmt);
    if (rc != SQLITE_OK || sqlite3_finalize(stmt) != SQLITE_OK)
        rc = occ_fail(err, OCC_E_CORRUPT, "%s", sqlite3_errmsg(occ_store_sqlite(store)));
    else if (!has_memory)
        rc = occ_no_memory(err);
    occ_map_free(&s.configs);
    *ret_ranges = s.ranges;
    return rc;
}
