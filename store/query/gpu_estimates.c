/* Estimates of the use of GPUs; see store/gaps.h. Reads chunks instead of the table of launches, which is ten
 * times slower. One thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/gaps.h"
#include "support/array.h"
#include "unrecorded.h"

struct launch {
    int64_t start_ns, end_ns;
    uint32_t config;
    bool in_graph;
};

struct query {
    struct occ_store *store;
    struct occ_error *err;
    struct occ_resolved_filter filter;
    struct occ_map without; /* configurations of the kernels that others_busy_ns excludes */
    struct occ_gpu_estimates list;
    struct occ_map has_chunks;      /* runs */
    struct occ_stored_part *chunks; /* ordered by run, device, start */
    size_t n_chunks, allocated_chunks;
    uint64_t launches, largest; /* launches in all chunks, and in the largest chunk */
    struct occ_span *times;     /* first start and last end of each estimate */
    size_t allocated_times;
    struct launch *rows; /* launches to sweep */
    size_t n_rows, allocated_rows;
};

/* ---- what there is ---- */

static const struct occ_filtered_run *find_run(const struct query *q, int64_t id)
{
    uint32_t at = occ_map_get(&q->filter.run_index, (uint64_t)id);
    return at == OCC_MAP_NONE ? NULL : &q->filter.runs[at];
}

/* Adds an estimate for a run on a GPU. False: no memory. */
static bool add_estimate(struct query *q, int64_t run, int64_t device, struct occ_span time)
{
    struct occ_gpu_estimates *list = &q->list;
    if (!occ_grow((void **)&list->list, &list->allocated, list->n, UINT32_MAX, sizeof *list->list) ||
        !occ_grow((void **)&q->times, &q->allocated_times, list->n, UINT32_MAX, sizeof *q->times) ||
        occ_map_put(&q->has_chunks, (uint64_t)run, 0) == OCC_MAP_NONE)
        return false;
    q->times[list->n] = time;
    list->list[list->n++] = (struct occ_gpu_estimate){.run = run, .device = device};
    return true;
}

/* Adds a chunk, which follows the run's other chunks of that device. False: no memory. */
static bool add_chunk(struct query *q, const struct occ_filtered_run *run, sqlite3_stmt *stmt)
{
    int64_t device = sqlite3_column_int64(stmt, 2);
    struct occ_span time = {sqlite3_column_int64(stmt, 4), sqlite3_column_int64(stmt, 5)}, since = time;
    uint64_t launches = (uint64_t)occ_column_clamped(stmt, 3, 0, OCC_COLUMNS_MAX_ROWS);
    const struct occ_gpu_estimate *last = q->list.n ? &q->list.list[q->list.n - 1] : NULL;
    bool is_new = !last || last->run != run->id || last->device != device;
    if (is_new && run->evicted_ns > run->first_ns && run->first_ns < time.low)
        since.low = run->first_ns;
    if ((is_new && !add_estimate(q, run->id, device, since)) ||
        !occ_grow((void **)&q->chunks, &q->allocated_chunks, q->n_chunks, UINT32_MAX, sizeof *q->chunks))
        return false;
    size_t at = q->list.n - 1;
    q->times[at].high = time.high > q->times[at].high ? time.high : q->times[at].high;
    q->list.list[at].launches += launches;
    q->chunks[q->n_chunks++] =
        (struct occ_stored_part){sqlite3_column_int64(stmt, 0), at, launches, time, false};
    q->launches += launches;
    q->largest = launches > q->largest ? launches : q->largest;
    return true;
}

/* Returns the statement for the filter's chunks. The chunks of one run are found by index, so that the time
 * for a run does not grow with the number of other runs. */
static sqlite3_stmt *chunks_statement(const struct query *q)
{
    const struct occ_span time = q->filter.time;
    return q->filter.n_runs == 1
               ? occ_store_query(q->store, OCC_SQL_CHUNKS_OF_RUN,
                                 OCC_INTS(time.low, time.high, q->filter.runs[0].id))
               : occ_store_query(q->store, OCC_SQL_CHUNKS_OF_FILTER, OCC_INTS(time.low, time.high));
}

static int list_chunks(struct query *q)
{
    sqlite3_stmt *stmt = chunks_statement(q);
    int rc = 0;
    while (occ_store_next(q->store, stmt, &rc, q->err)) {
        const struct occ_filtered_run *run = find_run(q, sqlite3_column_int64(stmt, 1));
        if (run && !add_chunk(q, run, stmt))
            rc = occ_no_memory(q->err);
    }
    return rc;
}

/* Lists the GPUs of a run without chunks: all its launches are evicted. */
static int list_evicted(struct query *q, const struct occ_filtered_run *run)
{
    sqlite3_stmt *stmt = occ_store_query(q->store, OCC_SQL_DEVICES_OF_RUN, OCC_INTS(run->id));
    int rc = 0;
    while (occ_store_next(q->store, stmt, &rc, q->err))
        if (!add_estimate(q, run->id, sqlite3_column_int64(stmt, 0),
                          (struct occ_span){run->first_ns, run->last_ns}))
            rc = occ_no_memory(q->err);
    return rc;
}

static int list_all(struct query *q)
{
    int rc = list_chunks(q);
    for (size_t i = 0; i < q->filter.n_runs && rc == 0; i++)
        if (q->filter.runs[i].last_ns >= q->filter.time.low &&
            occ_map_get(&q->has_chunks, (uint64_t)q->filter.runs[i].id) == OCC_MAP_NONE)
            rc = list_evicted(q, &q->filter.runs[i]);
    return rc;
}

static int exclude(struct query *q, const struct occ_map *kernels)
{
    int rc = 0;
    for (uint32_t i = 0; i < kernels->capacity && rc == 0; i++) {
        if (kernels->values[i] == OCC_MAP_NONE)
            continue;
        sqlite3_stmt *stmt =
            occ_store_query(q->store, OCC_SQL_CONFIGS_OF_KERNEL, OCC_INTS((int64_t)kernels->keys[i]));
        while (occ_store_next(q->store, stmt, &rc, q->err))
            if (occ_map_put(&q->without, (uint64_t)sqlite3_column_int64(stmt, 0), 0) == OCC_MAP_NONE)
                rc = occ_no_memory(q->err);
    }
    return rc;
}

/* ---- launches ---- */

/* Cuts a launch to the time. False: it lies outside. A launch without a duration lies at its start. */
static bool cut(const struct query *q, struct occ_gpu_estimate *estimate, struct launch *l)
{
    const struct occ_span time = q->filter.time;
    bool starts = l->start_ns >= time.low;
    if (l->start_ns >= time.high || (!starts && (estimate->is_replay || l->end_ns <= time.low)))
        return false;
    estimate->read += starts;
    if (estimate->is_replay)
        return true;
    int64_t end_ns = l->end_ns < time.high ? l->end_ns : time.high;
    if (starts) {
        estimate->leaving_ns = occ_add_saturated(estimate->leaving_ns, (uint64_t)(l->end_ns - end_ns));
    } else {
        estimate->entering_ns = occ_add_saturated(estimate->entering_ns, (uint64_t)(end_ns - time.low));
        if (occ_map_get(&q->without, l->config) == OCC_MAP_NONE)
            estimate->others_entering_ns =
                occ_add_saturated(estimate->others_entering_ns, (uint64_t)(end_ns - time.low));
        l->start_ns = time.low;
    }
    l->end_ns = end_ns;
    return true;
}

/* Adds the chunk's launches in the filter's time. A damaged chunk has none. */
static int add_rows(struct query *q, struct occ_gpu_estimate *estimate, const void *data, size_t bytes)
{
    struct occ_columns c;
    int rc = occ_columns_decode(q->store->work->decoder, data, bytes,
                                OCC_COLUMN_BIT(config) | OCC_COLUMN_BIT(duration_ns) |
                                    OCC_COLUMN_BIT(start_ns) | OCC_COLUMN_BIT(graph_node),
                                &c);
    if (rc != 0)
        return rc == OCC_E_NO_MEMORY ? occ_no_memory(q->err) : 0;
    if (!occ_grow((void **)&q->rows, &q->allocated_rows, q->n_rows + c.n, SIZE_MAX / sizeof *q->rows,
                  sizeof *q->rows))
        return occ_no_memory(q->err);
    for (uint32_t i = 0; i < c.n; i++) {
        int64_t start_ns = (int64_t)c.start_ns[i];
        q->rows[q->n_rows] = (struct launch){start_ns, start_ns + (int64_t)c.duration_ns[i],
                                             (uint32_t)c.config[i], c.graph_node[i] != 0};
        q->n_rows += cut(q, estimate, &q->rows[q->n_rows]);
    }
    return 0;
}

static int read_chunk(struct query *q, const struct occ_stored_part *chunk)
{
    sqlite3_stmt *stmt = occ_store_query(q->store, OCC_SQL_CHUNK_DATA, OCC_INTS(chunk->id));
    int rc = 0;
    while (occ_store_next(q->store, stmt, &rc, q->err))
        rc = add_rows(q, &q->list.list[chunk->estimate], sqlite3_column_blob(stmt, 0),
                      (size_t)sqlite3_column_bytes(stmt, 0));
    return rc;
}

static int compare_starts(const void *left, const void *right)
{
    const struct launch *a = left, *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void sort_rows(struct query *q)
{
    bool is_sorted = true;
    for (size_t i = 1; i < q->n_rows && is_sorted; i++)
        is_sorted = q->rows[i - 1].start_ns <= q->rows[i].start_ns;
    if (!is_sorted) /* chunks overlap: late launches */
        qsort(q->rows, q->n_rows, sizeof *q->rows, compare_starts);
}

/* Adds the part of a launch after the last end to a union of times. */
static void unite(const struct launch *l, int64_t *last_end_ns, uint64_t *union_ns)
{
    if (l->end_ns <= *last_end_ns)
        return;
    *union_ns += (uint64_t)(l->end_ns - (*last_end_ns > l->start_ns ? *last_end_ns : l->start_ns));
    *last_end_ns = l->end_ns;
}

/* Launches that were read: their first start and last end, and the nanoseconds of the gaps in holes, between
 * them and at the edges of the question's time. */
struct swept {
    struct occ_span time;
    uint64_t unrecorded_ns, edges_ns;
};

/* Returns the nanoseconds between a launch and an end of the question's time, if they are not recorded. */
static uint64_t edge_ns(struct occ_holes *holes, int64_t low, int64_t high)
{
    holes->at = 0;
    return low < high && occ_holes_hide_gap(holes, low, high) ? (uint64_t)high - (uint64_t)low : 0;
}

/* Adds the rows, which follow each other in `time`, to the estimate and drops them. */
static struct swept sweep(struct query *q, struct occ_span time, struct occ_holes *holes,
                          struct occ_gpu_estimate *estimate)
{
    struct swept swept = {{0, 0}, 0, 0};
    sort_rows(q);
    int64_t end_ns = q->n_rows ? q->rows[0].start_ns : time.low, others_end_ns = end_ns;
    swept.time.low = end_ns;
    holes->at = 0;
    for (size_t i = 0; i < q->n_rows; i++) {
        const struct launch *l = &q->rows[i];
        uint64_t gap_ns = l->start_ns > end_ns ? (uint64_t)(l->start_ns - end_ns) : 0;
        if (gap_ns > 0 && occ_holes_hide_gap(holes, end_ns, l->start_ns))
            swept.unrecorded_ns += gap_ns;
        else if (occ_gap_is_launch(gap_ns, l->in_graph))
            estimate->launch_ns += gap_ns;
        estimate->duration_ns = occ_add_saturated(estimate->duration_ns, (uint64_t)(l->end_ns - l->start_ns));
        unite(l, &end_ns, &estimate->busy_ns);
        if (occ_map_get(&q->without, l->config) == OCC_MAP_NONE)
            unite(l, &others_end_ns, &estimate->others_busy_ns);
    }
    swept.time.high = end_ns;
    swept.edges_ns = edge_ns(holes, time.low, swept.time.low) + edge_ns(holes, end_ns, time.high);
    q->n_rows = 0;
    return swept;
}

/* ---- an estimate ---- */

/* The chunks of an estimate: [low, high). */
struct chunks {
    size_t low, high;
};

static void set_recorded(struct query *q, size_t at, uint64_t unrecorded_ns)
{
    struct occ_span time = occ_span_common(q->times[at], q->filter.time);
    uint64_t span_ns = time.high > time.low ? (uint64_t)(time.high - time.low) : 0;
    q->list.list[at].first_ns = time.low;
    q->list.list[at].last_ns = time.high;
    q->list.list[at].unrecorded_ns = unrecorded_ns < span_ns ? unrecorded_ns : span_ns;
    q->list.list[at].recorded_ns = span_ns - q->list.list[at].unrecorded_ns;
}

/* Returns the part of the estimate's time without stored launches: before its first chunk, or all of it. */
static struct occ_span evicted_time(const struct query *q, size_t at, struct chunks chunks)
{
    struct occ_span time = occ_span_common(q->times[at], q->filter.time);
    if (chunks.low < chunks.high && q->chunks[chunks.low].time.low < time.high)
        time.high = q->chunks[chunks.low].time.low;
    return time;
}

static int read_all(struct query *q, size_t at, struct chunks chunks, struct occ_holes *holes)
{
    struct occ_span time = occ_span_common(q->times[at], q->filter.time);
    struct occ_span evicted = evicted_time(q, at, chunks);
    int rc = 0;
    for (size_t i = chunks.low; i < chunks.high && rc == 0; i++)
        rc = read_chunk(q, &q->chunks[i]);
    if (rc == 0) {
        time.low = evicted.high > time.low ? evicted.high : time.low;
        struct swept swept = sweep(q, time, holes, &q->list.list[at]);
        set_recorded(q, at, swept.unrecorded_ns + swept.edges_ns + occ_unrecorded_evicted(holes, evicted));
    }
    return rc;
}

/* True for chunks that contain one of `picks` launches at equal distances from each other. The first is at an
 * uneven part of the distance, so that picks do not fall on the ends of equally long runs. `before`: launches
 * in the chunks before. */
static bool is_picked(const struct query *q, uint64_t picks, uint64_t before, uint64_t launches)
{
    double distance = (double)q->launches / (double)picks, offset = 0.618 * distance;
    return (uint64_t)(((double)before + offset) / distance) <
           (uint64_t)(((double)(before + launches) + offset) / distance);
}

/* True if launches of the chunk may run across the start or the end of the filter's time. */
static bool is_cut(const struct query *q, const struct occ_stored_part *chunk)
{
    const struct occ_span time = q->filter.time;
    return (chunk->time.low < time.low && chunk->time.high > time.low) ||
           (chunk->time.low < time.high && chunk->time.high > time.high);
}

/* Reads a sample of the chunks (is_picked()), and the chunks at the ends of the filter's time, whose cut
 * launches are counted exactly; sweeps each chunk alone. Unrecorded time between chunks is known
 * from their times; in chunks that were not read it follows from the number of launches. *before: launches in
 * the chunks before. */
static int read_some(struct query *q, size_t at, struct chunks chunks, struct occ_holes *holes,
                     uint64_t *before)
{
    struct occ_gpu_estimate *estimate = &q->list.list[at];
    uint64_t picks = q->largest < OCC_GPU_ESTIMATE_LAUNCHES ? OCC_GPU_ESTIMATE_LAUNCHES / q->largest : 1;
    double recorded_ns = 0;
    uint64_t unrecorded_ns = 0;
    int rc = 0;
    for (size_t i = chunks.low; i < chunks.high && rc == 0; i++) {
        struct occ_stored_part *chunk = &q->chunks[i];
        chunk->is_read = is_picked(q, picks, *before, chunk->launches) || is_cut(q, chunk);
        *before += chunk->launches;
        if (!chunk->is_read)
            continue;
        rc = read_chunk(q, chunk);
        struct swept swept = sweep(q, occ_span_common(chunk->time, q->filter.time), holes, estimate);
        recorded_ns += (double)swept.time.high - (double)swept.time.low - (double)swept.unrecorded_ns;
        unrecorded_ns += swept.unrecorded_ns + swept.edges_ns;
    }
    double per_launch_ns = estimate->read ? recorded_ns / (double)estimate->read : (double)NAN;
    const struct occ_stored_parts parts = {&q->chunks[chunks.low], chunks.high - chunks.low, q->filter.time,
                                           per_launch_ns};
    set_recorded(q, at,
                 unrecorded_ns + occ_unrecorded_evicted(holes, evicted_time(q, at, chunks)) +
                     occ_unrecorded_beside(&parts, holes));
    return rc;
}

static int set_uuid(struct query *q, struct occ_gpu_estimate *estimate)
{
    sqlite3_stmt *stmt = occ_store_query(q->store, OCC_SQL_DEVICE_UUID, OCC_INTS(estimate->device));
    int rc = 0;
    while (occ_store_next(q->store, stmt, &rc, q->err)) {
        const void *uuid = sqlite3_column_blob(stmt, 0);
        estimate->has_uuid = uuid && sqlite3_column_bytes(stmt, 0) == sizeof estimate->uuid;
        if (estimate->has_uuid)
            memcpy(estimate->uuid, uuid, sizeof estimate->uuid);
    }
    return rc;
}

static int set_run(struct query *q, struct occ_gpu_estimate *estimate)
{
    sqlite3_stmt *stmt = occ_store_query(q->store, OCC_SQL_SOURCE_OF_RUN, OCC_INTS(estimate->run));
    int rc = 0;
    while (occ_store_next(q->store, stmt, &rc, q->err)) {
        estimate->is_replay = sqlite3_column_int(stmt, 0) != 0;
        estimate->lost = (uint64_t)occ_column_clamped(stmt, 1, 0, INT64_MAX);
        estimate->of_launches = (uint64_t)occ_column_clamped(stmt, 2, 0, INT64_MAX);
    }
    return rc == 0 ? set_uuid(q, estimate) : rc;
}

static int make_estimates(struct query *q)
{
    struct chunks chunks = {0, 0};
    uint64_t before = 0;
    int rc = 0;
    for (size_t at = 0; at < q->list.n && rc == 0; at++) {
        struct occ_holes holes = {0};
        chunks.low = chunks.high;
        while (chunks.high < q->n_chunks && q->chunks[chunks.high].estimate == at)
            chunks.high++;
        rc = set_run(q, &q->list.list[at]);
        if (rc == 0)
            rc = occ_holes_read(q->store, q->list.list[at].run, &holes, q->err);
        if (rc == 0)
            rc = q->launches <= OCC_GPU_ESTIMATE_LAUNCHES ? read_all(q, at, chunks, &holes)
                                                          : read_some(q, at, chunks, &holes, &before);
        occ_holes_free(&holes);
    }
    return rc;
}

int occ_store_gpu_estimates(struct occ_store *s, const struct occ_filter *filter,
                            const struct occ_map *others_than, struct occ_gpu_estimates *ret_estimates,
                            struct occ_error *err)
{
    struct query q = {.store = s, .err = err};
    struct occ_filter runs = *filter;
    /* A run whose last launch starts before the time may have launches in it; 1 excludes unknown times. */
    runs.since_ns = filter->since_ns > 0 ? 1 : filter->since_ns;
    int rc = occ_store_execute(s, OCC_SQL_BEGIN, NULL, 0, err);
    if (rc != 0)
        return rc;
    rc = occ_filter_resolve(s, &runs, OCC_TOP_BY_KERNEL, &q.filter, err);
    q.filter.time.low = filter->since_ns > 0 ? filter->since_ns : 0;
    if (rc == 0)
        rc = others_than ? exclude(&q, others_than) : 0;
    if (rc == 0)
        rc = list_all(&q);
    if (rc == 0)
        rc = make_estimates(&q);
    occ_store_rollback(s);
    occ_resolved_filter_free(&q.filter);
    occ_map_free(&q.has_chunks);
    occ_map_free(&q.without);
    free(q.chunks);
    free(q.times);
    free(q.rows);
    *ret_estimates = q.list;
    if (rc != 0)
        occ_gpu_estimates_free(ret_estimates);
    return rc;
}

void occ_gpu_estimates_free(struct occ_gpu_estimates *estimates)
{
    free(estimates->list);
    *estimates = (struct occ_gpu_estimates){0};
}
