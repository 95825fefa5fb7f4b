/*
 * Distributes a bounded number of slots for series: every owner (a user, a pod) gets a fair share, regardless
 * of order. If no slot is free, an owner takes one from the owner with the most, provided that this owner
 * keeps as many as the taker then has. A fixed slot is for a GPU that the daemon knows to exist; it may
 * replace any other slot. Each call walks over all slots. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct occ_slot {
    uint64_t owner;
    size_t owner_slots; /* number of this owner's slots that are not fixed, including this one */
    int64_t used_ns;    /* last use; monotonic */
    int64_t ended_ns;   /* end of use, after which others may take it; 0: in use */
    bool is_used, is_fixed;
};

#define OCC_SLOT_NONE SIZE_MAX

/* Takes one of `n` slots and returns its index: a free one, else the one that ended first, else another
 * owner's longest silent one. OCC_SLOT_NONE: the owner has its share. */
size_t occ_slots_take(struct occ_slot *slots, size_t n, uint64_t owner, bool is_fixed);

/* Frees slots that ended at `left_ns` or before, and slots not fixed that were last used at `used_ns` or
 * before. true: there were any. */
bool occ_slots_expire(struct occ_slot *slots, size_t n, int64_t left_ns, int64_t used_ns);
