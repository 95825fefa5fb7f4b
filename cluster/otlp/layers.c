/* See layers.h. */
#include "layers.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "store/chunks.h"
#include "support/array.h"
#include "support/map.h"
#include "support/text.h"

#define BACKWARD  "backward" /* the outermost layer of launches by autograd */
#define MINUTE_NS UINT64_C(60000000000)
#define ROWS_MAX  100000 /* configurations with ranges in a run's minute */

#define CAUSE_COLUMN(NAME, id, text) ", cause_" id
enum statement { HAS_RANGES, RANGE, CAUSES, N_STATEMENTS };
static const char *const statements[N_STATEMENTS] = {
    [HAS_RANGES] = "SELECT EXISTS(SELECT 1 FROM stored_range WHERE run_id = ?)",
    [RANGE] = "SELECT path, phase = 'backward' FROM stored_range WHERE run_id = ? AND range_id = ?",
    [CAUSES] = "SELECT expected_elapsed_low IS NOT NULL" OCC_CAUSES(
        CAUSE_COLUMN) " FROM stored_launch_config WHERE config_id = ?",
};

struct row {
    int64_t config, range, ns;
};

struct occ_layers {
    sqlite3 *db;
    sqlite3_stmt *statements[N_STATEMENTS];
    struct row *rows; /* sorted by configuration and range */
    size_t n, allocated;
    struct occ_map index; /* configuration and range -> rows, while they are read */
    struct occ_columns_decoder *decoder;
    bool has_ranges;
};

int occ_layers_open(sqlite3 *db, struct occ_layers **ret_layers, struct occ_error *err)
{
    struct occ_layers *l = calloc(1, sizeof *l);
    if (l)
        *l = (struct occ_layers){.db = db, .decoder = occ_columns_decoder_new()};
    int rc = l && l->decoder ? 0 : occ_no_memory(err);
    for (int i = 0; i < N_STATEMENTS && rc == 0; i++)
        if (sqlite3_prepare_v2(db, statements[i], -1, &l->statements[i], NULL) != SQLITE_OK)
            rc = occ_fail(err, OCC_E_CORRUPT, "%s: %s", sqlite3_db_filename(db, "main"), sqlite3_errmsg(db));
    if (rc == 0)
        *ret_layers = l;
    else
        occ_layers_close(l);
    return rc;
}

void occ_layers_close(struct occ_layers *l)
{
    if (!l)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        (void)sqlite3_finalize(l->statements[i]);
    occ_map_free(&l->index);
    occ_columns_decoder_free(l->decoder);
    free(l->rows);
    free(l);
}

/* ---- reading ---- */

/* Adds a launch. Configurations and ranges of a forged history may share a row. False: too many rows. */
static bool add_launch(struct occ_layers *l, int64_t config, int64_t range, int64_t ns)
{
    uint64_t key = (uint64_t)config << 32 ^ (uint64_t)range;
    uint32_t at = occ_map_put(&l->index, key, (uint32_t)l->n);
    if (at == OCC_MAP_NONE)
        return false;
    if (at == l->n) {
        if (!occ_grow((void **)&l->rows, &l->allocated, l->n, ROWS_MAX, sizeof *l->rows))
            return false;
        l->rows[l->n++] = (struct row){config, range, 0};
    }
    if (ns > 0)
        l->rows[at].ns = ns < INT64_MAX - l->rows[at].ns ? l->rows[at].ns + ns : INT64_MAX;
    return true;
}

static int compare(const void *a_, const void *b_)
{
    const struct row *a = a_, *b = b_;
    return a->config != b->config ? (a->config > b->config) - (a->config < b->config)
                                  : (a->range > b->range) - (a->range < b->range);
}

/* A run's minute that is read. */
struct reading {
    struct occ_layers *layers;
    int64_t minute, *launches_left;
};

/* Adds the launches of a chunk. False: too many rows, or no launches are left. */
static bool add_chunk(void *context, const struct occ_columns *c)
{
    const struct reading *r = context;
    *r->launches_left -= c->n;
    for (uint32_t i = 0; i < c->n; i++)
        if ((int64_t)(c->start_ns[i] / MINUTE_NS) == r->minute &&
            !add_launch(r->layers, (int64_t)c->config[i], (int64_t)c->range[i], (int64_t)c->duration_ns[i]))
            return false;
    return *r->launches_left > 0;
}

static void read_chunks(struct occ_layers *l, int64_t minute, int64_t run, int64_t *launches_left)
{
    struct reading reading = {l, minute, launches_left};
    const struct occ_chunks_question question = {.kind = OCC_CHUNKS_OF_RUN,
                                                 .id = run,
                                                 .from_ns = minute * (int64_t)MINUTE_NS,
                                                 .until_ns = (minute + 1) * (int64_t)MINUTE_NS,
                                                 .columns =
                                                     OCC_COLUMN_BIT(config) | OCC_COLUMN_BIT(start_ns) |
                                                     OCC_COLUMN_BIT(duration_ns) | OCC_COLUMN_BIT(range)};
    if (*launches_left <= 0 || occ_chunks_visit(l->db, l->decoder, &question, add_chunk, &reading, NULL) != 0)
        l->n = 0;
    if (l->n > 0)
        qsort(l->rows, l->n, sizeof *l->rows, compare);
}

void occ_layers_read(struct occ_layers *l, int64_t minute, int64_t run, int64_t *launches_left,
                     int64_t *ret_rows)
{
    sqlite3_stmt *stmt = l->statements[HAS_RANGES];
    (void)sqlite3_bind_int64(stmt, 1, run);
    l->has_ranges = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) != 0;
    (void)sqlite3_reset(stmt);
    l->n = 0;
    occ_map_clear(&l->index);
    if (l->has_ranges && minute >= 0 && minute < INT64_MAX / (int64_t)MINUTE_NS - 1)
        read_chunks(l, minute, run, launches_left);
    *ret_rows = (int64_t)l->n;
}

/* ---- stacks ---- */

/* NULL: the model refuses the configuration, or no such configuration. */
static const double *read_causes(struct occ_layers *l, int64_t config, double causes[OCC_CAUSE_COUNT])
{
    sqlite3_stmt *stmt = l->statements[CAUSES];
    (void)sqlite3_bind_int64(stmt, 1, config);
    bool is_analysed = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) != 0;
    for (int i = 0; is_analysed && i < OCC_CAUSE_COUNT; i++)
        causes[i] =
            sqlite3_column_type(stmt, i + 1) == SQLITE_NULL ? NAN : sqlite3_column_double(stmt, i + 1);
    (void)sqlite3_reset(stmt);
    return is_analysed ? causes : NULL;
}

/* The end of a long path, whole characters; printable. */
static void cut(const char *text, char *path, size_t size)
{
    size_t n = strlen(text);
    if (n >= size)
        text += n - (size - 1);
    for (int i = 0; i < 3 && n >= size && ((unsigned char)*text & 0xc0) == 0x80; i++)
        text++;
    (void)snprintf(path, size, "%s", text);
    occ_text_sanitise(path);
}

/* Names without the empty ones: two paths are never one stack. */
static void join(const char *whole, bool is_backward, char path[OCC_STACKS_PATH_BYTES])
{
    size_t n = 0;
    if (is_backward)
        n = (size_t)snprintf(path, OCC_STACKS_PATH_BYTES, BACKWARD "/");
    for (const char *at = whole; *at; at += *at == '/') {
        size_t length = strcspn(at, "/");
        memcpy(path + n, at, length);
        n += length;
        at += length;
        if (length > 0)
            path[n++] = '/';
    }
    path[n > 0 ? n - 1 : 0] = '\0';
}

static void read_range(struct occ_layers *l, int64_t run, int64_t range, char path[OCC_STACKS_PATH_BYTES])
{
    char whole[OCC_STACKS_PATH_BYTES - sizeof BACKWARD];
    sqlite3_stmt *stmt = l->statements[RANGE];
    (void)sqlite3_bind_int64(stmt, 1, run);
    (void)sqlite3_bind_int64(stmt, 2, range);
    const char *text = sqlite3_step(stmt) == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    cut(text ? text : OCC_STACKS_UNREAD, whole, sizeof whole);
    join(whole, text && sqlite3_column_int(stmt, 1) != 0, path);
    (void)sqlite3_reset(stmt);
}

static size_t first_row(const struct occ_layers *l, int64_t config)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->rows[middle].config < config)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int occ_layers_add(struct occ_layers *l, struct occ_stacks *stacks, struct occ_stacks_key key,
                   const struct occ_stack *whole, struct occ_error *err)
{
    char path[OCC_STACKS_PATH_BYTES];
    double causes[OCC_CAUSE_COUNT];
    struct occ_stack stack = *whole;
    int64_t left_ns = whole->ns;
    int rc = 0;
    stack.causes = read_causes(l, key.config, causes);
    for (size_t i = first_row(l, key.config); rc == 0 && i < l->n && l->rows[i].config == key.config; i++) {
        key.range = l->rows[i].range;
        rc = occ_stacks_count(stacks, &key, l->rows[i].ns, left_ns, &stack.ns, err);
        left_ns -= stack.ns;
        if (rc != 0 || stack.ns == 0)
            continue;
        path[0] = '\0';
        if (key.range != 0)
            read_range(l, key.run, key.range, path);
        stack.path = path;
        rc = occ_stacks_add(stacks, &stack, err);
    }
    stack.ns = left_ns;
    stack.path = l->has_ranges ? OCC_STACKS_UNREAD : "";
    return rc == 0 && left_ns > 0 ? occ_stacks_add(stacks, &stack, err) : rc;
}
