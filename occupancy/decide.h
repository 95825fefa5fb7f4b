/*
 * The point of the expected range that counters decide on, and the SM activity that the model expects there.
 * Internal to the model.
 *
 * Of the model: f full waves, S SMs, C blocks in a wave, r blocks in the partial last one, B = C / S. After
 * full waves the point is the length t of the last wave, between r / (min(r, S) * B) and 1 times that of a
 * full one: resident blocks per SM over the elapsed time = (C * f + r * t) / (S * (f + t)) which falls with
 * t, wherever the last wave's blocks are. In an only wave whose grid does not divide over the SMs (r SMs hold
 * k + 1 blocks, the others k) it is the time u of an SM with k blocks, between k / (k + 1) and 1 times that
 * of the others.
 */
#pragma once

#include "occupancy.h"

/* Expected elapsed occupancy at the point that `resident` decides: the measured resident blocks' warps over
 * all that SMs could hold, over the elapsed time. `least_active`: activity of the least active SM / of the
 * most active one; NaN: not measured. It bounds u: where SMs end together, the grid is not the cause of what
 * is missing. */
double occ_decide_elapsed(const struct occ_result *result, double resident, double least_active);

/* Activity of the SMs (active / elapsed cycles) that the model expects where elapsed occupancy is `expected`.
 * The last wave runs on min(r, S) SMs or on as few as r / B: within these bounds the answer is `active`, the
 * measured one. */
double occ_decide_active(const struct occ_result *result, double expected, double active);

/* The same of the least active SM / the most active one; 0: some SMs have no block. `is_packed`: the last
 * wave runs on so few SMs that others have no part in it. */
double occ_decide_least_active(const struct occ_result *result, double expected, bool is_packed);
