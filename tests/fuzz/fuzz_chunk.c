/*
 * The chunk decoder on any bytes: it gives launches or an error, and never reads or writes where it must not. The
 * checksum would stop nearly every input at the door, so it is put right first. Input:
 *   u8 columns to unpack; bit 7: the rest are patches {u16 offset, u8 value} of a sound chunk, else it is a chunk
 *   u8 which sound chunk
 * Totals and histograms, which are read in the same spirit, get the same bytes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/bytes.h"
#include "store/codec/chunk_codec.h"
#include "store/codec/chunk_model.h"
#include "store/codec/histogram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *chunk, size_t size)
{
    chunk[0] = OCC_CHUNK_FORMAT;
    chunk[1] = 0;
    chunk[6] &= 3; /* n stays near what is allowed */
    chunk[7] = 0;
    uint64_t sum =
        chunk_checksum(chunk + CHUNK_HEADER_BYTES, size - CHUNK_HEADER_BYTES) ^ chunk_checksum(chunk, 8);
    for (unsigned i = 0; i < 8; i++)
        chunk[8 + i] = (uint8_t)(sum >> (8 * i));
}

static void decode(const uint8_t *chunk, size_t size, unsigned columns)
{
    static struct occ_chunk_decoder *decoder;
    struct occ_chunk_view view;
    if (!decoder)
        decoder = occ_chunk_decoder_new();
    if (!decoder || occ_chunk_decode(decoder, chunk, size, columns, &view) != 0)
        return;
    for (uint32_t i = 0; i < view.n; i++) /* touch what was promised */
        if ((columns & OCC_CHUNK_START &&
             (view.start_ns[i] > INT64_MAX || view.duration_ns[i] > INT64_MAX)) ||
            (columns & OCC_CHUNK_GRAPH_NODE && view.graph_node[i] == 0x5eed && view.n > OCC_CHUNK_MAX_ROWS))
            abort();
}

static void read_totals(const uint8_t *data, size_t size)
{
    struct occ_reader reader;
    struct occ_chunk_total total = {0};
    struct occ_histogram histogram = {0};
    int64_t n = occ_chunk_totals_open(data, size, &reader);
    for (int64_t i = 0; i < n && occ_chunk_totals_next(&reader, &total); i++)
        ;
    (void)occ_histogram_add_bytes(&histogram, data, size);
    occ_histogram_free(&histogram);
}

/* A chunk that is right: few or many symbols, quick or small. malloc'ed. */
static uint8_t *sound_chunk(uint8_t which, size_t *ret_size)
{
    static struct occ_chunk_encoder *encoder;
    static struct occ_store_launch rows[700];
    const uint8_t *data = NULL;
    if (!encoder)
        encoder = occ_chunk_encoder_new();
    uint32_t shapes = which & 1 ? 300 : 3, streams = which & 2 ? 40 : 2;
    for (uint32_t i = 0; i < 700; i++)
        rows[i] = (struct occ_store_launch){.start_ns = 1000000 + (int64_t)i * 50000,
                                            .duration_ns = 20000 + i * 7919 % 5000,
                                            .shape = 1 + i * 31 % shapes,
                                            .stream = 7 + i % streams,
                                            .correlation = i * 3,
                                            .graph_node = which & 4 ? i % 50 : 0,
                                            .context = 1};
    if (!encoder || occ_chunk_encode(encoder, rows, 700, which & 8, &data, ret_size) != 0)
        return NULL;
    uint8_t *copy = malloc(*ret_size);
    if (copy)
        memcpy(copy, data, *ret_size);
    return copy;
}

static uint8_t *patched_chunk(const uint8_t *data, size_t size, size_t *ret_size)
{
    uint8_t *chunk = size < 1 ? NULL : sound_chunk(data[0], ret_size);
    for (size_t at = 1; chunk && at + 3 <= size; at += 3)
        chunk[(data[at] | (size_t)data[at + 1] << 8) % *ret_size] = data[at + 2];
    return chunk;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    size_t bytes = size - 1;
    uint8_t *chunk = NULL; /* its own allocation: the sanitizer sees the end */
    read_totals(data + 1, size - 1);
    if (data[0] & 0x80)
        chunk = patched_chunk(data + 1, size - 1, &bytes);
    else if (bytes > 0 && (chunk = malloc(bytes)) != NULL)
        memcpy(chunk, data + 1, bytes);
    if (chunk && bytes >= CHUNK_HEADER_BYTES) {
        mend(chunk, bytes);
        decode(chunk, bytes, data[0] & OCC_CHUNK_ALL);
    }
    free(chunk);
    return 0;
}
