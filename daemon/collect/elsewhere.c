/* See elsewhere.h. */
#include "elsewhere.h"

#include "ring/ring_abi.h"
#include "store/holes.h"
#include "support/clock.h"
#include "support/text.h"

static const char *const loss_words[] = {OCC_LOSS_CAUSES(OCC_WORD)};
static const char *const cost_words[] = {OCC_COSTS(OCC_WORD)};

static int begin_totals(struct occ_producer *p, struct occ_store *store, struct occ_error *err)
{
    struct occ_producer_elsewhere *e = &p->elsewhere;
    const uint8_t *uuid = p->run.row.uuid;
    int status = 0;
    for (int i = 0; i < OCC_LOSS_COUNT && status == 0; i++) {
        e->losses[i].ring = occ_ring_lost(p->consumer, (enum occ_loss_cause)i);
        status = occ_store_run_total(store, OCC_RUN_LOSS, uuid, loss_words[i], &e->losses[i].kept, err);
    }
    for (int i = 0; i < OCC_COST_COUNT && status == 0; i++) {
        e->costs[i].ring = occ_ring_cost(p->consumer, (enum occ_cost)i);
        status = occ_store_run_total(store, OCC_RUN_COST, uuid, cost_words[i], &e->costs[i].kept, err);
    }
    return status;
}

static int add_hole(struct occ_producer *p, struct occ_error *err)
{
    const struct occ_hole hole = {{p->elsewhere.from_ns, p->elsewhere.until_ns}, 0};
    if (p->elsewhere.from_ns >= p->elsewhere.until_ns)
        return 0;
    p->run.has_new_holes = true;
    return occ_holes_add(&p->run.holes, hole, err);
}

int occ_elsewhere_begin(struct occ_producer *producer, struct occ_store *store, uint64_t next,
                        struct occ_error *err)
{
    struct occ_producer_elsewhere *e = &producer->elsewhere;
    uint64_t position = occ_ring_position(producer->consumer);
    bool is_known = false, was_elsewhere = false;
    int64_t recorded_ns = producer->run.row.start_ns;
    int status = occ_store_run_recorded(store, producer->run.row.uuid, &recorded_ns, &was_elsewhere, err);
    is_known = status == 0;
    if (status == OCC_E_NOT_FOUND)
        status = 0;
    if (status != 0 || (position <= next && !was_elsewhere))
        return status;
    status = begin_totals(producer, store, err);
    if (status != 0 || position <= next)
        return status;
    uint64_t first_ns = occ_ring_first_start_ns(producer->consumer);
    e->low = next;
    e->high = position;
    e->from_ns = is_known ? recorded_ns : producer->run.row.start_ns;
    e->until_ns = first_ns ? occ_producer_past_ns(first_ns) : occ_now_ns();
    e->is_new = e->from_ns < e->until_ns;
    return add_hole(producer, err);
}

int occ_elsewhere_restart(struct occ_producer *producer, struct occ_error *err)
{
    struct occ_producer_elsewhere *e = &producer->elsewhere;
    e->is_new = e->from_ns < e->until_ns;
    return add_hole(producer, err);
}

int occ_elsewhere_put(struct occ_producer *producer, struct occ_store *store, struct occ_error *err)
{
    struct occ_producer_elsewhere *e = &producer->elsewhere;
    const struct occ_period period = {
        .from_ns = e->from_ns, .until_ns = e->until_ns, .level = "nothing", .reason = OCC_STORE_ELSEWHERE};
    if (!e->is_new)
        return 0;
    int status = occ_store_put_period(store, producer->run.id, &period, err);
    e->is_new = status != 0;
    return status;
}

int64_t occ_elsewhere_moment(const struct occ_producer *producer, int64_t at_ns)
{
    const struct occ_producer_elsewhere *e = &producer->elsewhere;
    return at_ns >= e->from_ns && at_ns < e->until_ns ? e->until_ns : at_ns;
}

bool occ_elsewhere_has(const struct occ_producer *producer, uint64_t head)
{
    return head > producer->elsewhere.low && head <= producer->elsewhere.high;
}
