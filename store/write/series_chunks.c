/* Chunks of measured values and of samples. A commit writes a chunk for each series with new rows. Once a
 * series has MERGE_AT chunks, or enough rows for a full chunk, they become one chunk. The rows to merge are
 * read from the file, so a crash loses nothing. One thread. */
#include <stdlib.h>

#include "store/internal.h"

#define MERGE_AT  16
#define FULL_ROWS (OCC_SERIES_MAX_ROWS / 2)

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

/* Encodes the first `n` rows of the scratch; the bytes belong to the encoder. */
static int encode(struct occ_store *s, enum occ_series_kind kind, uint32_t n, const uint8_t **ret_data,
                  size_t *ret_bytes)
{
    const struct occ_series_row *rows = s->series.scratch;
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
    return occ_columns_encode(s->work->encoder, kind == OCC_SERIES_VALUES ? values : samples, n, true,
                              ret_data, ret_bytes);
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

int occ_series_write_chunk(struct occ_store *s, const struct occ_series_key *key, uint32_t n,
                           struct occ_error *err)
{
    const struct occ_series_row *rows = s->series.scratch;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    if (encode(s, key->kind, n, &data, &bytes) != 0)
        return occ_no_memory(err);
    struct occ_binder b = bind_key(s, OCC_SQL_ADD_SERIES, key);
    occ_bind_int(&b, n >= FULL_ROWS);
    occ_bind_int(&b, n);
    occ_bind_int(&b, rows[0].start_ns);
    occ_bind_int(&b, rows[n - 1].start_ns);
    occ_bind_blob(&b, data, bytes);
    return occ_store_run(s, b.stmt, err);
}

/* ---- merging ---- */

struct merge {
    int64_t ids[MERGE_AT];    /* ids of chunks whose rows are in the scratch */
    uint32_t n_ids, n;        /* numbers of chunks and of rows */
    int64_t others[MERGE_AT]; /* chunks that are damaged or too large */
    uint32_t n_others;
};

static int load_chunk(struct occ_store *s, struct merge *m, enum occ_series_kind kind, sqlite3_stmt *stmt)
{
    struct occ_columns rows;
    int rc = occ_columns_decode(s->work->decoder, sqlite3_column_blob(stmt, 1),
                                (size_t)sqlite3_column_bytes(stmt, 1),
                                kind == OCC_SERIES_VALUES ? OCC_VALUE_COLUMNS : OCC_SAMPLE_COLUMNS, &rows);
    if (rc == OCC_E_NO_MEMORY)
        return rc;
    if (rc != 0 || rows.n > OCC_SERIES_MAX_ROWS - m->n) {
        m->others[m->n_others++] = sqlite3_column_int64(stmt, 0);
    } else {
        copy_rows(s->series.scratch + m->n, kind, &rows);
        m->n += rows.n;
        m->ids[m->n_ids++] = sqlite3_column_int64(stmt, 0);
    }
    return 0;
}

/* Merges the chunks that are not full. A chunk that is damaged, or too large beside the others, keeps its
 * data and is not merged again. */
static int merge(struct occ_store *s, const struct occ_series_key *key, struct occ_error *err)
{
    struct merge m = {0};
    struct occ_binder b = bind_key(s, OCC_SQL_OPEN_SERIES, key);
    int rc = 0;
    occ_bind_int(&b, MERGE_AT);
    while (occ_store_next(s, b.stmt, &rc, err))
        if (load_chunk(s, &m, key->kind, b.stmt) != 0)
            rc = occ_no_memory(err);
    for (uint32_t i = 0; i < m.n_others && rc == 0; i++)
        rc = occ_store_execute(s, OCC_SQL_END_SERIES_MERGES, OCC_INTS(m.others[i]), err);
    if (rc != 0 || m.n == 0)
        return rc;
    qsort(s->series.scratch, m.n, sizeof *s->series.scratch, compare_rows);
    rc = occ_series_write_chunk(s, key, m.n, err);
    for (uint32_t i = 0; i < m.n_ids && rc == 0; i++)
        rc = occ_store_execute(s, OCC_SQL_DROP_SERIES, OCC_INTS(m.ids[i]), err);
    return rc;
}

int occ_series_merge(struct occ_store *s, const struct occ_series_key *key, struct occ_error *err)
{
    int64_t due = 0;
    struct occ_binder b = bind_key(s, OCC_SQL_SERIES_MERGE_IS_DUE, key);
    occ_bind_int(&b, MERGE_AT);
    occ_bind_int(&b, FULL_ROWS);
    int rc = occ_store_number(s, b.stmt, &due, err);
    return rc == 0 && due ? merge(s, key, err) : rc;
}
