/*
 * One minute of a history: its rows by run and launch configuration become rows by job and configuration, and
 * by run and GPU. A job's most wasteful configurations have their own rows; the others are added up by main
 * cause, so that sums stay exact. See outbox.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "occupancy/occupancy.h"
#include "outbox.h"
#include "store/codec/histogram.h"
#include "store/measured.h"
#include "support/array.h"

#define ROWS_MAX (1u << 22)

#define MEASURED_COUNT(name, text) ", e." #name
#define MEASURED_SUMS(name)        ", e." #name "_sum, e." #name "_ns"
#define NO_COUNT(name, text)       ", 0"
#define NO_SUMS(name)              ", 0, 0"
#define EVIDENCE(name)             ", e." #name
#define NO_EVIDENCE(name)          ", 0"
/* Followed by the configurations of removed runs, without launches. */
static const char read_minute[] =
    "SELECT m.run_id, m.config_id, m.launches, m.total_duration_ns, m.min_duration_ns, m.max_duration_ns, "
    "m.histogram" OCC_MEASURED_SOURCES(MEASURED_COUNT) ", e.overlapped" OCC_MEASURED_VALUES(MEASURED_SUMS)
        OCC_MEASURED_EVIDENCE(
            EVIDENCE) " FROM stored_minute m JOIN stored_run r ON r.run_id = m.run_id LEFT JOIN "
                      "stored_measured_minute e ON e.config_id = m.config_id AND e.minute = m.minute AND "
                      "e.run_id = m.run_id WHERE m.minute = ?1 AND r.source_hash IS NULL AND r.time_base IS "
                      "NOT 'unknown' UNION ALL SELECT " OCC_OUTBOX_RUN_OF(
                          "x") ", p.config_id, 0, 0, 0, "
                               "0, NULL" OCC_MEASURED_SOURCES(NO_COUNT) ", 0" OCC_MEASURED_VALUES(NO_SUMS)
                                   OCC_MEASURED_EVIDENCE(
                                       NO_EVIDENCE) " FROM stored_removed_minute p JOIN stored_removed_run x "
                                                    "USING(run_id) "
                                                    "WHERE p.minute = ?1 ORDER BY 1, 2";
enum { RUN, CONFIG, LAUNCHES, TOTAL, MIN, MAX, HISTOGRAM, MEASURED };

/* A row of the table minute; a row without launches replaces one sent before. */
struct merged {
    uint64_t group, config;
    uint32_t run; /* index of any run of the group */
    const char *user;
    int cause;
    int64_t last_run;
    uint32_t ranks;
    uint64_t launches, total_ns, min_ns, max_ns;
    struct occ_histogram histogram;
    struct occ_measured_sums measured;
    double waste, capacity;
    double expected_elapsed; /* 0 for the sum of other configurations */
    bool is_other;
};

/* A row of the table rank_minute. */
struct rank {
    uint32_t run, config; /* indices; only the configuration's GPU matters */
    uint64_t launches, busy_ns;
    double waste, capacity;
};

struct minute {
    struct occ_outbox *outbox;
    struct occ_batch *batch;
    int64_t number;
    struct occ_map index; /* hash of group and configuration -> row */
    struct merged *rows;
    struct rank *ranks;
    size_t n, allocated, n_ranks, allocated_ranks;
};

int occ_outbox_prepare_minutes(struct occ_outbox *r, struct occ_error *err)
{
    return sqlite3_prepare_v2(r->db, read_minute, -1, &r->read_minute, NULL) == SQLITE_OK
               ? 0
               : occ_outbox_fail(r, err);
}

static void free_minute(struct minute *m)
{
    for (size_t i = 0; i < m->n; i++)
        occ_histogram_free(&m->rows[i].histogram);
    free(m->rows);
    free(m->ranks);
    occ_map_free(&m->index);
}

/* ---- merging ---- */

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t column(sqlite3_stmt *stmt, int i)
{
    int64_t value = sqlite3_column_int64(stmt, i);
    return value > 0 ? (uint64_t)value : 0;
}

/* Unused share as in struct occ_top_row: measured for launches with a value, modelled for the others. */
static double unused_share(const struct occ_measured_sums *sums, const struct occ_outbox_config *config,
                           uint64_t total_ns)
{
    struct occ_measurement means;
    double share = occ_measured_own(sums, (double)total_ns, &means), elapsed = config->expected_elapsed;
    elapsed += share > 0 ? share * (means.elapsed - elapsed) : 0;
    return elapsed < 1 ? 1 - fmax(elapsed, 0) : 0;
}

static struct merged *row_of(struct minute *m, const struct occ_outbox_run *run, uint64_t group,
                             const char *user, const struct occ_outbox_config *config)
{
    const uint64_t key[] = {group, config->id};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    uint32_t at = occ_map_get(&m->index, hash);
    if (at != OCC_MAP_NONE)
        return &m->rows[at];
    if (!occ_grow((void **)&m->rows, &m->allocated, m->n, ROWS_MAX, sizeof *m->rows) ||
        occ_map_put(&m->index, hash, (uint32_t)m->n) == OCC_MAP_NONE)
        return NULL;
    m->rows[m->n] = (struct merged){.group = group,
                                    .config = config->id,
                                    .run = (uint32_t)(run - m->outbox->runs),
                                    .user = user,
                                    .cause = config->cause,
                                    .expected_elapsed = config->expected_elapsed,
                                    .last_run = -1,
                                    .min_ns = UINT64_MAX};
    return &m->rows[m->n++];
}

static struct rank *rank_of(struct minute *m, const struct occ_outbox_run *run,
                            const struct occ_outbox_config *config)
{
    uint32_t number = (uint32_t)(run - m->outbox->runs);
    for (size_t i = m->n_ranks; i > 0 && m->ranks[i - 1].run == number; i--)
        if (strcmp(m->outbox->configs[m->ranks[i - 1].config].gpu, config->gpu) == 0)
            return &m->ranks[i - 1];
    if (!occ_grow((void **)&m->ranks, &m->allocated_ranks, m->n_ranks, ROWS_MAX, sizeof *m->ranks))
        return NULL;
    m->ranks[m->n_ranks] = (struct rank){.run = number, .config = (uint32_t)(config - m->outbox->configs)};
    return &m->ranks[m->n_ranks++];
}

/* Adds rows without launches, which replace rows with earlier texts of the user. */
static bool add_earlier(struct minute *m, const struct occ_outbox_run *run,
                        const struct occ_outbox_config *config)
{
    for (size_t i = 0; i < OCC_USER_FORMS_MAX; i++)
        if (occ_outbox_is_earlier(m->outbox, run, i, m->number) &&
            !row_of(m, run, run->earlier_groups[i], run->users.earlier[i], config))
            return false;
    return true;
}

/* Adds the current row. false: no memory, or a damaged histogram. */
static bool add_row(struct minute *m, sqlite3_stmt *stmt, const struct occ_outbox_run *run,
                    const struct occ_outbox_config *config)
{
    bool added = add_earlier(m, run, config);
    struct merged *row = row_of(m, run, run->group, run->users.now, config);
    struct rank *rank = rank_of(m, run, config);
    if (!added || !row || !rank)
        return false;
    if (column(stmt, LAUNCHES) == 0)
        return true; /* configuration of a removed run */
    uint64_t launches = column(stmt, LAUNCHES), total = column(stmt, TOTAL), min = column(stmt, MIN),
             max = column(stmt, MAX);
    struct occ_measured_sums measured;
    occ_outbox_read_measured(stmt, MEASURED, &measured);
    double capacity = (double)total * 1e-9 * config->warps,
           waste = capacity * unused_share(&measured, config, total);
    if (row->launches == 0)
        row->run = rank->run; /* a removed run has no account */
    row->ranks += row->last_run != run->id;
    row->last_run = run->id;
    row->launches = add_saturated(row->launches, launches);
    row->total_ns = add_saturated(row->total_ns, total);
    row->min_ns = min < row->min_ns ? min : row->min_ns;
    row->max_ns = max > row->max_ns ? max : row->max_ns;
    occ_outbox_add_measured(&row->measured, &measured);
    row->waste += waste;
    row->capacity += capacity;
    rank->launches = add_saturated(rank->launches, launches);
    rank->busy_ns = add_saturated(rank->busy_ns, total);
    rank->waste += waste;
    rank->capacity += capacity;
    return occ_histogram_add_bytes(&row->histogram, sqlite3_column_blob(stmt, HISTOGRAM),
                                   (size_t)sqlite3_column_bytes(stmt, HISTOGRAM)) == 0;
}

static int read_rows(struct minute *m, struct occ_error *err)
{
    struct occ_outbox *r = m->outbox;
    sqlite3_stmt *stmt = r->read_minute;
    int rc = 0, code = SQLITE_DONE;
    (void)sqlite3_reset(stmt);
    (void)sqlite3_bind_int64(stmt, 1, m->number);
    while (rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        const struct occ_outbox_run *run = NULL;
        const struct occ_outbox_config *config = NULL;
        rc = occ_outbox_run(r, m->batch, sqlite3_column_int64(stmt, RUN), &run, err);
        if (rc == 0 && occ_outbox_is_erased(run, m->number))
            continue;
        if (rc == 0)
            rc = occ_outbox_config(r, m->batch, sqlite3_column_int64(stmt, CONFIG), &config, err);
        if (rc == 0 && !add_row(m, stmt, run, config))
            rc = occ_fail(err, OCC_E_CORRUPT, "%s: a minute cannot be added up",
                          sqlite3_db_filename(r->db, "main"));
    }
    if (rc == 0 && code != SQLITE_DONE)
        rc = occ_outbox_fail(r, err);
    (void)sqlite3_reset(stmt);
    return rc;
}

/* ---- writing ---- */

static void put_origin(const struct occ_batch *batch, struct occ_body *rows)
{
    occ_body_put_text(rows, batch->options.cluster, strlen(batch->options.cluster));
}

/* Writes bins and counts; the largest count is written as 0 if the launches give it, since it takes most of
 * the bytes. */
static void put_histogram(struct occ_body *rows, const struct occ_histogram *h, uint64_t launches)
{
    uint64_t bins[OCC_HISTOGRAM_BINS], counts[OCC_HISTOGRAM_BINS], sum = 0;
    size_t n = 0, largest = 0;
    for (uint16_t i = 0; i < h->count && n < OCC_HISTOGRAM_BINS; i++)
        if (h->bins[i] > 0) {
            bins[n] = (uint64_t)h->first + i;
            counts[n] = h->bins[i];
            largest = counts[n] > counts[largest] ? n : largest;
            sum = add_saturated(sum, counts[n++]);
        }
    if (n > 0 && sum == launches)
        counts[largest] = 0;
    occ_body_put_list(rows, bins, n);
    occ_body_put_list(rows, counts, n);
}

static void put_row(struct minute *m, const struct merged *row)
{
    const struct occ_outbox_run *run = &m->outbox->runs[row->run];
    struct occ_body *rows = &m->batch->rows[OCC_SHIP_MINUTE];
    const uint64_t key[] = {(uint64_t)m->outbox->identity, row->group, row->config};
    const struct occ_measured_row measured = {.sums = &row->measured,
                                              .key = XXH3_64bits(key, sizeof key),
                                              .total_ns = row->total_ns,
                                              .expected_elapsed = row->expected_elapsed};
    occ_body_put_u64(rows, (uint64_t)m->number * 60);
    put_origin(m->batch, rows);
    occ_body_put_text(rows, run->job, strlen(run->job));
    occ_body_put_text(rows, row->user, strlen(row->user));
    occ_body_put_text(rows, m->batch->options.node, strlen(m->batch->options.node));
    occ_body_put_u64(rows, (uint64_t)m->outbox->identity);
    occ_body_put_u64(rows, row->config);
    occ_body_put_u64(rows, row->ranks);
    occ_body_put_u64(rows, row->launches);
    occ_body_put_u64(rows, row->total_ns);
    occ_body_put_u64(rows, row->launches > 0 ? row->min_ns : 0);
    occ_body_put_u64(rows, row->max_ns);
    put_histogram(rows, &row->histogram, row->launches);
    occ_outbox_put_measured(rows, &measured, m->batch->options.kept);
    if (m->batch->options.has_evidence && row->is_other) /* no mean is reported for other configurations */
        occ_body_put_list(rows, NULL, 0);
    else if (m->batch->options.has_evidence)
        occ_outbox_put_evidence(rows, &measured, m->batch->options.kept);
    occ_body_put_float(rows, row->is_other ? row->waste : 0);
    occ_body_put_float(rows, row->is_other ? row->capacity : 0);
    occ_body_put_u64(rows, m->batch->options.version);
    occ_outbox_put_added(rows, run, m->batch->options.added.minute);
    occ_body_end_row(rows);
}

/* Writes a row that replaces a row sent before. */
static void put_empty_row(struct minute *m, const struct merged *row)
{
    put_row(m,
            &(struct merged){.group = row->group, .run = row->run, .user = row->user, .config = row->config});
}

/* true if rows of this minute may be in the warehouse. */
static bool may_be_sent(const struct minute *m)
{
    return m->number <= m->batch->options.newest_minute;
}

static void put_ranks(struct minute *m)
{
    struct occ_body *rows = &m->batch->rows[OCC_SHIP_RANK_MINUTE];
    for (size_t i = 0; i < m->n_ranks; i++) {
        const struct rank *rank = &m->ranks[i];
        if (rank->launches == 0 && !may_be_sent(m))
            continue;
        const struct occ_outbox_run *run = &m->outbox->runs[rank->run];
        const char *gpu = m->outbox->configs[rank->config].gpu;
        occ_body_put_u64(rows, (uint64_t)m->number * 60);
        put_origin(m->batch, rows);
        occ_body_put_text(rows, m->batch->options.node, strlen(m->batch->options.node));
        occ_body_put_u64(rows, (uint64_t)m->outbox->identity);
        occ_body_put_text(rows, run->uuid, strlen(run->uuid));
        occ_body_put_text(rows, gpu, strlen(gpu));
        occ_body_put_text(rows, run->users.now, strlen(run->users.now));
        occ_body_put_u64(rows, rank->launches);
        occ_body_put_u64(rows, rank->busy_ns);
        occ_body_put_float(rows, rank->waste);
        occ_body_put_float(rows, rank->capacity);
        occ_body_put_u64(rows, m->batch->options.version);
        occ_body_end_row(rows);
    }
}

/* ---- the rest of a job's configurations ---- */

static bool add_to_other(struct merged *other, const struct merged *row)
{
    other->ranks = row->ranks > other->ranks ? row->ranks : other->ranks;
    other->launches = add_saturated(other->launches, row->launches);
    other->total_ns = add_saturated(other->total_ns, row->total_ns);
    other->min_ns = row->min_ns < other->min_ns ? row->min_ns : other->min_ns;
    other->max_ns = row->max_ns > other->max_ns ? row->max_ns : other->max_ns;
    occ_outbox_add_measured(&other->measured, &row->measured);
    other->waste += row->waste;
    other->capacity += row->capacity;
    for (uint16_t i = 0; i < row->histogram.count; i++)
        if (row->histogram.bins[i] > 0 &&
            !occ_histogram_add(&other->histogram, occ_histogram_low((uint32_t)row->histogram.first + i),
                               row->histogram.bins[i]))
            return false;
    return true;
}

/* Adds up a job's other configurations by main cause. If this minute may have been sent, also replaces rows
 * of configurations that had their own row then. any: a row of the job and user. */
static bool put_folded(struct minute *m, const struct merged *rows, size_t n, const struct merged *any)
{
    struct merged others[OCC_CAUSE_COUNT + 1] = {0};
    bool sent_before = may_be_sent(m), added = true;
    for (int i = 0; i <= OCC_CAUSE_COUNT; i++)
        others[i] = (struct merged){
            .group = any->group, .run = any->run, .user = any->user, .min_ns = UINT64_MAX, .is_other = true};
    for (size_t i = 0; i < n && added; i++) {
        added = add_to_other(&others[rows[i].cause], &rows[i]);
        if (sent_before)
            put_empty_row(m, &rows[i]);
    }
    for (int i = 0; i <= OCC_CAUSE_COUNT; i++) {
        if (added && (sent_before || others[i].launches > 0)) {
            others[i].config = occ_batch_add_other(m->batch, i);
            put_row(m, &others[i]);
        }
        occ_histogram_free(&others[i].histogram);
    }
    return added;
}

/* Order: by group; then the most wasteful first, rows without launches last; then by id. */
static int compare(const void *a, const void *b)
{
    const struct merged *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if ((x->launches == 0) != (y->launches == 0))
        return x->launches == 0 ? 1 : -1;
    if (x->waste != y->waste)
        return x->waste > y->waste ? -1 : 1;
    return x->config < y->config ? -1 : x->config > y->config;
}

/* Writes the rows of a job; the first `live` have launches. */
static bool put_group(struct minute *m, const struct merged *rows, size_t n, size_t live)
{
    size_t max = m->batch->options.max_configs, own = live <= max ? live : max - (OCC_CAUSE_COUNT + 1);
    bool put = true;
    for (size_t i = 0; i < own; i++)
        put_row(m, &rows[i]);
    /* the job may have had too many configurations before runs were removed */
    if (own < live || (n > max && may_be_sent(m)))
        put = put_folded(m, rows + own, live - own, &rows[0]);
    for (size_t i = live; i < n && may_be_sent(m); i++)
        put_empty_row(m, &rows[i]);
    return put;
}

static bool put_groups(struct minute *m)
{
    bool put = true;
    if (m->n > 0)
        qsort(m->rows, m->n, sizeof *m->rows, compare);
    for (size_t i = 0, end = 0; i < m->n && put; i = end) {
        size_t live = 0;
        while (end < m->n && m->rows[end].group == m->rows[i].group)
            live += m->rows[end++].launches > 0;
        put = put_group(m, &m->rows[i], end - i, live);
    }
    return put;
}

int occ_outbox_add_minute(struct occ_outbox *r, struct occ_batch *batch, int64_t number,
                          struct occ_error *err)
{
    struct minute m = {.outbox = r, .batch = batch, .number = number};
    int rc = read_rows(&m, err);
    if (rc == 0 && !put_groups(&m))
        rc = occ_outbox_no_memory(err);
    if (rc == 0)
        put_ranks(&m);
    free_minute(&m);
    return rc;
}
