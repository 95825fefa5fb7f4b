/* Both halves of the codec of series (format: series_codec.h). */
#include "series_codec.h"

#include <math.h>
#include <stdlib.h>

#include "blob.h"
#include "support/error.h"

#define RATIO_UNIT    1e-4
#define BLOCKS_UNIT   1e-3
#define ERROR_STEPS   8 /* an octave */
#define ERROR_LEAST   (-20)
#define ERROR_MOST    400 /* 2^29.9 */
#define LARGEST       (OCC_SERIES_UNKNOWN - 1)
#define DECODER_FIRST 256u

static const struct {
    unsigned wide, narrow;
    uint64_t wide_most; /* of every wide number */
    int chained;        /* the first wide number is a duration: starts are told from ends */
} kinds[] = {
    [OCC_SERIES_VALUES] = {.wide = 2, .narrow = 4, .wide_most = UINT32_MAX},
    [OCC_SERIES_SAMPLES] = {.wide = 1, .narrow = 8, .wide_most = INT64_MAX, .chained = 1},
};

/* ---- narrow numbers ---- */

static uint16_t quantise(double v, double unit)
{
    if (!isfinite(v))
        return OCC_SERIES_UNKNOWN;
    double code = nearbyint(v / unit);
    return code < 0 ? 0 : code > LARGEST ? LARGEST : (uint16_t)code;
}

uint16_t occ_series_ratio(double ratio)
{
    return quantise(ratio, RATIO_UNIT);
}

uint16_t occ_series_blocks(double blocks)
{
    return quantise(blocks, BLOCKS_UNIT);
}

uint16_t occ_series_error(double error)
{
    if (!isfinite(error))
        return OCC_SERIES_UNKNOWN;
    if (error <= 0)
        return 0;
    double step = ceil((log2(error) - ERROR_LEAST) * ERROR_STEPS) + 1;
    uint16_t code = step < 1 ? 1 : step > ERROR_MOST ? ERROR_MOST : (uint16_t)step;
    while (code < ERROR_MOST && occ_series_read_error(code) < error) /* where rounding got it wrong */
        code++;
    return code;
}

double occ_series_read_ratio(uint16_t code)
{
    return code == OCC_SERIES_UNKNOWN ? NAN : code * RATIO_UNIT;
}

double occ_series_read_blocks(uint16_t code)
{
    return code == OCC_SERIES_UNKNOWN ? NAN : code * BLOCKS_UNIT;
}

double occ_series_read_error(uint16_t code)
{
    if (code == OCC_SERIES_UNKNOWN)
        return NAN;
    return code == 0 ? 0 : exp2((double)(code - 1) / ERROR_STEPS + ERROR_LEAST);
}

/* ---- packing ---- */

struct occ_series_encoder {
    struct occ_writer out, column, compressed;
    ZSTD_CCtx *zstd;
};

struct occ_series_encoder *occ_series_encoder_new(void)
{
    struct occ_series_encoder *e = calloc(1, sizeof *e);
    if (e && !(e->zstd = ZSTD_createCCtx())) {
        free(e);
        return NULL;
    }
    return e;
}

void occ_series_encoder_free(struct occ_series_encoder *e)
{
    if (!e)
        return;
    free(e->out.data);
    free(e->column.data);
    free(e->compressed.data);
    ZSTD_freeCCtx(e->zstd);
    free(e);
}

static void end_column(struct occ_series_encoder *e)
{
    occ_stream_write(&e->out, e->zstd, &e->compressed, e->column.data, e->column.size);
    e->out.failed |= e->column.failed;
    e->column.size = 0;
}

static void write_starts(struct occ_series_encoder *e, int chained, const struct occ_series_row *rows,
                         uint32_t n)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t distance = (uint64_t)rows[i].start_ns - before;
        occ_write_varint(&e->column, chained ? occ_zigzag((int64_t)distance) : distance);
        before = (uint64_t)rows[i].start_ns + (chained ? rows[i].wide[0] : 0);
    }
    end_column(e);
}

static void write_wide(struct occ_series_encoder *e, unsigned which, const struct occ_series_row *rows,
                       uint32_t n)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < n; i++) {
        occ_write_varint(&e->column, occ_zigzag((int64_t)(rows[i].wide[which] - before)));
        before = rows[i].wide[which];
    }
    end_column(e);
}

static void write_narrow(struct occ_series_encoder *e, unsigned which, const struct occ_series_row *rows,
                         uint32_t n)
{
    uint16_t before = 0;
    if (!occ_writer_reserve(&e->column, (size_t)2 * n))
        return;
    for (uint32_t i = 0; i < n; i++) {
        int16_t step = (int16_t)(uint16_t)(rows[i].narrow[which] - before);
        uint16_t code = (uint16_t)((uint32_t)step << 1 ^ (uint32_t)(step >> 15));
        before = rows[i].narrow[which];
        e->column.data[i] = (uint8_t)code;
        e->column.data[n + i] = (uint8_t)(code >> 8);
    }
    e->column.size = (size_t)2 * n;
    end_column(e);
}

int occ_series_encode(struct occ_series_encoder *e, enum occ_series_kind kind,
                      const struct occ_series_row *rows, uint32_t n, const uint8_t **ret_data,
                      size_t *ret_bytes)
{
    if (n == 0 || n > OCC_SERIES_MAX_ROWS)
        return OCC_E_INVALID;
    e->out.size = e->column.size = 0;
    e->out.failed = e->column.failed = e->compressed.failed = false;
    occ_blob_begin(&e->out, OCC_SERIES_FORMAT, (uint8_t)kind, n);
    write_starts(e, kinds[kind].chained, rows, n);
    for (unsigned i = 0; i < kinds[kind].wide; i++)
        write_wide(e, i, rows, n);
    for (unsigned i = 0; i < kinds[kind].narrow; i++)
        write_narrow(e, i, rows, n);
    occ_blob_seal(&e->out);
    if (e->out.failed || e->column.failed)
        return OCC_E_NO_MEMORY;
    *ret_data = e->out.data;
    *ret_bytes = e->out.size;
    return 0;
}

/* ---- unpacking ---- */

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
        if (value > kinds[kind].wide_most)
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
    for (unsigned i = 0; i < kinds[kind].wide && rc == 0; i++)
        rc = read_wide(d, &r, kind, i, n);
    for (unsigned i = 0; i < kinds[kind].narrow && rc == 0; i++)
        rc = read_narrow(d, &r, i, n);
    if (rc == 0)
        rc = r.at == r.end ? make_starts(d, kinds[kind].chained, n) : OCC_E_CORRUPT;
    *ret_rows = d->rows;
    *ret_n = n;
    return rc;
}
