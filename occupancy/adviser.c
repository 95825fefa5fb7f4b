/* The gain of a change; see model.h. Threads: any. */
#include "model.h"

void occ_adviser_add(struct adviser *a, const struct occ_advice *change, const struct occ_result *then)
{
    const struct occ_result *now = a->result;
    if (a->count < a->max) {
        struct occ_advice *advice = &a->list[a->count];
        *advice = *change;
        advice->blocks_now = now->blocks_per_sm;
        advice->blocks_then = then->blocks_per_sm;
        advice->theoretical_now = now->theoretical;
        advice->theoretical_then = then->theoretical;
        advice->elapsed_low_now = now->expected_elapsed_low;
        advice->elapsed_low_then = then->expected_elapsed_low;
        advice->elapsed_high_now = now->expected_elapsed_high;
        advice->elapsed_high_then = then->expected_elapsed_high;
    }
    a->count++;
}

bool occ_adviser_offer(struct adviser *a, const struct occ_advice *change)
{
    struct occ_result then;
    if (occ_analyse(a->device, &change->launch, &then) != OCC_OK)
        return false;
    if (then.theoretical - a->result->theoretical < OCC_ADVICE_MIN_GAIN &&
        then.expected_elapsed_low - a->result->expected_elapsed_low < OCC_ADVICE_MIN_GAIN)
        return false;
    occ_adviser_add(a, change, &then);
    return true;
}

bool occ_adviser_change(struct adviser *a, enum occ_advice_kind kind, uint64_t now, uint64_t needed,
                        uint64_t cost_amount, const struct occ_launch *launch)
{
    return occ_adviser_offer(
        a, &(struct occ_advice){
               .kind = kind, .now = now, .needed = needed, .cost_amount = cost_amount, .launch = *launch});
}
