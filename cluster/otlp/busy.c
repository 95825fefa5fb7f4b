/* See busy.h. The launches of a GPU are read from the packed chunks of all histories, then sorted. */
#include "busy.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cluster/ask/tables.h"
#include "collect.h"
#include "store/chunks.h"
#include "store/store.h"
#include "support/array.h"
#include "support/clock.h"

#define MINUTE_NS      INT64_C(60000000000)
#define CANDIDATES_MAX 4096
#define LAUNCHES_MAX   (size_t)4000000 /* 64 MB: of a second of one GPU */

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

/* A GPU in a history. */
struct source {
    sqlite3 *db;
    int64_t device;
    size_t gpu; /* index in the candidates */
};

struct launch {
    int64_t start_ns, end_ns;
};

struct candidate {
    struct occ_busy_gpu gpu;
    size_t index; /* number of the GPU, in the order in which GPUs were found */
    bool is_known, is_placed;
};

struct busy {
    int64_t from_ns, until_ns;
    struct occ_store **stores;
    struct source *sources;
    struct candidate *candidates;
    size_t n_stores, n_sources, n_candidates, stores_allocated, sources_allocated, candidates_allocated;
    /* the GPU that is being measured: */
    struct occ_columns_decoder *decoder;
    struct launch *launches;
    size_t n_launches, launches_allocated;
    int64_t window_ns; /* the launches end in this time before until_ns */
};

/* ---- the GPUs of histories ---- */

static bool prepare(sqlite3 *db, int64_t from_ns, int64_t until_ns, sqlite3_stmt **ret_stmt)
{
    if (sqlite3_prepare_v2(db, read_gpus, -1, ret_stmt, NULL) != SQLITE_OK)
        return false;
    (void)sqlite3_bind_int64(*ret_stmt, 1, from_ns);
    (void)sqlite3_bind_int64(*ret_stmt, 2, until_ns);
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

/* Begins a read transaction, which stays open, and adds the history's GPUs. */
static bool add_gpus(struct busy *b, sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    int code = SQLITE_ERROR;
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
        prepare(db, b->from_ns, b->until_ns, &stmt))
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

/* Halves the window until it has few enough launches. */
static void shorten(struct busy *b)
{
    while (b->n_launches > OCC_BUSY_LAUNCHES && b->window_ns > OCC_BUSY_LEAST_NS) {
        size_t kept = 0;
        b->window_ns = b->window_ns / 2 > OCC_BUSY_LEAST_NS ? b->window_ns / 2 : OCC_BUSY_LEAST_NS;
        for (size_t i = 0; i < b->n_launches; i++)
            if (b->launches[i].end_ns > b->until_ns - b->window_ns)
                b->launches[kept++] = b->launches[i];
        b->n_launches = kept;
    }
}

/* Adds the launches of a chunk. False: too many launches. */
static bool add_chunk(void *context, const struct occ_columns *c)
{
    struct busy *b = context;
    if (!occ_grow((void **)&b->launches, &b->launches_allocated, b->n_launches + c->n, LAUNCHES_MAX,
                  sizeof *b->launches))
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t start_ns = (int64_t)c->start_ns[i], end_ns = (int64_t)(c->start_ns[i] + c->duration_ns[i]);
        if (start_ns < b->until_ns && end_ns > b->until_ns - b->window_ns)
            b->launches[b->n_launches++] = (struct launch){start_ns, end_ns};
    }
    shorten(b);
    return true;
}

/* False: the history is damaged, or too many launches. */
static bool add_launches(struct busy *b, const struct source *source)
{
    const struct occ_chunks_question question = {.kind = OCC_CHUNKS_OF_DEVICE,
                                                 .id = source->device,
                                                 .from_ns = b->from_ns,
                                                 .until_ns = b->until_ns,
                                                 .columns =
                                                     OCC_COLUMN_BIT(start_ns) | OCC_COLUMN_BIT(duration_ns)};
    return occ_chunks_visit(source->db, b->decoder, &question, add_chunk, b, NULL) == 0;
}

static int compare_starts(const void *a_, const void *b_)
{
    const struct launch *a = a_, *b = b_;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int64_t sum_busy(const struct busy *b)
{
    int64_t busy_ns = 0, at_ns = b->until_ns - b->window_ns;
    for (size_t i = 0; i < b->n_launches; i++) {
        const struct launch *l = &b->launches[i];
        int64_t end_ns = l->end_ns < b->until_ns ? l->end_ns : b->until_ns;
        at_ns = l->start_ns > at_ns ? l->start_ns : at_ns;
        busy_ns += end_ns > at_ns ? end_ns - at_ns : 0;
        at_ns = end_ns > at_ns ? end_ns : at_ns;
    }
    return busy_ns;
}

/* False: the histories do not know. */
static bool measure(struct busy *b, size_t gpu, struct occ_busy_gpu *ret_gpu)
{
    bool done = true;
    b->n_launches = 0;
    b->window_ns = b->until_ns - b->from_ns;
    for (size_t i = 0; i < b->n_sources && done; i++)
        if (b->sources[i].gpu == gpu)
            done = add_launches(b, &b->sources[i]);
    if (!done)
        return false;
    if (b->n_launches > 0)
        qsort(b->launches, b->n_launches, sizeof *b->launches, compare_starts);
    ret_gpu->from_ns = b->until_ns - b->window_ns;
    ret_gpu->ratio = (double)sum_busy(b) / (double)b->window_ns;
    return true;
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
    for (size_t i = 0; i < b->n_stores; i++)
        occ_store_close(b->stores[i]);
    occ_columns_decoder_free(b->decoder);
    free(b->launches);
    free(b->stores);
    free(b->sources);
    free(b->candidates);
}

/* False: the history is unreadable. */
static bool look_at(struct busy *b, struct occ_seen *seen, size_t index, struct occ_map *idle)
{
    enum { BUSY, IDLE };
    const char *path = seen->entries[index].path;
    struct occ_seen_history now;
    uint32_t *mark = occ_map_find(idle, XXH3_64bits(path, strlen(path)));
    size_t before = b->n_sources;
    bool is_unchanged = occ_seen_look(seen, index, occ_now_ns(), &now) == OCC_SEEN_SENT;
    if (is_unchanged && mark && *mark == IDLE)
        return true;
    bool done = add_history(b, path);
    uint32_t state = done && is_unchanged && b->n_sources == before ? IDLE : BUSY;
    if (mark)
        *mark = state;
    else if (state == IDLE)
        (void)occ_map_put(idle, XXH3_64bits(path, strlen(path)), IDLE);
    return done;
}

void occ_busy_read(struct occ_seen *seen, struct occ_sums *sums, int64_t until_ns, struct occ_map *idle,
                   struct occ_busy *ret_busy)
{
    struct busy b = {.until_ns = until_ns / MINUTE_NS * MINUTE_NS, .decoder = occ_columns_decoder_new()};
    bool done = b.decoder && !seen->is_hidden && b.until_ns >= MINUTE_NS;
    b.from_ns = b.until_ns - MINUTE_NS;
    ret_busy->n = 0;
    for (size_t i = 0; i < seen->n && done; i++)
        done = look_at(&b, seen, i, idle);
    if (done)
        order(&b, sums);
    for (size_t i = 0; i < b.n_candidates && done && i < OCC_SUMS_GPUS; i++) {
        struct candidate *candidate = &b.candidates[i];
        if (candidate->is_known && measure(&b, candidate->index, &candidate->gpu))
            ret_busy->gpus[ret_busy->n++] = candidate->gpu;
    }
    close_all(&b);
}
