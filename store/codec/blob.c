/* Reading of headers and streams of packed blobs, whose bytes are not to be trusted. */
#include "blob.h"

#include "chunk_model.h"
#include "support/error.h"

static uint64_t little_endian(const uint8_t *at, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

uint64_t occ_blob_checksum(const uint8_t *data, size_t size)
{
    return chunk_checksum(data + CHUNK_HEADER_BYTES, size - CHUNK_HEADER_BYTES) ^ chunk_checksum(data, 8);
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
    if (at[1] != kind || occ_blob_checksum(at, bytes) != little_endian(at + 8, 8) || n == 0 || n > most)
        return OCC_E_CORRUPT;
    *ret_n = (uint32_t)n;
    *ret_reader = (struct occ_reader){.at = at + CHUNK_HEADER_BYTES, .end = at + bytes};
    return 0;
}

int occ_stream_read(ZSTD_DCtx *zstd, struct occ_reader *r, size_t most, struct occ_stream *s)
{
    uint8_t kind = occ_read_u8(r);
    uint64_t size = occ_read_varint(r);
    if (r->failed || kind > OCC_STREAM_ZSTD || size > most)
        return OCC_E_CORRUPT;
    s->size = (size_t)size;
    if (kind == OCC_STREAM_RAW) {
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
