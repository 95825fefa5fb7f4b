/*
 * The virtual table `launch`. A scan lists the chunks that can match (their metadata decide, for shapes also their
 * totals), unpacks of each only the columns that the statement uses, selects rows with plain loops over the columns,
 * and hands them out one by one. What does not depend on the single launch (names, configuration, occupancy) is read
 * once per shape and scan; what was measured, once per chunk (launch_values.h).
 *
 * Nothing in the file is trusted: the codec checks its bytes, everything else is only compared and copied. Threads:
 * those of the connection.
 */
#include "launch_table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/bytes.h"
#include "store/codec/chunk_codec.h"
#include "launch_values.h"
#include "support/map.h"
#include "table_range.h"

#ifdef OCC_SQLITE_EXTENSION
SQLITE_EXTENSION_INIT3
#endif

/* Columns of the launch itself. X(NAME, "declaration", what of the chunk is needed) */
#define LAUNCH_COLUMNS(X)                                                                                    \
    X(START, "start INTEGER", OCC_CHUNK_START)                                                               \
    X(END, "\"end\" INTEGER", OCC_CHUNK_START)                                                               \
    X(DURATION, "duration INTEGER", OCC_CHUNK_DURATION)                                                      \
    X(RUN, "run INTEGER", 0)                                                                                 \
    X(DEVICE, "device INTEGER", 0)                                                                           \
    X(DEVICE_ID, "deviceId INTEGER", 0)                                                                      \
    X(CONTEXT, "contextId INTEGER", OCC_CHUNK_CONTEXT)                                                       \
    X(STREAM, "streamId INTEGER", OCC_CHUNK_STREAM)                                                          \
    X(CORRELATION, "correlationId INTEGER", OCC_CHUNK_CORRELATION)                                           \
    X(GRAPH_NODE, "graphNodeId INTEGER", OCC_CHUNK_GRAPH_NODE)                                               \
    X(SHAPE, "shape INTEGER", OCC_CHUNK_SHAPE)                                                               \
    X(KERNEL, "kernel INTEGER", OCC_CHUNK_SHAPE)                                                             \
    X(WASTE, "wasteWarpSeconds REAL", OCC_CHUNK_SHAPE | OCC_CHUNK_DURATION)                                  \
    X(ACHIEVED, "achieved REAL", OCC_LAUNCH_VALUES_NEED)                                                     \
    X(ACHIEVED_ERROR, "achievedError REAL", OCC_LAUNCH_VALUES_NEED)                                          \
    X(ELAPSED, "elapsed REAL", OCC_LAUNCH_VALUES_NEED)                                                       \
    X(ELAPSED_ERROR, "elapsedError REAL", OCC_LAUNCH_VALUES_NEED)                                            \
    X(MEASURED_SOURCE, "measuredSource TEXT", OCC_LAUNCH_VALUES_NEED)

/* Columns that every launch of a shape has in common. X("declaration", "expression over s(hape), k(ernel), d(evice)") */
#define SHAPE_VALUES(X)                                                                                      \
    X("gridX INTEGER", "s.grid_x")                                                                           \
    X("gridY INTEGER", "s.grid_y")                                                                           \
    X("gridZ INTEGER", "s.grid_z")                                                                           \
    X("blockX INTEGER", "s.block_x")                                                                         \
    X("blockY INTEGER", "s.block_y")                                                                         \
    X("blockZ INTEGER", "s.block_z")                                                                         \
    X("registersPerThread INTEGER", "s.registers_per_thread")                                                \
    X("staticSharedMemory INTEGER", "s.static_smem_bytes")                                                   \
    X("dynamicSharedMemory INTEGER", "s.dynamic_smem_bytes")                                                 \
    X("localMemoryPerThread INTEGER", "s.local_bytes_per_thread")                                            \
    X("sharedMemoryExecuted INTEGER", "nullif(s.smem_config_bytes, 0)")                                      \
    X("launchType INTEGER", "s.launch_type")                                                                 \
    X("cacheConfig INTEGER", "s.cache_config")                                                               \
    X("shortName TEXT", "k.short")                                                                           \
    X("demangledName TEXT", "k.demangled")                                                                   \
    X("mangledName TEXT", "k.mangled")                                                                       \
    X("deviceName TEXT", "d.name")                                                                           \
    X("theoretical REAL", "s.theoretical")                                                                   \
    X("expectedAchieved REAL", "s.expected_achieved")                                                        \
    X("expectedElapsed REAL", "s.expected_elapsed")                                                          \
    X("limiters TEXT", "s.limiters")                                                                         \
    X("waves REAL", "s.waves")                                                                               \
    X("fullWaves INTEGER", "s.full_waves")                                                                   \
    X("partialBlocks INTEGER", "s.partial_blocks")                                                           \
    X("blocksPerSm INTEGER", "s.blocks_per_sm")                                                              \
    X("mainCause TEXT", "s.main_cause")                                                                      \
    X("simulated INTEGER", "d.simulated")

enum column {
#define X(name, declaration, needs) COLUMN_##name,
    LAUNCH_COLUMNS(X)
#undef X
        LAUNCH_COLUMN_COUNT
};

#define X(declaration, expression) +1
enum { SHAPE_VALUE_COUNT = 0 SHAPE_VALUES(X) };
#undef X

static const char declaration_sql[] = "CREATE TABLE launch("
#define X(name, declaration, needs) declaration ", "
    LAUNCH_COLUMNS(X)
#undef X
#define X(declaration, expression) declaration ", "
        SHAPE_VALUES(X)
#undef X
            "CHECK (1))";

static const char shape_sql[] = "SELECT s.kernel, d.sm_count * s.max_warps_per_sm * (1 - s.expected_elapsed)"
#define X(declaration, expression) ", " expression
    SHAPE_VALUES(X)
#undef X
        " FROM main.shape s JOIN main.kernel k ON k.id = s.kernel JOIN main.device d ON d.id = s.device "
        "WHERE s.id = ?";

static const unsigned needs[LAUNCH_COLUMN_COUNT] = {
#define X(name, declaration, what) [COLUMN_##name] = (unsigned)(what),
    LAUNCH_COLUMNS(X)
#undef X
};

/* ---- conditions ---- */

/* Columns that a scan can be narrowed by, all of them integers. */
enum key { KEY_START, KEY_RUN, KEY_DEVICE, KEY_SHAPE, KEY_KERNEL, KEY_CORRELATION, KEY_COUNT };

static const enum column key_column[KEY_COUNT] = {
    [KEY_START] = COLUMN_START, [KEY_RUN] = COLUMN_RUN,       [KEY_DEVICE] = COLUMN_DEVICE,
    [KEY_SHAPE] = COLUMN_SHAPE, [KEY_KERNEL] = COLUMN_KERNEL, [KEY_CORRELATION] = COLUMN_CORRELATION,
};

/* How a condition travels from the planner to the scan: one letter a key, one an operator. */
static const char key_letters[KEY_COUNT + 1] = "trdskc";

static int key_of_column(int column)
{
    if (column == COLUMN_DEVICE_ID)
        return KEY_DEVICE;
    for (int key = 0; key < KEY_COUNT; key++)
        if ((int)key_column[key] == column)
            return key;
    return -1;
}

/* ---- table ---- */

struct launch_table {
    sqlite3_vtab base;
    sqlite3 *db;
};

/* What the launches of a shape have in common. */
struct shape_info {
    int64_t kernel;
    double waste_per_ns; /* warps not used, of the whole device, times 1e-9; NaN: not known */
    bool known, has_waste;
    sqlite3_value *values[SHAPE_VALUE_COUNT]; /* NULL until needed */
};

struct launch_cursor {
    sqlite3_vtab_cursor base;
    sqlite3 *db;
    struct occ_range range[KEY_COUNT];
    unsigned columns;  /* enum occ_chunk_columns to unpack: those that rows were asked for so far */
    unsigned unpacked; /* those that `view` holds of the current chunk */
    bool wants_values; /* some column of SHAPE_VALUES is used */
    bool narrowed[KEY_COUNT];
    sqlite3_stmt *chunks; /* on the current chunk's row */
    sqlite3_stmt *data;   /* on the current chunk's bytes, when they were needed */
    sqlite3_stmt *shapes_stmt;
    struct occ_chunk_decoder *decoder;
    struct occ_launch_values *values; /* when they were asked for */
    struct occ_chunk_view view;
    int64_t run, device, chunk_first, chunk_last;
    uint32_t chunk_n;
    uint32_t *selected; /* rows of the chunk that match; NULL: all of them */
    uint32_t selected_capacity;
    const uint32_t *selection; /* `selected`, or NULL when all rows match */
    uint32_t n, at;            /* rows to hand out, the next one */
    uint32_t row;              /* the current one's number in the chunk */
    bool done;
    struct occ_map shape_index; /* shape -> index in shapes */
    struct shape_info *shapes;
    uint32_t n_shapes, shapes_capacity;
    uint32_t last_shape, last_index;
};

static int launch_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                          char **message)
{
    (void)aux;
    (void)argc;
    (void)argv;
    (void)message;
    int rc = sqlite3_declare_vtab(db, declaration_sql);
    if (rc != SQLITE_OK)
        return rc;
    /* a hostile file's schema must not reach us: a view called `chunk` over `launch` would never end */
    (void)sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
    struct launch_table *table = sqlite3_malloc(sizeof *table);
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct launch_table){.db = db};
    *ret = &table->base;
    return SQLITE_OK;
}

static int launch_disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

/* Every comparison of a key column is ours; the estimate only has to order plans. */
static int launch_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    char plan[128];
    int n = 0;
    double rows = 1e7;
    for (int i = 0; i < info->nConstraint && n < 30; i++) {
        int key = info->aConstraint[i].usable ? key_of_column(info->aConstraint[i].iColumn) : -1;
        char op = occ_range_letter(info->aConstraint[i].op);
        if (key < 0 || op == 0)
            continue;
        plan[2 * n] = key_letters[key];
        plan[2 * n + 1] = op;
        info->aConstraintUsage[i].argvIndex = ++n;
        info->aConstraintUsage[i].omit = 1;
        rows /= op == '=' ? 100 : 4;
    }
    plan[2 * n] = '\0';
    info->idxStr = sqlite3_mprintf("%s", plan);
    if (!info->idxStr)
        return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    /* which columns are read is seen when they are (a column that only stands in a condition is not); but what shapes
     * have in common is read whole, or not at all */
    info->idxNum = (info->colUsed & ~((UINT64_C(1) << LAUNCH_COLUMN_COUNT) - 1)) != 0;
    info->estimatedCost = rows * 30 + 1000;
    info->estimatedRows = (sqlite3_int64)rows + 1;
    return SQLITE_OK;
}

static int launch_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    struct launch_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    c->db = ((struct launch_table *)vtab)->db;
    *ret = &c->base;
    return SQLITE_OK;
}

static void forget_shapes(struct launch_cursor *c)
{
    for (uint32_t i = 0; i < c->n_shapes; i++)
        for (uint32_t k = 0; k < SHAPE_VALUE_COUNT; k++)
            sqlite3_value_free(c->shapes[i].values[k]);
    c->n_shapes = 0;
    c->last_shape = 0;
    occ_map_clear(&c->shape_index);
}

static int launch_close(sqlite3_vtab_cursor *cursor)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    (void)sqlite3_finalize(c->chunks);
    (void)sqlite3_finalize(c->data);
    (void)sqlite3_finalize(c->shapes_stmt);
    forget_shapes(c);
    occ_map_free(&c->shape_index);
    free(c->shapes);
    free(c->selected);
    occ_chunk_decoder_free(c->decoder);
    occ_launch_values_free(c->values);
    free(c);
    return SQLITE_OK;
}

static int fail(struct launch_cursor *c, int rc, const char *text)
{
    sqlite3_free(c->base.pVtab->zErrMsg);
    c->base.pVtab->zErrMsg = sqlite3_mprintf("launch: %s", text);
    return rc;
}

/* ---- shapes ---- */

static int read_shape(struct launch_cursor *c, uint32_t shape, struct shape_info *info)
{
    if (!c->shapes_stmt) {
        int rc = sqlite3_prepare_v2(c->db, shape_sql, -1, &c->shapes_stmt, NULL);
        if (rc != SQLITE_OK)
            return fail(c, rc, sqlite3_errmsg(c->db));
    }
    (void)sqlite3_bind_int64(c->shapes_stmt, 1, shape);
    int step = sqlite3_step(c->shapes_stmt);
    if (step == SQLITE_ROW) {
        info->known = true;
        info->kernel = sqlite3_column_int64(c->shapes_stmt, 0);
        info->has_waste = sqlite3_column_type(c->shapes_stmt, 1) != SQLITE_NULL;
        info->waste_per_ns = sqlite3_column_double(c->shapes_stmt, 1) * 1e-9;
        for (int k = 0; c->wants_values && k < SHAPE_VALUE_COUNT; k++)
            info->values[k] = sqlite3_value_dup(sqlite3_column_value(c->shapes_stmt, 2 + k));
    }
    (void)sqlite3_reset(c->shapes_stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : fail(c, step, sqlite3_errmsg(c->db));
}

/* A shape's information, read when first asked for. */
static int find_shape(struct launch_cursor *c, uint32_t shape, const struct shape_info **ret)
{
    if (shape == c->last_shape && c->n_shapes > 0) {
        *ret = &c->shapes[c->last_index];
        return SQLITE_OK;
    }
    uint32_t index = occ_map_get(&c->shape_index, shape);
    if (index == OCC_MAP_NONE) {
        if (c->n_shapes == c->shapes_capacity) {
            uint32_t capacity = c->shapes_capacity * 2 + 64;
            struct shape_info *shapes = realloc(c->shapes, capacity * sizeof *shapes);
            if (!shapes)
                return SQLITE_NOMEM;
            c->shapes = shapes;
            c->shapes_capacity = capacity;
        }
        struct shape_info info = {0};
        int rc = read_shape(c, shape, &info);
        index = c->n_shapes;
        c->shapes[c->n_shapes++] = info;
        if (rc != SQLITE_OK)
            return rc;
        if (occ_map_put(&c->shape_index, shape, index) == OCC_MAP_NONE)
            return SQLITE_NOMEM;
    }
    c->last_shape = shape;
    c->last_index = index;
    *ret = &c->shapes[index];
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
    char sql[640];
    bool totals = c->narrowed[KEY_SHAPE] || c->narrowed[KEY_KERNEL];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT c.id, c.run, c.device, c.n, c.first_ns, c.last_ns, %s FROM main.chunk c%s WHERE 1%s%s%s%s",
        totals ? "a.data" : "NULL", totals ? " LEFT JOIN main.chunk_agg a ON a.id = c.id" : "",
        c->narrowed[KEY_START] ? " AND c.last_ns >= ?1 AND c.first_ns <= ?2" : "",
        c->narrowed[KEY_RUN] ? " AND c.run BETWEEN ?3 AND ?4" : "",
        c->narrowed[KEY_DEVICE] ? " AND c.device BETWEEN ?5 AND ?6" : "",
        c->narrowed[KEY_CORRELATION] ? " AND c.max_correlation >= ?7 AND c.min_correlation <= ?8" : "");
    int rc = sqlite3_prepare_v2(c->db, sql, -1, &c->chunks, NULL);
    if (rc != SQLITE_OK)
        return fail(c, rc, sqlite3_errmsg(c->db));
    static const enum key order[] = {KEY_START, KEY_RUN, KEY_DEVICE, KEY_CORRELATION};
    for (int i = 0; i < 4; i++) { /* a number that the statement does not use is refused, and that is fine */
        (void)sqlite3_bind_int64(c->chunks, 2 * i + 1, c->range[order[i]].low);
        (void)sqlite3_bind_int64(c->chunks, 2 * i + 2, c->range[order[i]].high);
    }
    return SQLITE_OK;
}

static int shape_matches(struct launch_cursor *c, uint32_t shape, bool *ret)
{
    const struct shape_info *info = NULL;
    *ret = occ_in_range(&c->range[KEY_SHAPE], shape);
    if (!*ret || !c->narrowed[KEY_KERNEL])
        return SQLITE_OK;
    int rc = find_shape(c, shape, &info);
    *ret = rc == SQLITE_OK && info->known && occ_in_range(&c->range[KEY_KERNEL], info->kernel);
    return rc;
}

/* Do the chunk's totals name a shape that matches? Without totals, or with damaged ones: perhaps. */
static int totals_match(struct launch_cursor *c, bool *ret)
{
    struct occ_reader r;
    struct occ_chunk_total t = {0};
    bool match = false;
    int64_t n = occ_chunk_totals_open(sqlite3_column_blob(c->chunks, 6),
                                      (size_t)sqlite3_column_bytes(c->chunks, 6), &r);
    *ret = true;
    for (int64_t i = 0; i < n; i++) {
        if (!occ_chunk_totals_next(&r, &t) || t.shape > UINT32_MAX)
            return SQLITE_OK;
        int rc = shape_matches(c, (uint32_t)t.shape, &match);
        if (rc != SQLITE_OK || match)
            return rc;
    }
    *ret = n <= 0;
    return SQLITE_OK;
}

static uint32_t keep_u64(const uint64_t *values, const struct occ_range *r, uint32_t *rows, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        rows[kept] = row;
        kept += occ_in_range(r, (int64_t)values[row]);
    }
    return kept;
}

static uint32_t keep_u32(const uint32_t *values, const struct occ_range *r, uint32_t *rows, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        rows[kept] = row;
        kept += occ_in_range(r, values[row]);
    }
    return kept;
}

static int keep_kernels(struct launch_cursor *c, uint32_t *n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++) {
        uint32_t row = c->selected[i];
        bool match = false;
        int rc = shape_matches(c, c->view.shape[row], &match);
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
    if (!by_start && !c->narrowed[KEY_SHAPE] && !c->narrowed[KEY_KERNEL] && !c->narrowed[KEY_CORRELATION])
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
        n = keep_u64(c->view.start_ns, &c->range[KEY_START], c->selected, n);
    if (c->narrowed[KEY_SHAPE])
        n = keep_u32(c->view.shape, &c->range[KEY_SHAPE], c->selected, n);
    if (c->narrowed[KEY_CORRELATION])
        n = keep_u32(c->view.correlation, &c->range[KEY_CORRELATION], c->selected, n);
    int rc = c->narrowed[KEY_KERNEL] ? keep_kernels(c, &n) : SQLITE_OK;
    c->selection = c->selected;
    c->n = n;
    return rc;
}

/* Makes `columns` of the current chunk readable. */
static int unpack(struct launch_cursor *c, unsigned columns)
{
    if (!c->data) {
        int rc = sqlite3_prepare_v3(c->db, "SELECT data FROM main.chunk_data WHERE id = ?", -1,
                                    SQLITE_PREPARE_PERSISTENT, &c->data, NULL);
        if (rc != SQLITE_OK)
            return fail(c, rc, sqlite3_errmsg(c->db));
    }
    if (!c->unpacked) {
        (void)sqlite3_reset(c->data);
        (void)sqlite3_bind_int64(c->data, 1, sqlite3_column_int64(c->chunks, 0));
        int step = sqlite3_step(c->data);
        if (step != SQLITE_ROW)
            return step == SQLITE_DONE ? fail(c, SQLITE_CORRUPT, "a chunk has no data")
                                       : fail(c, step, sqlite3_errmsg(c->db));
    }
    columns |= c->unpacked;
    int rc = occ_chunk_decode(c->decoder, sqlite3_column_blob(c->data, 0),
                              (size_t)sqlite3_column_bytes(c->data, 0), columns, &c->view);
    if (rc == OCC_E_NO_MEMORY)
        return SQLITE_NOMEM;
    if (rc != 0 || c->view.n != c->chunk_n)
        return fail(c, SQLITE_CORRUPT,
                    rc == OCC_E_VERSION ? "a chunk is from a newer version" : "a chunk is damaged");
    c->unpacked = columns;
    return SQLITE_OK;
}

/* The rows of the current chunk that match, into c->n. Start is the dearest column: a condition needs it only where
 * the chunk straddles its edge. */
static int enter_chunk(struct launch_cursor *c)
{
    int64_t n = sqlite3_column_int64(c->chunks, 3);
    unsigned columns = c->columns | (straddles(c) ? (unsigned)OCC_CHUNK_START : 0);
    if (n < 1 || n > OCC_CHUNK_MAX_ROWS)
        return fail(c, SQLITE_CORRUPT, "a chunk is damaged");
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
        int rc = sqlite3_step(c->chunks);
        if (rc != SQLITE_ROW) {
            c->done = true;
            return rc == SQLITE_DONE ? SQLITE_OK : fail(c, rc, sqlite3_errmsg(c->db));
        }
        c->run = sqlite3_column_int64(c->chunks, 1);
        c->device = sqlite3_column_int64(c->chunks, 2);
        c->chunk_first = sqlite3_column_int64(c->chunks, 4);
        c->chunk_last = sqlite3_column_int64(c->chunks, 5);
        rc = c->narrowed[KEY_SHAPE] || c->narrowed[KEY_KERNEL] ? totals_match(c, &match) : SQLITE_OK;
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
    (void)sqlite3_finalize(c->chunks);
    c->chunks = NULL;
    forget_shapes(c);
    read_plan(c, idx_num != 0, idx_str, argc, argv);
    c->done = is_empty(c);
    if (c->done)
        return SQLITE_OK;
    if (!c->decoder)
        c->decoder = occ_chunk_decoder_new();
    if (!c->decoder)
        return SQLITE_NOMEM;
    int rc = list_chunks(c);
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
    *ret = (sqlite3_int64)(chunk * OCC_CHUNK_MAX_ROWS + c->row);
    return SQLITE_OK;
}

static int shape_column(struct launch_cursor *c, sqlite3_context *context, int column)
{
    const struct shape_info *info = NULL;
    int rc = find_shape(c, c->view.shape[c->row], &info);
    if (rc != SQLITE_OK)
        return rc;
    if (column == COLUMN_KERNEL) {
        if (info->known)
            sqlite3_result_int64(context, info->kernel);
    } else if (column == COLUMN_WASTE) {
        if (info->has_waste)
            sqlite3_result_double(context, (double)c->view.duration_ns[c->row] * info->waste_per_ns);
    } else if (info->values[column - LAUNCH_COLUMN_COUNT]) {
        sqlite3_result_value(context, info->values[column - LAUNCH_COLUMN_COUNT]);
    }
    return SQLITE_OK;
}

static int measured_column(struct launch_cursor *c, sqlite3_context *context, int column)
{
    struct occ_launch_measured m;
    const char *text = NULL;
    if (!c->values) {
        c->values = occ_launch_values_new(c->db);
        if (!c->values)
            return SQLITE_NOMEM;
        occ_launch_values_enter(c->values, c->run, c->device);
    }
    int rc = occ_launch_values_get(c->values, &c->view, c->row, &m, &text);
    if (rc == SQLITE_NOMEM)
        return rc;
    if (rc != SQLITE_OK)
        return fail(c, rc, text ? text : sqlite3_errmsg(c->db));
    if (column == COLUMN_MEASURED_SOURCE)
        sqlite3_result_text(context, m.source, -1, SQLITE_STATIC); /* NULL is NULL, as is NaN */
    else
        sqlite3_result_double(context, column == COLUMN_ACHIEVED         ? m.achieved
                                       : column == COLUMN_ACHIEVED_ERROR ? m.achieved_error
                                       : column == COLUMN_ELAPSED        ? m.elapsed
                                                                         : m.elapsed_error);
    return SQLITE_OK;
}

static int launch_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    struct launch_cursor *c = (struct launch_cursor *)cursor;
    const struct occ_chunk_view *v = &c->view;
    uint32_t row = c->row;
    unsigned needed = column < LAUNCH_COLUMN_COUNT ? needs[column] : (unsigned)OCC_CHUNK_SHAPE;
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
    case COLUMN_DEVICE_ID:
        sqlite3_result_int64(context, c->device);
        break;
    case COLUMN_CONTEXT:
        sqlite3_result_int64(context, v->context[row]);
        break;
    case COLUMN_STREAM:
        sqlite3_result_int64(context, v->stream[row]);
        break;
    case COLUMN_CORRELATION:
        sqlite3_result_int64(context, v->correlation[row]);
        break;
    case COLUMN_GRAPH_NODE:
        if (v->graph_node[row] != 0)
            sqlite3_result_int64(context, (int64_t)v->graph_node[row]);
        break;
    case COLUMN_SHAPE:
        sqlite3_result_int64(context, v->shape[row]);
        break;
    case COLUMN_ACHIEVED:
    case COLUMN_ACHIEVED_ERROR:
    case COLUMN_ELAPSED:
    case COLUMN_ELAPSED_ERROR:
    case COLUMN_MEASURED_SOURCE:
        return measured_column(c, context, column);
    default:
        return shape_column(c, context, column);
    }
    return SQLITE_OK;
}

int occ_launch_table_register(struct sqlite3 *db)
{
    static const sqlite3_module module = {
        .iVersion = 0,
        .xConnect = launch_connect, /* no xCreate: the table is there without being made */
        .xBestIndex = launch_best_index,
        .xDisconnect = launch_disconnect,
        .xOpen = launch_open,
        .xClose = launch_close,
        .xFilter = launch_filter,
        .xNext = launch_next,
        .xEof = launch_eof,
        .xColumn = launch_column,
        .xRowid = launch_rowid,
    };
    return sqlite3_create_module_v2(db, "launch", &module, NULL, NULL);
}
