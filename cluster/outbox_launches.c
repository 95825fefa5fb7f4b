/*
 * Raw launches of the jobs in ship.raw_jobs, one run's minute at a time. Launches sent again have the same
 * keys, even if the history has evicted some of them since. See outbox.h.
 */
#include <string.h>
#include <xxhash.h>

#include "outbox.h"

#define MINUTE_NS INT64_C(60000000000)

static const char read_launches[] =
    "SELECT config_id, start_ns, duration_ns, stream_id, correlation_id, coalesce(graph_node_id, 0) FROM "
    "launch "
    "WHERE run_id = ?1 AND start_ns >= ?2 AND start_ns < ?3 ORDER BY start_ns LIMIT ?4";
enum { CONFIG, START, DURATION, STREAM, CORRELATION, GRAPH_NODE, COLUMNS };

int occ_outbox_prepare_launches(struct occ_outbox *r, struct occ_error *err)
{
    return sqlite3_prepare_v2(r->db, read_launches, -1, &r->read_launches, NULL) == SQLITE_OK
               ? 0
               : occ_outbox_fail(r, err);
}

static bool is_chosen(const struct occ_raw_options *raw, int64_t minute, const char *job)
{
    static const char slurm[] = "slurm:";
    size_t prefix = strncmp(job, slurm, strlen(slurm)) == 0 ? strlen(slurm) : 0, n = 0;
    if (minute * 60 >= raw->until_s)
        return false;
    for (const char *at = raw->jobs; *at; at += n) {
        at += strspn(at, OCC_RAW_SEPARATORS);
        n = strcspn(at, OCC_RAW_SEPARATORS);
        if (n > 0 && ((n == strlen(job) && memcmp(at, job, n) == 0) ||
                      (n == strlen(job + prefix) && memcmp(at, job + prefix, n) == 0)))
            return true;
    }
    return false;
}

/* Launches with the same start; usually only one. */
struct together {
    int64_t start_ns;
    uint64_t first;        /* hash of the first launch's columns */
    struct occ_map copies; /* if there are several: hash -> number of launches with it */
};

/* Returns the number of earlier launches with the same values in all columns; OCC_MAP_NONE: no memory. */
static uint32_t count_copies(struct together *t, const uint64_t columns[COLUMNS])
{
    uint64_t hash = XXH3_64bits(columns, COLUMNS * sizeof *columns);
    if ((int64_t)columns[START] != t->start_ns) {
        if (t->copies.used > 0)
            occ_map_free(&t->copies);
        t->start_ns = (int64_t)columns[START];
        t->first = hash;
        return 0;
    }
    if (t->copies.used == 0 && occ_map_put(&t->copies, t->first, 1) == OCC_MAP_NONE)
        return OCC_MAP_NONE;
    uint32_t *n = occ_map_find(&t->copies, hash);
    if (n)
        return (*n)++;
    return occ_map_put(&t->copies, hash, 1) == OCC_MAP_NONE ? OCC_MAP_NONE : 0;
}

/* Writes the columns common to all rows of a run's minute, from the second one on. */
static void put_origin(const struct occ_outbox *r, const struct occ_batch *batch,
                       const struct occ_outbox_run *run, struct occ_body *origin)
{
    const char *const texts[] = {"", batch->options.cluster, run->job, run->users.now, batch->options.node};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        occ_body_put_text(origin, texts[i], strlen(texts[i]));
    occ_body_put_u64(origin, (uint64_t)r->identity);
    occ_body_put_text(origin, run->uuid, strlen(run->uuid));
    occ_body_put_raw(origin, "\t", 1);
}

/* Adds the current row. */
static int add_row(struct occ_outbox *r, struct occ_batch *batch, const struct occ_outbox_run *run,
                   const struct occ_body *origin, struct together *t, struct occ_error *err)
{
    struct occ_body *rows = &batch->rows[OCC_SHIP_LAUNCH];
    const struct occ_outbox_config *config = NULL;
    uint64_t columns[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        columns[i] = (uint64_t)sqlite3_column_int64(r->read_launches, i);
    uint32_t copy = count_copies(t, columns);
    int rc = copy == OCC_MAP_NONE ? occ_outbox_no_memory(err)
                                  : occ_outbox_config(r, batch, (int64_t)columns[CONFIG], &config, err);
    if (rc != 0)
        return rc;
    occ_body_put_u64(rows, columns[START] / MINUTE_NS * 60);
    occ_body_put_raw(rows, origin->data, origin->n);
    occ_body_put_raw(rows, config->gpu, strlen(config->gpu));
    occ_body_put_u64(rows, config->id);
    for (int i = START; i < COLUMNS; i++)
        occ_body_put_u64(rows, columns[i]);
    occ_body_put_u64(rows, copy);
    occ_body_put_u64(rows, batch->options.version);
    occ_outbox_put_added(rows, run, batch->options.added.launch);
    occ_body_end_row(rows);
    return 0;
}

static int add_rows(struct occ_outbox *r, struct occ_batch *batch, const struct occ_outbox_run *run,
                    uint64_t *ret_n, struct occ_error *err)
{
    struct together together = {.start_ns = INT64_MIN};
    struct occ_body origin = {0};
    int rc = 0, code = SQLITE_DONE;
    put_origin(r, batch, run, &origin);
    for (*ret_n = 0; rc == 0 && (code = sqlite3_step(r->read_launches)) == SQLITE_ROW; ++*ret_n)
        rc = add_row(r, batch, run, &origin, &together, err);
    if (rc == 0 && (code == SQLITE_NOMEM || origin.failed))
        rc = occ_outbox_no_memory(err);
    /* a damaged chunk is treated as evicted: the other launches are sent */
    (void)sqlite3_reset(r->read_launches);
    occ_map_free(&together.copies);
    occ_body_free(&origin);
    return rc;
}

int occ_outbox_add_launches(struct occ_outbox *r, struct occ_batch *batch, int64_t minute, int64_t id,
                            struct occ_error *err)
{
    const int64_t values[] = {id, minute * MINUTE_NS, (minute + 1) * MINUTE_NS,
                              (int64_t)batch->options.raw.max_launches};
    const struct occ_outbox_run *run = NULL;
    int64_t launches = 0;
    uint64_t sent = 0;
    int rc = occ_outbox_run(r, batch, id, &run, err);
    for (size_t i = 0; rc == 0 && i < OCC_USER_FORMS_MAX; i++)
        if (occ_outbox_is_earlier(r, run, i, minute))
            return 0; /* they are there with the earlier user, who is a part of their keys */
    if (rc != 0 || occ_outbox_is_erased(run, minute) || !is_chosen(&batch->options.raw, minute, run->job))
        return rc;
    for (int i = 0; i < 4; i++)
        (void)sqlite3_bind_int64(r->read_launches, i + 1, values[i]);
    rc = add_rows(r, batch, run, &sent, err);
    if (rc == 0)
        rc = occ_outbox_number(
            r, "SELECT coalesce(sum(launches), 0) FROM stored_minute WHERE minute = ? AND run_id = ?",
            (const int64_t[]){minute, id}, 2, &launches, err);
    batch->unsent_launches += launches > (int64_t)sent ? (uint64_t)launches - sent : 0;
    return rc;
}
