/* See places.h. */
#include "places.h"

static bool is_counted(const struct occ_place *p, uint64_t owner)
{
    return p->is_used && !p->is_fixed && p->owner == owner;
}

/* Updates n_owners of the owner's entries. */
static size_t count(struct occ_place *places, size_t n, uint64_t owner)
{
    size_t has = 0;
    for (size_t i = 0; i < n; i++)
        has += is_counted(&places[i], owner);
    for (size_t i = 0; i < n; i++)
        if (is_counted(&places[i], owner))
            places[i].n_owners = has;
    return has;
}

/* A free entry, or the entry that ended first. */
static size_t find_released(const struct occ_place *places, size_t n)
{
    size_t best = OCC_PLACE_NONE;
    for (size_t i = 0; i < n; i++) {
        if (!places[i].is_used)
            return i;
        if (places[i].ended_ns && (best == OCC_PLACE_NONE || places[i].ended_ns < places[best].ended_ns))
            best = i;
    }
    return best;
}

/* The longest silent entry of the owner with the most entries, if that owner has `least` or more. */
static size_t find_largest(const struct occ_place *places, size_t n, size_t least)
{
    size_t best = OCC_PLACE_NONE, most = least;
    for (size_t i = 0; i < n; i++) {
        const struct occ_place *p = &places[i];
        bool is_older = best == OCC_PLACE_NONE || p->used_ns < places[best].used_ns;
        if (p->is_fixed || p->n_owners < most || (p->n_owners == most && !is_older))
            continue;
        best = i;
        most = p->n_owners;
    }
    return best;
}

size_t occ_places_take(struct occ_place *places, size_t n, uint64_t owner, bool is_fixed)
{
    size_t at = find_released(places, n);
    if (at == OCC_PLACE_NONE)
        at = find_largest(places, n, is_fixed ? 1 : count(places, n, owner) + 2);
    if (at == OCC_PLACE_NONE)
        return at;
    uint64_t before = places[at].owner;
    places[at] = (struct occ_place){.owner = owner, .is_used = true, .is_fixed = is_fixed};
    (void)count(places, n, before);
    (void)count(places, n, owner);
    return at;
}

bool occ_places_expire(struct occ_place *places, size_t n, int64_t left_ns, int64_t used_ns)
{
    bool some = false;
    for (struct occ_place *p = places; p < places + n; p++) {
        bool is_left = p->ended_ns && p->ended_ns <= left_ns;
        if (!p->is_used || (!is_left && (p->is_fixed || p->used_ns > used_ns)))
            continue;
        p->is_used = false;
        (void)count(places, n, p->owner);
        some = true;
    }
    return some;
}
