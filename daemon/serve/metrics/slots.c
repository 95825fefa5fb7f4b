/* See slots.h. */
#include "slots.h"

static bool is_counted(const struct occ_slot *p, uint64_t owner)
{
    return p->is_used && !p->is_fixed && p->owner == owner;
}

/* Updates owner_slots of the owner's slots. */
static size_t recount(struct occ_slot *slots, size_t n, uint64_t owner)
{
    size_t has = 0;
    for (size_t i = 0; i < n; i++)
        has += is_counted(&slots[i], owner);
    for (size_t i = 0; i < n; i++)
        if (is_counted(&slots[i], owner))
            slots[i].owner_slots = has;
    return has;
}

/* A free slot, or the slot that ended first. */
static size_t find_released(const struct occ_slot *slots, size_t n)
{
    size_t best = OCC_SLOT_NONE;
    for (size_t i = 0; i < n; i++) {
        if (!slots[i].is_used)
            return i;
        if (slots[i].ended_ns && (best == OCC_SLOT_NONE || slots[i].ended_ns < slots[best].ended_ns))
            best = i;
    }
    return best;
}

/* The longest silent slot of the owner with the most slots, if that owner has `least` or more. */
static size_t find_largest(const struct occ_slot *slots, size_t n, size_t least)
{
    size_t best = OCC_SLOT_NONE, most = least;
    for (size_t i = 0; i < n; i++) {
        const struct occ_slot *p = &slots[i];
        bool is_older = best == OCC_SLOT_NONE || p->used_ns < slots[best].used_ns;
        if (p->is_fixed || p->owner_slots < most || (p->owner_slots == most && !is_older))
            continue;
        best = i;
        most = p->owner_slots;
    }
    return best;
}

size_t occ_slots_take(struct occ_slot *slots, size_t n, uint64_t owner, bool is_fixed)
{
    size_t at = find_released(slots, n);
    if (at == OCC_SLOT_NONE)
        at = find_largest(slots, n, is_fixed ? 1 : recount(slots, n, owner) + 2);
    if (at == OCC_SLOT_NONE)
        return at;
    uint64_t before = slots[at].owner;
    slots[at] = (struct occ_slot){.owner = owner, .is_used = true, .is_fixed = is_fixed};
    (void)recount(slots, n, before);
    (void)recount(slots, n, owner);
    return at;
}

bool occ_slots_expire(struct occ_slot *slots, size_t n, int64_t left_ns, int64_t used_ns)
{
    bool some = false;
    for (struct occ_slot *p = slots; p < slots + n; p++) {
        bool is_left = p->ended_ns && p->ended_ns <= left_ns;
        if (!p->is_used || (!is_left && (p->is_fixed || p->used_ns > used_ns)))
            continue;
        p->is_used = false;
        (void)recount(slots, n, p->owner);
        some = true;
    }
    return some;
}
