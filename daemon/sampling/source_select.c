/* Which counter source a GPU has: see source_select.h. No global state; one thread. */
#include "source_select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS INT64_C(30000000000) /* a source that is busy or was lost */
/* a source that failed for an unknown reason or lacks a permission */
#define RETRY_FAILED_NS INT64_C(300000000000)
/* a source whose counters the kernel or hypervisor seems to hide */
#define RETRY_NOT_PASSED_NS INT64_C(3600000000000)
#define BURST_EVERY_NS      INT64_C(60000000000)
#define BURST_NS            INT64_C(2000000000)
#define BURST_INTERVAL_NS   INT64_C(50000)

static const struct {
    enum occ_sampler_mode only; /* the mode that uses only this kind; AUTO uses all */
    bool exclusive;             /* one client at a time can use the counters */
    bool has_bursts;
} rules[OCC_SOURCE_SLOTS] = {
    [OCC_SLOT_PM] = {OCC_SAMPLER_PM, true, true}, [OCC_SLOT_GPM] = {OCC_SAMPLER_GPM, false, false}};

static int64_t monotonic_ns(const struct occ_source_select *s)
{
    return s->options.machine->monotonic_ns();
}

static void add_stats(struct occ_source_stats *to, const struct occ_source_stats *more)
{
    to->samples += more->samples;
    to->bad_samples += more->bad_samples;
    to->overflows += more->overflows;
    to->gaps += more->gaps;
    to->rotations += more->rotations;
    to->bytes_per_sample = to->bytes_per_sample ? to->bytes_per_sample : more->bytes_per_sample;
    to->failed_changes += more->failed_changes;
    to->renewals += more->renewals;
}

void occ_source_select_get_stats(const struct occ_source_select *s, struct occ_source_stats *ret_stats)
{
    *ret_stats = (struct occ_source_stats){0};
    if (s->source)
        s->kind->get_stats(s->source, ret_stats);
    add_stats(ret_stats, &s->closed);
}

void occ_source_select_close(struct occ_source_select *s)
{
    struct occ_source_stats stats;
    if (!s->source)
        return;
    occ_source_select_get_stats(s, &stats);
    s->closed = stats;
    s->kind->close(s->source);
    s->source = NULL;
    s->burst_ends_ns = 0;
}

/* `refused`: why no better source is used; OK: the best one is. */
static void report(struct occ_source_select *s, enum occ_source_state refused, const char *detail)
{
    s->has_tried = true;
    s->state = refused;
    s->reason[0] = '\0';
    if (refused != OCC_SOURCE_OK)
        (void)snprintf(s->reason, sizeof s->reason, "%s%s%s", occ_source_state_text(refused),
                       detail[0] ? ": " : "", detail);
}

/* Closes the source; any kind may be tried afterwards. */
static void release(struct occ_source_select *s, enum occ_source_state why)
{
    occ_source_select_close(s);
    memset(s->slots, 0, sizeof s->slots);
    report(s, why, "");
}

static void mark_refused(struct occ_source_slot *slot, enum occ_source_state state, const char *detail,
                         int64_t retry_ns)
{
    slot->state = state;
    slot->retry_ns = retry_ns;
    (void)snprintf(slot->detail, sizeof slot->detail, "%s", detail);
}

/* After a successful opening NOT_PASSED is impossible: an unknown error then has another cause, which may
 * pass. */
static enum occ_source_state refine_state(const struct occ_source_select *s, size_t slot,
                                          enum occ_source_state why)
{
    return why == OCC_SOURCE_NOT_PASSED && s->has_worked[slot] ? OCC_SOURCE_FAILED : why;
}

static void on_source_lost(struct occ_source_select *s, enum occ_source_state why,
                           const struct occ_error *err)
{
    occ_source_select_close(s);
    why = refine_state(s, s->slot, why);
    mark_refused(&s->slots[s->slot], why, err->message, monotonic_ns(s) + RETRY_NS);
    report(s, why, err->message);
}

void occ_source_select_fail(struct occ_source_select *s, const struct occ_error *err)
{
    for (s->slot = 0; s->slot < OCC_SOURCE_SLOTS; s->slot++)
        mark_refused(&s->slots[s->slot], OCC_SOURCE_FAILED, err->message, monotonic_ns(s) + RETRY_NS);
    occ_source_select_close(s);
    report(s, OCC_SOURCE_FAILED, err->message);
}

static int64_t retry_at(enum occ_source_state state, int64_t now_ns)
{
    switch (state) {
    case OCC_SOURCE_BUSY:
    case OCC_SOURCE_LOST:
        return now_ns + RETRY_NS;
    case OCC_SOURCE_FAILED:
    case OCC_SOURCE_NO_PERMISSION: /* includes unknown errors without a privilege, which may pass */
        return now_ns + RETRY_FAILED_NS;
    case OCC_SOURCE_NOT_PASSED: /* guessed from the library's unknown error */
        return now_ns + RETRY_NOT_PASSED_NS;
    default:
        return INT64_MAX;
    }
}

static bool try_slot(struct occ_source_select *s, size_t slot, int64_t now_ns)
{
    const struct occ_source_options options = {.gpu = s->gpu,
                                               .interval_ns = s->options.interval_ns,
                                               .cupti_offered = s->offered,
                                               .keeps_first_set = s->closed.failed_changes > 0};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_source *source = NULL;
    const struct occ_source_kind *kind = s->options.machine->kinds[slot];
    enum occ_source_state state = occ_source_open(kind, &options, &source, &err);
    if (state != OCC_SOURCE_OK) {
        state = refine_state(s, slot, state);
        mark_refused(&s->slots[slot], state, err.message, retry_at(state, now_ns));
        return false;
    }
    s->has_worked[slot] = true;
    occ_source_select_close(s);
    s->source = source;
    s->kind = kind;
    s->slot = slot;
    return true;
}

/* Opens the best kind that works now, unless it is open already. */
static void select_source(struct occ_source_select *s, int64_t now_ns)
{
    const struct occ_source_slot *refused = NULL; /* the best kind that was refused */
    bool tried = false;
    for (size_t i = 0; i < OCC_SOURCE_SLOTS && !(s->source && s->slot == i); i++) {
        if (s->options.mode != OCC_SAMPLER_AUTO && s->options.mode != rules[i].only)
            continue;
        if (!(s->competitor && rules[i].exclusive) && now_ns >= s->slots[i].retry_ns) {
            tried = true;
            if (try_slot(s, i, now_ns))
                break;
        }
        refused = refused ? refused : &s->slots[i];
    }
    if (tried || s->competitor)
        report(s, refused ? refused->state : OCC_SOURCE_OK, refused ? refused->detail : "");
}

/* Closes an exclusive source if another tool needs its counters. */
static void look_for_competitors(struct occ_source_select *s, int64_t now_ns)
{
    s->competitor = occ_profiler_watch_find(s->watch, s->gpu.cc_major, now_ns);
    for (size_t i = 0; i < OCC_SOURCE_SLOTS && s->competitor; i++) {
        if (!rules[i].exclusive)
            continue;
        if (s->source && s->slot == i)
            occ_source_select_close(s);
        mark_refused(&s->slots[i], OCC_SOURCE_BUSY, s->competitor, 0);
    }
}

void occ_source_select_offer(struct occ_source_select *s, char *path)
{
    free(s->offered);
    s->offered = path;
    for (size_t i = 0; i < OCC_SOURCE_SLOTS; i++)
        if (s->slots[i].state == OCC_SOURCE_NO_LIBRARY)
            s->slots[i].retry_ns = 0;
}

bool occ_source_select_poll(struct occ_source_select *s, int64_t now_ns, int64_t wanted_until_ns,
                            int64_t paused_until_ns)
{
    const struct occ_source_kind *last = s->kind;
    bool wanted = now_ns < wanted_until_ns, paused = now_ns < paused_until_ns;
    if (paused && (s->source || !s->is_paused))
        release(s, OCC_SOURCE_PAUSED);
    else if (!paused && !wanted && (s->source || s->is_paused))
        release(s, OCC_SOURCE_IDLE);
    s->is_paused = paused;
    if (paused || !wanted)
        return false;
    look_for_competitors(s, now_ns);
    select_source(s, now_ns);
    return last && last != s->kind;
}

size_t occ_source_select_read(struct occ_source_select *s, struct occ_sample *samples, size_t max)
{
    struct occ_error err = OCC_ERROR_INIT;
    size_t n = 0;
    enum occ_source_state state =
        s->source ? s->kind->read(s->source, samples, max, &n, &err) : OCC_SOURCE_OK;
    if (state != OCC_SOURCE_OK)
        on_source_lost(s, state, &err);
    return n;
}

const char *occ_source_select_note(const struct occ_source_select *s)
{
    return s->source ? s->kind->get_note(s->source) : "";
}

int64_t occ_source_select_read_every_ns(const struct occ_source_select *s)
{
    return occ_source_read_every_ns(s->burst_ends_ns ? BURST_INTERVAL_NS : s->options.interval_ns);
}

bool occ_source_select_burst(struct occ_source_select *s, bool useful)
{
    struct occ_error err = OCC_ERROR_INIT;
    int64_t now_ns = monotonic_ns(s);
    bool ends = s->burst_ends_ns && now_ns >= s->burst_ends_ns;
    if (!s->source || !rules[s->slot].has_bursts ||
        !(ends || (useful && !s->burst_ends_ns && now_ns >= s->next_burst_ns)))
        return false;
    s->burst_ends_ns = ends ? 0 : now_ns + BURST_NS;
    s->next_burst_ns = ends ? s->next_burst_ns : now_ns + BURST_EVERY_NS;
    enum occ_source_state state =
        s->kind->set_interval(s->source, ends ? s->options.interval_ns : BURST_INTERVAL_NS, &err);
    if (state == OCC_SOURCE_NOT_SUPPORTED)
        s->burst_ends_ns = 0;
    else if (state != OCC_SOURCE_OK)
        on_source_lost(s, state, &err);
    return ends;
}
