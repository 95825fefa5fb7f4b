/* Decoding of packed columns (format: columns.h), whose bytes are not to be trusted. */
#include "columns.h"

#define XXH_INLINE_ALL /* the extension links no library for it */
#include <xxhash.h>
#include <zstd.h>

#include "bytes.h"
#include "support/error.h"

const struct occ_column_format occ_column_formats[OCC_COLUMN_none] = {
#define X(name, bits, as_is, key, added) {bits, as_is, OCC_COLUMN_##key, OCC_COLUMN_##added},
    OCC_COLUMNS(X)
#undef X
};

struct occ_columns_decoder {
    uint64_t *values[OCC_COLUMN_none];
    uint32_t capacity[OCC_COLUMN_none];
    uint8_t plane[OCC_COLUMNS_MAX_ROWS];
    uint64_t last[OCC_COLUMNS_SLOTS];
    ZSTD_DCtx *zstd;
};

struct occ_columns_decoder *occ_columns_decoder_new(void)
{
    struct occ_columns_decoder *d = calloc(1, sizeof *d);
    if (d && (d->zstd = ZSTD_createDCtx()) != NULL)
        return d;
    free(d);
    return NULL;
}

void occ_columns_decoder_free(struct occ_columns_decoder *d)
{
    for (unsigned c = 0; d && c < OCC_COLUMN_none; c++)
        free(d->values[c]);
    if (d)
        ZSTD_freeDCtx(d->zstd);
    free(d);
}

uint64_t occ_columns_checksum(const uint8_t *data, size_t bytes)
{
    return XXH3_64bits_withSeed(data + OCC_COLUMNS_HEADER_BYTES, bytes - OCC_COLUMNS_HEADER_BYTES,
                                occ_little_endian(data, 8));
}

static int read_header(struct occ_reader *r, uint32_t *ret_n, uint32_t *ret_columns)
{
    const uint8_t *data = r->at;
    if (r->end - r->at < OCC_COLUMNS_HEADER_BYTES + 4)
        return OCC_E_CORRUPT;
    if (occ_little_endian(data, 4) > OCC_COLUMNS_FORMAT)
        return OCC_E_VERSION;
    *ret_n = (uint32_t)occ_little_endian(data + 4, 4);
    *ret_columns = (uint32_t)occ_little_endian(data + OCC_COLUMNS_HEADER_BYTES, 4);
    r->at += OCC_COLUMNS_HEADER_BYTES + 4;
    bool right = occ_little_endian(data, 4) == OCC_COLUMNS_FORMAT && *ret_n > 0 &&
                 *ret_n <= OCC_COLUMNS_MAX_ROWS && *ret_columns >> OCC_COLUMN_none == 0 &&
                 occ_columns_checksum(data, (size_t)(r->end - data)) == occ_little_endian(data + 8, 8);
    return right ? 0 : OCC_E_CORRUPT;
}

/* The codes of a column; NULL: passes over them. */
static int read_codes(struct occ_columns_decoder *d, struct occ_reader *r, uint32_t n, uint64_t *codes)
{
    unsigned planes = occ_read_u8(r);
    if (r->failed || planes > 8)
        return OCC_E_CORRUPT;
    for (uint32_t i = 0; codes && i < n; i++)
        codes[i] = 0;
    for (unsigned p = 0; p < planes; p++) {
        uint8_t compressed = occ_read_u8(r);
        size_t size = compressed ? ZSTD_findFrameCompressedSize(r->at, (size_t)(r->end - r->at)) : n;
        const uint8_t *restrict plane = compressed > 1 || ZSTD_isError(size) ? NULL : occ_read_bytes(r, size);
        if (!plane || r->failed)
            return OCC_E_CORRUPT;
        if (codes && compressed) {
            if (ZSTD_decompressDCtx(d->zstd, d->plane, n, plane, size) != n)
                return OCC_E_CORRUPT;
            plane = d->plane;
        }
        for (uint32_t i = 0; codes && i < n; i++)
            codes[i] |= (uint64_t)plane[i] << (8 * p);
    }
    return 0;
}

/* Makes values of codes. */
static void add_up(struct occ_columns_decoder *d, const struct occ_columns *columns, unsigned c,
                   uint64_t base)
{
    const struct occ_column_format *f = &occ_column_formats[c];
    const uint64_t mask = UINT64_MAX >> (64 - f->bits);
    const uint64_t *key = f->key == OCC_COLUMN_none ? NULL : columns->column[f->key];
    const uint64_t *added = f->added == OCC_COLUMN_none ? NULL : columns->column[f->added];
    uint64_t *values = d->values[c];
    for (uint32_t i = 0; i < (key ? OCC_COLUMNS_SLOTS : 1); i++)
        d->last[i] = base;
    for (uint32_t i = 0; i < columns->n; i++)
        if (f->as_is) {
            values[i] = (values[i] ^ base) & mask;
        } else {
            uint64_t *last = &d->last[key ? key[i] % OCC_COLUMNS_SLOTS : 0];
            values[i] = (*last + (uint64_t)occ_unzigzag(values[i])) & mask;
            *last = values[i] + (added ? added[i] : 0);
        }
}

static int decode_column(struct occ_columns_decoder *d, struct occ_reader *r, unsigned c, bool wanted,
                         struct occ_columns *columns)
{
    uint64_t base = occ_read_varint(r);
    if (!wanted)
        return read_codes(d, r, columns->n, NULL);
    if (d->capacity[c] < columns->n) {
        free(d->values[c]);
        d->values[c] = malloc(columns->n * sizeof *d->values[c]);
        d->capacity[c] = d->values[c] ? columns->n : 0;
    }
    int rc = d->values[c] ? read_codes(d, r, columns->n, d->values[c]) : OCC_E_NO_MEMORY;
    if (rc == 0)
        add_up(d, columns, c, base);
    columns->column[c] = d->values[c];
    return rc;
}

static bool times_are_right(const struct occ_columns *c)
{
    bool right = true;
    for (uint32_t i = 0; c->start_ns && i < c->n; i++)
        right &= (i == 0 || c->start_ns[i - 1] <= c->start_ns[i]) &&
                 (!c->duration_ns || c->duration_ns[i] <= INT64_MAX - c->start_ns[i]);
    return right;
}

int occ_columns_decode(struct occ_columns_decoder *d, const void *data, size_t bytes, uint32_t wanted,
                       struct occ_columns *ret)
{
    struct occ_reader r = {.at = data, .end = data ? (const uint8_t *)data + bytes : NULL};
    uint32_t there = 0;
    *ret = (struct occ_columns){0};
    int rc = read_header(&r, &ret->n, &there);
    if (rc == 0 && wanted & ~there)
        rc = OCC_E_CORRUPT;
    for (unsigned c = OCC_COLUMN_none; c-- > 0;)
        if (wanted >> c & 1)
            wanted |= UINT32_C(1) << occ_column_formats[c].key | UINT32_C(1) << occ_column_formats[c].added;
    for (unsigned c = 0; c < OCC_COLUMN_none && rc == 0; c++)
        if (there >> c & 1)
            rc = decode_column(d, &r, c, wanted >> c & 1, ret);
    return rc != 0 ? rc : r.at == r.end && times_are_right(ret) ? 0 : OCC_E_CORRUPT;
}
