/* `top`: totals per configuration become lines per kernel and device model. One thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "sum_by_config.h"
#include "store/config_columns.h"

/* A mean at work: weights are nanoseconds. */
struct mean {
    double sum, weight;
};

/* A line at work, with the sums that its means come from. */
struct line {
    struct occ_top_row row;
    struct mean theoretical, expected_achieved, expected_elapsed;
    struct mean achieved, achieved_error, elapsed, elapsed_error; /* measured */
    struct mean used, part[OCC_PART_COUNT];
    double weight;    /* of all its configurations */
    uint64_t main_ns; /* time of the configuration that speaks for the line */
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
    const struct occ_scope *scope;
    sqlite3_stmt *measured;
};

static void add_mean(struct mean *mean, double value, double weight)
{
    if (!isfinite(value))
        return;
    mean->sum += value * weight;
    mean->weight += weight;
}

static double mean_of(const struct mean *mean)
{
    return mean->weight > 0 ? mean->sum / mean->weight : NAN;
}

/* Devices of one model, from the same name and limits, share a line. */
static int load_models(struct top *t)
{
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_DONE;
    int rc = occ_ask_prepare(
        t->store,
        "SELECT device_id, min(device_id) OVER (PARTITION BY name, cc, sm_count, max_threads_per_sm, "
        "registers_per_sm, shared_per_sm_bytes, simulated) FROM stored_device",
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

/* Columns of the statement in load_configs(). */
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
    C_WARPS_PER_BLOCK,
    C_MOST_WARPS,
    C_SMS,
    C_CAUSES
};

static const char configs_sql[] =
    "SELECT s.config_id, s.kernel_id, s.device_id, s.registers_per_thread, s.block_x, s.block_y, s.block_z, "
    "s.theoretical, "
    "s.expected_achieved, s.expected_elapsed, s.waves, s.full_waves, s.partial_blocks, s.limiter_bits, "
    "s.by_design_bits, s.warps_per_block, s.max_warps_per_sm, d.sm_count" OCC_CAUSES(
        OCC_COLUMN_CAUSE) " FROM stored_launch_config s JOIN stored_device d USING(device_id) WHERE "
                          "s.config_id BETWEEN ? AND ?";

/* The configuration columns come from the configuration with most time. */
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

/* As much of the model's answer as the waterfall takes. */
static void read_result(sqlite3_stmt *stmt, struct occ_result *result)
{
    *result = (struct occ_result){
        .warps_per_block = (uint32_t)sqlite3_column_int64(stmt, C_WARPS_PER_BLOCK),
        .max_warps_per_sm = (uint32_t)sqlite3_column_int64(stmt, C_MOST_WARPS),
        .theoretical = sqlite3_column_double(stmt, C_THEORETICAL),
        .expected_achieved = sqlite3_column_double(stmt, C_ACHIEVED),
        .expected_elapsed = sqlite3_column_double(stmt, C_ELAPSED),
    };
    for (int i = 0; i < OCC_CAUSE_COUNT; i++)
        result->cause[i] = sqlite3_column_double(stmt, C_CAUSES + i);
}

static void add_measured(struct line *line, const struct occ_measurement *measured, double weight)
{
    add_mean(&line->achieved, measured->achieved, weight);
    add_mean(&line->achieved_error, measured->achieved_error, weight);
    add_mean(&line->elapsed, measured->elapsed, weight);
    add_mean(&line->elapsed_error, measured->elapsed_error, weight);
}

static void add_result(struct line *line, const struct occ_result *result,
                       const struct occ_measurement *measured, double weight, double capacity_seconds)
{
    struct occ_waterfall waterfall;
    occ_explain(result, measured, &waterfall);
    add_mean(&line->theoretical, result->theoretical, weight);
    add_mean(&line->expected_achieved, result->expected_achieved, weight);
    add_mean(&line->expected_elapsed, result->expected_elapsed, weight);
    add_mean(&line->used, waterfall.used, weight);
    for (int i = 0; i < OCC_PART_COUNT; i++)
        add_mean(&line->part[i], i == OCC_CAUSE_PARTIAL_WARP ? result->cause[i] : waterfall.part[i], weight);
    line->row.waste_warp_seconds += capacity_seconds * fmax(1 - waterfall.used, 0);
}

static int add_config(struct top *t, struct line *line, sqlite3_stmt *stmt, const struct occ_totals *totals)
{
    struct occ_top_row *row = &line->row;
    struct occ_measured_sums sums;
    struct occ_measurement measured;
    row->configs++;
    row->launches += totals->launches;
    row->total_ns = occ_add_saturated(row->total_ns, totals->total_ns);
    row->min_ns = totals->min_ns < row->min_ns ? totals->min_ns : row->min_ns;
    row->max_ns = totals->max_ns > row->max_ns ? totals->max_ns : row->max_ns;
    if (!line->has_main || totals->total_ns > line->main_ns)
        speak_for(line, stmt, totals->total_ns);
    int rc =
        occ_measured_read(t->store, t->scope, sqlite3_column_int64(stmt, C_ID), t->measured, &sums, t->err);
    if (rc != 0)
        return rc;
    occ_measured_means(&sums, &measured);
    /* launches of no measurable time still have a mean */
    double weight = (double)totals->total_ns + 1e-6 * (double)totals->launches;
    line->weight += weight;
    add_measured(line, &measured, weight);
    if (sqlite3_column_type(stmt, C_ELAPSED) == SQLITE_NULL)
        return 0;
    struct occ_result result;
    read_result(stmt, &result);
    add_result(line, &result, &measured, weight,
               (double)totals->total_ns * 1e-9 * sqlite3_column_double(stmt, C_SMS) *
                   result.max_warps_per_sm);
    return 0;
}

static int load_configs(struct top *t)
{
    sqlite3_stmt *stmt = NULL;
    int64_t low = INT64_MAX, high = 0;
    for (uint32_t i = 0; i < t->totals->n; i++) {
        int64_t id = (int64_t)t->totals->entries[i].key;
        low = id < low ? id : low;
        high = id > high ? id : high;
    }
    int step = SQLITE_DONE, rc = occ_ask_prepare(t->store, configs_sql, &stmt, t->err);
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
        rc = line ? add_config(t, line, stmt, totals) : occ_store_no_memory(t->err);
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
    int rc = occ_ask_prepare(
        t->store, "SELECT short, demangled, mangled FROM stored_kernel WHERE kernel_id = ?", &kernel, t->err);
    if (rc == 0)
        rc = occ_ask_prepare(t->store, "SELECT name, simulated FROM stored_device WHERE device_id = ?",
                             &device, t->err);
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

/* Of all its configurations that could be analysed, so that all parts and what is used are 1: a part that is not known of a configuration is
 * in its others. */
static double part_of(const struct line *line, unsigned part)
{
    return line->part[part].weight > 0 ? line->part[part].sum / line->used.weight : NAN;
}

/* The largest part. */
static void name_main_cause(struct line *line)
{
    struct occ_top_row *row = &line->row;
    double most = 1e-9; /* the model's own accuracy */
    for (unsigned i = 0; i < OCC_PART_COUNT; i++) {
        if (i == OCC_CAUSE_PARTIAL_WARP || !(row->part[i] > most))
            continue;
        most = row->main_cause_ratio = row->part[i];
        (void)snprintf(row->main_cause, sizeof row->main_cause, "%s", occ_part_word(i));
    }
}

static void finish_line(struct line *line)
{
    struct occ_top_row *row = &line->row;
    row->theoretical = mean_of(&line->theoretical);
    row->expected_achieved = mean_of(&line->expected_achieved);
    row->expected_elapsed = mean_of(&line->expected_elapsed);
    row->achieved = mean_of(&line->achieved);
    row->achieved_error = mean_of(&line->achieved_error);
    row->elapsed = mean_of(&line->elapsed);
    row->elapsed_error = mean_of(&line->elapsed_error);
    row->used = mean_of(&line->used);
    row->measured_share = line->weight > 0 ? line->elapsed.weight / line->weight : 0;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        row->part[i] = part_of(line, i);
    name_main_cause(line);
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
    t->scope = &scope;
    rc = occ_gather(t->store, &scope, false, t->totals, t->err);
    if (rc == 0)
        rc = load_models(t);
    if (rc == 0)
        rc = occ_measured_prepare(t->store, &t->measured, t->err);
    if (rc == 0 && t->totals->n > 0)
        rc = load_configs(t);
    (void)sqlite3_finalize(t->measured);
    occ_scope_close(&scope);
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
