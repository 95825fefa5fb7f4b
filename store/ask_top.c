/* `top`: totals per shape become lines per kernel and device model. One thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "gather.h"
#include "shape_columns.h"

/* A line at work, with the sums that its means come from. */
struct line {
    struct occ_top_row row;
    double weight, theoretical, achieved, elapsed; /* weights are nanoseconds */
    double cause[OCC_CAUSE_COUNT];
    uint64_t main_ns; /* time of the shape that speaks for the line */
    bool has_main;
};

struct top {
    struct occ_store *store;
    struct occ_error *err;
    struct occ_totals_table *totals;
    struct line *lines;
    uint32_t n, capacity;
    struct occ_map index;  /* kernel << 32 | model -> line */
    struct occ_map models; /* device -> its model's first device */
    struct occ_arena arena;
};

/* Devices of one model, from the same name and limits, share a line. */
static int load_models(struct top *t)
{
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_DONE;
    int rc = occ_ask_prepare(t->store,
                             "SELECT id, min(id) OVER (PARTITION BY name, cc, sm_count, max_threads_per_sm, "
                             "registers_per_sm, smem_per_sm_bytes, simulated) FROM device",
                             &stmt, t->err);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        if (occ_map_put(&t->models, (uint64_t)sqlite3_column_int64(stmt, 0),
                        (uint32_t)sqlite3_column_int64(stmt, 1)) == OCC_MAP_NONE)
            rc = occ_store_no_memory(t->err);
    if (rc == 0)
        return occ_ask_end(t->store, stmt, step, t->err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static struct line *line_of(struct top *t, int64_t kernel, int64_t device)
{
    uint32_t model = occ_map_get(&t->models, (uint64_t)device);
    if (t->n == t->capacity) {
        uint32_t capacity = t->capacity * 2 + 64;
        struct line *lines = realloc(t->lines, capacity * sizeof *lines);
        if (!lines)
            return NULL;
        t->lines = lines;
        t->capacity = capacity;
    }
    uint32_t at = occ_map_put(&t->index, (uint64_t)kernel << 32 | model, t->n);
    if (at == OCC_MAP_NONE)
        return NULL;
    if (at == t->n)
        t->lines[t->n++] = (struct line){.row = {.kernel = kernel,
                                                 .device = model,
                                                 .min_ns = UINT64_MAX,
                                                 .short_name = "?",
                                                 .demangled = "?",
                                                 .mangled = "?",
                                                 .device_name = "?"}};
    return &t->lines[at];
}

/* Columns of the statement in load_shapes(). */
enum {
    C_ID,
    C_KERNEL,
    C_DEVICE,
    C_REGISTERS,
    C_BLOCK_X,
    C_BLOCK_Y,
    C_BLOCK_Z,
    C_THEORETICAL,
    C_ACHIEVED,
    C_ELAPSED,
    C_WAVES,
    C_FULL_WAVES,
    C_PARTIAL,
    C_MASK,
    C_DESIGN,
    C_CAPACITY,
    C_CAUSES
};

static const char shapes_sql[] =
    "SELECT s.id, s.kernel, s.device, s.registers_per_thread, s.block_x, s.block_y, s.block_z, "
    "s.theoretical, "
    "s.expected_achieved, s.expected_elapsed, s.waves, s.full_waves, s.partial_blocks, s.limiter_mask, "
    "s.design, "
    "d.sm_count * s.max_warps_per_sm" OCC_CAUSES(
        OCC_COLUMN_CAUSE) " FROM shape s JOIN device d ON d.id = s.device WHERE s.id BETWEEN ? AND ?";

/* The configuration columns come from the shape with most time. */
static void speak_for(struct line *line, sqlite3_stmt *stmt, uint64_t total_ns)
{
    struct occ_top_row *row = &line->row;
    line->has_main = true;
    line->main_ns = total_ns;
    row->registers = (uint32_t)sqlite3_column_int64(stmt, C_REGISTERS);
    row->block_threads =
        (uint32_t)(sqlite3_column_int64(stmt, C_BLOCK_X) * sqlite3_column_int64(stmt, C_BLOCK_Y) *
                   sqlite3_column_int64(stmt, C_BLOCK_Z));
    row->waves =
        sqlite3_column_type(stmt, C_WAVES) == SQLITE_NULL ? NAN : sqlite3_column_double(stmt, C_WAVES);
    row->full_waves = (uint64_t)sqlite3_column_int64(stmt, C_FULL_WAVES);
    row->partial_blocks = (uint64_t)sqlite3_column_int64(stmt, C_PARTIAL);
    row->design = (uint32_t)sqlite3_column_int64(stmt, C_DESIGN);
    (void)occ_limiters_text((uint32_t)sqlite3_column_int64(stmt, C_MASK), row->limiters,
                            sizeof row->limiters);
}

static void add_shape(struct line *line, sqlite3_stmt *stmt, const struct occ_totals *totals)
{
    struct occ_top_row *row = &line->row;
    row->shapes++;
    row->launches += totals->launches;
    row->total_ns = occ_add_saturated(row->total_ns, totals->total_ns);
    row->min_ns = totals->min_ns < row->min_ns ? totals->min_ns : row->min_ns;
    row->max_ns = totals->max_ns > row->max_ns ? totals->max_ns : row->max_ns;
    if (!line->has_main || totals->total_ns > line->main_ns)
        speak_for(line, stmt, totals->total_ns);
    if (sqlite3_column_type(stmt, C_ELAPSED) == SQLITE_NULL)
        return;
    /* launches of no measurable time still have a mean */
    double weight = (double)totals->total_ns + 1e-6 * (double)totals->launches;
    double elapsed = sqlite3_column_double(stmt, C_ELAPSED);
    line->weight += weight;
    line->theoretical += weight * sqlite3_column_double(stmt, C_THEORETICAL);
    line->achieved += weight * sqlite3_column_double(stmt, C_ACHIEVED);
    line->elapsed += weight * elapsed;
    row->waste_warp_seconds +=
        (double)totals->total_ns * 1e-9 * sqlite3_column_double(stmt, C_CAPACITY) * (1 - elapsed);
    for (int i = 0; i < OCC_CAUSE_COUNT; i++)
        line->cause[i] += weight * sqlite3_column_double(stmt, C_CAUSES + i);
}

static int load_shapes(struct top *t)
{
    sqlite3_stmt *stmt = NULL;
    int64_t low = INT64_MAX, high = 0;
    for (uint32_t i = 0; i < t->totals->n; i++) {
        int64_t id = (int64_t)t->totals->entries[i].key;
        low = id < low ? id : low;
        high = id > high ? id : high;
    }
    int step = SQLITE_DONE, rc = occ_ask_prepare(t->store, shapes_sql, &stmt, t->err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, low);
    occ_bind_int(&b, high);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        const struct occ_totals *totals =
            occ_totals_find(t->totals, (uint64_t)sqlite3_column_int64(stmt, C_ID));
        if (!totals)
            continue;
        struct line *line =
            line_of(t, sqlite3_column_int64(stmt, C_KERNEL), sqlite3_column_int64(stmt, C_DEVICE));
        if (line)
            add_shape(line, stmt, totals);
        else
            rc = occ_store_no_memory(t->err);
    }
    if (rc == 0)
        return occ_ask_end(t->store, stmt, step, t->err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static const char *copy_column(struct top *t, sqlite3_stmt *stmt, int column)
{
    const char *copy = occ_arena_copy(&t->arena, (const char *)sqlite3_column_text(stmt, column));
    return copy ? copy : "?";
}

static int name_lines(struct top *t)
{
    sqlite3_stmt *kernel = NULL, *device = NULL;
    int rc = occ_ask_prepare(t->store, "SELECT short, demangled, mangled FROM kernel WHERE id = ?", &kernel,
                             t->err);
    if (rc == 0)
        rc = occ_ask_prepare(t->store, "SELECT name, simulated FROM device WHERE id = ?", &device, t->err);
    for (uint32_t i = 0; i < t->n && rc == 0; i++) {
        struct occ_top_row *row = &t->lines[i].row;
        (void)sqlite3_bind_int64(kernel, 1, row->kernel);
        if (sqlite3_step(kernel) == SQLITE_ROW) {
            row->short_name = copy_column(t, kernel, 0);
            row->demangled = copy_column(t, kernel, 1);
            row->mangled = copy_column(t, kernel, 2);
        }
        (void)sqlite3_bind_int64(device, 1, row->device);
        if (sqlite3_step(device) == SQLITE_ROW) {
            row->device_name = copy_column(t, device, 0);
            row->simulated = sqlite3_column_int(device, 1) != 0;
        }
        (void)sqlite3_reset(kernel);
        (void)sqlite3_reset(device);
    }
    (void)sqlite3_finalize(kernel);
    (void)sqlite3_finalize(device);
    return rc == 0 && t->arena.failed ? occ_store_no_memory(t->err) : rc;
}

static void finish_line(struct line *line)
{
    struct occ_top_row *row = &line->row;
    double w = line->weight;
    row->theoretical = w > 0 ? line->theoretical / w : NAN;
    row->expected_achieved = w > 0 ? line->achieved / w : NAN;
    row->expected_elapsed = w > 0 ? line->elapsed / w : NAN;
    for (unsigned i = 0; i < OCC_CAUSE_COUNT; i++)
        line->cause[i] = w > 0 ? line->cause[i] / w : 0;
    unsigned cause = occ_largest_cause(line->cause);
    if (cause < OCC_CAUSE_COUNT) {
        (void)snprintf(row->main_cause, sizeof row->main_cause, "%s", occ_cause_word((enum occ_cause)cause));
        row->main_cause_ratio = line->cause[cause];
    }
}

static int make_rows(struct top *t, struct occ_top *ret_top)
{
    struct occ_top_row *rows = malloc((t->n + 1) * sizeof *rows);
    if (!rows)
        return occ_store_no_memory(t->err);
    for (uint32_t i = 0; i < t->n; i++) {
        finish_line(&t->lines[i]);
        rows[i] = t->lines[i].row;
    }
    *ret_top = (struct occ_top){.rows = rows, .n = t->n, .memory = occ_arena_take(&t->arena)};
    return 0;
}

static int answer(struct top *t, const struct occ_filter *filter, struct occ_top *ret_top)
{
    struct occ_scope scope;
    int rc = occ_scope_open(t->store, filter, &scope, t->err);
    if (rc != 0)
        return rc;
    rc = occ_gather(t->store, &scope, false, t->totals, t->err);
    occ_scope_close(&scope);
    if (rc == 0)
        rc = load_models(t);
    if (rc == 0 && t->totals->n > 0)
        rc = load_shapes(t);
    if (rc == 0)
        rc = name_lines(t);
    return rc != 0 ? rc : make_rows(t, ret_top);
}

int occ_store_top(struct occ_store *s, const struct occ_filter *filter, struct occ_top *ret_top,
                  struct occ_error *err)
{
    struct occ_totals_table totals = {0};
    struct top t = {.store = s, .err = err, .totals = &totals};
    int rc = occ_store_do(s, OCC_SQL_BEGIN, err);
    if (rc != 0)
        return rc;
    rc = answer(&t, filter, ret_top);
    occ_store_rollback(s);
    occ_totals_table_free(&totals);
    occ_map_free(&t.index);
    occ_map_free(&t.models);
    free(t.lines);
    occ_arena_free_blocks(occ_arena_take(&t.arena));
    return rc;
}

void occ_top_free(struct occ_top *top)
{
    free(top->rows);
    occ_arena_free_blocks(top->memory);
    *top = (struct occ_top){0};
}
