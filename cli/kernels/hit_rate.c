/* See hit_rate.h. */
#include "hit_rate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"
#include "cli/values.h"
#include "compare/statistics.h"
#include "support/cleanup.h"
#include "support/median.h"

/* `room`: scratch for `n` values. */
static struct hit_rate rate_of(const char *change, const struct occ_advice_outcome *list, size_t n,
                               double *room)
{
    struct hit_rate r = {.change = change, .n = n};
    for (size_t i = 0; i < n; i++) {
        const struct occ_advice_outcome *o = &list[i];
        r.promised += o->is_promised;
        r.faster += o->measured < HIT_FASTER;
        r.slower += o->measured > HIT_SLOWER;
        r.inside += o->measured >= o->predicted_low && o->measured <= o->predicted_high;
        room[i] = o->predicted;
    }
    r.neutral = n - r.faster - r.slower;
    r.predicted = occ_median(room, n);
    for (size_t i = 0; i < n; i++)
        room[i] = list[i].measured;
    r.measured = occ_median(room, n);
    const struct diff_share share = diff_share_of(r.faster, n);
    r.inside_ratio = n ? (double)r.inside / (double)n : (double)NAN;
    r.faster_ratio = share.share;
    r.faster_low = share.low;
    r.faster_high = share.high;
    return r;
}

int hit_rates_make(const struct occ_advice_outcome *outcomes, size_t n, struct hit_rate **ret_rows,
                   size_t *ret_n, struct occ_error *err)
{
    _cleanup_(occ_freep) double *room = calloc(n + 1, sizeof *room);
    struct hit_rate *rows = calloc(n + 1, sizeof *rows);
    if (!room || !rows) {
        free(rows);
        return occ_no_memory(err);
    }
    *ret_n = 0;
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && strcmp(outcomes[end].change, outcomes[first].change) == 0; end++)
            ;
        rows[(*ret_n)++] = rate_of(outcomes[first].change, &outcomes[first], end - first, room);
    }
    if (n > 0)
        rows[(*ret_n)++] = rate_of("all", outcomes, n, room);
    *ret_rows = rows;
    return 0;
}

void hit_rate_print_line(struct occ_store *store)
{
    _cleanup_(occ_freep) struct occ_advice_outcome *outcomes = NULL;
    _cleanup_(occ_freep) double *room = NULL;
    char low[16], high[16];
    size_t n = 0;
    if (occ_store_outcomes(store, &outcomes, &n, NULL) != 0 || n < HIT_LINE_MIN)
        return;
    room = calloc(n, sizeof *room);
    if (!room)
        return;
    const struct hit_rate r = rate_of("all", outcomes, n, room);
    cli_print("advice followed here: %zu changes, %" PRIu64 " faster (%s to %s), %" PRIu64
              " slower; predicted x%.2f, measured x%.2f; more: occq show --hit-rate\n",
              n, r.faster, cli_percent_text(r.faster_low, low, sizeof low),
              cli_percent_text(r.faster_high, high, sizeof high), r.slower, r.predicted, r.measured);
}
