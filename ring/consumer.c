/* Reading launches and the header (contract: consumer.h, design: consumer_state.h). One thread. */
#include "consumer_state.h"

/* Loads head once and clamps it. Returns NULL, or the error as text. */
static const char *load_head(struct occ_ring_consumer *c)
{
    /* pairs with the release store in occ_ring_push() */
    uint64_t head = atomic_load_explicit(&c->header->head, memory_order_acquire);
    if (head < c->head)
        return "head moved back";
    if (head - c->released > c->ring_slots)
        return "head overran records that were not read";
    c->head = head;
    return NULL;
}

static bool copy_launches(const struct occ_ring_consumer *c, struct occ_ring_launch *launches, size_t n)
{
    uint64_t slots = OCC_RING_HEADER_BYTES + c->log_bytes;
    size_t at = (size_t)(c->position & (c->ring_slots - 1));
    size_t first = c->ring_slots - at < n ? c->ring_slots - at : n;
    return occ_ring_copy(c->fd, launches, first * sizeof *launches, slots + at * sizeof *launches) &&
           occ_ring_copy(c->fd, launches + first, (n - first) * sizeof *launches, slots);
}

/* Returns the number of copied launches that are valid. *wrong: the error of the next launch; NULL if its
 * configuration is in a log record that the caller has not read yet. */
static size_t check_launches(struct occ_ring_consumer *c, const struct occ_ring_launch *launches, size_t n,
                             const char **wrong)
{
    for (size_t i = 0; i < n; i++) {
        const struct occ_ring_launch *l = &launches[i];
        if (l->check != occ_ring_check(c->position + i))
            *wrong = "launch: stale or torn record";
        else if (!occ_ring_times_are_valid(l->start_ns, l->duration_ns))
            *wrong = "launch: impossible times";
        else if (l->config < c->configs)
            continue;
        else if (!(*wrong = occ_ring_load_log_head(c)) && c->log_position == c->log_head)
            *wrong = "launch: unknown config";
        return i;
    }
    return n;
}

enum occ_ring_status occ_ring_read(struct occ_ring_consumer *consumer, struct occ_ring_launch *launches,
                                   size_t max, size_t *ret_n)
{
    struct occ_ring_consumer *c = consumer;
    *ret_n = 0;
    if (c->broken)
        return OCC_RING_BROKEN;
    const char *wrong = load_head(c);
    if (wrong)
        return occ_ring_quarantine(c, wrong);
    uint64_t waiting = c->head - c->position;
    size_t n = waiting < max ? (size_t)waiting : max;
    if (n == 0)
        return OCC_RING_EMPTY;
    if (!copy_launches(c, launches, n))
        return occ_ring_quarantine(c, "launches cannot be read");
    n = check_launches(c, launches, n, &wrong);
    /* valid launches are returned first; the next call finds the invalid one again */
    if (wrong && n == 0)
        return occ_ring_quarantine(c, wrong);
    c->position += n;
    *ret_n = n;
    return n > 0 ? OCC_RING_OK : OCC_RING_EMPTY;
}

uint64_t occ_ring_position(const struct occ_ring_consumer *consumer)
{
    return consumer->position;
}

void occ_ring_release(struct occ_ring_consumer *consumer, uint64_t next)
{
    if (next > consumer->position)
        next = consumer->position;
    if (next <= consumer->released)
        return;
    consumer->released = next;
    /* pairs with the acquire load in load_tail() of producer.c */
    atomic_store_explicit(&consumer->header->tail, next, memory_order_release);
}

bool occ_ring_can_pause(const struct occ_ring_consumer *consumer)
{
    return consumer->header->version_minor >= 2;
}

void occ_ring_pause(struct occ_ring_consumer *consumer, bool pause)
{
    atomic_store_explicit(&consumer->header->requests.paused, pause, memory_order_relaxed);
}

void occ_ring_set_budget(struct occ_ring_consumer *consumer, uint32_t ppm)
{
    atomic_store_explicit(&consumer->header->requests.budget_ppm, ppm, memory_order_relaxed);
}

void occ_ring_want_memory(struct occ_ring_consumer *consumer, bool wanted)
{
    atomic_store_explicit(&consumer->header->requests.wants_memory, wanted, memory_order_relaxed);
}

/* Distance of the producer's head from `from`, never more than the ring holds. */
static uint64_t ahead_of(const struct occ_ring_consumer *c, uint64_t from)
{
    uint64_t head = atomic_load_explicit(&c->header->head, memory_order_relaxed);
    if (head < from)
        return 0;
    return head - from < c->ring_slots ? head - from : c->ring_slots;
}

uint64_t occ_ring_first_start_ns(const struct occ_ring_consumer *consumer)
{
    struct occ_ring_launch first;
    return ahead_of(consumer, consumer->position) > 0 && copy_launches(consumer, &first, 1) ? first.start_ns
                                                                                            : 0;
}

uint64_t occ_ring_pending(const struct occ_ring_consumer *consumer)
{
    return ahead_of(consumer, consumer->position);
}

double occ_ring_fill(const struct occ_ring_consumer *consumer)
{
    return (double)ahead_of(consumer, consumer->released) / (double)consumer->ring_slots;
}

/* ---- the rest of the header ---- */

int occ_ring_fd(const struct occ_ring_consumer *consumer)
{
    return consumer->fd;
}

const uint8_t *occ_ring_uuid(const struct occ_ring_consumer *consumer)
{
    return consumer->uuid;
}

bool occ_ring_is_closed(const struct occ_ring_consumer *consumer)
{
    /* pairs with the release store in occ_ring_close() */
    return atomic_load_explicit(&consumer->header->closed, memory_order_acquire) != 0;
}

uint64_t occ_ring_heartbeat_ns(const struct occ_ring_consumer *consumer)
{
    return atomic_load_explicit(&consumer->header->heartbeat_ns, memory_order_relaxed);
}

uint64_t occ_ring_start_ns(const struct occ_ring_consumer *consumer)
{
    return consumer->start_ns;
}

uint64_t occ_ring_lost(const struct occ_ring_consumer *consumer, enum occ_loss_cause cause)
{
    return atomic_load_explicit(&consumer->header->lost[cause], memory_order_relaxed);
}

uint64_t occ_ring_cost(const struct occ_ring_consumer *consumer, enum occ_cost cost)
{
    return atomic_load_explicit(&consumer->header->cost[cost], memory_order_relaxed);
}

const char *occ_ring_broken_reason(const struct occ_ring_consumer *consumer)
{
    return consumer->broken;
}
