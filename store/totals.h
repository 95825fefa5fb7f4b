/* Totals of launches, and tables of totals by key. One thread at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "store/codec/histogram.h"
#include "support/map.h"

struct occ_totals {
    uint64_t key;
    uint64_t launches, total_ns, min_ns, max_ns; /* min_ns is UINT64_MAX without launches */
    int64_t first_ns, last_ns;                   /* starts; INT64_MAX, INT64_MIN without launches */
    uint64_t others_ns; /* time of launches that a filter excludes although measured values include them */
    struct occ_histogram histogram;
};

struct occ_totals_table {
    struct occ_totals *entries;
    uint32_t n;
    size_t allocated;
    struct occ_map map; /* key -> index */
};

void occ_totals_table_free(struct occ_totals_table *table);

/* The entry of `key`, added if missing. NULL: no memory. The pointer is valid until the next call. */
struct occ_totals *occ_totals_at(struct occ_totals_table *table, uint64_t key);

static inline double occ_totals_all_ns(const struct occ_totals *t)
{
    return (double)t->total_ns + (double)t->others_ns;
}

/* Removes the entries with keys below `first_key`. */
void occ_totals_remove(struct occ_totals_table *table, uint64_t first_key);

static inline uint64_t occ_add_saturated(uint64_t a, uint64_t b)
{
    /* SQL's largest number is the ceiling */
    uint64_t sum = a + b;
    return sum < a || sum > INT64_MAX ? INT64_MAX : sum;
}

/* Adds one launch. Adding with the histogram can fail for lack of memory. */
static inline void occ_totals_add(struct occ_totals *t, int64_t start_ns, uint64_t duration_ns)
{
    t->launches++;
    t->total_ns = occ_add_saturated(t->total_ns, duration_ns);
    t->min_ns = duration_ns < t->min_ns ? duration_ns : t->min_ns;
    t->max_ns = duration_ns > t->max_ns ? duration_ns : t->max_ns;
    t->first_ns = start_ns < t->first_ns ? start_ns : t->first_ns;
    t->last_ns = start_ns > t->last_ns ? start_ns : t->last_ns;
}

/* Adds all totals except the histogram. */
static inline void occ_totals_add_totals(struct occ_totals *t, const struct occ_totals *other)
{
    t->launches += other->launches;
    t->total_ns = occ_add_saturated(t->total_ns, other->total_ns);
    t->min_ns = other->min_ns < t->min_ns ? other->min_ns : t->min_ns;
    t->max_ns = other->max_ns > t->max_ns ? other->max_ns : t->max_ns;
    t->first_ns = other->first_ns < t->first_ns ? other->first_ns : t->first_ns;
    t->last_ns = other->last_ns > t->last_ns ? other->last_ns : t->last_ns;
}
