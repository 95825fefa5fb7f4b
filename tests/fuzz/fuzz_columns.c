/*
 * Fuzzes the decoder of packed columns: any bytes give columns within their limits or an error, without an
 * access outside the buffers. The checksum would stop nearly every input, so it is corrected first. Input:
 *
 *   u8   bit 7: the rest are a u8 that selects valid bytes and patches {u16 offset, u8 value} of these bytes;
 *        otherwise the rest are the bytes to decode
 *   u32  columns to decode
 *
 * Histograms have similar codes, so the bytes are decoded as a histogram too.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/bytes.h"
#include "store/codec/codes.h"
#include "store/codec/columns.h"
#include "store/codec/histogram.h"

#define ROWS 700u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *blob, size_t size)
{
    memcpy(blob, (const uint8_t[4]){OCC_COLUMNS_FORMAT}, 4);
    blob[6] = blob[7] = 0; /* keeps n small */
    if (size > OCC_COLUMNS_HEADER_BYTES + 3)
        blob[OCC_COLUMNS_HEADER_BYTES + 3] = 0; /* limits the columns to existing ones */
    occ_columns_seal(blob, size);
}

static void check(const struct occ_columns *columns)
{
    static const uint8_t bits[] = {
#define X(name, bits, as_is, key, added) bits,
        OCC_COLUMNS(X)
#undef X
    };
    for (unsigned c = 0; c < OCC_COLUMN_none; c++)
        for (uint32_t i = 0; columns->column[c] && i < columns->n; i++)
            if (columns->column[c][i] > UINT64_MAX >> (64 - bits[c]))
                abort();
    for (uint32_t i = 0; columns->start_ns && i < columns->n; i++)
        if ((i > 0 && columns->start_ns[i] < columns->start_ns[i - 1]) ||
            (columns->duration_ns && columns->start_ns[i] + columns->duration_ns[i] > INT64_MAX))
            abort();
}

static void decode(const uint8_t *blob, size_t size, uint32_t wanted)
{
    static struct occ_columns_decoder *decoder;
    struct occ_columns columns;
    struct occ_histogram histogram = {0};
    if (size >= OCC_COLUMNS_HEADER_BYTES + 4) /* only columns that the blob has */
        wanted &= (uint32_t)occ_little_endian(blob + OCC_COLUMNS_HEADER_BYTES, 4);
    if (!decoder)
        decoder = occ_columns_decoder_new();
    if (decoder && occ_columns_decode(decoder, blob, size, wanted, &columns) == 0)
        check(&columns);
    (void)occ_histogram_add_bytes(&histogram, blob + OCC_COLUMNS_HEADER_BYTES,
                                  size - OCC_COLUMNS_HEADER_BYTES);
    occ_histogram_free(&histogram);
}

/* Returns valid bytes: launches, values or samples, compressed or not. The caller frees them. */
static uint8_t *sound_bytes(uint8_t which, size_t *ret_size)
{
    static const uint32_t sets[] = {OCC_COLUMN_BITS(config, graph_node), OCC_VALUE_COLUMNS,
                                    OCC_SAMPLE_COLUMNS, OCC_COLUMN_BITS(duration_ns, context)};
    static struct occ_columns_encoder *encoder;
    static uint64_t rows[OCC_COLUMN_none][ROWS];
    struct occ_column_source sources[OCC_COLUMN_none] = {{0}};
    const uint8_t *data = NULL;
    if (!encoder)
        encoder = occ_columns_encoder_new();
    for (unsigned c = 0; c < OCC_COLUMN_none; c++) {
        for (uint32_t i = 0; i < ROWS; i++)
            rows[c][i] = c == OCC_COLUMN_start_ns ? 1000000 + i * 50000
                         : which & 4              ? 1 + i * 31 % 300
                                                  : i * 7919 % 50021;
        if (sets[which & 3] >> c & 1)
            sources[c] = (struct occ_column_source){rows[c], 8, 8};
    }
    uint32_t n = which & 16 ? 3 : ROWS;
    if (!encoder || occ_columns_encode(encoder, sources, n, which & 8, &data, ret_size) != 0)
        return NULL;
    uint8_t *copy = malloc(*ret_size);
    if (copy)
        memcpy(copy, data, *ret_size);
    return copy;
}

static uint8_t *patched_bytes(const uint8_t *data, size_t size, size_t *ret_size)
{
    uint8_t *blob = size < 1 ? NULL : sound_bytes(data[0], ret_size);
    for (size_t at = 1; blob && at + 3 <= size; at += 3)
        blob[(data[at] | (size_t)data[at + 1] << 8) % *ret_size] = data[at + 2];
    return blob;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5)
        return 0;
    uint32_t wanted = (uint32_t)occ_little_endian(data + 1, 4);
    size_t bytes = size - 5;
    uint8_t *blob = NULL; /* a separate allocation, so that the sanitizer sees its end */
    if (data[0] & 0x80)
        blob = patched_bytes(data + 5, size - 5, &bytes);
    else if (bytes > 0 && (blob = malloc(bytes)) != NULL)
        memcpy(blob, data + 5, bytes);
    if (blob && bytes >= OCC_COLUMNS_HEADER_BYTES) {
        mend(blob, bytes);
        decode(blob, bytes, wanted);
    }
    free(blob);
    return 0;
}
