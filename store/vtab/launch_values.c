/* Measured columns of the virtual table `launch`. */
#include "launch_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/array.h"
#include "support/error.h"
#include "support/map.h"
#include "store/measured.h"
#include "store/codec/codes.h"

#define MINUTE_NS    INT64_C(60000000000)
#define VALUE_COUNT  4u
#define MINUTES_KEPT (1u << 16) /* configurations x minutes kept for one chunk */

static const struct occ_launch_measured nothing = {NAN, NAN, NAN, NAN, NAN, NULL};

/* The values measured directly for one row, as codes. */
struct own {
    uint16_t code[VALUE_COUNT];
    bool known;
};

struct occ_launch_values {
    bool loaded; /* `own` belongs to the current chunk */
    struct own *own;
    uint32_t own_capacity;
    struct occ_map minute_index; /* minute << 32 | config -> index */
    struct occ_launch_measured *minutes;
    uint32_t n_minutes;
    size_t minutes_allocated;
};

void occ_launch_values_free(struct occ_launch_values *v)
{
    if (!v)
        return;
    occ_map_free(&v->minute_index);
    free(v->minutes);
    free(v->own);
    free(v);
}

void occ_launch_values_reset(struct occ_launch_values *v)
{
    v->loaded = false;
    v->n_minutes = 0;
    occ_map_clear(&v->minute_index);
}

/* ---- own values of a launch ---- */

static uint32_t first_row(const struct occ_columns *launches, uint64_t start_ns)
{
    uint32_t low = 0, high = launches->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (launches->start_ns[middle] < start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Assigns the i-th of `values` to its launch. */
static void assign_value(struct occ_launch_values *v, const struct occ_columns *launches,
                         const struct occ_columns *values, uint32_t i)
{
    uint64_t start = values->start_ns[i];
    uint32_t first = first_row(launches, start);
    uint32_t end = launches->n - first > OCC_LAUNCHES_AT_ONCE ? first + OCC_LAUNCHES_AT_ONCE : launches->n;
    for (uint32_t row = first; row < end && launches->start_ns[row] == start; row++) {
        struct own *own = &v->own[row];
        if (own->known || launches->correlation[row] != values->correlation[i] ||
            launches->config[row] != values->config[i])
            continue;
        own->known = true;
        for (unsigned k = 0; k < VALUE_COUNT; k++)
            own->code[k] = (uint16_t)values->column[OCC_COLUMN_achieved + k][i];
        return;
    }
}

static bool make_room(struct occ_launch_values *v, uint32_t n)
{
    if (v->own_capacity < n) {
        free(v->own);
        v->own = malloc(n * sizeof *v->own);
        v->own_capacity = v->own ? n : 0;
    }
    if (v->own)
        memset(v->own, 0, n * sizeof *v->own);
    return v->own != NULL;
}

/* Adds own values from a chunk of values. A damaged chunk gives no values; the launches and their other
 * values stay valid. */
static int add_series(struct occ_launch_scan *scan, struct occ_launch_chunk *c)
{
    const struct occ_columns *launches = &c->columns;
    struct occ_columns values;
    int rc = occ_columns_decode(scan->decoder, sqlite3_column_blob(scan->series, 0),
                                (size_t)sqlite3_column_bytes(scan->series, 0), OCC_VALUE_COLUMNS, &values);
    if (rc == OCC_E_NO_MEMORY)
        return SQLITE_NOMEM;
    if (rc == OCC_E_VERSION)
        return occ_vtab_fail(scan->vtab, SQLITE_CORRUPT, "launch: measured values are from a newer version");
    for (uint32_t i = 0; rc == 0 && i < values.n; i++)
        if (values.start_ns[i] >= launches->start_ns[0] &&
            values.start_ns[i] <= launches->start_ns[launches->n - 1])
            assign_value(c->values, launches, &values, i);
    return SQLITE_ROW;
}

static int load(struct occ_launch_scan *scan, struct occ_launch_chunk *c)
{
    int rc =
        occ_vtab_prepare(scan->vtab, &scan->series,
                         "SELECT data FROM \"%w\".stored_series_chunk WHERE kind = 'launch_value' AND "
                         "run_id = ?1 AND device_id = ?2 AND last_start_ns >= ?3 AND first_start_ns <= ?4");
    if (rc != SQLITE_OK)
        return rc;
    if (!make_room(c->values, c->rows))
        return SQLITE_NOMEM;
    (void)sqlite3_bind_int64(scan->series, 1, c->run);
    (void)sqlite3_bind_int64(scan->series, 2, c->device);
    (void)sqlite3_bind_int64(scan->series, 3, (sqlite3_int64)c->columns.start_ns[0]);
    (void)sqlite3_bind_int64(scan->series, 4, (sqlite3_int64)c->columns.start_ns[c->rows - 1]);
    do {
        rc = occ_vtab_step(scan->vtab, scan->series);
        if (rc == SQLITE_ROW)
            rc = add_series(scan, c);
    } while (rc == SQLITE_ROW);
    (void)sqlite3_reset(scan->series);
    c->values->loaded = rc == SQLITE_DONE;
    return c->values->loaded ? SQLITE_OK : rc;
}

/* ---- values of a configuration ---- */

static const char minute_sql[] =
    "SELECT coalesce((SELECT total_duration_ns FROM \"%w\".stored_minute AS t WHERE t.minute = m.minute AND "
    "t.run_id = m.run_id AND t.config_id = m.config_id), 0), overlapped"
#define SOURCE_NAME(name, text) ", " #name
    OCC_MEASURED_SOURCES(SOURCE_NAME)
#define SUM_NAMES(name) ", " #name "_sum, " #name "_ns"
#define ONE_NAME(name)  ", " #name
        OCC_MEASURED_VALUES(SUM_NAMES)
            OCC_MEASURED_EVIDENCE(ONE_NAME) " FROM \"%w\".stored_measured_minute AS m WHERE config_id = ?1 "
                                            "AND run_id = ?2 AND minute = ?3";

/* Reads the sums of a minute and returns the time of all its launches; 0: unknown. */
static double read_sums(sqlite3_stmt *stmt, struct occ_measured_sums *sums)
{
    int at = 0;
    double total_ns = sqlite3_column_double(stmt, at++);
    sums->overlapped = (uint64_t)sqlite3_column_int64(stmt, at++);
#define READ_SOURCE(name, text) sums->name = (uint64_t)sqlite3_column_int64(stmt, at++);
    OCC_MEASURED_SOURCES(READ_SOURCE)
    for (int k = 0; k < OCC_MEASURED_VALUE_COUNT; k++) {
        sums->sum[k] = sqlite3_column_double(stmt, at++);
        sums->ns[k] = sqlite3_column_double(stmt, at++);
    }
#define READ_ONE(name) sums->name = sqlite3_column_double(stmt, at++);
    OCC_MEASURED_EVIDENCE(READ_ONE)
    return total_ns;
}

/* The configuration's mean of that minute (measured.h) stands for a launch without a value of its own. If
 * every measured launch of the minute has its own value, this launch was not measured. */
static struct occ_launch_measured mean_of_config(const struct occ_measured_sums *sums, double total_ns)
{
    struct occ_measurement m;
    occ_measured_means(sums, total_ns, &m);
    if (sums->direct == occ_measured_launches(sums))
        return nothing;
    return (struct occ_launch_measured){m.achieved,
                                        m.achieved_error,
                                        m.elapsed,
                                        m.elapsed_error,
                                        m.measured_ratio,
                                        m.source == OCC_FROM_GROUPED    ? "group"
                                        : m.source == OCC_FROM_WITHHELD ? "withheld"
                                        : m.source == OCC_FROM_EXACT    ? "exact"
                                        : m.source == OCC_FROM_NCU      ? "ncu"
                                                                        : "regression"};
}

static int read_minute(struct occ_launch_scan *scan, int64_t run, uint32_t config, int64_t minute,
                       struct occ_launch_measured *ret)
{
    struct occ_measured_sums sums = {0};
    double total_ns = 0;
    int rc = occ_vtab_prepare(scan->vtab, &scan->minute, minute_sql);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_bind_int64(scan->minute, 1, config);
    (void)sqlite3_bind_int64(scan->minute, 2, run);
    (void)sqlite3_bind_int64(scan->minute, 3, minute);
    int step = occ_vtab_step(scan->vtab, scan->minute);
    if (step == SQLITE_ROW)
        total_ns = read_sums(scan->minute, &sums);
    (void)sqlite3_reset(scan->minute);
    *ret = mean_of_config(&sums, total_ns);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : step;
}

static int get_mean_of_minute(struct occ_launch_scan *scan, struct occ_launch_chunk *c, uint32_t row,
                              struct occ_launch_measured *ret)
{
    struct occ_launch_values *v = c->values;
    uint32_t config = (uint32_t)c->columns.config[row];
    int64_t minute = (int64_t)c->columns.start_ns[row] / MINUTE_NS;
    uint64_t key = (uint64_t)minute << 32 | config;
    uint32_t index = occ_map_get(&v->minute_index, key);
    if (index != OCC_MAP_NONE) {
        *ret = v->minutes[index];
        return SQLITE_OK;
    }
    int rc = read_minute(scan, c->run, config, minute, ret);
    if (rc != SQLITE_OK)
        return rc;
    if (v->n_minutes == MINUTES_KEPT) {
        v->n_minutes = 0;
        occ_map_clear(&v->minute_index);
    }
    if (!occ_grow((void **)&v->minutes, &v->minutes_allocated, v->n_minutes, MINUTES_KEPT,
                  sizeof *v->minutes) ||
        occ_map_put(&v->minute_index, key, v->n_minutes) == OCC_MAP_NONE)
        return SQLITE_NOMEM;
    v->minutes[v->n_minutes++] = *ret;
    return SQLITE_OK;
}

int occ_launch_values_get(struct occ_launch_scan *scan, struct occ_launch_chunk *c, uint32_t row,
                          struct occ_launch_measured *ret)
{
    *ret = nothing;
    if (!c->values)
        c->values = calloc(1, sizeof *c->values);
    if (!c->values)
        return SQLITE_NOMEM;
    int rc = c->values->loaded ? SQLITE_OK : load(scan, c);
    if (rc != SQLITE_OK)
        return rc;
    const struct own *own = &c->values->own[row];
    /* The minute's sums also show the source of own values: every launch that ncu measured has its own. */
    rc = get_mean_of_minute(scan, c, row, ret);
    bool by_ncu = ret->source && strcmp(ret->source, "ncu") == 0;
    if (rc == SQLITE_OK && by_ncu && !own->known)
        *ret = nothing;
    if (rc != SQLITE_OK || !own->known)
        return rc;
    *ret = (struct occ_launch_measured){occ_code_read(OCC_UNIT_value, own->code[OCC_VALUE_ACHIEVED]),
                                        occ_code_read(OCC_UNIT_error, own->code[OCC_VALUE_ACHIEVED_ERROR]),
                                        occ_code_read(OCC_UNIT_value, own->code[OCC_VALUE_ELAPSED]),
                                        occ_code_read(OCC_UNIT_error, own->code[OCC_VALUE_ELAPSED_ERROR]),
                                        1,
                                        by_ncu ? "ncu" : "direct"};
    return SQLITE_OK;
}
