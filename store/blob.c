/* Headers and streams of packed blobs. */
#include "blob.h"

#include "chunk_model.h"
#include "support/error.h"

#define ZSTD_LEVEL     1  /* level 3 gives the same size (measured) */
#define ZSTD_MIN_BYTES 64 /* below, a frame's header eats the gain */

enum { STREAM_RAW = 0, STREAM_ZSTD = 1 };

static uint64_t little_endian(const uint8_t *at, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

static uint64_t checksum(const uint8_t *data, size_t size)
{
    return chunk_checksum(data + CHUNK_HEADER_BYTES, size - CHUNK_HEADER_BYTES) ^ chunk_checksum(data, 8);
}

void occ_blob_begin(struct occ_writer *out, uint8_t format, uint8_t kind, uint32_t n)
{
    uint8_t header[CHUNK_HEADER_BYTES] = {format, kind};
    for (unsigned i = 0; i < 4; i++)
        header[4 + i] = (uint8_t)(n >> (8 * i));
    occ_write_bytes(out, header, sizeof header);
}

void occ_blob_seal(struct occ_writer *out)
{
    if (out->failed)
        return;
    uint64_t sum = checksum(out->data, out->size);
    for (unsigned i = 0; i < 8; i++)
        out->data[8 + i] = (uint8_t)(sum >> (8 * i));
}

int occ_blob_open(const void *data, size_t bytes, uint8_t format, uint8_t kind, uint32_t most,
                  uint32_t *ret_n, struct occ_reader *ret_reader)
{
    const uint8_t *at = data;
    if (!data || bytes < CHUNK_HEADER_BYTES)
        return OCC_E_CORRUPT;
    if (at[0] != format)
        return at[0] > format ? OCC_E_VERSION : OCC_E_CORRUPT;
    uint64_t n = little_endian(at + 4, 4);
    if (at[1] != kind || checksum(at, bytes) != little_endian(at + 8, 8) || n == 0 || n > most)
        return OCC_E_CORRUPT;
    *ret_n = (uint32_t)n;
    *ret_reader = (struct occ_reader){.at = at + CHUNK_HEADER_BYTES, .end = at + bytes};
    return 0;
}

void occ_stream_write(struct occ_writer *out, ZSTD_CCtx *zstd, struct occ_writer *scratch,
                      const uint8_t *bytes, size_t n)
{
    size_t packed = 0;
    scratch->size = 0;
    if (zstd && n >= ZSTD_MIN_BYTES && occ_writer_reserve(scratch, ZSTD_compressBound(n))) {
        packed = ZSTD_compressCCtx(zstd, scratch->data, scratch->capacity, bytes, n, ZSTD_LEVEL);
        if (ZSTD_isError(packed) || packed >= n)
            packed = 0;
    }
    occ_write_u8(out, packed ? STREAM_ZSTD : STREAM_RAW);
    occ_write_varint(out, n);
    if (packed)
        occ_write_varint(out, packed);
    occ_write_bytes(out, packed ? scratch->data : bytes, packed ? packed : n);
}

int occ_stream_read(ZSTD_DCtx *zstd, struct occ_reader *r, size_t most, struct occ_stream *s)
{
    uint8_t kind = occ_read_u8(r);
    uint64_t size = occ_read_varint(r);
    if (r->failed || kind > STREAM_ZSTD || size > most)
        return OCC_E_CORRUPT;
    s->size = (size_t)size;
    if (kind == STREAM_RAW) {
        s->data = occ_read_bytes(r, s->size);
        return s->data ? 0 : OCC_E_CORRUPT;
    }
    uint64_t packed = occ_read_varint(r);
    const uint8_t *from = packed <= SIZE_MAX ? occ_read_bytes(r, (size_t)packed) : NULL;
    if (!from)
        return OCC_E_CORRUPT;
    if (s->capacity < s->size) {
        free(s->memory);
        s->memory = malloc(s->size);
        s->capacity = s->memory ? s->size : 0;
        if (!s->memory)
            return OCC_E_NO_MEMORY;
    }
    s->data = s->memory;
    size_t got = ZSTD_decompressDCtx(zstd, s->memory, s->size, from, (size_t)packed);
    return !ZSTD_isError(got) && got == s->size ? 0 : OCC_E_CORRUPT;
}
