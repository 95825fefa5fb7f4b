/* Measured values of launches and samples of devices wait here for the next commit, which writes them as
 * chunks (series_chunks.c) and computes the seconds with new samples (seconds.c). One thread. */
#include <stdlib.h>

#include "store/internal.h"
#include "support/array.h"

#define PENDING_MAX     (1u << 18) /* maximum of each kind: 15 MB */
#define UNEXPLAINED_MAX 4096u      /* maximum of unexplained seconds, and of energies */

void occ_series_free(struct occ_series *q)
{
    free(q->values.rows);
    free(q->samples.rows);
    free(q->unexplained);
    free(q->energies);
    free(q->scratch);
}

static int fail_full(const struct occ_store *s, struct occ_error *err)
{
    return occ_fail(err, OCC_E_FULL, "%s: too many counter values wait for a commit", s->path);
}

static int reserve(const struct occ_store *s, struct occ_pending_series *q, size_t n, struct occ_error *err)
{
    int rc = occ_store_check_writable(s, err);
    if (rc != 0)
        return rc;
    if (n > PENDING_MAX - q->n)
        return fail_full(s, err);
    return n == 0 || occ_grow((void **)&q->rows, &q->allocated, q->n + n - 1, PENDING_MAX, sizeof *q->rows)
               ? 0
               : occ_no_memory(err);
}

int occ_store_add_launch_values(struct occ_store *s, int64_t run, int64_t device,
                                const struct occ_launch_value *values, size_t n, struct occ_error *err)
{
    struct occ_pending_series *q = &s->series.values;
    int rc = reserve(s, q, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (values[i].start_ns <= 0)
            rc = occ_fail(err, OCC_E_INVALID, "a value is of a launch with an impossible start");
    for (size_t i = 0; i < n && rc == 0; i++)
        q->rows[q->n++] = (struct occ_pending_row){
            .run = run,
            .device = device,
            .row = {.start_ns = values[i].start_ns,
                    .correlation = values[i].correlation,
                    .config = values[i].config,
                    .code = {
                        [OCC_VALUE_ACHIEVED] = occ_code_make(OCC_UNIT_value, values[i].achieved),
                        [OCC_VALUE_ACHIEVED_ERROR] = occ_code_make(OCC_UNIT_error, values[i].achieved_error),
                        [OCC_VALUE_ELAPSED] = occ_code_make(OCC_UNIT_value, values[i].elapsed),
                        [OCC_VALUE_ELAPSED_ERROR] = occ_code_make(OCC_UNIT_error, values[i].elapsed_error)}}};
    return rc;
}

int occ_store_add_samples(struct occ_store *s, int64_t device, const struct occ_device_sample *samples,
                          size_t n, struct occ_error *err)
{
    struct occ_pending_series *q = &s->series.samples;
    int rc = reserve(s, q, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (samples[i].start_ns <= 0 || samples[i].end_ns < samples[i].start_ns)
            rc = occ_fail(err, OCC_E_INVALID, "a sample has impossible times");
    for (size_t i = 0; i < n && rc == 0; i++)
        q->rows[q->n++] = (struct occ_pending_row){
            .device = device,
            .row = {.start_ns = samples[i].start_ns,
                    .duration_ns = (uint64_t)(samples[i].end_ns - samples[i].start_ns),
                    .code = {
#define X(name, unit) [OCC_SAMPLE_##name] = occ_code_make(OCC_UNIT_##unit, samples[i].name),
                        OCC_SAMPLE_NUMBERS(X)}}};
    return rc;
}

int occ_store_add_unexplained(struct occ_store *s, int64_t device, int64_t second, double ratio,
                              struct occ_error *err)
{
    struct occ_series *q = &s->series;
    int rc = occ_store_check_writable(s, err);
    if (rc == 0 && q->n_unexplained == UNEXPLAINED_MAX)
        rc = fail_full(s, err);
    if (rc == 0 && !occ_grow((void **)&q->unexplained, &q->unexplained_allocated, q->n_unexplained,
                             UNEXPLAINED_MAX, sizeof *q->unexplained))
        rc = occ_no_memory(err);
    if (rc == 0)
        q->unexplained[q->n_unexplained++] =
            (struct occ_unexplained){.device = device, .second = second, .ratio = ratio};
    return rc;
}

int occ_store_add_energy(struct occ_store *s, const struct occ_device_energy *energy, struct occ_error *err)
{
    struct occ_series *q = &s->series;
    int rc = occ_store_check_writable(s, err);
    if (rc == 0 && (energy->second <= 0 || energy->length_ns <= 0 || energy->mj < 0 ||
                    energy->second > OCC_STORE_START_MAX_NS / SECOND_NS))
        rc = occ_fail(err, OCC_E_INVALID, "an energy has an impossible time or amount");
    if (rc == 0 && q->n_energies == UNEXPLAINED_MAX)
        rc = fail_full(s, err);
    if (rc == 0 && !occ_grow((void **)&q->energies, &q->energies_allocated, q->n_energies, UNEXPLAINED_MAX,
                             sizeof *q->energies))
        rc = occ_no_memory(err);
    if (rc == 0)
        q->energies[q->n_energies++] = *energy;
    return rc;
}

bool occ_series_is_pending(const struct occ_series *q)
{
    return q->values.n + q->samples.n + q->n_unexplained + q->n_energies > 0;
}

void occ_series_written(struct occ_series *q)
{
    q->values.n = q->samples.n = q->n_unexplained = q->n_energies = 0;
}

/* ---- writing ---- */

static int compare_pending(const void *a, const void *b)
{
    const struct occ_pending_row *x = a, *y = b;
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->row.start_ns < y->row.start_ns ? -1 : x->row.start_ns > y->row.start_ns;
}

/* Writes sorted rows of one series as chunks, and the seconds of samples; merges the series' open chunks. */
static int write_rows(struct occ_store *s, const struct occ_series_key *key,
                      const struct occ_pending_row *rows, size_t n, struct occ_error *err)
{
    int rc = 0;
    for (size_t at = 0, piece; at < n && rc == 0; at += piece) {
        piece = n - at < OCC_SERIES_MAX_ROWS ? n - at : OCC_SERIES_MAX_ROWS;
        for (size_t i = 0; i < piece; i++)
            s->series.scratch[i] = rows[at + i].row;
        rc = occ_series_write_chunk(s, key, (uint32_t)piece, err);
    }
    if (rc == 0 && key->kind == OCC_SERIES_SAMPLES)
        rc = occ_seconds_write(s, rows, n, err);
    return rc != 0 ? rc : occ_series_merge(s, key, err);
}

static int write_pending(struct occ_store *s, enum occ_series_kind kind, struct occ_pending_series *q,
                         struct occ_error *err)
{
    int rc = 0;
    if (q->n > 0)
        qsort(q->rows, q->n, sizeof *q->rows, compare_pending);
    for (size_t at = 0, end = 0; at < q->n && rc == 0; at = end) {
        const struct occ_series_key key = {
            .kind = kind, .run = q->rows[at].run, .device = q->rows[at].device};
        while (end < q->n && q->rows[end].run == key.run && q->rows[end].device == key.device)
            end++;
        rc = write_rows(s, &key, q->rows + at, end - at, err);
    }
    return rc;
}

int occ_series_write(struct occ_store *s, struct occ_error *err)
{
    struct occ_series *q = &s->series;
    if (!occ_series_is_pending(q))
        return 0;
    if (!q->scratch && !(q->scratch = malloc(OCC_SERIES_MAX_ROWS * sizeof *q->scratch)))
        return occ_no_memory(err);
    int rc = write_pending(s, OCC_SERIES_VALUES, &q->values, err);
    if (rc == 0)
        rc = write_pending(s, OCC_SERIES_SAMPLES, &q->samples, err);
    for (size_t i = 0; i < q->n_unexplained && rc == 0; i++)
        rc = occ_unexplained_write(s, &q->unexplained[i], err);
    for (size_t i = 0; i < q->n_energies && rc == 0; i++)
        rc = occ_energy_write(s, &q->energies[i], err);
    return rc;
}
