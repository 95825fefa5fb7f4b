/* See periods.h. */
#include "periods.h"

#include <stdio.h>

#include "store/gaps.h"
#include "support/text.h"

#define PERIODS_MAX 100u /* per run */

static const char *const level_words[] = {OCC_LEVELS(OCC_WORD)};

/* Writes the current period, if any, with its end `until_ns` (0: still open). The last of PERIODS_MAX periods
 * stays open. */
static int put_period(struct occ_producer *p, int64_t until_ns, struct occ_store *store,
                      struct occ_error *err)
{
    struct occ_producer_period *period = &p->run.period;
    const struct occ_period row = {.from_ns = period->from_ns,
                                   .until_ns =
                                       until_ns && until_ns < period->from_ns ? period->from_ns : until_ns,
                                   .level = period->level,
                                   .reason = period->reason};
    if (period->from_ns == 0)
        return 0;
    int status = occ_producer_put_row(p, store, err); /* the period refers to the run's id */
    if (status == 0)
        status = occ_store_put_period(store, p->run.id, &row, err);
    if (status == 0 && until_ns)
        period->from_ns = 0;
    return status;
}

/* Adds the period that began to the run's holes, if its level records no launches, or a sample of them. */
static int add_hole(struct occ_producer *p, enum occ_level level, struct occ_error *err)
{
    const struct occ_hole hole = {{p->run.period.from_ns, INT64_MAX},
                                  level == OCC_LEVEL_CONFIGS ? OCC_GAP_SAMPLED_NS : 0};
    if (level < OCC_LEVEL_CONFIGS || hole.time.low <= 0)
        return 0;
    p->run.has_new_holes = true;
    return occ_holes_add(&p->run.holes, hole, err);
}

static int begin_period(struct occ_producer *p, enum occ_level level, int64_t at_ns, const char *reason,
                        struct occ_store *store, struct occ_error *err)
{
    struct occ_producer_period *period = &p->run.period;
    period->from_ns = at_ns;
    period->level = level_words[level];
    (void)snprintf(period->reason, sizeof period->reason, "%s%s",
                   period->n + 1 == PERIODS_MAX ? "too many periods to list all: " : "", reason);
    int status = put_period(p, 0, store, err);
    if (status == 0)
        status = add_hole(p, level, err);
    if (status == 0)
        period->n++;
    return status;
}

int occ_periods_change(struct occ_producer *p, enum occ_level level, int64_t at_ns, const char *reason,
                       struct occ_store *store, struct occ_error *err)
{
    bool is_less = level > OCC_LEVEL_TRACE ||
                   (level == OCC_LEVEL_TRACE && p->run.is_without_counters && !p->run.is_exact);
    if (p->run.period.n >= PERIODS_MAX)
        return 0;
    int status = put_period(p, at_ns, store, err);
    if (status != 0)
        return status;
    occ_holes_end(&p->run.holes, at_ns);
    p->run.has_new_holes |= p->run.holes.n > 0;
    return is_less ? begin_period(p, level, at_ns, reason, store, err) : 0;
}
