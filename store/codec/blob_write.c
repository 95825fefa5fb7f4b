/* Writing of headers and streams of packed blobs. Apart from reading, since who only reads (the SQLite extension) does not
 * need a compressor. */
#include "blob.h"

#include "chunk_model.h"

#define ZSTD_LEVEL     1  /* level 3 gives the same size (measured) */
#define ZSTD_MIN_BYTES 64 /* below, a frame's header eats the gain */

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
    uint64_t sum = occ_blob_checksum(out->data, out->size);
    for (unsigned i = 0; i < 8; i++)
        out->data[8 + i] = (uint8_t)(sum >> (8 * i));
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
    occ_write_u8(out, packed ? OCC_STREAM_ZSTD : OCC_STREAM_RAW);
    occ_write_varint(out, n);
    if (packed)
        occ_write_varint(out, packed);
    occ_write_bytes(out, packed ? scratch->data : bytes, packed ? packed : n);
}
