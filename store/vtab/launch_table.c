/*
 * The virtual table `launch`. A scan lists the chunks that can match (their metadata decide, for configurations also their
 * totals), unpacks of each only the columns that the statement uses, selects rows with plain loops over the columns,
 * and hands them out one by one. What does not depend on the single launch (names, configuration, occupancy) is read
 * once per configuration and scan; what was measured, once per chunk (launch_values.h).
 *
 * Nothing in the file is trusted: the codec checks its bytes, everything else is only compared and copied. Threads:
 * those of the connection.
 */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/columns.h"
#include "launch_values.h"
#include "support/error.h"
#include "support/map.h"
#include "occupancy/waterfall.h"
#include "store/sql_nouns.h"
#include "vtab.h"

#ifdef OCC_SQLITE_EXTENSION
SQLITE_EXTENSION_INIT3
#endif

/* What a column needs of the chunk. X(NAME, set of columns) */
#define COLUMN_NEEDS(X)                                                                                      \
    X(RUN, 0)                                                                                                \
    X(CONFIG, OCC_COLUMN_BIT(config))                                                                        \
    X(KERNEL, OCC_COLUMN_BIT(config))                                                                        \
    X(DEVICE, 0)                                                                                             \
    X(START, OCC_COLUMN_BIT(start_ns))                                                                       \
    X(END, OCC_COLUMN_BIT(start_ns))                                                                         \
    X(DURATION, OCC_COLUMN_BIT(duration_ns))                                                                 \
    X(CONTEXT, OCC_COLUMN_BIT(context))                                                                      \
    X(STREAM, OCC_COLUMN_BIT(stream))                                                                        \
    X(CORRELATION, OCC_COLUMN_BIT(correlation))                                                              \
    X(GRAPH_NODE, OCC_COLUMN_BIT(graph_node))                                                                \
    X(ACHIEVED, OCC_LAUNCH_VALUES_NEED)                                                                      \
    X(ACHIEVED_CI95, OCC_LAUNCH_VALUES_NEED)                                                                 \
    X(ELAPSED, OCC_LAUNCH_VALUES_NEED)                                                                       \
    X(ELAPSED_CI95, OCC_LAUNCH_VALUES_NEED)                                                                  \
    X(MEASURED_SOURCE, OCC_LAUNCH_VALUES_NEED)                                                               \
    X(WASTE, OCC_LAUNCH_VALUES_NEED | OCC_COLUMN_BIT(duration_ns))

enum column {
#define X(NAME, column, type, unit, help) COLUMN_##NAME,
    OCC_SQL_LAUNCH(X)
#undef X
        LAUNCH_COLUMN_COUNT
};

#define X(column, type, expression, unit, help) +1
enum { CONFIG_COLUMN_COUNT = 0 OCC_SQL_CONFIG(X) };
#undef X

static const char declaration[] = "CREATE TABLE launch("
#define X(NAME, column, type, unit, help) column " " type ", "
    OCC_SQL_LAUNCH(X)
#undef X
#define X(column, type, expression, unit, help) column " " type ", "
        OCC_SQL_CONFIG(X)
#undef X
            "CHECK (1))";

/* Kernel, warps that the device holds, expected_elapsed, and the columns of all launches of a configuration. */
static const char config_sql[] = "SELECT c.kernel_id, d.sm_count * c.max_warps_per_sm, c.expected_elapsed"
#define X(column, type, expression, unit, help) ", " expression
    OCC_SQL_CONFIG(X)
#undef X
        " FROM \"%w\".stored_launch_config c JOIN \"%w\".stored_kernel k USING(kernel_id) "
        "JOIN \"%w\".stored_device d USING(device_id) WHERE c.config_id = ?";

static const unsigned needs[LAUNCH_COLUMN_COUNT] = {
#define X(NAME, what) [COLUMN_##NAME] = (unsigned)(what),
    COLUMN_NEEDS(X)
#undef X
};

/* ---- conditions ---- */

/* Columns that a scan can be narrowed by, all of them integers. */
enum key { KEY_START, KEY_RUN, KEY_DEVICE, KEY_CONFIG, KEY_KERNEL, KEY_CORRELATION, KEY_COUNT };

static const enum column key_column[KEY_COUNT] = {
    [KEY_START] = COLUMN_START,   [KEY_RUN] = COLUMN_RUN,       [KEY_DEVICE] = COLUMN_DEVICE,
    [KEY_CONFIG] = COLUMN_CONFIG, [KEY_KERNEL] = COLUMN_KERNEL, [KEY_CORRELATION] = COLUMN_CORRELATION,
};

/* How a condition travels from the planner to the scan: one letter a key, one an operator. */
static const char key_letters[KEY_COUNT + 1] = "trdskc";

static char key_letter(int column)
{
    for (int key = 0; key < KEY_COUNT; key++)
        if ((int)key_column[key] == column)
            return key_letters[key];
    return 0;
}

/* ---- table ---- */

/* What the launches of a configuration have in common. */
struct config_info {
    int64_t kernel;
    double device_warps, expected_elapsed; /* NaN: not known */
    bool known;
    sqlite3_value *values[CONFIG_COLUMN_COUNT]; /* NULL until needed */
};

struct launch_cursor {
    sqlite3_vtab_cursor base;
    struct occ_range range[KEY_COUNT];
    unsigned columns;  /* columns to unpack: those that rows were asked for so far */
    unsigned unpacked; /* those that `view` holds of the current chunk */
    bool wants_values; /* some column of OCC_SQL_CONFIG is used */
    bool narrowed[KEY_COUNT];
    sqlite3_stmt *chunks; /* on the current chunk's row */
    sqlite3_stmt *data;   /* on the current chunk's bytes, when they were needed */
    sqlite3_stmt *configs_stmt;
    struct occ_columns_decoder *decoder;
    struct occ_launch_values *values; /* when they were asked for */
    struct occ_columns view;
    int64_t run, device, chunk_first, chunk_last;
    uint32_t chunk_n;
    uint32_t *selected; /* rows of the chunk that match; NULL: all of them */
    uint32_t selected_capacity;
    const uint32_t *selection; /* `selected`, or NULL when all rows match */
    uint32_t n, at;            /* rows to hand out, the next one */
    uint32_t row;              /* the current one's number in the chunk */
    bool done;
    struct occ_map config_index; /* config -> index in configs */
    struct config_info *configs;
    uint32_t n_configs, configs_capacity;
    uint32_t last_config, last_index;
};

static int launch_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                          char **message)
{
    (void)aux;
    (void)argc;
    (void)message;
    return occ_vtab_connect(db, declaration, argv[1], ret);
}

/* The estimate only has to order plans. Columns are unpacked when they are read (one that only stands in a condition is
 * not); idxNum only says whether any column of the configurations is used. */
static int launch_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    double rows = 1e7;
    info->idxNum = (info->colUsed & ~((UINT64_C(1) << LAUNCH_COLUMN_COUNT) - 1)) != 0;
    return occ_vtab_plan(info, key_letter, &rows);
}

static int launch_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    (void)vtab;
    struct launch_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    *ret = &c->base;
    return SQLITE_OK;
}

static void forget_configs(struct launch_cursor *c)
{
    for (uint32_t i = 0; i < c->n_configs; i++)
        for (uint32_t k = 0; k < CONFIG_COLUMN_COUNT; k++)
            sqlite3_value_free(c->configs[i].values[k]);
    c->n_configs = 0;
    c->last_config = 0;
    occ_map_clear(&c->config_index);
}

static int launch_close(sqlite3_vtab_cursor *cursor)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    (void)sqlite3_finalize(c->chunks);
    (void)sqlite3_finalize(c->data);
    (void)sqlite3_finalize(c->configs_stmt);
    forget_configs(c);
    occ_map_free(&c->config_index);
    free(c->configs);
    free(c->selected);
    occ_columns_decoder_free(c->decoder);
    occ_launch_values_free(c->values);
    free(c);
    return SQLITE_OK;
}

static int fail(struct launch_cursor *c, const char *text)
{
    return occ_vtab_fail(c->base.pVtab, SQLITE_CORRUPT, text);
}

/* ---- launch configurations ---- */

static double known_double(sqlite3_stmt *stmt, int column)
{
    return sqlite3_column_type(stmt, column) == SQLITE_NULL ? NAN : sqlite3_column_double(stmt, column);
}

static int read_config(struct launch_cursor *c, uint32_t config, struct config_info *info)
{
    int rc = occ_vtab_prepare(c->base.pVtab, &c->configs_stmt, config_sql);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_bind_int64(c->configs_stmt, 1, config);
    int step = occ_vtab_step(c->base.pVtab, c->configs_stmt);
    if (step == SQLITE_ROW) {
        info->known = true;
        info->kernel = sqlite3_column_int64(c->configs_stmt, 0);
        info->device_warps = known_double(c->configs_stmt, 1);
        info->expected_elapsed = known_double(c->configs_stmt, 2);
        for (int k = 0; c->wants_values && k < CONFIG_COLUMN_COUNT; k++)
            info->values[k] = sqlite3_value_dup(sqlite3_column_value(c->configs_stmt, 3 + k));
    }
    (void)sqlite3_reset(c->configs_stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : step;
}

static int find_config(struct launch_cursor *c, uint32_t config, const struct config_info **ret)
{
    if (config == c->last_config && c->n_configs > 0) {
        *ret = &c->configs[c->last_index];
        return SQLITE_OK;
    }
    uint32_t index = occ_map_get(&c->config_index, config);
    if (index == OCC_MAP_NONE) {
        if (c->n_configs == c->configs_capacity) {
            uint32_t capacity = c->configs_capacity * 2 + 64;
            struct config_info *configs = realloc(c->configs, capacity * sizeof *configs);
            if (!configs)
                return SQLITE_NOMEM;
            c->configs = configs;
            c->configs_capacity = capacity;
        }
        struct config_info info = {0};
        int rc = read_config(c, config, &info);
        index = c->n_configs;
        c->configs[c->n_configs++] = info;
        if (rc != SQLITE_OK)
            return rc;
        if (occ_map_put(&c->config_index, config, index) == OCC_MAP_NONE)
            return SQLITE_NOMEM;
    }
    c->last_config = config;
    c->last_index = index;
    *ret = &c->configs[index];
    return SQLITE_OK;
}

/* ---- chunks ---- */

static bool is_empty(const struct launch_cursor *c)
{
    for (int key = 0; key < KEY_COUNT; key++)
        if (c->range[key].low > c->range[key].high)
            return true;
    return false;
}

/* The chunks whose metadata allow a match. */
static int list_chunks(struct launch_cursor *c)
{
    static const char by_time[] = " AND c.last_start_ns >= ?1 AND c.first_start_ns <= ?2";
    char sql[768];
    bool totals = c->narrowed[KEY_CONFIG] || c->narrowed[KEY_KERNEL];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT c.chunk_id, c.run_id, c.device_id, c.launches, c.first_start_ns, c.last_start_ns, %s "
        "FROM \"%%w\".stored_chunk c%s WHERE 1%s%s%s%s",
        totals ? "t.data" : "NULL", totals ? " LEFT JOIN \"%w\".stored_chunk_totals t USING(chunk_id)" : "",
        c->narrowed[KEY_START] ? by_time : "", c->narrowed[KEY_RUN] ? " AND c.run_id BETWEEN ?3 AND ?4" : "",
        c->narrowed[KEY_DEVICE] ? " AND c.device_id BETWEEN ?5 AND ?6" : "",
        c->narrowed[KEY_CORRELATION] ? " AND c.max_correlation_id >= ?7 AND c.min_correlation_id <= ?8" : "");
    int rc = occ_vtab_prepare(c->base.pVtab, &c->chunks, sql);
    if (rc != SQLITE_OK)
        return rc;
    static const enum key order[] = {KEY_START, KEY_RUN, KEY_DEVICE, KEY_CORRELATION};
    for (int i = 0; i < 4; i++) { /* a number that the statement does not use is refused, and that is fine */
        (void)sqlite3_bind_int64(c->chunks, 2 * i + 1, c->range[order[i]].low);
        (void)sqlite3_bind_int64(c->chunks, 2 * i + 2, c->range[order[i]].high);
    }
    return SQLITE_OK;
}

static int config_matches(struct launch_cursor *c, uint32_t config, bool *ret)
{
    const struct config_info *info = NULL;
    *ret = occ_in_range(&c->range[KEY_CONFIG], config);
    if (!*ret || !c->narrowed[KEY_KERNEL])
        return SQLITE_OK;
    int rc = find_config(c, config, &info);
    *ret = rc == SQLITE_OK && info->known && occ_in_range(&c->range[KEY_KERNEL], info->kernel);
    return rc;
}

/* Do the chunk's totals name a configuration that matches? Without totals, or with damaged ones: perhaps. */
static int totals_match(struct launch_cursor *c, bool *ret)
{
    struct occ_columns totals;
    int rc = occ_columns_decode(c->decoder, sqlite3_column_blob(c->chunks, 6),
                                (size_t)sqlite3_column_bytes(c->chunks, 6), OCC_COLUMN_BIT(config), &totals);
    *ret = rc != 0;
    if (rc != 0)
        return rc == OCC_E_NO_MEMORY ? SQLITE_NOMEM : SQLITE_OK;
    for (uint32_t i = 0; i < totals.n && !*ret && rc == SQLITE_OK; i++)
        rc = config_matches(c, (uint32_t)totals.config[i], ret);
    return rc;
}

static uint32_t keep(const uint64_t *values, const struct occ_range *r, uint32_t *rows, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        rows[kept] = row;
        kept += occ_in_range(r, (int64_t)values[row]);
    }
    return kept;
}

static int keep_kernels(struct launch_cursor *c, uint32_t *n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++) {
        uint32_t row = c->selected[i];
        bool match = false;
        int rc = config_matches(c, (uint32_t)c->view.config[row], &match);
        if (rc != SQLITE_OK)
            return rc;
        c->selected[kept] = row;
        kept += match;
    }
    *n = kept;
    return SQLITE_OK;
}

static bool straddles(const struct launch_cursor *c)
{
    const struct occ_range *r = &c->range[KEY_START];
    return c->narrowed[KEY_START] && !(occ_in_range(r, c->chunk_first) && occ_in_range(r, c->chunk_last));
}

/* Which rows of the unpacked chunk match. */
static int select_rows(struct launch_cursor *c)
{
    bool by_start = straddles(c);
    uint32_t n = c->n;
    c->selection = NULL;
    if (!by_start && !c->narrowed[KEY_CONFIG] && !c->narrowed[KEY_KERNEL] && !c->narrowed[KEY_CORRELATION])
        return SQLITE_OK;
    if (c->selected_capacity < n) {
        free(c->selected);
        c->selected = malloc(n * sizeof *c->selected);
        c->selected_capacity = c->selected ? n : 0;
        if (!c->selected)
            return SQLITE_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        c->selected[i] = i;
    if (by_start)
        n = keep(c->view.start_ns, &c->range[KEY_START], c->selected, n);
    if (c->narrowed[KEY_CONFIG])
        n = keep(c->view.config, &c->range[KEY_CONFIG], c->selected, n);
    if (c->narrowed[KEY_CORRELATION])
        n = keep(c->view.correlation, &c->range[KEY_CORRELATION], c->selected, n);
    int rc = c->narrowed[KEY_KERNEL] ? keep_kernels(c, &n) : SQLITE_OK;
    c->selection = c->selected;
    c->n = n;
    return rc;
}

/* Makes `columns` of the current chunk readable. */
static int unpack(struct launch_cursor *c, unsigned columns)
{
    int rc = occ_vtab_prepare(c->base.pVtab, &c->data,
                              "SELECT data FROM \"%w\".stored_chunk_data WHERE chunk_id = ?");
    if (rc != SQLITE_OK)
        return rc;
    if (!c->unpacked) {
        (void)sqlite3_reset(c->data);
        (void)sqlite3_bind_int64(c->data, 1, sqlite3_column_int64(c->chunks, 0));
        int step = occ_vtab_step(c->base.pVtab, c->data);
        if (step != SQLITE_ROW)
            return step == SQLITE_DONE ? fail(c, "launch: a chunk has no data") : step;
    }
    columns |= c->unpacked;
    rc = occ_columns_decode(c->decoder, sqlite3_column_blob(c->data, 0),
                            (size_t)sqlite3_column_bytes(c->data, 0), columns, &c->view);
    if (rc == OCC_E_NO_MEMORY)
        return SQLITE_NOMEM;
    if (rc != 0 || c->view.n != c->chunk_n)
        return fail(c, rc == OCC_E_VERSION ? "launch: a chunk is from a newer version"
                                           : "launch: a chunk is damaged");
    c->unpacked = columns;
    return SQLITE_OK;
}

/* The rows of the current chunk that match, into c->n. Start is the dearest column: a condition needs it only where
 * the chunk straddles its edge. */
static int enter_chunk(struct launch_cursor *c)
{
    int64_t n = sqlite3_column_int64(c->chunks, 3);
    unsigned columns = c->columns | (straddles(c) ? (unsigned)OCC_COLUMN_BIT(start_ns) : 0);
    if (n < 1 || n > OCC_COLUMNS_MAX_ROWS)
        return fail(c, "launch: a chunk is damaged");
    c->n = c->chunk_n = (uint32_t)n;
    c->unpacked = 0;
    if (c->values)
        occ_launch_values_enter(c->values, c->run, c->device);
    int rc = columns ? unpack(c, columns) : SQLITE_OK;
    return rc != SQLITE_OK ? rc : select_rows(c);
}

/* The next chunk with rows to hand out, or the end. */
static int next_chunk(struct launch_cursor *c)
{
    bool match = true;
    c->at = c->n = 0;
    while (c->n == 0) {
        int rc = occ_vtab_step(c->base.pVtab, c->chunks);
        if (rc != SQLITE_ROW) {
            c->done = true;
            return rc == SQLITE_DONE ? SQLITE_OK : rc;
        }
        c->run = sqlite3_column_int64(c->chunks, 1);
        c->device = sqlite3_column_int64(c->chunks, 2);
        c->chunk_first = sqlite3_column_int64(c->chunks, 4);
        c->chunk_last = sqlite3_column_int64(c->chunks, 5);
        rc = c->narrowed[KEY_CONFIG] || c->narrowed[KEY_KERNEL] ? totals_match(c, &match) : SQLITE_OK;
        if (rc == SQLITE_OK && match)
            rc = enter_chunk(c);
        if (rc != SQLITE_OK)
            return rc;
    }
    c->row = c->selection ? c->selection[0] : 0;
    return SQLITE_OK;
}

static void read_plan(struct launch_cursor *c, bool wants_values, const char *plan, int argc,
                      sqlite3_value **argv)
{
    for (int key = 0; key < KEY_COUNT; key++) {
        c->range[key] = (struct occ_range){INT64_MIN, INT64_MAX};
        c->narrowed[key] = false;
    }
    c->columns = 0;
    c->wants_values = wants_values;
    for (int i = 0; i < argc; i++) {
        const char *letter = strchr(key_letters, plan[2 * i]);
        int key = letter ? (int)(letter - key_letters) : KEY_START;
        occ_range_narrow(&c->range[key], plan[2 * i + 1], argv[i]);
        c->narrowed[key] = true;
        if (key != KEY_START)
            c->columns |= needs[key_column[key]];
    }
}

static int launch_filter(sqlite3_vtab_cursor *cursor, int idx_num, const char *idx_str, int argc,
                         sqlite3_value **argv)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    int rc = occ_vtab_enter(cursor->pVtab);
    (void)sqlite3_finalize(c->chunks);
    c->chunks = NULL;
    forget_configs(c);
    read_plan(c, idx_num != 0, idx_str, argc, argv);
    c->done = is_empty(c);
    if (rc != SQLITE_OK || c->done)
        return rc;
    if (!c->decoder)
        c->decoder = occ_columns_decoder_new();
    if (!c->decoder)
        return SQLITE_NOMEM;
    rc = list_chunks(c);
    return rc != SQLITE_OK ? rc : next_chunk(c);
}

static int launch_next(sqlite3_vtab_cursor *cursor)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    if (++c->at >= c->n)
        return next_chunk(c);
    c->row = c->selection ? c->selection[c->at] : c->at;
    return SQLITE_OK;
}

static int launch_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct launch_cursor *)cursor)->done;
}

/* The same in every scan: "a OR b" is two scans, and what both find SQLite knows by its rowid. Ids of a hostile file wrap. */
static int launch_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
    const struct launch_cursor *c = (const struct launch_cursor *)cursor;
    uint64_t chunk = (uint64_t)sqlite3_column_int64(c->chunks, 0);
    *ret = (sqlite3_int64)(chunk * OCC_COLUMNS_MAX_ROWS + c->row);
    return SQLITE_OK;
}

static int config_column(struct launch_cursor *c, sqlite3_context *context, int column)
{
    const struct config_info *info = NULL;
    int rc = find_config(c, (uint32_t)c->view.config[c->row], &info);
    if (rc != SQLITE_OK)
        return rc;
    if (column == COLUMN_KERNEL) {
        if (info->known)
            sqlite3_result_int64(context, info->kernel);
    } else if (info->values[column - LAUNCH_COLUMN_COUNT]) {
        sqlite3_result_value(context, info->values[column - LAUNCH_COLUMN_COUNT]);
    }
    return SQLITE_OK;
}

static int read_measured(struct launch_cursor *c, struct occ_launch_measured *ret)
{
    if (!c->values) {
        c->values = occ_launch_values_new(c->base.pVtab);
        if (!c->values)
            return SQLITE_NOMEM;
        occ_launch_values_enter(c->values, c->run, c->device);
    }
    return occ_launch_values_get(c->values, &c->view, c->row, ret);
}

/* In SQL a NULL text is NULL, and so is NaN. */
static int measured_column(struct launch_cursor *c, sqlite3_context *context, int column)
{
    struct occ_launch_measured m;
    int rc = read_measured(c, &m);
    if (rc != SQLITE_OK)
        return rc;
    if (column == COLUMN_MEASURED_SOURCE)
        sqlite3_result_text(context, m.source, -1, SQLITE_STATIC);
    else
        sqlite3_result_double(context,
                              column == COLUMN_ACHIEVED        ? m.achieved
                              : column == COLUMN_ACHIEVED_CI95 ? m.achieved_error * OCC_ERRORS_OF_95_PERCENT
                              : column == COLUMN_ELAPSED       ? m.elapsed
                                                               : m.elapsed_error * OCC_ERRORS_OF_95_PERCENT);
    return SQLITE_OK;
}

static int waste_column(struct launch_cursor *c, sqlite3_context *context)
{
    struct occ_launch_measured m;
    const struct config_info *info = NULL;
    int rc = find_config(c, (uint32_t)c->view.config[c->row], &info);
    if (rc == SQLITE_OK && info->known)
        rc = read_measured(c, &m);
    if (rc != SQLITE_OK || !info->known)
        return rc;
    double unused = 1 - (isnan(m.elapsed) ? info->expected_elapsed : m.elapsed);
    sqlite3_result_double(context, (double)c->view.duration_ns[c->row] * 1e-9 * info->device_warps *
                                       (unused < 0 ? 0 : unused));
    return SQLITE_OK;
}

static int launch_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    const struct occ_columns *v = &c->view;
    uint32_t row = c->row;
    unsigned needed = column < LAUNCH_COLUMN_COUNT ? needs[column] : (unsigned)OCC_COLUMN_BIT(config);
    if (needed & ~c->unpacked) {
        c->columns |= needed;
        int rc = unpack(c, needed);
        if (rc != SQLITE_OK)
            return rc;
    }
    switch (column) {
    case COLUMN_START:
        sqlite3_result_int64(context, (int64_t)v->start_ns[row]);
        break;
    case COLUMN_END:
        sqlite3_result_int64(context, (int64_t)(v->start_ns[row] + v->duration_ns[row]));
        break;
    case COLUMN_DURATION:
        sqlite3_result_int64(context, (int64_t)v->duration_ns[row]);
        break;
    case COLUMN_RUN:
        sqlite3_result_int64(context, c->run);
        break;
    case COLUMN_DEVICE:
        sqlite3_result_int64(context, c->device);
        break;
    case COLUMN_CONTEXT:
        sqlite3_result_int64(context, (int64_t)v->context[row]);
        break;
    case COLUMN_STREAM:
        sqlite3_result_int64(context, (int64_t)v->stream[row]);
        break;
    case COLUMN_CORRELATION:
        sqlite3_result_int64(context, (int64_t)v->correlation[row]);
        break;
    case COLUMN_GRAPH_NODE:
        if (v->graph_node[row] != 0)
            sqlite3_result_int64(context, (int64_t)v->graph_node[row]);
        break;
    case COLUMN_CONFIG:
        sqlite3_result_int64(context, (int64_t)v->config[row]);
        break;
    case COLUMN_ACHIEVED:
    case COLUMN_ACHIEVED_CI95:
    case COLUMN_ELAPSED:
    case COLUMN_ELAPSED_CI95:
    case COLUMN_MEASURED_SOURCE:
        return measured_column(c, context, column);
    case COLUMN_WASTE:
        return waste_column(c, context);
    default:
        return config_column(c, context, column);
    }
    return SQLITE_OK;
}

int occ_launch_table_register(sqlite3 *db)
{
    static const sqlite3_module module = {
        .iVersion = 0,
        .xCreate = launch_connect,
        .xConnect = launch_connect,
        .xBestIndex = launch_best_index,
        .xDisconnect = occ_vtab_disconnect,
        .xDestroy = occ_vtab_disconnect,
        .xOpen = launch_open,
        .xClose = launch_close,
        .xFilter = launch_filter,
        .xNext = launch_next,
        .xEof = launch_eof,
        .xColumn = launch_column,
        .xRowid = launch_rowid,
    };
    return sqlite3_create_module_v2(db, OCC_SQL_MODULE("launch"), &module, NULL, NULL);
}
