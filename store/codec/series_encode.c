/* The packing half of the codec of series (format: series_codec.h). */
#include <math.h>
#include <stdlib.h>

#include "blob.h"
#include "series_model.h"
#include "support/error.h"

#define ERROR_MOST 400 /* 2^29.9 */
#define LARGEST    (OCC_SERIES_UNKNOWN - 1)

/* ---- narrow numbers ---- */

static uint16_t quantise(double v, double steps)
{
    if (!isfinite(v))
        return OCC_SERIES_UNKNOWN;
    double code = nearbyint(v * steps);
    return code < 0 ? 0 : code > LARGEST ? LARGEST : (uint16_t)code;
}

uint16_t occ_series_value(double value)
{
    return quantise(value, OCC_SERIES_VALUE_STEPS);
}

uint16_t occ_series_ratio(double ratio)
{
    return quantise(ratio, OCC_SERIES_RATIO_STEPS);
}

uint16_t occ_series_blocks(double blocks)
{
    return quantise(blocks, OCC_SERIES_BLOCKS_STEPS);
}

uint16_t occ_series_error(double error)
{
    if (!isfinite(error))
        return OCC_SERIES_UNKNOWN;
    if (error <= 0)
        return 0;
    double step = ceil((log2(error) - OCC_SERIES_ERROR_LEAST) * OCC_SERIES_ERROR_STEPS) + 1;
    uint16_t code = step < 1 ? 1 : step > ERROR_MOST ? ERROR_MOST : (uint16_t)step;
    while (code < ERROR_MOST && occ_series_read_error(code) < error) /* where rounding got it wrong */
        code++;
    return code;
}

/* ---- series ---- */

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
    write_starts(e, occ_series_kinds[kind].chained, rows, n);
    for (unsigned i = 0; i < occ_series_kinds[kind].wide; i++)
        write_wide(e, i, rows, n);
    for (unsigned i = 0; i < occ_series_kinds[kind].narrow; i++)
        write_narrow(e, i, rows, n);
    occ_blob_seal(&e->out);
    if (e->out.failed || e->column.failed)
        return OCC_E_NO_MEMORY;
    *ret_data = e->out.data;
    *ret_bytes = e->out.size;
    return 0;
}
