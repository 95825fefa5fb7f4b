/* See decimal.h. */
#include "decimal.h"

#include <ctype.h>

#define EXPONENT_MAX 400

struct decimal {
    uint64_t digits;
    int exponent;
    bool cut; /* digits below the unit were dropped */
};

/* Digits of the integer or of the fraction. false: none, or an integer of more than 64 bits. */
static bool take_digits(const char *text, size_t n, size_t *at, bool fraction, struct decimal *d)
{
    size_t from = *at;
    for (; *at < n && isdigit((unsigned char)text[*at]); ++*at) {
        unsigned digit = (unsigned)(text[*at] - '0');
        if (d->digits > (UINT64_MAX - digit) / 10) {
            if (!fraction)
                return false;
            d->cut |= digit != 0;
            continue;
        }
        if (fraction && d->cut)
            continue;
        d->digits = d->digits * 10 + digit;
        d->exponent -= fraction;
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

static bool apply_exponent(struct decimal *d)
{
    for (; d->exponent > 0 && d->digits != 0; d->exponent--) {
        if (d->digits > UINT64_MAX / 10)
            return false;
        d->digits *= 10;
    }
    for (; d->exponent < 0 && d->digits != 0; d->exponent++) {
        d->cut |= d->digits % 10 != 0;
        d->digits /= 10;
    }
    return true;
}

bool occ_decimal_parse(const char *text, size_t n, int scale, int64_t *ret_value)
{
    struct decimal d = {0};
    bool negative = n > 0 && text[0] == '-';
    size_t at = negative;
    if (!take_digits(text, n, &at, false, &d))
        return false;
    if (at < n && text[at] == '.') {
        at++;
        if (!take_digits(text, n, &at, true, &d))
            return false;
    }
    if (!take_exponent(text, n, &at, &d) || at != n)
        return false;
    d.exponent += scale;
    if (!apply_exponent(&d) || d.digits > INT64_MAX || (scale == 0 && d.cut))
        return false;
    *ret_value = negative ? -(int64_t)d.digits : (int64_t)d.digits;
    return true;
}
