/* Decoding of packed columns (format: columns.h). The bytes are untrusted. */
#include "columns.h"

#define XXH_INLINE_ALL /* inlined, so that the extension links no library */
#include <xxhash.h>
#include <zstd.h>

#include "bytes.h"
#include "support/error.h"

#define FORMAT(name, bits, as_is, key, added) {bits, OCC_COLUMN_##key, OCC_COLUMN_##added, as_is},
const struct occ_column_format occ_column_formats[OCC_COLUMN_none] = {OCC_COLUMNS(FORMAT)};

struct occ_columns_decoder {
    uint64_t *values; /* `capacity` values for each column; memory of unused columns is not touched */
    uint32_t capacity;
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
    if (!d)
        return;
    ZSTD_freeDCtx(d->zstd);
    free(d->values);
    free(d);
}

static uint64_t checksum(const uint8_t *data, size_t bytes)
{
    return XXH3_64bits_withSeed(data + OCC_COLUMNS_HEADER_BYTES, bytes - OCC_COLUMNS_HEADER_BYTES,
                                occ_little_endian(data, 8));
}

void occ_columns_seal(uint8_t *data, size_t bytes)
{
    uint64_t sum = checksum(data, bytes);
    for (unsigned i = 0; i < 8; i++)
        data[8 + i] = (uint8_t)(sum >> (8 * i));
}

static int read_header(struct occ_reader *r, uint32_t wanted, uint32_t *ret_n, uint32_t *ret_columns)
{
    const uint8_t *data = r->at;
    uint64_t format = occ_read_little_endian(r, 4), n = occ_read_little_endian(r, 4);
    uint64_t sum = occ_read_little_endian(r, 8), columns = occ_read_little_endian(r, 4);
    *ret_n = (uint32_t)n;
    *ret_columns = (uint32_t)columns;
    bool right = !r->failed && format == OCC_COLUMNS_FORMAT && n > 0 && n <= OCC_COLUMNS_MAX_ROWS &&
                 columns >> OCC_COLUMN_none == 0 && (wanted & ~columns & ~OCC_COLUMNS_OPTIONAL) == 0 &&
                 sum == checksum(data, (size_t)(r->end - data));
    return right ? 0 : format > OCC_COLUMNS_FORMAT ? OCC_E_VERSION : OCC_E_CORRUPT;
}

/* Reads the codes of a column; NULL: skips them. */
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
        const uint8_t *restrict plane = occ_read_bytes(r, size); /* zstd's error codes exceed any size */
        if (!plane || compressed > 1)
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

static void make_values(struct occ_columns_decoder *d, const struct occ_column_format *f,
                        const struct occ_columns *columns, uint64_t base, uint64_t *values)
{
    const uint64_t mask = UINT64_MAX >> (64 - f->bits);
    const uint64_t *key = f->key == OCC_COLUMN_none ? NULL : columns->column[f->key];
    const uint64_t *added = f->added == OCC_COLUMN_none ? NULL : columns->column[f->added];
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

static bool are_times_valid(const struct occ_columns *c)
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
    int rc = read_header(&r, wanted, &ret->n, &there);
    if (rc == 0 && d->capacity < ret->n) {
        free(d->values);
        d->values = malloc((size_t)ret->n * OCC_COLUMN_none * sizeof *d->values);
        d->capacity = d->values ? ret->n : 0;
        rc = d->values ? 0 : OCC_E_NO_MEMORY;
    }
    for (unsigned c = OCC_COLUMN_none; c-- > 0;)
        if (wanted >> c & 1)
            wanted |= UINT32_C(1) << occ_column_formats[c].key | UINT32_C(1) << occ_column_formats[c].added;
    for (unsigned c = 0; c < OCC_COLUMN_none && rc == 0; c++) {
        bool is_given = ((there | OCC_COLUMNS_OPTIONAL) & wanted) >> c & 1;
        uint64_t *values = is_given ? d->values + (size_t)c * d->capacity : NULL;
        if (there >> c & 1) {
            uint64_t base = occ_read_varint(&r);
            rc = read_codes(d, &r, ret->n, values);
            if (rc == 0 && values)
                make_values(d, &occ_column_formats[c], ret, base, values);
        } else if (values) {
            memset(values, 0, ret->n * sizeof *values);
        }
        ret->column[c] = values;
    }
    return rc != 0 ? rc : r.at == r.end && are_times_valid(ret) ? 0 : OCC_E_CORRUPT;
}
