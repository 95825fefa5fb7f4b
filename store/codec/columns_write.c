/* Encoding of packed columns (format: columns.h). Separate from decoding, because the SQLite extension needs
 * no compressor. */
#include <string.h>
#include <zstd.h>

#include "bytes.h"
#include "columns.h"
#include "support/error.h"

#define BLOCK_ROWS 256u /* so few rows that their working data stays in the first-level cache */

struct occ_columns_encoder {
    struct column {
        uint64_t base;
        unsigned n_planes;
        uint64_t block[BLOCK_ROWS]; /* values of the current block */
        uint64_t last[OCC_COLUMNS_SLOTS];
    } column[OCC_COLUMN_none];
    uint8_t *planes; /* `capacity` bytes for 8 planes of each column; unused planes are not touched */
    uint32_t capacity;
    struct occ_writer out;
    ZSTD_CCtx *zstd;
};

struct occ_columns_encoder *occ_columns_encoder_new(void)
{
    struct occ_columns_encoder *e = calloc(1, sizeof *e);
    if (!e || !(e->zstd = ZSTD_createCCtx())) {
        free(e);
        return NULL;
    }
    (void)ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, 1); /* level 3 would save 0.1 % */
    /* shorter matches in noise cost time and 0.3 % of size */
    (void)ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_minMatch, 7);
    return e;
}

void occ_columns_encoder_free(struct occ_columns_encoder *e)
{
    if (!e)
        return;
    ZSTD_freeCCtx(e->zstd);
    free(e->planes);
    free(e->out.data);
    free(e);
}

static void load(struct occ_column_source source, uint32_t first, uint32_t n, uint64_t *values)
{
    const uint8_t *at = (const uint8_t *)source.first + first * source.stride;
    for (uint32_t i = 0; i < n; i++, at += source.stride)
        values[i] = source.bytes == 8   ? *(const uint64_t *)at
                    : source.bytes == 4 ? *(const uint32_t *)at
                                        : *(const uint16_t *)at;
}

/* Makes the codes of a block; returns all bits that occur in them. */
static uint64_t make_codes(struct column *column, bool as_is, const uint64_t *key, const uint64_t *added,
                           uint32_t n, uint64_t *codes)
{
    uint64_t all = 0, before = column->last[0];
    for (uint32_t i = 0; i < n; i++) {
        uint64_t value = column->block[i];
        if (as_is) {
            codes[i] = value ^ column->base;
        } else if (key) {
            uint64_t *last = &column->last[key[i] % OCC_COLUMNS_SLOTS];
            codes[i] = occ_zigzag((int64_t)(value - *last));
            *last = value + (added ? added[i] : 0);
        } else {
            codes[i] = occ_zigzag((int64_t)(value - before));
            before = value + (added ? added[i] : 0);
        }
        all |= codes[i];
    }
    if (!key)
        column->last[0] = before;
    return all;
}

static void encode_block(struct occ_columns_encoder *e, const struct occ_column_source *sources, uint32_t at,
                         uint32_t n)
{
    uint64_t codes[BLOCK_ROWS];
    const uint64_t *values[OCC_COLUMN_none + 1] = {0};
    for (unsigned c = 0; c < OCC_COLUMN_none; c++) {
        const struct occ_column_format *f = &occ_column_formats[c];
        struct column *column = &e->column[c];
        uint8_t *planes = e->planes + (size_t)c * 8 * e->capacity;
        if (!sources[c].first)
            continue;
        load(sources[c], at, n, column->block);
        values[c] = column->block;
        uint64_t all = make_codes(column, f->as_is, values[f->key], values[f->added], n, codes);
        for (; column->n_planes < 8 && all >> (8 * column->n_planes); column->n_planes++)
            /* earlier blocks had no such plane */
            memset(planes + (size_t)column->n_planes * e->capacity, 0, at);
        for (unsigned p = 0; p < column->n_planes; p++) {
            uint8_t *restrict plane = planes + (size_t)p * e->capacity + at;
            for (uint32_t i = 0; i < n; i++)
                plane[i] = (uint8_t)(codes[i] >> (8 * p));
        }
    }
}

static void write_plane(struct occ_columns_encoder *e, const uint8_t *plane, uint32_t n, bool compress)
{
    size_t bound = ZSTD_compressBound(n);
    if (!occ_writer_reserve(&e->out, 1 + bound))
        return;
    uint8_t *at = e->out.data + e->out.size;
    size_t size = compress ? ZSTD_compress2(e->zstd, at + 1, bound, plane, n) : n;
    at[0] = !ZSTD_isError(size) && size < n;
    if (at[0] == 0)
        memcpy(at + 1, plane, size = n);
    e->out.size += 1 + size;
}

int occ_columns_encode(struct occ_columns_encoder *e, const struct occ_column_source *sources, uint32_t n,
                       bool compress, const uint8_t **ret_data, size_t *ret_bytes)
{
    uint32_t columns = 0;
    if (n == 0 || n > OCC_COLUMNS_MAX_ROWS)
        return OCC_E_INVALID;
    if (e->capacity < n) {
        free(e->planes);
        e->planes = malloc((size_t)n * 8 * OCC_COLUMN_none);
        e->capacity = e->planes ? n : 0;
    }
    if (!e->planes)
        return OCC_E_NO_MEMORY;
    for (unsigned c = 0; c < OCC_COLUMN_none; c++)
        if (sources[c].first) {
            uint32_t slots = occ_column_formats[c].key == OCC_COLUMN_none ? 1 : OCC_COLUMNS_SLOTS;
            columns |= UINT32_C(1) << c;
            load(sources[c], 0, 1, &e->column[c].base);
            e->column[c].n_planes = 0;
            for (uint32_t i = 0; i < slots; i++)
                e->column[c].last[i] = e->column[c].base;
        }
    for (uint32_t at = 0; at < n; at += BLOCK_ROWS)
        encode_block(e, sources, at, n - at < BLOCK_ROWS ? n - at : BLOCK_ROWS);
    occ_writer_restart(&e->out);
    occ_write_little_endian(&e->out, OCC_COLUMNS_FORMAT | (uint64_t)n << 32, 8);
    occ_write_little_endian(&e->out, 0, 8); /* place of the checksum */
    occ_write_little_endian(&e->out, columns, 4);
    for (unsigned c = 0; c < OCC_COLUMN_none; c++)
        if (sources[c].first) {
            occ_write_varint(&e->out, e->column[c].base);
            const unsigned planes = e->column[c].n_planes;
            occ_write_u8(&e->out, (uint8_t)planes);
            for (unsigned p = 0; p < planes; p++)
                write_plane(e, e->planes + ((size_t)c * 8 + p) * e->capacity, n, compress);
        }
    if (e->out.failed)
        return OCC_E_NO_MEMORY;
    occ_columns_seal(e->out.data, e->out.size);
    *ret_data = e->out.data;
    *ret_bytes = e->out.size;
    return 0;
}
