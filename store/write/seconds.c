/* Seconds of devices: minimum, mean and maximum of the samples that start in them. A second is computed again
 * from the chunks whenever it gets samples, so the result does not depend on the order of the samples. One
 * thread. */
#include "store/internal.h"

#define WINDOW 64 /* number of seconds computed at a time */

struct number_sums {
    double sum, ns, min, max; /* 16-bit codes (codes.h); sum: code x time */
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
        number->min = number->ns > 0 ? fmin(number->min, value) : value;
        number->max = number->ns > 0 ? fmax(number->max, value) : value;
        number->sum += value * ns;
        number->ns += ns;
    }
}

/* Adds up [first, first + WINDOW) seconds from the chunks. A damaged chunk adds nothing. */
static int read_seconds(struct occ_store *s, int64_t device, int64_t first, struct second_sums *sums,
                        struct occ_error *err)
{
    int64_t end_ns = first < INT64_MAX / SECOND_NS - WINDOW ? (first + WINDOW) * SECOND_NS : INT64_MAX;
    sqlite3_stmt *stmt =
        occ_store_query(s, OCC_SQL_SERIES_OF_TIME, OCC_INTS(device, first * SECOND_NS, end_ns));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        struct occ_columns rows;
        int unpacked = occ_columns_decode(s->work->decoder, sqlite3_column_blob(stmt, 0),
                                          (size_t)sqlite3_column_bytes(stmt, 0), OCC_SAMPLE_COLUMNS, &rows);
        if (unpacked == OCC_E_NO_MEMORY)
            rc = occ_no_memory(err);
        for (uint32_t i = 0; unpacked == 0 && i < rows.n; i++) {
            int64_t at = (int64_t)rows.start_ns[i] / SECOND_NS - first;
            if (at >= 0 && at < WINDOW)
                add_sample(&sums[at], &rows, i);
        }
    }
    return rc;
}

static int put_second(struct occ_store *s, int64_t device, int64_t second, const struct second_sums *sums,
                      struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_PUT_SECOND);
    occ_bind_int(&b, second);
    occ_bind_int(&b, device);
    occ_bind_int(&b, (int64_t)sums->samples);
    occ_bind_int(&b, (int64_t)sums->covered_ns);
    for (int i = 0; i < OCC_SAMPLE_NUMBER_COUNT; i++) {
        const struct number_sums *number = &sums->number[i];
        if (number->ns > 0) {
            occ_bind_int(&b, (int64_t)number->min);
            occ_bind_int(&b, (int64_t)nearbyint(number->sum / number->ns));
            occ_bind_int(&b, (int64_t)number->max);
        } else {
            b.at += 3; /* columns stay NULL */
        }
    }
    return occ_store_run(s, b.stmt, err);
}

int occ_seconds_write(struct occ_store *s, const struct occ_pending_row *rows, size_t n,
                      struct occ_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0;) {
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

int occ_unexplained_write(struct occ_store *s, const struct occ_unexplained *u, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_SET_UNEXPLAINED);
    occ_bind_int(&b, u->device);
    occ_bind_int(&b, u->second);
    if (isfinite(u->ratio))
        occ_bind_int(&b, (int64_t)nearbyint(fmin(fmax(u->ratio, -1), 1) * 1e4));
    else
        b.at++; /* column stays NULL */
    return occ_store_run(s, b.stmt, err);
}

int occ_energy_write(struct occ_store *s, const struct occ_device_energy *e, struct occ_error *err)
{
    return occ_store_execute(s, OCC_SQL_PUT_ENERGY, OCC_INTS(e->second, e->device, e->mj, e->length_ns), err);
}
