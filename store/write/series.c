/*
 * Series on their way into the history: values of single launches, samples of devices. They wait here, a commit makes a
 * level-0 chunk of each lane (kind, run, device) that got some, and as soon as MERGE_AT chunks of a level are
 * together they become one of the next, until it is full: a value is rewritten a few times, and a question finds few
 * chunks. The file alone says what is to be merged, so nothing has to be remembered over a crash.
 *
 * Seconds of devices are added up anew from the chunks whenever samples of them came, so that they are right however
 * the samples came. One thread.
 */
#include <stdlib.h>
#include <string.h>

#include "store/codec/codes.h"
#include "store/internal.h"

#define PENDING_MOST     (1u << 18) /* of each kind: 15 MB */
#define UNEXPLAINED_MOST 4096u
#define MERGE_AT         16
#define MERGE_LEVELS     9                   /* more merges never happen: by then a chunk is full */
#define MAX_ROWS         (UINT32_C(1) << 16) /* of a chunk */
#define FULL_ROWS        (MAX_ROWS / 2)
#define WINDOW           64 /* seconds that are added up at a time */

enum series_kind { SERIES_VALUES, SERIES_SAMPLES };

/* A launch's measured values, or a sample of a device. */
struct row {
    int64_t start_ns;
    union {
        uint64_t duration_ns; /* of a sample */
        struct {
            uint32_t correlation, config; /* of a launch */
        };
    };
    uint16_t code[OCC_SAMPLE_NUMBER_COUNT]; /* OCC_VALUE_... of a launch, OCC_SAMPLE_... of a sample */
};

struct pending {
    int64_t run, device; /* run 0: samples */
    struct row row;
};

struct queue {
    struct pending *rows;
    uint32_t n, allocated;
};

struct unexplained {
    int64_t device, second;
    double ratio;
};

struct occ_series {
    struct queue values, samples;
    struct unexplained *unexplained;
    uint32_t n_unexplained;
    struct occ_columns_encoder *encoder;
    struct occ_columns_decoder *decoder;
    struct row *scratch; /* MAX_ROWS */
};

struct lane {
    enum series_kind kind;
    int64_t run, device;
};

/* ---- what waits ---- */

void occ_series_free(struct occ_store *s)
{
    struct occ_series *q = s->series;
    if (!q)
        return;
    free(q->values.rows);
    free(q->samples.rows);
    free(q->unexplained);
    free(q->scratch);
    occ_columns_encoder_free(q->encoder);
    occ_columns_decoder_free(q->decoder);
    free(q);
    s->series = NULL;
}

static int open_series(struct occ_store *s, struct occ_error *err)
{
    if (s->options.mode != OCC_STORE_WRITE)
        return occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
    if (s->series)
        return 0;
    s->series = calloc(1, sizeof *s->series);
    if (!s->series)
        return occ_store_no_memory(err);
    s->series->encoder = occ_columns_encoder_new();
    s->series->decoder = occ_columns_decoder_new();
    s->series->scratch = malloc(MAX_ROWS * sizeof *s->series->scratch);
    s->series->unexplained = malloc(UNEXPLAINED_MOST * sizeof *s->series->unexplained);
    if (s->series->encoder && s->series->decoder && s->series->scratch && s->series->unexplained)
        return 0;
    occ_series_free(s);
    return occ_store_no_memory(err);
}

static int reserve(struct occ_store *s, struct queue *q, size_t n, struct occ_error *err)
{
    if (n > PENDING_MOST - q->n)
        return occ_fail(err, OCC_E_FULL, "%s: too many counter values wait for a commit", s->path);
    uint32_t more = q->allocated ? q->allocated : 1024;
    while (more < q->n + n)
        more *= 2;
    if (more == q->allocated)
        return 0;
    struct pending *rows = realloc(q->rows, more * sizeof *rows);
    if (!rows)
        return occ_store_no_memory(err);
    q->rows = rows;
    q->allocated = more;
    return 0;
}

int occ_store_add_launch_values(struct occ_store *s, int64_t run, int64_t device,
                                const struct occ_launch_value *values, size_t n, struct occ_error *err)
{
    int rc = open_series(s, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (values[i].start_ns <= 0)
            rc = occ_fail(err, OCC_E_INVALID, "a value is of a launch with an impossible start");
    if (rc == 0)
        rc = reserve(s, &s->series->values, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        s->series->values.rows[s->series->values.n++] = (struct pending){
            .run = run,
            .device = device,
            .row = {.start_ns = values[i].start_ns,
                    .correlation = values[i].correlation,
                    .config = values[i].config,
                    .code = {[OCC_VALUE_ACHIEVED] = occ_code(OCC_UNIT_value, values[i].achieved),
                             [OCC_VALUE_ACHIEVED_ERROR] = occ_code(OCC_UNIT_error, values[i].achieved_error),
                             [OCC_VALUE_ELAPSED] = occ_code(OCC_UNIT_value, values[i].elapsed),
                             [OCC_VALUE_ELAPSED_ERROR] = occ_code(OCC_UNIT_error, values[i].elapsed_error)}}};
    return rc;
}

int occ_store_add_samples(struct occ_store *s, int64_t device, const struct occ_device_sample *samples,
                          size_t n, struct occ_error *err)
{
    int rc = open_series(s, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (samples[i].start_ns <= 0 || samples[i].end_ns < samples[i].start_ns)
            rc = occ_fail(err, OCC_E_INVALID, "a sample has impossible times");
    if (rc == 0)
        rc = reserve(s, &s->series->samples, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        s->series->samples.rows[s->series->samples.n++] =
            (struct pending){.device = device,
                             .row = {.start_ns = samples[i].start_ns,
                                     .duration_ns = (uint64_t)(samples[i].end_ns - samples[i].start_ns),
                                     .code = {
#define X(name, unit) [OCC_SAMPLE_##name] = occ_code(OCC_UNIT_##unit, samples[i].name),
                                         OCC_SAMPLE_NUMBERS(X)
#undef X
                                     }}};
    return rc;
}

int occ_store_add_unexplained(struct occ_store *s, int64_t device, int64_t second, double ratio,
                              struct occ_error *err)
{
    int rc = open_series(s, err);
    if (rc == 0 && s->series->n_unexplained == UNEXPLAINED_MOST)
        rc = occ_fail(err, OCC_E_FULL, "%s: too many counter values wait for a commit", s->path);
    if (rc == 0)
        s->series->unexplained[s->series->n_unexplained++] =
            (struct unexplained){.device = device, .second = second, .ratio = ratio};
    return rc;
}

bool occ_series_waits(const struct occ_store *s)
{
    return s->series && s->series->values.n + s->series->samples.n + s->series->n_unexplained > 0;
}

void occ_series_written(struct occ_store *s)
{
    if (s->series)
        s->series->values.n = s->series->samples.n = s->series->n_unexplained = 0;
}

/* ---- chunks ---- */

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int compare_pending(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return compare_rows(&x->row, &y->row);
}

static int bind_lane(struct occ_store *s, enum occ_sql which, const struct lane *lane, struct occ_binder *b,
                     struct occ_error *err)
{
    int rc = occ_store_statement(s, which, &b->stmt, err);
    if (rc != 0)
        return rc;
    occ_bind_text(b, lane->kind == SERIES_VALUES ? "launch_value" : "device_sample");
    occ_bind_known(b, lane->run);
    occ_bind_int(b, lane->device);
    return 0;
}

/* The first `n` rows of the scratch as bytes, which belong to the encoder. */
static int encode(struct occ_series *q, enum series_kind kind, uint32_t n, const uint8_t **ret_data,
                  size_t *ret_bytes)
{
    const struct row *rows = q->scratch;
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
    return occ_columns_encode(q->encoder, kind == SERIES_VALUES ? values : samples, n, true, ret_data,
                              ret_bytes);
}

static void copy_rows(struct row *rows, enum series_kind kind, const struct occ_columns *c)
{
    const uint64_t *const *codes =
        &c->column[kind == SERIES_VALUES ? OCC_COLUMN_achieved : OCC_COLUMN_number0];
    for (uint32_t i = 0; i < c->n; i++) {
        rows[i] = (struct row){.start_ns = (int64_t)c->start_ns[i]};
        if (kind == SERIES_SAMPLES) {
            rows[i].duration_ns = c->duration_ns[i];
        } else {
            rows[i].correlation = (uint32_t)c->correlation[i];
            rows[i].config = (uint32_t)c->config[i];
        }
        for (unsigned k = 0; k < OCC_SAMPLE_NUMBER_COUNT && codes[k]; k++)
            rows[i].code[k] = (uint16_t)codes[k][i];
    }
}

/* The first `n` rows of the scratch, sorted, as a chunk. */
static int add_chunk(struct occ_store *s, const struct lane *lane, int level, uint32_t n,
                     struct occ_error *err)
{
    struct occ_series *q = s->series;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct occ_binder b = {0};
    if (encode(q, lane->kind, n, &data, &bytes) != 0)
        return occ_store_no_memory(err);
    int rc = bind_lane(s, OCC_SQL_ADD_SERIES, lane, &b, err);
    if (rc != 0)
        return rc;
    if (n >= FULL_ROWS || level == MERGE_LEVELS)
        b.at++; /* NULL: full */
    else
        occ_bind_int(&b, level);
    occ_bind_int(&b, n);
    occ_bind_int(&b, q->scratch[0].start_ns);
    occ_bind_int(&b, q->scratch[n - 1].start_ns);
    occ_bind_blob(&b, data, bytes);
    return occ_store_run(s, b.stmt, err, "cannot add counter values");
}

static int run_on(struct occ_store *s, enum occ_sql which, int64_t id, struct occ_error *err)
{
    struct occ_binder b = {0};
    int rc = occ_store_statement(s, which, &b.stmt, err);
    if (rc != 0)
        return rc;
    occ_bind_int(&b, id);
    return occ_store_run(s, b.stmt, err, "cannot merge counter values");
}

/* ---- merging ---- */

struct merge {
    int64_t ids[MERGE_AT]; /* of chunks whose rows are in the scratch */
    uint32_t n_ids, n;     /* chunks, rows */
    int64_t damaged[MERGE_AT];
    uint32_t n_damaged;
};

/* Unpacks the oldest chunks of a level, as many as make one chunk. */
static int collect(struct occ_store *s, const struct lane *lane, int level, struct merge *m,
                   struct occ_error *err)
{
    struct occ_series *q = s->series;
    struct occ_binder b = {0};
    int step = SQLITE_DONE, rc = bind_lane(s, OCC_SQL_SERIES_OF_LEVEL, lane, &b, err);
    if (rc != 0)
        return rc;
    occ_bind_int(&b, level);
    occ_bind_int(&b, MERGE_AT);
    for (bool fits = true; fits && (step = sqlite3_step(b.stmt)) == SQLITE_ROW;) {
        struct occ_columns rows;
        rc = occ_columns_decode(q->decoder, sqlite3_column_blob(b.stmt, 1),
                                (size_t)sqlite3_column_bytes(b.stmt, 1),
                                lane->kind == SERIES_VALUES ? OCC_VALUE_COLUMNS : OCC_SAMPLE_COLUMNS, &rows);
        if (rc == OCC_E_NO_MEMORY)
            break;
        if (rc == 0 && rows.n > MAX_ROWS) /* not ours */
            rc = OCC_E_CORRUPT;
        fits = rc != 0 || rows.n <= MAX_ROWS - m->n;
        if (rc != 0) {
            m->damaged[m->n_damaged++] = sqlite3_column_int64(b.stmt, 0);
        } else if (fits) {
            copy_rows(q->scratch + m->n, lane->kind, &rows);
            m->n += rows.n;
            m->ids[m->n_ids++] = sqlite3_column_int64(b.stmt, 0);
        }
        rc = 0;
    }
    if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read counter values");
    (void)sqlite3_reset(b.stmt);
    return rc == OCC_E_NO_MEMORY ? occ_store_no_memory(err) : rc;
}

/* Damaged chunks are left to themselves, as if they were full. */
static int merge_level(struct occ_store *s, const struct lane *lane, int level, struct occ_error *err)
{
    struct merge m = {0};
    int rc = collect(s, lane, level, &m, err);
    for (uint32_t i = 0; i < m.n_damaged && rc == 0; i++)
        rc = run_on(s, OCC_SQL_END_SERIES_MERGES, m.damaged[i], err);
    if (rc != 0 || m.n_ids == 0)
        return rc;
    if (m.n_ids == 1) /* too large for company: a damaged one in between, or a file that we did not write */
        return run_on(s, OCC_SQL_END_SERIES_MERGES, m.ids[0], err);
    qsort(s->series->scratch, m.n, sizeof *s->series->scratch, compare_rows);
    rc = add_chunk(s, lane, level + 1, m.n, err);
    for (uint32_t i = 0; i < m.n_ids && rc == 0; i++)
        rc = run_on(s, OCC_SQL_DROP_SERIES, m.ids[i], err);
    return rc;
}

static int count_level(struct occ_store *s, const struct lane *lane, int level, int64_t *ret_n,
                       struct occ_error *err)
{
    struct occ_binder b = {0};
    int rc = bind_lane(s, OCC_SQL_COUNT_SERIES, lane, &b, err);
    if (rc != 0)
        return rc;
    occ_bind_int(&b, level);
    int step = sqlite3_step(b.stmt);
    *ret_n = step == SQLITE_ROW ? sqlite3_column_int64(b.stmt, 0) : 0;
    if (step != SQLITE_ROW)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read counter values");
    (void)sqlite3_reset(b.stmt);
    return rc;
}

static int merge_lane(struct occ_store *s, const struct lane *lane, struct occ_error *err)
{
    int rc = 0;
    for (int level = 0; level < MERGE_LEVELS && rc == 0; level++) {
        int64_t n = 0;
        rc = count_level(s, lane, level, &n, err);
        while (rc == 0 && n >= MERGE_AT) {
            rc = merge_level(s, lane, level, err);
            if (rc == 0)
                rc = count_level(s, lane, level, &n, err);
        }
    }
    return rc;
}

/* ---- seconds ---- */

struct number_sums {
    double sum, ns, least, most; /* in codes */
};

struct second_sums {
    uint64_t samples, covered_ns;
    struct number_sums number[OCC_SAMPLE_NUMBER_COUNT];
};

static void add_sample(struct second_sums *sums, const struct occ_columns *rows, uint32_t row)
{
    double ns = (double)rows->duration_ns[row];
    sums->samples++;
    sums->covered_ns += rows->duration_ns[row];
    for (int i = 0; i < OCC_SAMPLE_NUMBER_COUNT; i++) {
        struct number_sums *number = &sums->number[i];
        uint64_t code = rows->column[OCC_COLUMN_number0 + i][row];
        double value = (double)code;
        if (code == OCC_CODE_UNKNOWN || ns <= 0)
            continue;
        number->least = number->ns > 0 ? fmin(number->least, value) : value;
        number->most = number->ns > 0 ? fmax(number->most, value) : value;
        number->sum += value * ns;
        number->ns += ns;
    }
}

/* Adds up [first, first + WINDOW) seconds from the chunks. */
static int read_seconds(struct occ_store *s, int64_t device, int64_t first, struct second_sums *sums,
                        struct occ_error *err)
{
    struct occ_binder b = {0};
    int step, rc = occ_store_statement(s, OCC_SQL_SERIES_OF_TIME, &b.stmt, err);
    if (rc != 0)
        return rc;
    occ_bind_int(&b, device);
    occ_bind_int(&b, first * SECOND_NS);
    occ_bind_int(&b, first < INT64_MAX / SECOND_NS - WINDOW ? (first + WINDOW) * SECOND_NS : INT64_MAX);
    while ((step = sqlite3_step(b.stmt)) == SQLITE_ROW && rc != OCC_E_NO_MEMORY) {
        struct occ_columns rows;
        rc = occ_columns_decode(s->series->decoder, sqlite3_column_blob(b.stmt, 0),
                                (size_t)sqlite3_column_bytes(b.stmt, 0), OCC_SAMPLE_COLUMNS, &rows);
        for (uint32_t i = 0; rc == 0 && i < rows.n; i++) { /* a damaged chunk has nothing to add */
            int64_t at = (int64_t)rows.start_ns[i] / SECOND_NS - first;
            if (at >= 0 && at < WINDOW)
                add_sample(&sums[at], &rows, i);
        }
    }
    rc = rc == OCC_E_NO_MEMORY ? occ_store_no_memory(err)
         : step == SQLITE_DONE ? 0
                               : occ_sql_fail(s->db, s->path, step, err, "cannot read counter values");
    (void)sqlite3_reset(b.stmt);
    return rc;
}

static int put_second(struct occ_store *s, int64_t device, int64_t second, const struct second_sums *sums,
                      struct occ_error *err)
{
    struct occ_binder b = {0};
    int rc = occ_store_statement(s, OCC_SQL_PUT_SECOND, &b.stmt, err);
    if (rc != 0)
        return rc;
    occ_bind_int(&b, second);
    occ_bind_int(&b, device);
    occ_bind_int(&b, (int64_t)sums->samples);
    occ_bind_int(&b, (int64_t)sums->covered_ns);
    for (int i = 0; i < OCC_SAMPLE_NUMBER_COUNT; i++) {
        const struct number_sums *number = &sums->number[i];
        if (number->ns > 0) {
            occ_bind_int(&b, (int64_t)number->least);
            occ_bind_int(&b, (int64_t)nearbyint(number->sum / number->ns));
            occ_bind_int(&b, (int64_t)number->most);
        } else {
            b.at += 3; /* NULL */
        }
    }
    return occ_store_run(s, b.stmt, err, "cannot add a second of counters");
}

/* Adds up the seconds of the sorted rows of one device. */
static int write_seconds(struct occ_store *s, const struct pending *rows, uint32_t n, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0;) {
        struct second_sums sums[WINDOW] = {0};
        int64_t first = rows[i].row.start_ns / SECOND_NS, done = first - 1;
        rc = read_seconds(s, rows[i].device, first, sums, err);
        for (; i < n && rc == 0; i++) {
            int64_t second = rows[i].row.start_ns / SECOND_NS;
            if (second - first >= WINDOW)
                break;
            if (second != done)
                rc = put_second(s, rows[i].device, second, &sums[second - first], err);
            done = second;
        }
    }
    return rc;
}

static int write_unexplained(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->series->n_unexplained && rc == 0; i++) {
        const struct unexplained *u = &s->series->unexplained[i];
        struct occ_binder b = {0};
        rc = occ_store_statement(s, OCC_SQL_SET_UNEXPLAINED, &b.stmt, err);
        if (rc != 0)
            break;
        occ_bind_int(&b, u->device);
        occ_bind_int(&b, u->second);
        if (isfinite(u->ratio))
            occ_bind_int(&b, (int64_t)nearbyint(fmin(fmax(u->ratio, -1), 1) * 1e4));
        else
            b.at++; /* NULL */
        rc = occ_store_run(s, b.stmt, err, "cannot add a second of counters");
    }
    return rc;
}

/* ---- writing ---- */

/* Sorted rows of one lane. */
static int write_lane(struct occ_store *s, const struct lane *lane, const struct pending *rows, uint32_t n,
                      struct occ_error *err)
{
    int rc = 0;
    for (uint32_t at = 0, piece; at < n && rc == 0; at += piece) {
        piece = n - at < MAX_ROWS ? n - at : MAX_ROWS;
        for (uint32_t i = 0; i < piece; i++)
            s->series->scratch[i] = rows[at + i].row;
        rc = add_chunk(s, lane, 0, piece, err);
    }
    if (rc == 0 && lane->kind == SERIES_SAMPLES)
        rc = write_seconds(s, rows, n, err);
    return rc != 0 ? rc : merge_lane(s, lane, err);
}

static int write_queue(struct occ_store *s, enum series_kind kind, struct queue *q, struct occ_error *err)
{
    int rc = 0;
    if (q->n > 0)
        qsort(q->rows, q->n, sizeof *q->rows, compare_pending);
    for (uint32_t at = 0, end = 0; at < q->n && rc == 0; at = end) {
        const struct lane lane = {.kind = kind, .run = q->rows[at].run, .device = q->rows[at].device};
        while (end < q->n && q->rows[end].run == lane.run && q->rows[end].device == lane.device)
            end++;
        rc = write_lane(s, &lane, q->rows + at, end - at, err);
    }
    return rc;
}

int occ_series_write(struct occ_store *s, struct occ_error *err)
{
    if (!s->series)
        return 0;
    int rc = write_queue(s, SERIES_VALUES, &s->series->values, err);
    if (rc == 0)
        rc = write_queue(s, SERIES_SAMPLES, &s->series->samples, err);
    return rc != 0 ? rc : write_unexplained(s, err);
}
