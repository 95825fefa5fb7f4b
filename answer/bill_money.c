/* Prices, amounts that add up, and held time; see bill.h. Pure; any thread. */
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
    for (size_t i = 0; gpu && i < prices->n; i++) {
        const struct occ_price *price = &prices->list[i];
        if (contains(gpu, price->model) && (!best || strlen(price->model) > strlen(best->model)))
            best = price;
    }
    return best;
}

/* ---- amounts that add up ---- */

struct remainder {
    double part; /* of 1, that rounding down left */
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

/* ---- held time ---- */

struct edge {
    int64_t gpu, time;
    size_t holder;
    bool is_start;
};

static int by_gpu_and_time(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    return a->gpu != b->gpu ? (a->gpu > b->gpu) - (a->gpu < b->gpu)
                            : (a->time > b->time) - (a->time < b->time);
}

/* Lists both edges of all holders that share their GPU; sets the time of the others. */
static size_t list_edges(struct occ_holder *holders, size_t n, struct edge *edges)
{
    size_t n_edges = 0;
    for (size_t i = 0; i < n; i++) {
        struct occ_holder *h = &holders[i];
        h->held_s = h->last_ns > h->first_ns ? (double)(h->last_ns - h->first_ns) * 1e-9 : 0;
        if (h->is_alone || !(h->held_s > 0))
            continue;
        h->held_s = 0;
        edges[n_edges++] = (struct edge){h->gpu, h->first_ns, i, true};
        edges[n_edges++] = (struct edge){h->gpu, h->last_ns, i, false};
    }
    return n_edges;
}

int occ_held_divide(struct occ_holder *holders, size_t n)
{
    _cleanup_(occ_freep) struct edge *edges = calloc(2 * n + 1, sizeof *edges);
    double each_s = 0; /* the time of a run that holds the GPU since its first edge */
    size_t active = 0;
    if (!edges)
        return OCC_E_NO_MEMORY;
    size_t n_edges = list_edges(holders, n, edges);
    if (n_edges > 1)
        qsort(edges, n_edges, sizeof *edges, by_gpu_and_time);
    for (size_t i = 0; i < n_edges; i++) {
        const struct edge *e = &edges[i];
        if (active == 0)
            each_s = 0;
        else
            each_s += (double)(e->time - edges[i - 1].time) * 1e-9 / (double)active;
        holders[e->holder].held_s += e->is_start ? -each_s : each_s;
        active = e->is_start ? active + 1 : active - 1;
    }
    return 0;
}
