/* Measured numbers as 16-bit codes (codes.h). */
#include "codes.h"

#include <math.h>

#define LARGEST       (OCC_CODE_UNKNOWN - 1)
#define OCTAVE        8     /* codes per doubling of the error */
#define ERROR_MIN     (-20) /* log2 of the error of code 1 */
#define ERROR_LARGEST 400   /* largest code of an error: 2^29.9 */

static const double steps[] = {
    [OCC_UNIT_value] = 50000,
    [OCC_UNIT_ratio] = 10000,
    [OCC_UNIT_blocks] = 1000,
};

static double read_error(uint16_t code)
{
    return code == 0 ? 0 : exp2((double)(code - 1) / OCTAVE + ERROR_MIN);
}

static uint16_t code_of_error(double error)
{
    if (error <= 0)
        return 0;
    double step = ceil((log2(error) - ERROR_MIN) * OCTAVE) + 1;
    uint16_t code = step < 1 ? 1 : step > ERROR_LARGEST ? ERROR_LARGEST : (uint16_t)step;
    while (code < ERROR_LARGEST && read_error(code) < error) /* corrects rounding inside log2() and exp2() */
        code++;
    return code;
}

uint16_t occ_code_make(enum occ_unit unit, double number)
{
    if (!isfinite(number))
        return OCC_CODE_UNKNOWN;
    if (unit == OCC_UNIT_error)
        return code_of_error(number);
    double code = nearbyint(number * steps[unit]);
    return code < 0 ? 0 : code > LARGEST ? LARGEST : (uint16_t)code;
}

double occ_code_read(enum occ_unit unit, uint16_t code)
{
    if (code == OCC_CODE_UNKNOWN)
        return NAN;
    return unit == OCC_UNIT_error ? read_error(code) : code / steps[unit];
}
