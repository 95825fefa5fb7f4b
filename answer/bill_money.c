/* Prices and amounts that add up; see bill.h. Pure; any thread. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bill.h"
#include "support/cleanup.h"

/* ---- prices ---- */

#define UNIT      INT64_C(1000000)
#define PRICE_MAX (UNIT * UNIT)

/* Reads digits with at most 6 after the point. Returns the end, or NULL. */
static const char *parse_amount(const char *text, int64_t *ret_millionths)
{
    int64_t amount = 0, digit = UNIT;
    const char *at = text;
    for (; isdigit((unsigned char)*at) && amount <= PRICE_MAX; at++)
        amount = amount * 10 + (*at - '0') * UNIT;
    if (at == text || amount > PRICE_MAX)
        return NULL;
    if (*at == '.') {
        const char *point = at++;
        for (; isdigit((unsigned char)*at) && digit > 1; at++)
            amount += (*at - '0') * (digit /= 10);
        if (at == point + 1)
            return NULL;
    }
    *ret_millionths = amount;
    return at;
}

bool occ_price_parse(const char *text, struct occ_price *ret_price)
{
    const char *at = parse_amount(text, &ret_price->millionths);
    size_t n = 0;
    if (!at || ret_price->millionths == 0 || ret_price->millionths > PRICE_MAX || *at++ != ' ')
        return false;
    while (n < OCC_CURRENCY_BYTES - 1 && at[n] >= 'A' && at[n] <= 'Z') {
        ret_price->currency[n] = at[n];
        n++;
    }
    ret_price->currency[n] = 0;
    return n == OCC_CURRENCY_BYTES - 1 && at[n] == 0;
}

static bool contains(const char *text, const char *part)
{
    size_t length = strlen(part);
    while (*text && strncasecmp(text, part, length) != 0)
        text++;
    return *text;
}

const struct occ_price *occ_price_of(const struct occ_prices *prices, const char *gpu)
{
    const struct occ_price *best = NULL;
    bool is_slice = gpu && contains(gpu, " MIG ");
    for (size_t i = 0; gpu && i < prices->n; i++) {
        const struct occ_price *price = &prices->list[i];
        /* the price of a whole GPU is not the price of its slice */
        if (contains(gpu, price->model) && (!is_slice || contains(price->model, "MIG")) &&
            (!best || strlen(price->model) > strlen(best->model)))
            best = price;
    }
    return best;
}

/* ---- amounts that add up ---- */

struct remainder {
    double part; /* part of 1 that rounding down left */
    size_t at;
};

static int largest_first(const void *left, const void *right)
{
    const struct remainder *a = left, *b = right;
    return a->part != b->part ? (a->part < b->part) - (a->part > b->part) : (a->at > b->at) - (a->at < b->at);
}

int occ_share_out(int64_t total, const double *weights, size_t n, int64_t *ret_shares)
{
    _cleanup_(occ_freep) struct remainder *remainders = calloc(n + 1, sizeof *remainders);
    double sum = 0;
    int64_t rest = total;
    if (!remainders)
        return OCC_E_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        sum += weights[i];
        ret_shares[i] = 0;
    }
    if (!(sum > 0))
        return 0;
    for (size_t i = 0; i < n; i++) {
        double share = (double)total * (weights[i] / sum);
        /* rounding of doubles must not give more than there is */
        ret_shares[i] = (int64_t)share < rest ? (int64_t)share : rest;
        remainders[i] = (struct remainder){share - floor(share), i};
        rest -= ret_shares[i];
    }
    qsort(remainders, n, sizeof *remainders, largest_first);
    for (size_t i = 0; rest > 0; i = (i + 1) % n) {
        if (weights[remainders[i].at] > 0) {
            ret_shares[remainders[i].at]++;
            rest--;
        }
    }
    return 0;
}
