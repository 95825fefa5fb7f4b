/* `top`: totals by launch configuration become lines by kernel and device, or by the query's own unit. One
 * thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top_config.h"
#include "support/arena.h"
#include "support/array.h"

/* A mean in the making; weights are nanoseconds. */
struct mean {
    double sum, weight;
};

/* X(field of struct occ_top_row that is a mean) */
#define MEANS(X)                                                                                             \
    X(theoretical)                                                                                           \
    X(expected_achieved_low)                                                                                 \
    X(expected_achieved_high)                                                                                \
    X(expected_elapsed_low)                                                                                  \
    X(expected_elapsed_high)                                                                                 \
    X(tail_spread)                                                                                           \
    X(small_grid_spread) X(achieved) X(achieved_error) X(elapsed) X(elapsed_error) X(measured_ratio) X(used)

/* A row under construction. The row's means hold sums of value x weight, and `weights` the sums of their
 * weights: an answer has as many lines as kernels, so each number is stored only once. */
struct line {
    struct occ_top_row row;
    struct {
#define WEIGHT(name) double name;
        MEANS(WEIGHT)
    } weights;
    uint32_t known_parts;           /* bits of the parts for which a configuration has a value */
    struct mean unmeasured_max;     /* maximum elapsed occupancy of configurations without a value */
    double weight;                  /* weight of all configurations of the row */
    struct occ_histogram durations; /* durations, weighted by time */
    uint64_t dominant_ns;           /* time of the dominant configuration, which has the most time */
    bool has_dominant;
};

/* The rows of an answer. */
struct lines {
    enum occ_top_by by;
    struct line *lines;
    size_t n, allocated;
    struct occ_map index; /* key_of() -> line */
    struct occ_arena arena;
};

enum { ANSWERS_MAX = 4 };

struct top {
    struct occ_store *store;
    struct occ_error *err;
    struct occ_resolved_filter filter;
    struct occ_totals_table totals;
    struct occ_map kernels; /* kernels of the launches */
    struct lines answers[ANSWERS_MAX];
    size_t n;
};

static void add_mean(double *sum, double *weights, double value, double weight)
{
    if (!isfinite(value))
        return;
    *sum += value * weight;
    *weights += weight;
}

static double mean_of(double sum, double weight)
{
    return weight > 0 ? sum / weight : NAN;
}

#define ADD_MEAN(line, name, value, weight) add_mean(&(line)->row.name, &(line)->weights.name, value, weight)

static const char *copy_column(struct lines *t, sqlite3_stmt *stmt, int column)
{
    return occ_arena_copy(&t->arena, (const char *)sqlite3_column_text(stmt, column));
}

/* True if each row belongs to one device. */
static bool is_of_one_device(enum occ_top_by by)
{
    return by == OCC_TOP_BY_KERNEL || by == OCC_TOP_BY_CONFIG || by == OCC_TOP_BY_STREAM ||
           by == OCC_TOP_BY_GPU;
}

/* Key of a configuration's row. A stream belongs to a device: two devices may use the same stream numbers. */
static uint64_t key_of(const struct lines *t, const struct occ_top_config *config, uint32_t group)
{
    uint64_t device = (uint32_t)sqlite3_column_int64(config->stmt, OCC_TOP_DEVICE_ID);
    switch (t->by) {
    case OCC_TOP_BY_KERNEL:
        return (uint64_t)config->kernel << 32 | device;
    case OCC_TOP_BY_CONFIG:
        return (uint64_t)config->id;
    case OCC_TOP_BY_GPU:
        return device;
    case OCC_TOP_BY_LAYER:
        return (uint64_t)group << 32 | (uint32_t)config->kernel;
    case OCC_TOP_BY_STREAM:
        return (uint64_t)group << 32 | device;
    case OCC_TOP_BY_CAUSE:
        return config->main_part;
    default:
        return group;
    }
}

static void name_line(struct lines *t, const struct occ_resolved_filter *f,
                      const struct occ_top_config *config, uint32_t group, struct occ_row_kernel *kernel)
{
    static const int columns[] = {[OCC_TOP_BY_KERNEL] = OCC_TOP_SHORT,
                                  [OCC_TOP_BY_CONFIG] = OCC_TOP_CONFIG_TEXT,
                                  [OCC_TOP_BY_GPU] = OCC_TOP_DEVICE,
                                  [OCC_TOP_BY_LAYER] = OCC_TOP_SHORT};
    sqlite3_stmt *stmt = config->stmt;
    char number[16];
    if (t->by == OCC_TOP_BY_CAUSE) {
        kernel->short_name = config->main_part < OCC_PART_COUNT ? occ_part_word(config->main_part) : NULL;
    } else if (t->by == OCC_TOP_BY_STREAM) {
        (void)snprintf(number, sizeof number, "%u", group);
        kernel->short_name = occ_arena_copy(&t->arena, number);
    } else if (t->by == OCC_TOP_BY_RANGE) {
        const char *path = f->range_groups[group].path;
        kernel->short_name = path ? occ_arena_copy(&t->arena, path) : NULL;
        kernel->id = group;
    } else if (f->unit_ns) {
        kernel->id = group;
    } else if (t->by > OCC_TOP_BY_STREAM) {
        const struct occ_filtered_run *run = &f->runs[group];
        kernel->short_name = run->text ? occ_arena_copy(&t->arena, run->text) : NULL;
        kernel->id = run->id;
    } else {
        bool has_name = sqlite3_column_bytes(stmt, columns[t->by]) > 0;
        kernel->short_name = has_name ? copy_column(t, stmt, columns[t->by]) : NULL;
        kernel->id = sqlite3_column_int64(stmt, t->by == OCC_TOP_BY_CONFIG ? OCC_TOP_CONFIG
                                                : t->by == OCC_TOP_BY_GPU  ? OCC_TOP_DEVICE_ID
                                                                           : OCC_TOP_KERNEL);
    }
    if (t->by == OCC_TOP_BY_LAYER) {
        const struct occ_range_group *range = &f->range_groups[group];
        kernel->range = range->path ? occ_arena_copy(&t->arena, range->path) : NULL;
        kernel->is_backward = range->is_backward;
    }
    if (is_of_one_device(t->by)) {
        kernel->device = sqlite3_column_int64(stmt, OCC_TOP_DEVICE_ID);
        kernel->device_name = copy_column(t, stmt, OCC_TOP_DEVICE);
    }
    if (t->by > OCC_TOP_BY_CONFIG && t->by != OCC_TOP_BY_LAYER)
        return;
    kernel->demangled = copy_column(t, stmt, OCC_TOP_DEMANGLED);
    kernel->mangled = copy_column(t, stmt, OCC_TOP_MANGLED);
}

/* NULL: no memory. */
static struct line *find_line(struct lines *t, const struct occ_resolved_filter *f,
                              const struct occ_top_config *config, uint32_t group)
{
    if (!occ_grow((void **)&t->lines, &t->allocated, t->n, UINT32_MAX, sizeof *t->lines))
        return NULL;
    uint32_t at = occ_map_put(&t->index, key_of(t, config, group), (uint32_t)t->n);
    if (at == OCC_MAP_NONE)
        return NULL;
    if (at == t->n) {
        t->lines[t->n] = (struct line){.row = {.min_ns = UINT64_MAX}};
        name_line(t, f, config, group, &t->lines[t->n++].row.kernel);
    }
    return &t->lines[at];
}

static void add_result(struct line *line, const struct occ_result *result,
                       const struct occ_waterfall *waterfall, double weight, double capacity_seconds)
{
    ADD_MEAN(line, theoretical, result->theoretical, weight);
    ADD_MEAN(line, expected_achieved_low, result->expected_achieved_low, weight);
    ADD_MEAN(line, expected_achieved_high, result->expected_achieved_high, weight);
    ADD_MEAN(line, expected_elapsed_low, result->expected_elapsed_low, weight);
    ADD_MEAN(line, expected_elapsed_high, result->expected_elapsed_high, weight);
    ADD_MEAN(line, tail_spread, waterfall->tail_spread, weight);
    ADD_MEAN(line, small_grid_spread, waterfall->small_grid_spread, weight);
    ADD_MEAN(line, used, waterfall->used, weight);
    for (int i = 0; i < OCC_PART_COUNT; i++) {
        double part = i == OCC_CAUSE_PARTIAL_WARP ? result->cause[i] : waterfall->part[i];
        if (!isfinite(part))
            continue;
        line->row.part[i] += part * weight;
        line->known_parts |= 1u << i;
    }
    line->row.waste_warp_seconds += capacity_seconds * fmax(1 - waterfall->used, 0);
}

/* True if measured values exist per row group; otherwise they cover the whole configuration. */
static bool is_measured_by_group(const struct top *t)
{
    return t->filter.unit_ns || t->answers[0].by > OCC_TOP_BY_STREAM;
}

/* Reads measured values of the configuration: of the group if is_measured_by_group(), otherwise of all. */
static int read_measured(struct top *t, struct occ_top_config *config, uint32_t group,
                         struct occ_measured_sums *ret_sums)
{
    if (t->filter.unit_ns)
        return occ_measured_of_unit(t->store, &t->filter, &config->measured, group, ret_sums, t->err);
    return occ_measured_read(t->store, &t->filter, config->id,
                             is_measured_by_group(t) ? (int64_t)group : OCC_ANY_GROUP, ret_sums, t->err);
}

static bool add_durations(struct occ_histogram *sum, const struct occ_histogram *part)
{
    for (uint32_t i = 0; i < part->count; i++)
        if (part->bins[i] && !occ_histogram_add(sum, occ_histogram_low(part->first + i), part->bins[i]))
            return false;
    return true;
}

/* Adds the totals of one group of a configuration. */
static void add_totals(struct line *line, const struct occ_top_config *config,
                       const struct occ_totals *totals)
{
    struct occ_top_row *row = &line->row;
    row->kernel.simulated |= config->is_simulated;
    row->kernel.estimated |= config->is_estimated;
    row->configs++;
    row->launches += totals->launches;
    row->total_ns = occ_add_saturated(row->total_ns, totals->total_ns);
    row->min_ns = totals->min_ns < row->min_ns ? totals->min_ns : row->min_ns;
    row->max_ns = totals->max_ns > row->max_ns ? totals->max_ns : row->max_ns;
    if (line->has_dominant && totals->total_ns <= line->dominant_ns)
        return;
    line->has_dominant = true;
    line->dominant_ns = totals->total_ns;
    row->dominant = config->dominant;
    row->dominant.total_ns = totals->total_ns;
}

/* Adds measured means, which stand for all launches of the configuration; their errors cover launches without
 * a value. */
static void add_measured(struct line *line, const struct occ_top_config *config, double weight)
{
    const struct occ_measurement *measured = &config->means;
    ADD_MEAN(line, achieved, measured->achieved, weight);
    ADD_MEAN(line, achieved_error, measured->achieved_error, weight);
    ADD_MEAN(line, elapsed, measured->elapsed, weight);
    ADD_MEAN(line, elapsed_error, measured->elapsed_error, weight);
    ADD_MEAN(line, measured_ratio, measured->measured_ratio, weight);
    if (isnan(measured->elapsed) && isnan(measured->achieved))
        add_mean(&line->unmeasured_max.sum, &line->unmeasured_max.weight,
                 config->is_analysed ? config->result.theoretical : 1, weight);
}

/* Adds the known occupancy values of a configuration. */
static void add_occupancy(struct line *line, const struct occ_top_config *config,
                          const struct occ_totals *totals)
{
    /* launches with a duration of 0 have a mean too */
    double weight = (double)totals->total_ns + 1e-6 * (double)totals->launches;
    line->weight += weight;
    add_measured(line, config, weight);
    if (config->is_analysed)
        add_result(line, &config->result, &config->waterfall, weight,
                   (double)totals->total_ns * 1e-9 * config->warps);
}

/* Computes the waterfall for a group of a configuration's launches. */
static int explain(struct top *t, struct occ_top_config *config, const struct occ_totals *totals)
{
    struct occ_measured_sums sums;
    int rc = read_measured(t, config, (uint32_t)(totals->key >> 32), &sums);
    if (rc != 0)
        return rc;
    double all_ns = is_measured_by_group(t) ? occ_totals_all_ns(totals) : config->all_ns;
    double share = occ_measured_own(&sums, all_ns, &config->means);
    occ_explain_partly(&config->result, &config->means, share, &config->waterfall);
    occ_measured_means(&sums, all_ns, &config->means);
    config->main_part =
        config->is_analysed ? occ_largest_part(config->waterfall.part, OCC_PART_COUNT) : OCC_PART_COUNT;
    return 0;
}

/* Adds the configuration to a line of each answer. */
static int add_config(struct top *t, struct occ_top_config *config, const struct occ_totals *totals)
{
    uint32_t group = (uint32_t)(totals->key >> 32);
    if (totals->launches == 0)
        return 0;
    int rc = explain(t, config, totals);
    if (rc != 0)
        return rc;
    if (occ_map_put(&t->kernels, (uint64_t)config->kernel, 0) == OCC_MAP_NONE)
        return occ_no_memory(t->err);
    for (size_t i = 0; i < t->n; i++) {
        struct line *line = find_line(&t->answers[i], &t->filter, config, group);
        if (!line || !add_durations(&line->durations, &totals->histogram))
            return occ_no_memory(t->err);
        add_totals(line, config, totals);
        add_occupancy(line, config, totals);
    }
    return 0;
}

static int by_config(const void *left, const void *right)
{
    const struct occ_totals *a = left, *b = right;
    uint64_t x = a->key << 32 | a->key >> 32, y = b->key << 32 | b->key >> 32;
    return (x > y) - (x < y);
}

/* Reads configurations in step with their totals, both ordered by id. */
static int load_configs(struct top *t)
{
    struct occ_totals *at = t->totals.entries, *end = at + t->totals.n;
    struct occ_top_config config = {.stmt = NULL};
    int rc = 0;
    occ_map_free(&t->totals.map); /* totals do not change from here on */
    qsort(at, t->totals.n, sizeof *at, by_config);
    bool needs_texts = false; /* texts of configurations: SQLite writes six numbers for each text */
    for (size_t i = 0; i < t->n; i++)
        needs_texts |= t->answers[i].by == OCC_TOP_BY_CONFIG;
    sqlite3_stmt *stmt = occ_store_query(t->store, OCC_SQL_TOP_CONFIGS,
                                         OCC_INTS((uint32_t)at->key, (uint32_t)end[-1].key, needs_texts));
    while (occ_store_next(t->store, stmt, &rc, t->err)) {
        int64_t id = sqlite3_column_int64(stmt, OCC_TOP_CONFIG);
        while (at < end && (uint32_t)at->key < id)
            at++;
        if (at < end && (uint32_t)at->key == id)
            rc = occ_top_config_read(t->store, &t->filter, stmt, &config, t->err);
        for (const struct occ_totals *of = at; of < end && (uint32_t)of->key == id; of++)
            config.all_ns += occ_totals_all_ns(of);
        while (at < end && (uint32_t)at->key == id && rc == 0)
            rc = add_config(t, &config, at++);
        (void)sqlite3_reset(config.measured.stmt);
    }
    return rc;
}

static void name_main_cause(struct occ_top_row *row)
{
    unsigned part = occ_largest_part(row->part, OCC_PART_COUNT);
    if (part == OCC_PART_COUNT)
        return;
    row->main_cause_ratio = row->part[part];
    row->main_cause = occ_part_word(part);
}

/* The error of a mean over all configurations. A configuration without a value may have any occupancy up to
 * its theoretical one: half of that range is used as its error, as if the range were a 95 % interval. */
static double whole_error(const struct line *line, double value, double error)
{
    double part = line->weight > 0 ? line->unmeasured_max.weight / line->weight : 0;
    double unmeasured = mean_of(line->unmeasured_max.sum, line->unmeasured_max.weight);
    double most = fmax(value, unmeasured - value); /* fmax() ignores NaN: no value */
    double known = isnan(error) && part > 0 ? 0 : error;
    return (1 - part) * known + part * most / OCC_ERRORS_OF_95_PERCENT;
}

static void finish_line(struct line *line)
{
    struct occ_top_row *row = &line->row;
    row->analysed_ratio = line->weight > 0 ? line->weights.used / line->weight : 0;
#define FINISH_MEAN(name) row->name = mean_of(row->name, line->weights.name);
    MEANS(FINISH_MEAN)
    row->p50_ns = occ_histogram_quantile_within(&line->durations, 0.5, row->min_ns, row->max_ns);
    row->p95_ns = occ_histogram_quantile_within(&line->durations, 0.95, row->min_ns, row->max_ns);
    row->achieved_error = whole_error(line, row->achieved, row->achieved_error);
    row->elapsed_error = whole_error(line, row->elapsed, row->elapsed_error);
    for (unsigned i = 0; i < OCC_PART_COUNT;
         i++) /* means over all analysed configurations, so that `used` and the parts sum to 1 */
        row->part[i] = line->known_parts & 1u << i ? row->part[i] / line->weights.used : NAN;
    name_main_cause(row);
}

/* Turns the lines into rows in the lines' own memory: row i begins at or before line i, and a second array
 * would be as large as the answer. */
static struct occ_top_row *take_rows(struct lines *t)
{
    void *memory = t->lines;
    for (size_t i = 0; i < t->n; i++) {
        finish_line(&t->lines[i]);
        occ_histogram_free(&t->lines[i].durations);
        memmove((char *)memory + i * sizeof(struct occ_top_row), &t->lines[i].row,
                sizeof(struct occ_top_row));
    }
    void *rows = realloc(memory, (t->n + 1) * sizeof(struct occ_top_row));
    t->lines = NULL;
    t->n = 0;
    return rows ? rows : memory;
}

static int make_rows(struct lines *t, size_t n_kernels, struct occ_top *ret_top, struct occ_error *err)
{
    size_t n = t->n;
    struct occ_top_row *rows = t->arena.failed ? NULL : take_rows(t);
    if (!rows)
        return occ_no_memory(err);
    *ret_top = (struct occ_top){.rows = rows, .n = n, .n_kernels = n_kernels, .memory = t->arena.blocks};
    t->arena.blocks = NULL;
    return 0;
}

static int answer(struct top *t, const struct occ_filter *filter, struct occ_top *ret_tops)
{
    int rc = occ_filter_resolve(t->store, filter, t->answers[0].by, &t->filter, t->err);
    if (rc == 0)
        rc = occ_sum_by_config(t->store, &t->filter, t->filter.unit_ns != 0, &t->totals, t->err);
    if (rc == 0 && t->totals.n > 0)
        rc = load_configs(t);
    for (size_t i = 0; i < t->n && rc == 0; i++)
        rc = make_rows(&t->answers[i], t->kernels.used, &ret_tops[i], t->err);
    return rc;
}

int occ_store_tops(struct occ_store *s, const struct occ_filter *filter, const enum occ_top_by *by, size_t n,
                   struct occ_top *ret_tops, struct occ_error *err)
{
    struct top t = {.store = s, .err = err, .n = n < ANSWERS_MAX ? n : ANSWERS_MAX};
    int rc = occ_store_execute(s, OCC_SQL_BEGIN, NULL, 0, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < t.n; i++)
        t.answers[i].by = by[i];
    rc = answer(&t, filter, ret_tops);
    occ_store_rollback(s);
    occ_resolved_filter_free(&t.filter);
    occ_totals_table_free(&t.totals);
    occ_map_free(&t.kernels);
    for (size_t i = 0; i < t.n; i++) {
        struct lines *answer = &t.answers[i];
        occ_map_free(&answer->index);
        for (size_t k = 0; k < answer->n; k++)
            occ_histogram_free(&answer->lines[k].durations);
        free(answer->lines);
        occ_arena_free(answer->arena.blocks);
    }
    return rc;
}

int occ_store_top(struct occ_store *s, const struct occ_filter *filter, enum occ_top_by by,
                  struct occ_top *ret_top, struct occ_error *err)
{
    return occ_store_tops(s, filter, &by, 1, ret_top, err);
}

void occ_top_free(struct occ_top *top)
{
    free(top->rows);
    occ_arena_free(top->memory);
    *top = (struct occ_top){0};
}
