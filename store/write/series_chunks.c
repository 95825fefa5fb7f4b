/*
 * Chunks of measured values and of samples. A commit writes a level-0 chunk for each series that got rows,
 * and as soon as MERGE_AT chunks of a level are together they become one of the next, until it is full: a row
 * is rewritten a few times, and a query finds few chunks. What is to be merged is read from the file, so a
 * crash loses nothing. One thread.
 */
#include <stdlib.h>
#include <string.h>

#include "series.h"

#define MERGE_AT     16
#define MERGE_LEVELS 9 /* more merges never happen: by then a chunk is full */
#define FULL_ROWS    (OCC_SERIES_MAX_ROWS / 2)

static int compare_rows(const void *a, const void *b)
{
    const struct occ_series_row *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static struct occ_binder bind_key(struct occ_store *s, enum occ_sql which, const struct occ_series_key *key)
{
    struct occ_binder b = occ_store_statement(s, which);
    occ_bind_text(&b, key->kind == OCC_SERIES_VALUES ? "launch_value" : "device_sample");
    occ_bind_known(&b, key->run);
    occ_bind_int(&b, key->device);
    return b;
}

/* The first `n` rows of the scratch as bytes, which belong to the encoder. */
static int encode(struct occ_series *q, enum occ_series_kind kind, uint32_t n, const uint8_t **ret_data,
                  size_t *ret_bytes)
{
    const struct occ_series_row *rows = q->scratch;
    const struct occ_column_source values[OCC_COLUMN_none] = {
        [OCC_COLUMN_config] = OCC_COLUMN_FROM(rows, config),
        [OCC_COLUMN_start_ns] = OCC_COLUMN_FROM(rows, start_ns),
        [OCC_COLUMN_correlation] = OCC_COLUMN_FROM(rows, correlation),
        [OCC_COLUMN_achieved] = OCC_COLUMN_FROM(rows, code[OCC_VALUE_ACHIEVED]),
        [OCC_COLUMN_achieved_error] = OCC_COLUMN_FROM(rows, code[OCC_VALUE_ACHIEVED_ERROR]),
        [OCC_COLUMN_elapsed] = OCC_COLUMN_FROM(rows, code[OCC_VALUE_ELAPSED]),
        [OCC_COLUMN_elapsed_error] = OCC_COLUMN_FROM(rows, code[OCC_VALUE_ELAPSED_ERROR]),
    };
    struct occ_column_source samples[OCC_COLUMN_none] = {
        [OCC_COLUMN_duration_ns] = OCC_COLUMN_FROM(rows, duration_ns),
        [OCC_COLUMN_start_ns] = OCC_COLUMN_FROM(rows, start_ns),
    };
    for (unsigned i = 0; i < OCC_SAMPLE_NUMBER_COUNT; i++)
        samples[OCC_COLUMN_number0 + i] = (struct occ_column_source)OCC_COLUMN_FROM(rows, code[i]);
    return occ_columns_encode(q->encoder, kind == OCC_SERIES_VALUES ? values : samples, n, true, ret_data,
                              ret_bytes);
}

static void copy_rows(struct occ_series_row *rows, enum occ_series_kind kind, const struct occ_columns *c)
{
    const uint64_t *const *codes =
        &c->column[kind == OCC_SERIES_VALUES ? OCC_COLUMN_achieved : OCC_COLUMN_number0];
    for (uint32_t i = 0; i < c->n; i++) {
        rows[i] = (struct occ_series_row){.start_ns = (int64_t)c->start_ns[i]};
        if (kind == OCC_SERIES_SAMPLES) {
            rows[i].duration_ns = c->duration_ns[i];
        } else {
            rows[i].correlation = (uint32_t)c->correlation[i];
            rows[i].config = (uint32_t)c->config[i];
        }
        for (unsigned k = 0; k < OCC_SAMPLE_NUMBER_COUNT && codes[k]; k++)
            rows[i].code[k] = (uint16_t)codes[k][i];
    }
}

int occ_series_add_chunk(struct occ_store *s, const struct occ_series_key *key, int level, uint32_t n,
                         struct occ_error *err)
{
    struct occ_series *q = s->series;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    if (encode(q, key->kind, n, &data, &bytes) != 0)
        return occ_store_no_memory(err);
    struct occ_binder b = bind_key(s, OCC_SQL_ADD_SERIES, key);
    if (n >= FULL_ROWS || level == MERGE_LEVELS)
        b.at++; /* NULL: full */
    else
        occ_bind_int(&b, level);
    occ_bind_int(&b, n);
    occ_bind_int(&b, q->scratch[0].start_ns);
    occ_bind_int(&b, q->scratch[n - 1].start_ns);
    occ_bind_blob(&b, data, bytes);
    return occ_store_run(s, b.stmt, err);
}

/* ---- merging ---- */

struct merge {
    int64_t ids[MERGE_AT]; /* of chunks whose rows are in the scratch */
    uint32_t n_ids, n;     /* chunks, rows */
    int64_t damaged[MERGE_AT];
    uint32_t n_damaged;
    bool full; /* the next chunk did not fit */
};

static int add_chunk(struct merge *m, struct occ_series *q, enum occ_series_kind kind, sqlite3_stmt *stmt)
{
    struct occ_columns rows;
    int rc =
        occ_columns_decode(q->decoder, sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1),
                           kind == OCC_SERIES_VALUES ? OCC_VALUE_COLUMNS : OCC_SAMPLE_COLUMNS, &rows);
    if (rc == OCC_E_NO_MEMORY)
        return rc;
    if (rc != 0 || rows.n > OCC_SERIES_MAX_ROWS) { /* or not ours */
        m->damaged[m->n_damaged++] = sqlite3_column_int64(stmt, 0);
    } else if (rows.n > OCC_SERIES_MAX_ROWS - m->n) {
        m->full = true;
    } else {
        copy_rows(q->scratch + m->n, kind, &rows);
        m->n += rows.n;
        m->ids[m->n_ids++] = sqlite3_column_int64(stmt, 0);
    }
    return 0;
}

/* Unpacks the oldest chunks of a level, as many as make one chunk. */
static int collect(struct occ_store *s, const struct occ_series_key *key, int level, struct merge *m,
                   struct occ_error *err)
{
    struct occ_binder b = bind_key(s, OCC_SQL_SERIES_OF_LEVEL, key);
    int rc = 0;
    occ_bind_int(&b, level);
    occ_bind_int(&b, MERGE_AT);
    while (occ_store_next(s, b.stmt, &rc, err))
        if (!m->full && add_chunk(m, s->series, key->kind, b.stmt) != 0)
            rc = occ_store_no_memory(err);
    return rc;
}

/* Damaged chunks stay as they are, as if they were full. */
static int merge_level(struct occ_store *s, const struct occ_series_key *key, int level,
                       struct occ_error *err)
{
    struct merge m = {0};
    int rc = collect(s, key, level, &m, err);
    for (uint32_t i = 0; i < m.n_damaged && rc == 0; i++)
        rc = occ_store_execute(s, OCC_SQL_END_SERIES_MERGES, OCC_INTS(m.damaged[i]), err);
    if (rc != 0 || m.n_ids == 0)
        return rc;
    if (m.n_ids == 1) /* the next one is too large: one that we did not write */
        return occ_store_execute(s, OCC_SQL_END_SERIES_MERGES, OCC_INTS(m.ids[0]), err);
    qsort(s->series->scratch, m.n, sizeof *s->series->scratch, compare_rows);
    rc = occ_series_add_chunk(s, key, level + 1, m.n, err);
    for (uint32_t i = 0; i < m.n_ids && rc == 0; i++)
        rc = occ_store_execute(s, OCC_SQL_DROP_SERIES, OCC_INTS(m.ids[i]), err);
    return rc;
}

static int count_level(struct occ_store *s, const struct occ_series_key *key, int level, int64_t *ret_n,
                       struct occ_error *err)
{
    struct occ_binder b = bind_key(s, OCC_SQL_COUNT_SERIES, key);
    occ_bind_int(&b, level);
    return occ_store_number(s, b.stmt, ret_n, err);
}

int occ_series_merge(struct occ_store *s, const struct occ_series_key *key, struct occ_error *err)
{
    int rc = 0;
    for (int level = 0; level < MERGE_LEVELS && rc == 0; level++) {
        int64_t n = 0;
        rc = count_level(s, key, level, &n, err);
        while (rc == 0 && n >= MERGE_AT) {
            rc = merge_level(s, key, level, err);
            if (rc == 0)
                rc = count_level(s, key, level, &n, err);
        }
    }
    return rc;
}
