/*
 * Measured numbers as 16-bit codes, as stored in the history. 65535 is "unknown" (NaN); a negative number
 * becomes 0, a too large number the largest code.
 *
 *     value   of a launch: multiples of 1/50000, 0-1.31068, at most 0.00001 off
 *     ratio   of a sample: multiples of 1/10000, 0-6.5534, at most 0.00005 off
 *     blocks  multiples of 1/1000, 0-65.534, at most 0.0005 off
 *     error   0, or code k: 2^((k - 1) / 8 - 20), rounded up: never smaller than the error, from 2^-20 on
 *             at most 9.1 % larger
 */
#pragma once

#include <stdint.h>

/* Columns (columns.h) of the measured values of launches, and of samples. */
#define OCC_VALUE_COLUMNS                                                                                    \
    (OCC_COLUMN_BIT(config) | OCC_COLUMN_BITS(start_ns, correlation) |                                       \
     OCC_COLUMN_BITS(achieved, elapsed_error))
#define OCC_SAMPLE_COLUMNS                                                                                   \
    (OCC_COLUMN_BIT(duration_ns) | OCC_COLUMN_BIT(start_ns) | OCC_COLUMN_BITS(number0, number7))

#define OCC_CODE_UNKNOWN UINT16_MAX

enum occ_unit { OCC_UNIT_value, OCC_UNIT_ratio, OCC_UNIT_blocks, OCC_UNIT_error };

uint16_t occ_code_make(enum occ_unit unit, double number);
double occ_code_read(enum occ_unit unit, uint16_t code);

/* X(name, unit): the numbers of a sample, in the order of their columns. */
#define OCC_SAMPLE_NUMBERS(X)                                                                                \
    X(elapsed, ratio)                                                                                        \
    X(sm_active, ratio)                                                                                      \
    X(resident_blocks, blocks)                                                                               \
    X(stall_registers, ratio)                                                                                \
    X(stall_shared_memory, ratio)                                                                            \
    X(stall_blocks, ratio)                                                                                   \
    X(stall_warps, ratio)                                                                                    \
    X(stall_barriers, ratio)

#define OCC_SAMPLE_ENUMERATOR(name, unit) OCC_SAMPLE_##name,
enum occ_sample_number { OCC_SAMPLE_NUMBERS(OCC_SAMPLE_ENUMERATOR) OCC_SAMPLE_NUMBER_COUNT };

/* Codes of a launch, in the order of their columns. */
enum { OCC_VALUE_ACHIEVED, OCC_VALUE_ACHIEVED_ERROR, OCC_VALUE_ELAPSED, OCC_VALUE_ELAPSED_ERROR };
