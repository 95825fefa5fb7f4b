/* Numbers as JSON writes them, exactly: no double between the text and the integer. Any thread. */
#ifndef OCC_IMPORT_DECIMAL_H
#define OCC_IMPORT_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text x 10^scale, towards zero (what is smaller than the unit is cut off), from "-12.5e3". false: no number, or it does
 * not fit. With scale 0 a fraction is refused. */
bool occ_decimal_parse(const char *text, size_t n, int scale, int64_t *ret_value);

#endif
