/*
 * Packs what hardware counters said as series: rows of numbers in order of their start. The decoder trusts nothing:
 * any bytes give either rows or OCC_E_CORRUPT.
 *
 *     kind               wide numbers           narrow numbers (16 bits)
 *     1 launch values    correlation, shape     achieved, its error, elapsed, its error
 *     2 device samples   duration               elapsed, SMs active, resident blocks per active SM, five stalls
 *
 * Format 1 (blob.h says what is around it): a stream for each of: starts (varints, the first absolute, then the
 * distance to the one before; of samples the zigzagged distance to the end of the one before), each wide number
 * (zigzagged varints of the difference to the one before), each narrow number (the difference to the one before,
 * zigzagged to 16 bits: n low bytes, then n high bytes).
 *
 * Narrow numbers, 65535 is "not known":
 *     value   of a launch: 1/50000, to the nearest, 0...1.31068: at most 0.00001 off
 *     ratio   of a sample: ten-thousandths, to the nearest, 0...6.5534: at most 0.00005 off
 *     blocks  thousandths, to the nearest, 0...65.534: at most 0.0005 off
 *     error   0, or k: 2^((k - 1) / 8 - 20), rounded up: never smaller than what was measured, from 2^-20 on at most
 *             9.1 % larger
 *
 * Objects hold scratch memory for OCC_SERIES_MAX_ROWS rows at most; one thread at a time. No SQLite in here.
 */
#ifndef OCC_STORE_SERIES_CODEC_H
#define OCC_STORE_SERIES_CODEC_H

#include <stddef.h>
#include <stdint.h>

#define OCC_SERIES_FORMAT   1
#define OCC_SERIES_MAX_ROWS (UINT32_C(1) << 16)
#define OCC_SERIES_WIDE     2
#define OCC_SERIES_NARROW   8
#define OCC_SERIES_UNKNOWN  UINT16_MAX

enum occ_series_kind { OCC_SERIES_VALUES = 1, OCC_SERIES_SAMPLES = 2 };

/* Which number is what. */
enum { OCC_VALUE_CORRELATION, OCC_VALUE_SHAPE };
enum { OCC_VALUE_ACHIEVED, OCC_VALUE_ACHIEVED_ERROR, OCC_VALUE_ELAPSED, OCC_VALUE_ELAPSED_ERROR };
enum { OCC_SAMPLE_DURATION };

/* X(name, SQL's name, unit): the narrow numbers of a sample, in their order. */
#define OCC_SAMPLE_NUMBERS(X)                                                                                \
    X(elapsed, "elapsed", ratio)                                                                             \
    X(sm_active, "smActive", ratio)                                                                          \
    X(resident_blocks, "residentBlocks", blocks)                                                             \
    X(stall_registers, "stallRegisters", ratio)                                                              \
    X(stall_shared_memory, "stallSharedMemory", ratio)                                                       \
    X(stall_blocks, "stallBlocks", ratio)                                                                    \
    X(stall_warps, "stallWarps", ratio)                                                                      \
    X(stall_barriers, "stallBarriers", ratio)

enum occ_sample_number {
#define X(name, sql, unit) OCC_SAMPLE_##name,
    OCC_SAMPLE_NUMBERS(X)
#undef X
};

/* Numbers that a kind has not are 0. 0 <= start; of samples start + duration < 2^63. */
struct occ_series_row {
    int64_t start_ns;
    uint64_t wide[OCC_SERIES_WIDE]; /* of launch values < 2^32 */
    uint16_t narrow[OCC_SERIES_NARROW];
};

/* NaN and infinities are not known; what is below 0 is 0, what is too large is the largest. */
uint16_t occ_series_value(double value);
uint16_t occ_series_ratio(double ratio);
uint16_t occ_series_blocks(double blocks);
uint16_t occ_series_error(double error);
/* And back; NaN where not known. */
double occ_series_read_value(uint16_t code);
double occ_series_read_ratio(uint16_t code);
double occ_series_read_blocks(uint16_t code);
double occ_series_read_error(uint16_t code);

struct occ_series_encoder;
struct occ_series_encoder *occ_series_encoder_new(void); /* NULL: no memory */
void occ_series_encoder_free(struct occ_series_encoder *encoder);
/* `n` rows, 1 ... OCC_SERIES_MAX_ROWS, sorted by start. *ret_data belongs to the encoder until the next call. */
int occ_series_encode(struct occ_series_encoder *encoder, enum occ_series_kind kind,
                      const struct occ_series_row *rows, uint32_t n, const uint8_t **ret_data,
                      size_t *ret_bytes);

struct occ_series_decoder;
struct occ_series_decoder *occ_series_decoder_new(void); /* NULL: no memory */
void occ_series_decoder_free(struct occ_series_decoder *decoder);
/* OCC_E_CORRUPT, OCC_E_VERSION (a newer format), OCC_E_NO_MEMORY. The rows are the decoder's until the next call. */
int occ_series_decode(struct occ_series_decoder *decoder, enum occ_series_kind kind, const void *data,
                      size_t bytes, const struct occ_series_row **ret_rows, uint32_t *ret_n);

#endif
