/*
 * The one format of packed rows in a history: launches, measured values, samples of devices.
 * Columns are packed one by one, so that a reader unpacks only the columns that it needs.
 *
 *      0  u32  format, 1
 *      4  u32  n, number of rows, at least 1
 *      8  u64  XXH3 (64 bits) of everything from byte 16 on, seeded with bytes 0-7
 *     16  u32  columns: bit c is the c-th of OCC_COLUMNS
 *     20  each column: varint base, which is the first value; u8 planes, 0-8; then each plane:
 *         u8 0 and n bytes, or u8 1 and a zstd frame of n bytes
 *
 * Integers are little-endian, varints as in bytes.h. Byte i of plane p is byte p of row i's code; bytes
 * without a plane are 0. A value that is stored as it is is base ^ code. All others are last[key % 4096] +
 * unzigzag(code), where last[] is the base at first and then the value plus the row's value in the column
 * `added`; key is the row's value in the column `key`; both are 0 if there is no such column. Values wrap
 * at their number of bits, so no code makes a value too large, and keys that collide in last[] only make
 * the file larger. Decoding is safe on any bytes: the result is columns with values in range, or an error.
 * One thread at a time for an encoder or a decoder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, bits, stored as it is, key, added). Starts ascend, start + duration < 2^63. achieved ...
 * elapsed_error are a launch's measured values, number0 ... number7 a device's samples (codes.h), range a
 * launch's stored_range. */
/* clang-format off */
#define OCC_COLUMNS(X) \
    X(config, 32, true, none, none) X(duration_ns, 63, false, config, none) \
    X(stream, 32, true, none, none) X(start_ns, 63, false, stream, duration_ns) \
    X(correlation, 32, false, none, none) X(context, 32, false, none, none) X(graph_node, 64, false, none, none) \
    X(achieved, 16, false, config, none) X(achieved_error, 16, true, none, none) \
    X(elapsed, 16, false, config, none) X(elapsed_error, 16, true, none, none) \
    X(number0, 16, true, none, none) X(number1, 16, true, none, none) X(number2, 16, true, none, none) \
    X(number3, 16, true, none, none) X(number4, 16, true, none, none) X(number5, 16, true, none, none) \
    X(number6, 16, true, none, none) X(number7, 16, true, none, none) X(range, 32, false, none, none)
#define OCC_COLUMN_ID(name, bits, as_is, key, added)     OCC_COLUMN_##name,
#define OCC_COLUMN_VALUES(name, bits, as_is, key, added) const uint64_t *name;
#define OCC_COLUMN_FROM(rows, member)                    {&(rows)->member, sizeof *(rows), sizeof (rows)->member}
/* clang-format on */

enum occ_column { OCC_COLUMNS(OCC_COLUMN_ID) OCC_COLUMN_none /* also the number of columns */ };

#define OCC_COLUMN_BIT(name)         (UINT32_C(1) << OCC_COLUMN_##name)
#define OCC_COLUMN_BITS(first, last) ((UINT32_C(2) << OCC_COLUMN_##last) - OCC_COLUMN_BIT(first))
/* Columns that may be missing; then every row has 0. */
#define OCC_COLUMNS_OPTIONAL     OCC_COLUMN_BIT(range)
#define OCC_COLUMNS_FORMAT       1
#define OCC_COLUMNS_HEADER_BYTES 16
#define OCC_COLUMNS_MAX_ROWS     (UINT32_C(1) << 18)
#define OCC_COLUMNS_SLOTS        4096u /* length of last[] */

extern const struct occ_column_format {
    uint8_t bits;       /* width of a value */
    uint8_t key, added; /* enum occ_column; OCC_COLUMN_none: no such column */
    bool as_is;
} occ_column_formats[OCC_COLUMN_none];

/* The columns, n values each; NULL: not decoded. */
struct occ_columns {
    uint32_t n;
    union {
        const uint64_t *column[OCC_COLUMN_none];
        struct {
            OCC_COLUMNS(OCC_COLUMN_VALUES)
        };
    };
};

struct occ_columns_decoder *occ_columns_decoder_new(void); /* NULL: no memory */
void occ_columns_decoder_free(struct occ_columns_decoder *decoder);

/* Decodes the columns of the set `wanted`, and the columns from which they are computed. The decoder owns the
 * columns until it decodes other bytes; calls for the same bytes accumulate. OCC_E_CORRUPT (also: a column is
 * missing), OCC_E_VERSION (a newer format), OCC_E_NO_MEMORY. */
int occ_columns_decode(struct occ_columns_decoder *decoder, const void *data, size_t bytes, uint32_t wanted,
                       struct occ_columns *ret_columns);

/* Writes the checksum into the data, which has at least a header. */
void occ_columns_seal(uint8_t *data, size_t bytes);

/* A member of 2, 4 or 8 bytes in an array of structs: OCC_COLUMN_FROM(). NULL: no such column. */
struct occ_column_source {
    const void *first;
    size_t stride, bytes;
};

/* Functions of columns_write.c, which the SQLite extension does not contain. */
struct occ_columns_encoder *occ_columns_encoder_new(void); /* NULL: no memory */
void occ_columns_encoder_free(struct occ_columns_encoder *encoder);

/* Encodes `n` rows from OCC_COLUMN_none sources. *ret_data belongs to the encoder until the next call.
 * OCC_E_INVALID: n is 0 or more than OCC_COLUMNS_MAX_ROWS. OCC_E_NO_MEMORY. */
int occ_columns_encode(struct occ_columns_encoder *encoder, const struct occ_column_source *sources,
                       uint32_t n, bool compress, const uint8_t **ret_data, size_t *ret_bytes);
