/* The unpacking half of the codec of series (format: series_codec.h), which trusts nothing. */
#include <math.h>
#include <stdlib.h>

#include "blob.h"
#include "series_model.h"
#include "support/error.h"

#define DECODER_FIRST 256u /* rows */

/* ---- narrow numbers ---- */

static double restore(uint16_t code, double steps)
{
    return code == OCC_SERIES_UNKNOWN ? NAN : code / steps;
}

double occ_series_read_value(uint16_t code)
{
    return restore(code, OCC_SERIES_VALUE_STEPS);
}

double occ_series_read_ratio(uint16_t code)
{
    return restore(code, OCC_SERIES_RATIO_STEPS);
}

double occ_series_read_blocks(uint16_t code)
{
    return restore(code, OCC_SERIES_BLOCKS_STEPS);
}

double occ_series_read_error(uint16_t code)
{
    if (code == OCC_SERIES_UNKNOWN)
        return NAN;
    return code == 0 ? 0 : exp2((double)(code - 1) / OCC_SERIES_ERROR_STEPS + OCC_SERIES_ERROR_LEAST);
}

/* ---- series ---- */

struct occ_series_decoder {
    struct occ_series_row *rows;
    uint32_t capacity;
    struct occ_stream starts, column;
    ZSTD_DCtx *zstd;
};

struct occ_series_decoder *occ_series_decoder_new(void)
{
    struct occ_series_decoder *d = calloc(1, sizeof *d);
    if (d && !(d->zstd = ZSTD_createDCtx())) {
        free(d);
        return NULL;
    }
    return d;
}

void occ_series_decoder_free(struct occ_series_decoder *d)
{
    if (!d)
        return;
    free(d->rows);
    free(d->starts.memory);
    free(d->column.memory);
    ZSTD_freeDCtx(d->zstd);
    free(d);
}

static bool make_room(struct occ_series_decoder *d, uint32_t n)
{
    if (n <= d->capacity)
        return true;
    uint32_t capacity = d->capacity ? d->capacity : DECODER_FIRST;
    while (capacity < n)
        capacity *= 2;
    free(d->rows);
    d->rows = malloc(capacity * sizeof *d->rows);
    d->capacity = d->rows ? capacity : 0;
    return d->rows != NULL;
}

static int read_wide(struct occ_series_decoder *d, struct occ_reader *r, enum occ_series_kind kind,
                     unsigned which, uint32_t n)
{
    uint64_t value = 0;
    int rc = occ_stream_read(d->zstd, r, (size_t)n * 10, &d->column);
    if (rc != 0)
        return rc;
    struct occ_reader c = {.at = d->column.data, .end = d->column.data + d->column.size};
    for (uint32_t i = 0; i < n; i++) {
        value += (uint64_t)occ_unzigzag(occ_read_varint(&c));
        if (value > occ_series_kinds[kind].wide_most)
            return OCC_E_CORRUPT;
        d->rows[i].wide[which] = value;
    }
    return !c.failed && c.at == c.end ? 0 : OCC_E_CORRUPT;
}

static int read_narrow(struct occ_series_decoder *d, struct occ_reader *r, unsigned which, uint32_t n)
{
    uint16_t value = 0;
    int rc = occ_stream_read(d->zstd, r, (size_t)n * 2, &d->column);
    if (rc != 0 || d->column.size != (size_t)n * 2)
        return rc != 0 ? rc : OCC_E_CORRUPT;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t code = d->column.data[i] | (uint32_t)d->column.data[n + i] << 8;
        value = (uint16_t)(value + (code >> 1 ^ (0u - (code & 1u))));
        d->rows[i].narrow[which] = value;
    }
    return 0;
}

/* The stream comes first, but durations are needed to make starts of it. */
static int make_starts(struct occ_series_decoder *d, int chained, uint32_t n)
{
    struct occ_reader c = {.at = d->starts.data, .end = d->starts.data + d->starts.size};
    uint64_t before = 0, last = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t distance = occ_read_varint(&c);
        uint64_t start = before + (chained ? (uint64_t)occ_unzigzag(distance) : distance);
        uint64_t length = chained ? d->rows[i].wide[0] : 0;
        if (start > INT64_MAX || start < last || length > INT64_MAX - start)
            return OCC_E_CORRUPT;
        d->rows[i].start_ns = (int64_t)start;
        last = start;
        before = start + length;
    }
    return !c.failed && c.at == c.end ? 0 : OCC_E_CORRUPT;
}

int occ_series_decode(struct occ_series_decoder *d, enum occ_series_kind kind, const void *data, size_t bytes,
                      const struct occ_series_row **ret_rows, uint32_t *ret_n)
{
    struct occ_reader r = {0};
    uint32_t n = 0;
    int rc = occ_blob_open(data, bytes, OCC_SERIES_FORMAT, (uint8_t)kind, OCC_SERIES_MAX_ROWS, &n, &r);
    if (rc != 0)
        return rc;
    if (!make_room(d, n))
        return OCC_E_NO_MEMORY;
    memset(d->rows, 0, n * sizeof *d->rows);
    rc = occ_stream_read(d->zstd, &r, (size_t)n * 10, &d->starts);
    for (unsigned i = 0; i < occ_series_kinds[kind].wide && rc == 0; i++)
        rc = read_wide(d, &r, kind, i, n);
    for (unsigned i = 0; i < occ_series_kinds[kind].narrow && rc == 0; i++)
        rc = read_narrow(d, &r, i, n);
    if (rc == 0)
        rc = r.at == r.end ? make_starts(d, occ_series_kinds[kind].chained, n) : OCC_E_CORRUPT;
    *ret_rows = d->rows;
    *ret_n = n;
    return rc;
}
