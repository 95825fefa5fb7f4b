/*
 * Packs the launches of one run and device, sorted by start, into bytes, and unpacks the columns that are asked
 * for. The decoder trusts nothing: any bytes give either launches or OCC_E_CORRUPT.
 *
 * Format 1, kind 0 (blob.h says what is around it, and what a stream is), "varint" as in bytes.h, a section is a varint
 * length and that many bytes, n is 1 ... OCC_CHUNK_MAX_ROWS:
 *
 *    16  varint first start; varint divisor (>= 1) of all durations and of all starts minus the first
 *        section each: shape, duration, stream, start, correlation, context, graph node
 *
 * Symbols (shape, stream, context, graph node): the distinct values, most frequent first, and each row's rank.
 *     varint count; count x zigzag varint (difference to the value before); u8 mode:
 *     0  nothing follows: one value
 *     1, 2, 4  that many bits a row, packed, as one stream
 *     8  a stream of bytes (< 224: the rank; 224 + h: rank 224 + h * 256 + the next byte of the second stream;
 *        255: a varint in the third), second stream, third stream
 *     9  the same for 0 = "what followed these four last time", else rank + 1
 * Numbers (duration, start, correlation): the difference to a prediction, d, is split into k low bits, kept as they
 *     are, and d >> k, zigzagged into a byte (255: a varint in the third stream). k follows the size of the last
 *     differences. Streams: bytes, low bits, varints. Predictions: duration, the running mean of its shape; start, the
 *     last end on its stream plus the running mean of such gaps; correlation, the one before plus the running mean of
 *     such steps.
 *
 * Encoder and decoder objects hold scratch memory; one thread at a time. No SQLite in here.
 */
#ifndef OCC_STORE_CHUNK_CODEC_H
#define OCC_STORE_CHUNK_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define OCC_CHUNK_FORMAT   1
#define OCC_CHUNK_MAX_ROWS (UINT32_C(1) << 18)

struct occ_chunk_encoder;
struct occ_chunk_decoder;

/* NULL: no memory. */
struct occ_chunk_encoder *occ_chunk_encoder_new(void);
void occ_chunk_encoder_free(struct occ_chunk_encoder *encoder);

/* Packs `n` rows, sorted by start, each 0 <= start, start + duration < 2^63. `small`: with zstd (for keeps), or as
 * quick as it goes. *ret_data belongs to the encoder until the next call. */
int occ_chunk_encode(struct occ_chunk_encoder *encoder, const struct occ_store_launch *rows, uint32_t n,
                     bool small, const uint8_t **ret_data, size_t *ret_bytes);

/* Totals of each shape of the rows that were packed last: varint count, then a shape a time, in order of id: id (difference to
 * the one before), launches, total, shortest, longest - shortest. */
int occ_chunk_encode_totals(struct occ_chunk_encoder *encoder, const uint8_t **ret_data, size_t *ret_bytes);

enum occ_chunk_columns {
    OCC_CHUNK_SHAPE = 1u,
    OCC_CHUNK_DURATION = 2u,
    OCC_CHUNK_STREAM = 4u,
    OCC_CHUNK_START = 8u,
    OCC_CHUNK_CORRELATION = 16u,
    OCC_CHUNK_CONTEXT = 32u,
    OCC_CHUNK_GRAPH_NODE = 64u,
    OCC_CHUNK_ALL = 127u,
};

/* Columns that were not asked for are NULL or hold nonsense. The decoder's until the next call. */
struct occ_chunk_view {
    uint32_t n;
    const uint64_t *start_ns; /* < 2^63, as are all ends */
    const uint64_t *duration_ns;
    const uint64_t *graph_node;
    const uint32_t *shape;
    const uint32_t *stream;
    const uint32_t *correlation;
    const uint32_t *context;
};

struct occ_chunk_decoder *occ_chunk_decoder_new(void);
void occ_chunk_decoder_free(struct occ_chunk_decoder *decoder);

/* OCC_E_CORRUPT, OCC_E_VERSION (a newer format), OCC_E_NO_MEMORY. */
int occ_chunk_decode(struct occ_chunk_decoder *decoder, const void *data, size_t bytes, unsigned columns,
                     struct occ_chunk_view *ret_view);

/* One shape of a chunk's totals. */
struct occ_chunk_total {
    uint64_t shape, launches, total_ns, min_ns, max_ns;
};
struct occ_reader;
/* Starts reading totals; the number of shapes, or OCC_E_CORRUPT. */
int64_t occ_chunk_totals_open(const void *data, size_t bytes, struct occ_reader *reader);
/* The next shape into *total, which starts as zero and is passed on; false: damaged. */
bool occ_chunk_totals_next(struct occ_reader *reader, struct occ_chunk_total *total);

#endif
