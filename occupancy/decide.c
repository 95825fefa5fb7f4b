/* See decide.h. Everything follows from the ends of the ranges, so that a result from a history is enough.
 * Threads: any. */
#include "decide.h"

#include <math.h>

#define SMALL 1e-9 /* the model's accuracy */

static double between(double value, double low, double high)
{
    return fmin(fmax(value, low), high);
}

static bool has_range(const struct occ_result *r)
{
    return r->expected_elapsed_high > r->expected_elapsed_low;
}

/* SM activity at the low end of elapsed occupancy. In an only wave, the low end of elapsed occupancy goes
 * with the high end of achieved occupancy. */
static double active_at_low(const struct occ_result *r)
{
    return r->expected_elapsed_low / (r->full_waves ? r->expected_achieved_low : r->expected_achieved_high);
}

/* ---- the last wave after full ones ---- */

struct last_wave {
    double full_waves;
    double time;       /* t */
    double sms;        /* min(r, S) / S */
    double packed_sms; /* r / (B * S) */
};

/* If there is a range, a full wave has blocks on every SM: otherwise there would be one block per SM and t =
 * 1. */
static struct last_wave last_wave_at(const struct occ_result *r, double expected)
{
    double full_waves = (double)r->full_waves, low = r->expected_elapsed_low;
    double full = low + r->cause[OCC_CAUSE_TAIL]; /* a full wave's elapsed occupancy */
    double last = between((full_waves + 1) * low - full_waves * full, 0, full);
    double above = expected - last;
    return (struct last_wave){
        .full_waves = full_waves,
        .time = above > SMALL ? between(full_waves * (full - expected) / above, 0, 1) : 1,
        .sms = between(active_at_low(r) * (full_waves + 1) - full_waves, 0, 1),
        .packed_sms = last / full,
    };
}

/* ---- an only wave ---- */

/* Part of the SMs that hold one block more than the others, and the blocks that the others hold. */
static double fuller_sms(const struct occ_result *r, double *ret_blocks)
{
    double per_sm = r->expected_achieved_low * r->max_warps_per_sm / r->warps_per_block;
    *ret_blocks = floor(per_sm + SMALL);
    return fmax(per_sm - *ret_blocks, 0);
}

/* u where elapsed occupancy is `expected`: it grows linearly with u. */
static double time_of_others(const struct occ_result *r, double expected)
{
    double blocks, low = r->expected_elapsed_low;
    (void)fuller_sms(r, &blocks);
    double shortest = blocks / (blocks + 1);
    return shortest + (1 - shortest) * (expected - low) / (r->expected_elapsed_high - low);
}

static double elapsed_at_time(const struct occ_result *r, double time)
{
    double blocks, low = r->expected_elapsed_low;
    (void)fuller_sms(r, &blocks);
    double shortest = blocks / (blocks + 1);
    return low + (r->expected_elapsed_high - low) * (time - shortest) / (1 - shortest);
}

/* ---- both ---- */

double occ_decide_elapsed(const struct occ_result *r, double resident, double least_active)
{
    double expected = between(resident, r->expected_elapsed_low, r->expected_elapsed_high);
    if (!has_range(r) || r->full_waves > 0 || isnan(least_active))
        return expected;
    return between(elapsed_at_time(r, least_active), expected, r->expected_elapsed_high);
}

double occ_decide_active(const struct occ_result *r, double expected, double active)
{
    if (!has_range(r))
        return active_at_low(r);
    if (r->full_waves == 0) {
        double low = active_at_low(r), high = r->expected_elapsed_high / r->expected_achieved_low;
        double along =
            (expected - r->expected_elapsed_low) / (r->expected_elapsed_high - r->expected_elapsed_low);
        return low + (high - low) * between(along, 0, 1);
    }
    struct last_wave last = last_wave_at(r, expected);
    double all = last.full_waves + last.time;
    return between(active, (last.full_waves + last.time * last.packed_sms) / all,
                   (last.full_waves + last.time * last.sms) / all);
}

double occ_decide_least_active(const struct occ_result *r, double expected, bool is_packed)
{
    double full =
        r->expected_elapsed_high / (r->full_waves ? r->expected_achieved_high : r->expected_achieved_low);
    if (r->full_waves == 0)
        return full < 1 - SMALL ? 0 : has_range(r) ? time_of_others(r, expected) : 1;
    if (!has_range(r)) /* the range is a point: t = 1 */
        return full < 1 - SMALL ? (double)r->full_waves / (double)(r->full_waves + 1) : 1;
    struct last_wave last = last_wave_at(r, expected);
    return is_packed || last.sms < 1 - SMALL ? last.full_waves / (last.full_waves + last.time) : 1;
}
