/*
 * The virtual table `launch`. A scan lists the chunks whose metadata allow a match, decodes only the columns
 * that the statement reads, selects rows with plain loops over the columns, and returns them one by one, if
 * requested in the order of their starts. Values common to a configuration (names, configuration, occupancy)
 * are read once per configuration and scan, measured values once per chunk. Threads: the connection's.
 */
#include <math.h>
#include <stdlib.h>

#include "launch_group.h"
#include "launch_merge.h"
#include "launch_values.h"
#include "occupancy/waterfall.h"

#define COLUMN_ID(NAME, column, type, unit, help)           COLUMN_##NAME,
#define LAUNCH_COLUMN(NAME, column, type, unit, help)       column " " type ", "
#define CONFIG_COLUMN(column, type, expression, unit, help) column " " type ", "
#define KEY(NAME, letter, of_rows)                          {COLUMN_##NAME, letter, of_rows},

enum column { OCC_SQL_LAUNCH(COLUMN_ID) LAUNCH_COLUMN_COUNT };

static const char declaration[] =
    "CREATE TABLE launch(" OCC_SQL_LAUNCH(LAUNCH_COLUMN) OCC_SQL_CONFIG(CONFIG_COLUMN) "CHECK (1))";

/* Columns of the chunk that each column of the table needs. */
static const uint32_t needs[LAUNCH_COLUMN_COUNT] = {
    [COLUMN_CONFIG] = OCC_COLUMN_BIT(config),
    [COLUMN_KERNEL] = OCC_COLUMN_BIT(config),
    [COLUMN_START] = OCC_COLUMN_BIT(start_ns),
    [COLUMN_END] = OCC_COLUMN_BIT(start_ns) | OCC_COLUMN_BIT(duration_ns),
    [COLUMN_DURATION] = OCC_COLUMN_BIT(duration_ns),
    [COLUMN_CONTEXT] = OCC_COLUMN_BIT(context),
    [COLUMN_STREAM] = OCC_COLUMN_BIT(stream),
    [COLUMN_CORRELATION] = OCC_COLUMN_BIT(correlation),
    [COLUMN_GRAPH_NODE] = OCC_COLUMN_BIT(graph_node),
    [COLUMN_RANGE] = OCC_COLUMN_BIT(range),
    [COLUMN_ACHIEVED] = OCC_LAUNCH_VALUES_NEED,
    [COLUMN_ACHIEVED_CI95] = OCC_LAUNCH_VALUES_NEED,
    [COLUMN_ELAPSED] = OCC_LAUNCH_VALUES_NEED,
    [COLUMN_ELAPSED_CI95] = OCC_LAUNCH_VALUES_NEED,
    [COLUMN_MEASURED_SOURCE] = OCC_LAUNCH_VALUES_NEED,
    [COLUMN_MEASURED_RATIO] = OCC_LAUNCH_VALUES_NEED,
    [COLUMN_WASTE] = OCC_LAUNCH_VALUES_NEED | OCC_COLUMN_BIT(duration_ns),
};

/* ---- plan ---- */

/* Bits of idxNum. */
enum {
    PLAN_CONFIGS = 1, /* some column of OCC_SQL_CONFIG is used */
    PLAN_DESCENDING = 2,
    PLAN_BY_START = 4,
    PLAN_BY_RUN = 8,
    PLAN_BY_DEVICE = 16,
    PLAN_BY_CONFIG = 32,
    PLAN_BY_KERNEL = 64,
    PLAN_GROUPS = PLAN_BY_CONFIG | PLAN_BY_KERNEL,
    PLAN_COLUMNS = 128, /* with PLAN_GROUPS: factor of the set of used columns */
};

static const struct occ_vtab_key keys[] = {OCC_LAUNCH_KEYS(KEY)};

/* Number of launches, and number of values of each key. */
static const char statistics[] = "SELECT n, n, runs, (SELECT max(device_id) FROM \"%w\".stored_device), "
                                 "(SELECT max(config_id) FROM \"%w\".stored_launch_config), "
                                 "(SELECT max(kernel_id) FROM \"%w\".stored_kernel), n / runs FROM "
                                 "(SELECT total(launches) AS n FROM \"%w\".stored_chunk), "
                                 "(SELECT max(1, max(run_id)) AS runs FROM \"%w\".stored_run)";

/* True if a condition that the scan handles fixes the column to one value. */
static bool is_fixed(const sqlite3_index_info *info, int column)
{
    for (int i = 0; i < info->nConstraint; i++)
        if (info->aConstraintUsage[i].argvIndex > 0 && info->aConstraint[i].iColumn == column &&
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ)
            return true;
    return false;
}

/* Columns needed from the gathered launches of a configuration; 0: a used column needs an open chunk. */
static uint32_t group_columns(const sqlite3_index_info *info)
{
    uint32_t columns = OCC_COLUMN_BIT(config);
    for (int k = 0; k < LAUNCH_COLUMN_COUNT; k++) {
        if (!(info->colUsed >> k & 1))
            continue;
        if (k >= COLUMN_ACHIEVED || ((k == COLUMN_RUN || k == COLUMN_DEVICE) && !is_fixed(info, k)))
            return 0;
        columns |= needs[k];
    }
    return columns;
}

/* Starts are merged from the chunks, unless too many overlap; the order by run or device is the order of the
 * list of chunks; configurations and kernels are gathered from all chunks. */
static int plan_order(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    static const int orders[LAUNCH_COLUMN_COUNT] = {[COLUMN_START] = PLAN_BY_START,
                                                    [COLUMN_RUN] = PLAN_BY_RUN,
                                                    [COLUMN_DEVICE] = PLAN_BY_DEVICE,
                                                    [COLUMN_CONFIG] = PLAN_BY_CONFIG,
                                                    [COLUMN_KERNEL] = PLAN_BY_KERNEL};
    int column = info->nOrderBy == 1 ? info->aOrderBy[0].iColumn : -1;
    int order = column >= 0 && column < LAUNCH_COLUMN_COUNT ? orders[column] : 0;
    bool descending = order != 0 && info->aOrderBy[0].desc;
    bool groups = order & PLAN_GROUPS;
    uint32_t columns = groups ? group_columns(info) : 0;
    bool is_wide = false;
    if (order == 0 || (groups && (columns == 0 || descending)))
        return SQLITE_OK;
    int rc = order == PLAN_BY_START && !is_fixed(info, COLUMN_RUN) ? occ_launch_merge_is_wide(vtab, &is_wide)
                                                                   : SQLITE_OK;
    if (rc != SQLITE_OK || is_wide)
        return rc;
    info->idxNum |= order | (descending ? PLAN_DESCENDING : 0) | (int)columns * PLAN_COLUMNS;
    info->orderByConsumed = 1;
    return SQLITE_OK;
}

static int launch_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    info->idxNum = info->colUsed >> LAUNCH_COLUMN_COUNT != 0 ? PLAN_CONFIGS : 0;
    int rc = occ_vtab_plan(vtab, info, keys, OCC_LAUNCH_KEY_COUNT, statistics);
    return rc == SQLITE_OK ? plan_order(vtab, info) : rc;
}

/* ---- scan ---- */

struct launch_cursor {
    sqlite3_vtab_cursor base;
    struct occ_launch_scan scan;
    sqlite3_stmt *list;               /* lists chunks */
    int order;                        /* PLAN_BY_START, one of PLAN_GROUPS, or the order of the list */
    struct occ_launch_merge merge;    /* for order by start */
    struct occ_launch_group group;    /* for order by configuration or kernel */
    struct occ_launch_chunk single;   /* for any other order */
    struct occ_launch_chunk *current; /* NULL: at the end */
    uint32_t row;                     /* number in the current chunk */
};

static int launch_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    (void)vtab;
    struct launch_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    *ret = &c->base;
    return SQLITE_OK;
}

static int launch_close(sqlite3_vtab_cursor *cursor)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    (void)sqlite3_finalize(c->list);
    occ_launch_merge_close(&c->merge);
    occ_launch_group_close(&c->group);
    occ_launch_chunk_close(&c->single);
    occ_launch_scan_close(&c->scan);
    free(c);
    return SQLITE_OK;
}

/* Lists the chunks whose metadata allow a match. */
static int list_chunks(struct launch_cursor *c, int plan)
{
    static const enum occ_launch_key order[] = {OCC_LAUNCH_KEY_START, OCC_LAUNCH_KEY_RUN,
                                                OCC_LAUNCH_KEY_DEVICE, OCC_LAUNCH_KEY_CORRELATION};
    const struct occ_launch_scan *s = &c->scan;
    bool descending = plan & PLAN_DESCENDING;
    (void)sqlite3_finalize(c->list);
    c->list = NULL;
    char *sql = sqlite3_mprintf(
        OCC_LAUNCH_LIST_SQL "WHERE 1%s%s%s%s%s%s", "%w",
        s->narrowed[OCC_LAUNCH_KEY_START] ? " AND c.last_start_ns >= ?1 AND c.first_start_ns <= ?2" : "",
        s->narrowed[OCC_LAUNCH_KEY_RUN] ? " AND c.run_id BETWEEN ?3 AND ?4" : "",
        s->narrowed[OCC_LAUNCH_KEY_DEVICE] ? " AND c.device_id BETWEEN ?5 AND ?6" : "",
        s->narrowed[OCC_LAUNCH_KEY_CORRELATION]
            ? " AND c.max_correlation_id >= ?7 AND c.min_correlation_id <= ?8"
            : "",
        plan & PLAN_BY_START    ? (descending ? " ORDER BY c.last_start_ns" : " ORDER BY c.first_start_ns")
        : plan & PLAN_BY_RUN    ? " ORDER BY c.run_id"
        : plan & PLAN_BY_DEVICE ? " ORDER BY c.device_id"
                                : "",
        descending ? " DESC" : "");
    int rc = sql ? occ_vtab_prepare(c->base.pVtab, &c->list, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    for (int i = 0; i < 4 && rc == SQLITE_OK;
         i++) { /* SQLite refuses parameters that the statement lacks, which is harmless */
        (void)sqlite3_bind_int64(c->list, 2 * i + 1, s->range[order[i]].low);
        (void)sqlite3_bind_int64(c->list, 2 * i + 2, s->range[order[i]].high);
    }
    return rc;
}

/* Opens the next chunk of the list with matching rows. */
static int next_chunk(struct launch_cursor *c)
{
    int rc;
    do {
        rc = occ_vtab_step(c->base.pVtab, c->list);
        if (rc == SQLITE_ROW)
            rc = occ_launch_chunk_open(&c->scan, &c->single, c->list);
    } while (rc == SQLITE_OK && c->single.n == 0);
    c->current = rc == SQLITE_OK ? &c->single : NULL;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Finds the first row, or the next row if it is not simply the next of the current chunk. */
static int find_row(struct launch_cursor *c)
{
    if (c->order == PLAN_BY_START)
        return occ_launch_merge_next(&c->merge, &c->scan, &c->current, &c->row);
    int rc = c->order & PLAN_GROUPS ? occ_launch_group_next(&c->group, &c->scan, &c->current) : next_chunk(c);
    if (rc == SQLITE_OK && c->current)
        c->row = occ_launch_chunk_row(c->current, 0);
    return rc;
}

static int launch_next(sqlite3_vtab_cursor *cursor)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    struct occ_launch_chunk *chunk = c->current;
    if (c->order == PLAN_BY_START || ++chunk->at >= chunk->n)
        return find_row(c);
    c->row = occ_launch_chunk_row(chunk, chunk->at);
    return SQLITE_OK;
}

static int launch_filter(sqlite3_vtab_cursor *cursor, int plan, const char *conditions, int argc,
                         sqlite3_value **argv)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    c->current = NULL;
    c->scan.wants_configs = plan & PLAN_CONFIGS;
    int rc = occ_vtab_enter(cursor->pVtab);
    if (rc == SQLITE_OK)
        rc = occ_launch_scan_open(&c->scan, cursor->pVtab, conditions, argc, argv);
    if (rc != SQLITE_OK || occ_launch_scan_is_empty(&c->scan))
        return rc;
    rc = list_chunks(c, plan);
    c->order = plan & (PLAN_BY_START | PLAN_GROUPS);
    if (rc == SQLITE_OK && c->order == PLAN_BY_START)
        rc = occ_launch_merge_start(&c->merge, &c->scan, c->list, plan & PLAN_DESCENDING);
    if (rc == SQLITE_OK && c->order & PLAN_GROUPS)
        rc = occ_launch_group_start(&c->group, &c->scan, c->list, plan & PLAN_BY_KERNEL,
                                    (uint32_t)(plan / PLAN_COLUMNS));
    return rc == SQLITE_OK ? find_row(c) : rc;
}

static int launch_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct launch_cursor *)cursor)->current == NULL;
}

static int launch_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
    const struct launch_cursor *c = (const struct launch_cursor *)cursor;
    *ret = (sqlite3_int64)occ_launch_chunk_rowid(c->current, c->row);
    return SQLITE_OK;
}

/* ---- columns ---- */

static int config_column(struct launch_cursor *c, sqlite3_context *context, int column)
{
    const struct occ_launch_config_info *config = NULL;
    int rc = occ_launch_scan_config(&c->scan, (uint32_t)c->current->columns.config[c->row], &config);
    if (rc != SQLITE_OK)
        return rc;
    if (column == COLUMN_KERNEL) {
        if (config->known)
            sqlite3_result_int64(context, config->kernel);
    } else if (config->values[column - LAUNCH_COLUMN_COUNT]) {
        sqlite3_result_value(context, config->values[column - LAUNCH_COLUMN_COUNT]);
    }
    return SQLITE_OK;
}

/* Returns a measured column: in SQL, a NULL text and NaN become NULL. */
static int measured_column(struct launch_cursor *c, sqlite3_context *context, int column)
{
    struct occ_launch_measured m;
    int rc = occ_launch_values_get(&c->scan, c->current, c->row, &m);
    if (rc != SQLITE_OK)
        return rc;
    if (column == COLUMN_MEASURED_SOURCE)
        sqlite3_result_text(context, m.source, -1, SQLITE_STATIC);
    else
        sqlite3_result_double(context,
                              column == COLUMN_ACHIEVED         ? m.achieved
                              : column == COLUMN_ACHIEVED_CI95  ? m.achieved_error * OCC_ERRORS_OF_95_PERCENT
                              : column == COLUMN_ELAPSED        ? m.elapsed
                              : column == COLUMN_MEASURED_RATIO ? m.measured_ratio
                                                                : m.elapsed_error * OCC_ERRORS_OF_95_PERCENT);
    return SQLITE_OK;
}

static int waste_column(struct launch_cursor *c, sqlite3_context *context)
{
    struct occ_launch_measured m;
    const struct occ_launch_config_info *config = NULL;
    int rc = occ_launch_scan_config(&c->scan, (uint32_t)c->current->columns.config[c->row], &config);
    if (rc == SQLITE_OK && config->known)
        rc = occ_launch_values_get(&c->scan, c->current, c->row, &m);
    if (rc != SQLITE_OK || !config->known)
        return rc;
    double unused = 1 - (isnan(m.elapsed) ? config->expected_elapsed_low : m.elapsed);
    sqlite3_result_double(context, (double)c->current->columns.duration_ns[c->row] * 1e-9 *
                                       config->device_warps * (unused < 0 ? 0 : unused));
    return SQLITE_OK;
}

/* Columns of the table that are columns of the chunk: 1 + enum occ_column. */
static const uint8_t numbers[LAUNCH_COLUMN_COUNT] = {
    [COLUMN_CONFIG] = 1 + OCC_COLUMN_config,         [COLUMN_START] = 1 + OCC_COLUMN_start_ns,
    [COLUMN_DURATION] = 1 + OCC_COLUMN_duration_ns,  [COLUMN_CONTEXT] = 1 + OCC_COLUMN_context,
    [COLUMN_STREAM] = 1 + OCC_COLUMN_stream,         [COLUMN_CORRELATION] = 1 + OCC_COLUMN_correlation,
    [COLUMN_GRAPH_NODE] = 1 + OCC_COLUMN_graph_node, [COLUMN_RANGE] = 1 + OCC_COLUMN_range,
};

static void number_column(const struct launch_cursor *c, sqlite3_context *context, int column)
{
    int64_t number = (int64_t)c->current->columns.column[numbers[column] - 1][c->row];
    if (number != 0 || (column != COLUMN_GRAPH_NODE && column != COLUMN_RANGE))
        sqlite3_result_int64(context, number);
}

/* Returns any column; the chunk may still have to decode it. Not inlined: otherwise registers would be saved
 * for every value. */
__attribute__((noinline)) static int any_column(struct launch_cursor *c, sqlite3_context *context, int column)
{
    const struct occ_columns *v = &c->current->columns;
    uint32_t needed = column < LAUNCH_COLUMN_COUNT ? needs[column] : OCC_COLUMN_BIT(config);
    c->scan.columns |= needed;
    int rc = occ_launch_chunk_decode(&c->scan, c->current, needed);
    if (rc != SQLITE_OK)
        return rc;
    if (column >= LAUNCH_COLUMN_COUNT || column == COLUMN_KERNEL)
        return config_column(c, context, column);
    if (column == COLUMN_WASTE)
        return waste_column(c, context);
    if (column >= COLUMN_ACHIEVED)
        return measured_column(c, context, column);
    if (column == COLUMN_END)
        sqlite3_result_int64(context, (int64_t)(v->start_ns[c->row] + v->duration_ns[c->row]));
    else if (column == COLUMN_RUN || column == COLUMN_DEVICE)
        sqlite3_result_int64(context, column == COLUMN_RUN ? c->current->run : c->current->device);
    else
        number_column(c, context, column);
    return SQLITE_OK;
}

/* Called for each value: a decoded number takes the short path. */
static int launch_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    unsigned number = column < LAUNCH_COLUMN_COUNT ? numbers[column] : 0;
    if (number == 0 || !(c->current->decoded >> (number - 1) & 1))
        return any_column(c, context, column);
    number_column(c, context, column);
    return SQLITE_OK;
}

int occ_launch_table_register(sqlite3 *db)
{
    static const sqlite3_module module = OCC_VTAB_MODULE(launch);
    return sqlite3_create_module_v2(db, OCC_SQL_MODULE("launch"), &module, (void *)(uintptr_t)declaration,
                                    NULL);
}
