/*
 * Who has the bounded places of series: every owner (a user, a pod) a fair share, whoever comes first. Where
 * none is free, an owner takes a place from the owner with the most, as long as that one still has as many as
 * the taker afterwards. A fixed place is kept for what the daemon knows to exist, and takes any other. Each
 * call costs a walk over the places. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct occ_place {
    uint64_t owner;
    size_t n_owners;  /* places of this owner that are not fixed, this one too */
    int64_t used_ns;  /* the last time; monotonic */
    int64_t ended_ns; /* when its owner left it to others; 0: not yet */
    bool is_used, is_fixed;
};

#define OCC_PLACE_NONE SIZE_MAX

/* Takes a place of `n` and returns its number: a free one, else the one that was left first, else another
 * owner's that was silent longest. OCC_PLACE_NONE: the owner has its share. */
size_t occ_places_take(struct occ_place *places, size_t n, uint64_t owner, bool is_fixed);

/* Frees places that were left at `left_ns` or before, and those not fixed that were last used at `used_ns` or
 * before. Whether there were any. */
bool occ_places_expire(struct occ_place *places, size_t n, int64_t left_ns, int64_t used_ns);
