/* See busy.h. The launches of a GPU are merged by their starts over all histories. */
#include "busy.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/ask/tables.h"
#include "collect.h"
#include "store/store.h"
#include "support/array.h"

#define MINUTE_NS      INT64_C(60000000000)
#define CANDIDATES_MAX 4096

/* Runs of this node in the time from ?1 to ?2. */
#define ACTIVE                                                                                               \
    "FROM stored_run r WHERE r.source_hash IS NULL AND r.time_base IS NOT 'unknown' AND r.start_ns < ?2 "    \
    "AND coalesce(r.end_ns, ?2) > ?1"
/* Their GPUs, and whether all their launches of that time are known. */
static const char read_gpus[] =
    "WITH active AS (SELECT r.run_id, r.evicted_ns <= ?1 AND NOT EXISTS(SELECT 1 FROM stored_loss l WHERE "
    "l.run_id = r.run_id AND l.launches > 0) AND NOT EXISTS(SELECT 1 FROM stored_period p WHERE p.run_id = "
    "r.run_id AND p.level IN ('configs', 'nothing', 'unknown') AND p.from_ns < ?2 AND coalesce(p.until_ns, "
    "?2) > ?1) AS is_known " ACTIVE ") SELECT d.device_id, " OCC_SHIP_UUID(
        "d.uuid") ", d.name, min(a.is_known) FROM active a JOIN stored_run_config x USING(run_id) JOIN "
                  "stored_launch_config c USING(config_id) JOIN stored_device d USING(device_id) WHERE "
                  "d.uuid "
                  "IS NOT NULL GROUP BY d.device_id";
enum { DEVICE, GPU, MODEL, IS_KNOWN };

/* Chunks with launches of a GPU, ?3, in that time: how many launches, and where to begin. */
static const char read_chunks[] =
    "SELECT coalesce(sum(launches), 0), min(first_start_ns) FROM stored_chunk WHERE device_id = ?3 AND "
    "last_end_ns > ?1 AND first_start_ns < ?2";
/* ?1: the begin by read_chunks. The plus sign keeps SQLite from reading one run after the other. */
static const char read_launches[] =
    "SELECT start_ns, end_ns FROM launch WHERE device_id = ?3 AND start_ns >= ?1 AND start_ns < ?2 AND "
    "+run_id IN (SELECT r.run_id FROM stored_run r WHERE r.source_hash IS NULL AND r.time_base IS NOT "
    "'unknown') ORDER BY start_ns";

/* A GPU in a history. */
struct source {
    sqlite3 *db;
    int64_t device;
    size_t gpu;             /* index in the candidates */
    sqlite3_stmt *launches; /* NULL: not begun, or ended */
    int64_t start_ns, end_ns;
};

struct candidate {
    struct occ_busy_gpu gpu;
    size_t index; /* in the order in which the GPUs were found */
    bool is_known, is_placed;
};

struct busy {
    int64_t from_ns, until_ns;
    struct occ_store **stores;
    struct source *sources;
    struct candidate *candidates;
    size_t n_stores, n_sources, n_candidates, stores_allocated, sources_allocated, candidates_allocated;
};

/* ---- the GPUs of histories ---- */

static bool prepare(sqlite3 *db, const char *sql, int64_t from_ns, int64_t until_ns, int64_t device,
                    sqlite3_stmt **ret_stmt)
{
    if (sqlite3_prepare_v2(db, sql, -1, ret_stmt, NULL) != SQLITE_OK)
        return false;
    (void)sqlite3_bind_int64(*ret_stmt, 1, from_ns);
    (void)sqlite3_bind_int64(*ret_stmt, 2, until_ns);
    if (sqlite3_bind_parameter_count(*ret_stmt) > 2)
        (void)sqlite3_bind_int64(*ret_stmt, 3, device);
    return true;
}

static struct candidate *find_candidate(struct busy *b, const char *gpu)
{
    for (size_t i = 0; i < b->n_candidates; i++)
        if (strcmp(b->candidates[i].gpu.gpu, gpu) == 0)
            return &b->candidates[i];
    if (!occ_grow((void **)&b->candidates, &b->candidates_allocated, b->n_candidates, CANDIDATES_MAX,
                  sizeof *b->candidates))
        return NULL;
    struct candidate *candidate = &b->candidates[b->n_candidates];
    *candidate = (struct candidate){.index = b->n_candidates++, .is_known = true};
    (void)snprintf(candidate->gpu.gpu, sizeof candidate->gpu.gpu, "%s", gpu);
    return candidate;
}

static bool add_source(struct busy *b, sqlite3 *db, sqlite3_stmt *row)
{
    char gpu[OCC_SUMS_TEXT_BYTES];
    struct candidate *candidate = find_candidate(b, occ_collect_name(row, GPU, gpu));
    if (!candidate ||
        !occ_grow((void **)&b->sources, &b->sources_allocated, b->n_sources, SIZE_MAX, sizeof *b->sources))
        return false;
    (void)occ_collect_name(row, MODEL, candidate->gpu.model);
    candidate->is_known &= sqlite3_column_int(row, IS_KNOWN) != 0;
    b->sources[b->n_sources++] =
        (struct source){.db = db, .device = sqlite3_column_int64(row, DEVICE), .gpu = candidate->index};
    return true;
}

/* Adds the GPUs of an open history, which remains in one read transaction. */
static bool add_gpus(struct busy *b, sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    int code = SQLITE_ERROR;
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
        prepare(db, read_gpus, b->from_ns, b->until_ns, 0, &stmt))
        while ((code = sqlite3_step(stmt)) == SQLITE_ROW && add_source(b, db, stmt))
            ;
    (void)sqlite3_finalize(stmt);
    return code == SQLITE_DONE;
}

/* False: the history is unreadable. */
static bool add_history(struct busy *b, const char *path)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    size_t before = b->n_sources;
    bool is_kept = false;
    int rc = occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, &err);
    if (rc != 0)
        return rc == OCC_E_NOT_FOUND;
    bool done = add_gpus(b, occ_store_sqlite(store));
    if (done && b->n_sources > before)
        is_kept =
            occ_grow((void **)&b->stores, &b->stores_allocated, b->n_stores, SIZE_MAX, sizeof *b->stores);
    if (is_kept)
        b->stores[b->n_stores++] = store;
    else
        occ_store_close(store);
    return done && (is_kept || b->n_sources == before);
}

/* ---- the union of launches ---- */

/* Launches of a GPU since `from_ns`, about: whole chunks count. Negative: unreadable. */
static int64_t count_launches(const struct busy *b, size_t gpu, int64_t from_ns)
{
    int64_t launches = 0;
    for (size_t i = 0; i < b->n_sources && launches >= 0; i++) {
        const struct source *source = &b->sources[i];
        sqlite3_stmt *stmt = NULL;
        if (source->gpu != gpu)
            continue;
        bool read = prepare(source->db, read_chunks, from_ns, b->until_ns, source->device, &stmt) &&
                    sqlite3_step(stmt) == SQLITE_ROW;
        int64_t more = read ? sqlite3_column_int64(stmt, 0) : -1;
        launches = more < 0 || more > INT64_MAX - launches ? -1 : launches + more;
        (void)sqlite3_finalize(stmt);
    }
    return launches;
}

/* False: a failure. At the end of the launches source->launches becomes NULL. */
static bool next_launch(struct source *source)
{
    int code = sqlite3_step(source->launches);
    if (code == SQLITE_ROW) {
        source->start_ns = sqlite3_column_int64(source->launches, 0);
        source->end_ns = sqlite3_column_int64(source->launches, 1);
        return true;
    }
    (void)sqlite3_finalize(source->launches);
    source->launches = NULL;
    return code == SQLITE_DONE;
}

/* Begins the launches that end after `from_ns`; the first of them may be long before it. */
static bool begin_launches(const struct busy *b, struct source *source, int64_t from_ns)
{
    sqlite3_stmt *stmt = NULL;
    bool read = prepare(source->db, read_chunks, from_ns, b->until_ns, source->device, &stmt) &&
                sqlite3_step(stmt) == SQLITE_ROW;
    bool some = read && sqlite3_column_type(stmt, 1) == SQLITE_INTEGER;
    int64_t first_ns = some ? sqlite3_column_int64(stmt, 1) : 0;
    (void)sqlite3_finalize(stmt);
    if (!some)
        return read;
    return prepare(source->db, read_launches, first_ns, b->until_ns, source->device, &source->launches) &&
           next_launch(source);
}

static struct source *earliest(const struct busy *b, size_t gpu)
{
    struct source *first = NULL;
    for (size_t i = 0; i < b->n_sources; i++)
        if (b->sources[i].gpu == gpu && b->sources[i].launches &&
            (!first || b->sources[i].start_ns < first->start_ns))
            first = &b->sources[i];
    return first;
}

/* Busy time since `from_ns`; negative: unreadable. */
static int64_t sum_busy(const struct busy *b, size_t gpu, int64_t from_ns)
{
    int64_t busy_ns = 0, at_ns = from_ns;
    bool done = true;
    for (size_t i = 0; i < b->n_sources && done; i++)
        if (b->sources[i].gpu == gpu)
            done = begin_launches(b, &b->sources[i], from_ns);
    for (struct source *source; done && (source = earliest(b, gpu));) {
        int64_t end_ns = source->end_ns < b->until_ns ? source->end_ns : b->until_ns;
        at_ns = source->start_ns > at_ns ? source->start_ns : at_ns;
        if (end_ns > at_ns) {
            busy_ns += end_ns - at_ns;
            at_ns = end_ns;
        }
        done = next_launch(source);
    }
    return done ? busy_ns : -1;
}

/* False: the histories do not know. */
static bool measure(const struct busy *b, size_t gpu, struct occ_busy_gpu *ret_gpu)
{
    int64_t from_ns = b->from_ns, launches = 0;
    while ((launches = count_launches(b, gpu, from_ns)) > OCC_BUSY_LAUNCHES &&
           b->until_ns - from_ns > OCC_BUSY_LEAST_NS)
        from_ns = b->until_ns - (b->until_ns - from_ns + 1) / 2;
    if (launches < 0)
        return false;
    from_ns = b->until_ns - from_ns < OCC_BUSY_LEAST_NS ? b->until_ns - OCC_BUSY_LEAST_NS : from_ns;
    int64_t busy_ns = sum_busy(b, gpu, from_ns);
    ret_gpu->from_ns = from_ns;
    ret_gpu->ratio = (double)busy_ns / (double)(b->until_ns - from_ns);
    return busy_ns >= 0;
}

/* ---- the result ---- */

static int compare(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;
    return a->is_placed != b->is_placed ? b->is_placed - a->is_placed : strcmp(a->gpu.gpu, b->gpu.gpu);
}

/* GPUs with names in the sums first: forged histories have no part in the others' values. */
static void order(struct busy *b, struct occ_sums *sums)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(occ_sums_sqlite(sums), "SELECT 1 FROM gpu WHERE gpu = ?", -1, &stmt, NULL) ==
        SQLITE_OK)
        for (size_t i = 0; i < b->n_candidates; i++) {
            (void)sqlite3_bind_text(stmt, 1, b->candidates[i].gpu.gpu, -1, SQLITE_STATIC);
            b->candidates[i].is_placed = sqlite3_step(stmt) == SQLITE_ROW;
            (void)sqlite3_reset(stmt);
        }
    (void)sqlite3_finalize(stmt);
    if (b->n_candidates > 0)
        qsort(b->candidates, b->n_candidates, sizeof *b->candidates, compare);
}

static void close_all(struct busy *b)
{
    for (size_t i = 0; i < b->n_sources; i++)
        (void)sqlite3_finalize(b->sources[i].launches);
    for (size_t i = 0; i < b->n_stores; i++)
        occ_store_close(b->stores[i]);
    free(b->stores);
    free(b->sources);
    free(b->candidates);
}

void occ_busy_read(const struct occ_seen *seen, struct occ_sums *sums, int64_t until_ns,
                   struct occ_busy *ret_busy)
{
    struct busy b = {.until_ns = until_ns / MINUTE_NS * MINUTE_NS};
    bool done = !seen->is_hidden && b.until_ns >= MINUTE_NS;
    b.from_ns = b.until_ns - MINUTE_NS;
    ret_busy->n = 0;
    for (size_t i = 0; i < seen->n && done; i++)
        done = add_history(&b, seen->entries[i].path);
    if (done)
        order(&b, sums);
    for (size_t i = 0; i < b.n_candidates && done && i < OCC_SUMS_GPUS; i++) {
        struct candidate *candidate = &b.candidates[i];
        if (candidate->is_known && measure(&b, candidate->index, &candidate->gpu))
            ret_busy->gpus[ret_busy->n++] = candidate->gpu;
    }
    close_all(&b);
}
