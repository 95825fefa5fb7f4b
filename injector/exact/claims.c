/* See claims.h. */
#include "claims.h"

#define SECOND_NS 1000000000L

struct occ_exact_context *occ_exact_find(struct occ_exact *e, const void *context)
{
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++)
        if (e->contexts[i].state != OCC_EXACT_FREE && e->contexts[i].context == context &&
            !e->contexts[i].is_gone)
            return &e->contexts[i];
    return NULL;
}

struct timespec occ_exact_after(long ns)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / SECOND_NS;
    t.tv_nsec %= SECOND_NS;
    return t;
}

void occ_exact_stray(struct occ_exact *e, bool begins)
{
    if (begins) {
        (void)atomic_fetch_add(&e->strays, 1);
        (void)atomic_fetch_add(&e->open_strays, 1);
    } else if (atomic_load(&e->open_strays) > 0) {
        (void)atomic_fetch_sub(&e->open_strays, 1);
    }
}

bool occ_exact_must_not_touch(const struct occ_exact *e, uint32_t own_captures)
{
    return e->captures.n > own_captures || !atomic_load(&e->is_on) || occ_exact_is_stopped(e);
}

bool occ_exact_may_go_on(struct occ_exact *e)
{
    if (!occ_exact_lock(e))
        return false;
    bool may = !occ_exact_must_not_touch(e, 0);
    (void)pthread_mutex_unlock(&e->lock);
    return may;
}

bool occ_exact_is_claimed(const struct occ_exact *e, const struct occ_exact_context *c)
{
    bool is_claimed = false;
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++)
        is_claimed |= e->contexts[i].is_claimed && (!c || c == &e->contexts[i]);
    return is_claimed;
}

bool occ_exact_wait_for_claims(struct occ_exact *e, const struct occ_exact_context *c)
{
    struct timespec until = occ_exact_after(OCC_EXACT_PATIENCE_NS);
    while (occ_exact_is_claimed(e, c))
        if (pthread_cond_timedwait(&e->changed, &e->lock, &until) != 0)
            return false;
    return true;
}

void occ_exact_wait_for_launches(struct occ_exact *e, struct occ_exact_context *c, uint32_t own_captures)
{
    struct timespec until = occ_exact_after(OCC_EXACT_PATIENCE_NS);
    while (c->in_flight > 0 && !occ_exact_must_not_touch(e, own_captures) &&
           pthread_cond_timedwait(&e->changed, &e->lock, &until) == 0)
        ;
}

/* Gives the context a new serial: calls made before it write nothing into the session any more. Launches that
 * have not returned become strays, since their ranges may be in any session that begins before they return;
 * no thread waits for them again. */
static void renew_serial(struct occ_exact *e, struct occ_exact_context *c)
{
    c->serial = ++e->serials;
    (void)atomic_fetch_add(&e->open_strays, c->in_flight);
    c->in_flight = 0;
    c->is_crowded = false;
}

void occ_exact_begin_calls(struct occ_exact *e, struct occ_exact_context *c)
{
    c->is_claimed = true;
    renew_serial(e, c);
    (void)pthread_mutex_unlock(&e->lock);
}

void occ_exact_end_claim(struct occ_exact *e, struct occ_exact_context *c)
{
    c->is_claimed = false;
    (void)pthread_cond_broadcast(&e->changed);
}

bool occ_exact_end_calls(struct occ_exact *e, struct occ_exact_context *c)
{
    if (!occ_exact_lock(e))
        return false;
    occ_exact_end_claim(e, c);
    return true;
}
