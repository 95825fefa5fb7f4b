/*
 * See ranges.h. Three sorts: events by thread and time, where a stack of the open ranges gives each call its
 * place; links of autograd by sequence number and time, where a backward call gets its forward operator's
 * place; calls and launches by their origin, where a launch gets its call's place. Places are nodes of a tree
 * of names.
 */
#include "ranges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "range_names.h"
#include "range_records.h"
#include "sorter.h"

#define RUN_RECORDS (1u << 16) /* records sorted in memory at a time */
#define DEPTH_MAX   1024u      /* deeper ranges are left out */

/* A place is a node and, in its lowest bit, whether the phase is "backward". */
#define BACKWARD 1u
static_assert(OCC_RANGES_PLACES_MAX == 2 * OCC_RANGE_NODES_MAX, "a place is below the maximum");

struct open_range {
    int64_t start_ns, end_ns, sequence;
    uint32_t node; /* 0: not made yet */
    uint16_t name;
    uint16_t autograd; /* 1 + index of the innermost evaluate_function at or below this range; 0: none */
    bool is_autograd;
};

enum { EVENTS, LINKS, ENDS, PLACED, SORTER_COUNT };

struct occ_ranges {
    struct occ_sorter *sorter[SORTER_COUNT];
    uint32_t n_events;
    uint64_t launches, handed_out;
    bool any_range, is_placed;

    struct occ_range_names names;
    struct open_range stack[DEPTH_MAX]; /* open ranges of the current thread */
    uint32_t depth;
    bool overlaps; /* some ranges do not nest */
    struct placed next;
    bool has_next;
};

static const struct {
    size_t record_bytes;
    occ_sorter_compare *compare;
} sorters[SORTER_COUNT] = {[EVENTS] = {sizeof(struct event), occ_compare_events},
                           [LINKS] = {sizeof(struct link), occ_compare_links},
                           [ENDS] = {sizeof(struct end), occ_compare_ends},
                           [PLACED] = {sizeof(struct placed), occ_compare_placed}};

/* ---- begin and end ---- */

int occ_ranges_new(uint64_t seed, struct occ_ranges **ret_ranges, struct occ_error *err)
{
    struct occ_ranges *r = calloc(1, sizeof *r);
    if (!r)
        return occ_no_memory(err);
    r->names.seed = seed;
    int status = 0;
    for (size_t i = 0; i < SORTER_COUNT && status == 0; i++)
        status = occ_sorter_new(sorters[i].record_bytes, RUN_RECORDS, sorters[i].compare, &r->sorter[i], err);
    if (status != 0)
        occ_ranges_free(r);
    else
        *ret_ranges = r;
    return status;
}

void occ_ranges_free(struct occ_ranges *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < SORTER_COUNT; i++)
        occ_sorter_free(r->sorter[i]);
    occ_range_names_free(&r->names);
    free(r);
}

/* ---- input ---- */

int occ_ranges_add(struct occ_ranges *r, const struct occ_import_range *range, struct occ_error *err)
{
    struct event event;
    memset(&event, 0, sizeof event);
    event.process = range->process;
    event.thread = range->thread;
    event.start_ns = range->start_ns;
    event.end_ns = range->end_ns;
    event.sequence = range->sequence;
    event.is_autograd = range->is_autograd;
    event.order = r->n_events++;
    if (range->end_ns < range->start_ns || range->name_bytes == 0)
        return 0;
    r->any_range = true;
    int status = occ_range_names_find(&r->names, range, &event.name, err);
    return status == 0 ? occ_sorter_put(r->sorter[EVENTS], &event, err) : status;
}

int occ_ranges_add_call(struct occ_ranges *r, const struct occ_import_call *call, struct occ_error *err)
{
    struct event event;
    memset(&event, 0, sizeof event);
    event.process = call->process;
    event.thread = call->thread;
    event.start_ns = call->start_ns;
    event.end_ns = call->end_ns;
    event.origin = call->origin;
    event.order = r->n_events++;
    event.is_call = true;
    return call->end_ns < call->start_ns || call->origin.id == 0
               ? 0
               : occ_sorter_put(r->sorter[EVENTS], &event, err);
}

int occ_ranges_add_launch(struct occ_ranges *r, const struct occ_import_origin *origin, struct occ_error *err)
{
    struct end end;
    memset(&end, 0, sizeof end);
    end.origin = *origin;
    end.launch = r->launches++;
    end.is_launch = true;
    return origin->id == 0 ? 0 : occ_sorter_put(r->sorter[ENDS], &end, err);
}

const char *occ_ranges_path(const struct occ_ranges *r, uint32_t place, char path[OCC_STORE_RANGE_BYTES + 1],
                            const char **ret_phase)
{
    *ret_phase = place & BACKWARD ? "backward" : NULL;
    return occ_range_names_path(&r->names, place >> 1, path);
}

/* ---- the stack of a thread ---- */

/* The node of the stack's lowest `n` ranges; 0: n is 0. */
static int node_of(struct occ_ranges *r, uint32_t n, uint32_t *ret_node, struct occ_error *err)
{
    uint32_t at = n;
    int status = 0;
    while (at > 0 && r->stack[at - 1].node == 0)
        at--;
    *ret_node = at > 0 ? r->stack[at - 1].node : 0;
    for (; at < n && status == 0; at++) {
        status = occ_range_names_child(&r->names, *ret_node, r->stack[at].name, ret_node, err);
        r->stack[at].node = *ret_node;
    }
    return status;
}

static void set_autograd(struct occ_ranges *r, uint32_t at)
{
    struct open_range *range = &r->stack[at];
    range->autograd = range->is_autograd ? (uint16_t)(at + 1) : at > 0 ? range[-1].autograd : 0;
}

/* Removes the ranges that end before `now_ns`. */
static void close_ranges(struct occ_ranges *r, int64_t now_ns)
{
    uint32_t kept = 0;
    while (r->depth > 0 && r->stack[r->depth - 1].end_ns < now_ns)
        r->depth--;
    for (uint32_t i = 0; r->overlaps && i < r->depth; i++) {
        if (r->stack[i].end_ns < now_ns)
            continue;
        if (kept < i) {
            r->stack[kept] = r->stack[i];
            r->stack[kept].node = 0;
        }
        set_autograd(r, kept++);
    }
    r->depth = r->overlaps ? kept : r->depth;
    r->overlaps &= r->depth > 1;
}

/* The number of the stack's ranges that count for an event with this end: the ranges up to the innermost that
 * contains it. */
static uint32_t depth_around(const struct occ_ranges *r, int64_t end_ns)
{
    uint32_t n = r->depth;
    while (n > 0 && r->stack[n - 1].end_ns < end_ns)
        n--;
    return n;
}

static int put_end(struct occ_ranges *r, const struct occ_import_origin *origin, uint32_t place,
                   struct occ_error *err)
{
    struct end end;
    memset(&end, 0, sizeof end);
    end.origin = *origin;
    end.place = place;
    return occ_sorter_put(r->sorter[ENDS], &end, err);
}

static int put_link(struct occ_ranges *r, const struct event *event, int64_t sequence, int64_t start_ns,
                    uint32_t place, struct occ_error *err)
{
    struct link link;
    memset(&link, 0, sizeof link);
    link.process = event->process;
    link.thread = event->thread;
    link.sequence = sequence;
    link.start_ns = start_ns;
    link.origin = event->origin;
    link.place = place;
    link.is_backward = event->is_call;
    return occ_sorter_put(r->sorter[LINKS], &link, err);
}

static int place_call(struct occ_ranges *r, const struct event *call, struct occ_error *err)
{
    uint32_t n = depth_around(r, call->end_ns), node = 0;
    int status = node_of(r, n, &node, err);
    if (status != 0)
        return status;
    uint16_t autograd = n > 0 ? r->stack[n - 1].autograd : 0;
    if (autograd == 0)
        return put_end(r, &call->origin, node << 1, err);
    const struct open_range *function = &r->stack[autograd - 1];
    return function->sequence < 0
               ? put_end(r, &call->origin, node << 1 | BACKWARD, err)
               : put_link(r, call, function->sequence, function->start_ns, node << 1 | BACKWARD, err);
}

static int open_range(struct occ_ranges *r, const struct event *event, struct occ_error *err)
{
    uint32_t node = 0;
    /* a range that ends where this event begins is beside the event, not around it */
    while (r->depth > 0 && r->stack[r->depth - 1].end_ns <= event->start_ns &&
           r->stack[r->depth - 1].end_ns < event->end_ns)
        r->depth--;
    if (r->depth == DEPTH_MAX)
        return 0;
    r->overlaps |= r->depth > 0 && r->stack[r->depth - 1].end_ns < event->end_ns;
    r->stack[r->depth++] = (struct open_range){.start_ns = event->start_ns,
                                               .end_ns = event->end_ns,
                                               .sequence = event->sequence,
                                               .name = event->name,
                                               .is_autograd = event->is_autograd};
    set_autograd(r, r->depth - 1);
    if (event->sequence < 0 || r->stack[r->depth - 1].autograd != 0)
        return 0;
    int status = node_of(r, r->depth, &node, err);
    return status == 0 ? put_link(r, event, event->sequence, event->start_ns, node << 1, err) : status;
}

/* ---- the sorts ---- */

static int place_calls(struct occ_ranges *r, struct occ_error *err)
{
    const void *record = NULL;
    int64_t process = 0, thread = 0;
    int status = 0;
    while (status == 0 && (status = occ_sorter_next(r->sorter[EVENTS], &record, err)) == 0 && record) {
        const struct event *event = record;
        if (event->process != process || event->thread != thread)
            r->depth = 0;
        process = event->process;
        thread = event->thread;
        close_ranges(r, event->start_ns);
        status = event->is_call ? place_call(r, event, err) : open_range(r, event, err);
    }
    return status;
}

/* Attributes a backward call to the range of its forward operator: the operator on another thread that starts
 * last before the call. Needs the last operator, and the last operator on any other thread. */
static int link_calls(struct occ_ranges *r, struct occ_error *err)
{
    const void *record = NULL;
    struct link last = {.sequence = -1}, other = {.sequence = -1};
    int status = 0;
    while (status == 0 && (status = occ_sorter_next(r->sorter[LINKS], &record, err)) == 0 && record) {
        const struct link *link = record;
        if (!link->is_backward) {
            other = last.thread != link->thread ? last : other;
            last = *link;
            continue;
        }
        const struct link *forward = last.thread != link->thread ? &last : &other;
        bool found = forward->process == link->process && forward->sequence == link->sequence;
        status = put_end(r, &link->origin, found ? forward->place | BACKWARD : link->place, err);
    }
    return status;
}

/* If calls with the same origin have several places, their launches get none. */
static int place_launches(struct occ_ranges *r, struct occ_error *err)
{
    const void *record = NULL;
    struct end call = {.place = 0};
    int status = 0;
    while (status == 0 && (status = occ_sorter_next(r->sorter[ENDS], &record, err)) == 0 && record) {
        const struct end *end = record;
        bool is_same = occ_compare_origins(&call.origin, &end->origin) == 0;
        if (!end->is_launch) {
            uint32_t place = is_same && call.place != end->place ? 0 : end->place;
            call = *end;
            call.place = place;
        } else if (is_same && call.place != 0) {
            const struct placed placed = {.launch = end->launch, .place = call.place};
            status = occ_sorter_put(r->sorter[PLACED], &placed, err);
        }
    }
    return status;
}

static int place_all(struct occ_ranges *r, struct occ_error *err)
{
    int status = place_calls(r, err);
    if (status == 0)
        status = link_calls(r, err);
    return status == 0 ? place_launches(r, err) : status;
}

int occ_ranges_next(struct occ_ranges *r, uint32_t *ret_place, struct occ_error *err)
{
    const void *record = NULL;
    int status = r->is_placed || !r->any_range ? 0 : place_all(r, err);
    r->is_placed = true;
    *ret_place = 0;
    if (status == 0 && !r->has_next && r->any_range) {
        status = occ_sorter_next(r->sorter[PLACED], &record, err);
        r->has_next = true;
        r->next = record ? *(const struct placed *)record : (struct placed){.launch = UINT64_MAX};
    }
    if (status != 0 || !r->has_next || r->next.launch != r->handed_out++)
        return status;
    *ret_place = r->next.place;
    r->has_next = false;
    return 0;
}
