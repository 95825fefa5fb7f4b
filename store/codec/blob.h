/*
 * What packed blobs of the history have in common: a header with a checksum, and streams, which are bytes as they are
 * or through zstd. chunk_codec.h and series_codec.h say what is in them. No SQLite in here; one thread at a time.
 *
 *     0  u8   format
 *     1  u8   kind
 *     2  u16  0
 *     4  u32  n, rows, little-endian
 *     8  u64  checksum of bytes 0-7 and of everything from 16 on
 *    16  what the format says
 *
 * Stream: u8 kind (0 as is, 1 zstd), varint bytes, and for zstd varint compressed bytes; then the bytes.
 */
#ifndef OCC_STORE_BLOB_H
#define OCC_STORE_BLOB_H

#include <zstd.h>

#include "bytes.h"

enum occ_stream_kind { OCC_STREAM_RAW = 0, OCC_STREAM_ZSTD = 1 };

/* Of `size` bytes, at least a header's. */
uint64_t occ_blob_checksum(const uint8_t *data, size_t size);

/* ---- writing (blob_write.c) ---- */

/* Begins `out`, which is empty, with a header; occ_blob_seal() ends it. */
void occ_blob_begin(struct occ_writer *out, uint8_t format, uint8_t kind, uint32_t n);
void occ_blob_seal(struct occ_writer *out);

/* zstd NULL: as they are. `scratch` is overwritten. */
void occ_stream_write(struct occ_writer *out, ZSTD_CCtx *zstd, struct occ_writer *scratch,
                      const uint8_t *bytes, size_t n);

/* ---- reading (blob.c) ---- */

/* OCC_E_CORRUPT; OCC_E_VERSION: of a newer format. *ret_reader begins behind the header, 1 <= *ret_n <= most. */
int occ_blob_open(const void *data, size_t bytes, uint8_t format, uint8_t kind, uint32_t most,
                  uint32_t *ret_n, struct occ_reader *ret_reader);

/* A stream after decompression: in the blob itself or in `memory`, which the owner frees. */
struct occ_stream {
    const uint8_t *data;
    size_t size;
    uint8_t *memory;
    size_t capacity;
};

/* OCC_E_CORRUPT (also when it is larger than `most`), OCC_E_NO_MEMORY. */
int occ_stream_read(ZSTD_DCtx *zstd, struct occ_reader *reader, size_t most, struct occ_stream *stream);

#endif
