/* See decimal.h. */
#include "decimal.h"

#include <ctype.h>

#define EXPONENT_MAX 400

__extension__ typedef unsigned __int128 wide;
#define DIGITS_MAX ((wide)UINT64_MAX * UINT64_MAX / 100) /* one more digit fits */

struct decimal {
    wide digits;
    int exponent;
    bool cut; /* digits below the unit were dropped */
};

/* "12.5": digits on both sides of a point. */
static bool take_digits(const char *text, size_t n, size_t *at, struct decimal *d)
{
    bool point = false;
    size_t from = *at;
    for (; *at < n && (isdigit((unsigned char)text[*at]) || text[*at] == '.'); ++*at) {
        if (text[*at] == '.') {
            if (point || *at == from || *at + 1 == n || !isdigit((unsigned char)text[*at + 1]))
                return false;
            point = true;
        } else if (d->digits <= DIGITS_MAX) {
            d->digits = d->digits * 10 + (unsigned)(text[*at] - '0');
            d->exponent -= point;
        } else {
            d->cut |= text[*at] != '0';
            d->exponent += !point;
        }
    }
    return *at > from;
}

static bool take_exponent(const char *text, size_t n, size_t *at, struct decimal *d)
{
    int sign = 1, value = 0;
    size_t from;
    if (*at == n || (text[*at] | 0x20) != 'e')
        return true;
    if (++*at < n && (text[*at] == '-' || text[*at] == '+'))
        sign = text[(*at)++] == '-' ? -1 : 1;
    for (from = *at; *at < n && isdigit((unsigned char)text[*at]); ++*at)
        value = value < EXPONENT_MAX ? value * 10 + (text[*at] - '0') : value;
    d->exponent += sign * value;
    return *at > from;
}

bool occ_decimal_parse(const char *text, size_t n, int scale, int64_t *ret_value)
{
    struct decimal d = {.exponent = scale};
    bool negative = n > 0 && text[0] == '-';
    size_t at = negative;
    if (!take_digits(text, n, &at, &d) || !take_exponent(text, n, &at, &d) || at != n)
        return false;
    for (; d.exponent > 0 && d.digits > 0 && d.digits <= INT64_MAX; d.exponent--)
        d.digits *= 10;
    for (; d.exponent < 0 && d.digits > 0; d.exponent++) {
        d.cut |= d.digits % 10 != 0;
        d.digits /= 10;
    }
    if (d.digits > INT64_MAX || (scale == 0 && d.cut))
        return false;
    *ret_value = negative ? -(int64_t)d.digits : (int64_t)d.digits;
    return true;
}
