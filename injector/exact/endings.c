/* See endings.h. */
#include "endings.h"

#include "claims.h"

void occ_capture_begins(struct occ_exact *e, const struct occ_capture_stream *of)
{
    uint32_t own = occ_captures_enter(&e->captures, of);
    (void)pthread_cond_broadcast(&e->changed);
    bool is_alone = occ_exact_wait_for_claims(e, NULL);
    struct occ_exact_context *c = occ_exact_find(e, of->context);
    if (!is_alone || !c || c->state != OCC_EXACT_RUNNING)
        return;
    c->is_claimed = true;
    occ_exact_wait_for_launches(e, c, own);
    if (occ_exact_must_not_touch(e, own)) {
        occ_exact_end_claim(e, c);
        return;
    }
    occ_exact_begin_calls(e, c);
    occ_exact_end_session(e, c);
    (void)occ_exact_end_calls(e, c);
}

void occ_exact_context_destroyed(struct occ_exact *e, const void *context)
{
    occ_captures_end_context(&e->captures, context);
    struct occ_exact_context *c = occ_exact_find(e, context);
    if (!c)
        return;
    if (!occ_exact_wait_for_claims(e, c)) {
        c->is_gone = true;
        return;
    }
    occ_exact_begin_calls(e, c);
    occ_exact_end_session(e, c);
    occ_exact_release(e, c);
    c->state = OCC_EXACT_FREE;
    (void)occ_exact_end_calls(e, c);
}

/* Naps while a context is claimed, since a wait for `changed` would take the lock without a limit. Returns
 * false without the lock: another thread held it for too long. */
static bool nap_while_claimed(struct occ_exact *e)
{
    for (uint32_t naps = 0; naps < OCC_EXACT_NAPS && occ_exact_is_claimed(e, NULL); naps++) {
        (void)pthread_mutex_unlock(&e->lock);
        (void)occ_exact_nap();
        if (!occ_exact_lock(e))
            return false;
    }
    return true;
}

bool occ_exact_end_sessions(struct occ_exact *e)
{
    (void)pthread_cond_broadcast(&e->changed); /* wakes all waiting threads: measuring has ended */
    if (!nap_while_claimed(e))
        return false;
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++) {
        struct occ_exact_context *c = &e->contexts[i];
        if (c->is_claimed)
            continue;
        occ_exact_begin_calls(e, c);
        occ_exact_end_session(e, c);
        if (!occ_exact_end_calls(e, c))
            return false;
    }
    return true;
}
