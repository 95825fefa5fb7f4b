/*
 * The decoder of series on any bytes: it gives rows or an error, and never reads or writes where it must not. The
 * checksum would stop nearly every input at the door, so it is put right first. Input:
 *   u8 bit 0: kind; bit 7: the rest are patches {u16 offset, u8 value} of a sound blob, else it is a blob
 *   u8 which sound blob
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/chunk_model.h"
#include "store/codec/series_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *blob, size_t size, enum occ_series_kind kind)
{
    blob[0] = OCC_SERIES_FORMAT;
    blob[1] = (uint8_t)kind;
    blob[6] &= 1; /* n stays near what is allowed */
    blob[7] = 0;
    uint64_t sum =
        chunk_checksum(blob + CHUNK_HEADER_BYTES, size - CHUNK_HEADER_BYTES) ^ chunk_checksum(blob, 8);
    for (unsigned i = 0; i < 8; i++)
        blob[8 + i] = (uint8_t)(sum >> (8 * i));
}

static void decode(const uint8_t *blob, size_t size, enum occ_series_kind kind)
{
    static struct occ_series_decoder *decoder;
    const struct occ_series_row *rows = NULL;
    uint32_t n = 0;
    if (!decoder)
        decoder = occ_series_decoder_new();
    if (!decoder || occ_series_decode(decoder, kind, blob, size, &rows, &n) != 0)
        return;
    for (uint32_t i = 0; i < n; i++) { /* what was promised */
        uint64_t length = kind == OCC_SERIES_SAMPLES ? rows[i].wide[0] : 0;
        if (rows[i].start_ns < 0 || length > (uint64_t)(INT64_MAX - rows[i].start_ns) ||
            (i > 0 && rows[i].start_ns < rows[i - 1].start_ns) ||
            (kind == OCC_SERIES_VALUES && (rows[i].wide[0] | rows[i].wide[1]) > UINT32_MAX))
            abort();
    }
}

/* A blob that is right. malloc'ed. */
static uint8_t *sound_blob(enum occ_series_kind kind, uint8_t which, size_t *ret_size)
{
    static struct occ_series_encoder *encoder;
    struct occ_series_row rows[300];
    const uint8_t *data = NULL;
    if (!encoder)
        encoder = occ_series_encoder_new();
    memset(rows, 0, sizeof rows);
    for (uint32_t i = 0; i < 300; i++) {
        rows[i].start_ns = 1000000 + (int64_t)i * (which & 1 ? 7919 : 50000);
        rows[i].wide[0] = which & 2 ? i * 977 : 50000;
        rows[i].wide[1] = kind == OCC_SERIES_VALUES ? i % 9 : 0;
        for (int k = 0; k < (kind == OCC_SERIES_VALUES ? 4 : 8); k++)
            rows[i].narrow[k] = (uint16_t)(which & 4 ? i * 7919 : 500);
    }
    if (!encoder || occ_series_encode(encoder, kind, rows, which & 8 ? 3 : 300, &data, ret_size) != 0)
        return NULL;
    uint8_t *copy = malloc(*ret_size);
    if (copy)
        memcpy(copy, data, *ret_size);
    return copy;
}

static uint8_t *patched_blob(enum occ_series_kind kind, const uint8_t *data, size_t size, size_t *ret_size)
{
    uint8_t *blob = size < 1 ? NULL : sound_blob(kind, data[0], ret_size);
    for (size_t at = 1; blob && at + 3 <= size; at += 3)
        blob[(data[at] | (size_t)data[at + 1] << 8) % *ret_size] = data[at + 2];
    return blob;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    enum occ_series_kind kind = data[0] & 1 ? OCC_SERIES_VALUES : OCC_SERIES_SAMPLES;
    size_t bytes = size - 1;
    uint8_t *blob = NULL; /* its own allocation: the sanitizer sees the end */
    if (data[0] & 0x80)
        blob = patched_blob(kind, data + 1, size - 1, &bytes);
    else if (bytes > 0 && (blob = malloc(bytes)) != NULL)
        memcpy(blob, data + 1, bytes);
    if (blob && bytes >= CHUNK_HEADER_BYTES) {
        mend(blob, bytes, kind);
        decode(blob, bytes, kind);
    }
    free(blob);
    return 0;
}
