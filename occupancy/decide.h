/*
 * The point of the expected range that counters decide on, and the SM activity that the model expects there.
 * Internal to the model.
 *
 * From the model: f full waves, S SMs, C blocks in a wave, r blocks in the partial last one, B = C / S. After
 * full waves the point is the length t of the last wave, between r / (min(r, S) * B) and 1 times the length
 * of a full wave: resident blocks per SM over the elapsed time = (C * f + r * t) / (S * (f + t)) which falls
 * with t, wherever the last wave's blocks are. In an only wave whose grid does not divide over the SMs (r SMs
 * hold k + 1 blocks, the others k) the point is the time u of an SM with k blocks, between k / (k + 1) and 1
 * times the time of the other SMs.
 */
#pragma once

#include "occupancy.h"

/* Expected elapsed occupancy at the point that `resident` selects: warps of the measured resident blocks /
 * maximum warps of all SMs, over the elapsed time. `least_active`: activity of the least / of the most active
 * SM; NaN: not measured. It bounds u: if all SMs end together, the grid is not the cause of the loss. */
double occ_decide_elapsed(const struct occ_result *result, double resident, double least_active);

/* Activity of the SMs (active / elapsed cycles) that the model expects where elapsed occupancy is `expected`.
 * The last wave runs on min(r, S) SMs or on as few as r / B: within these bounds the answer is `active`, the
 * measured one. */
double occ_decide_active(const struct occ_result *result, double expected, double active);

/* Expected activity of the least / of the most active SM; 0: some SMs have no block. `is_packed`: the last
 * wave runs on so few SMs that other SMs have no part in it. */
double occ_decide_least_active(const struct occ_result *result, double expected, bool is_packed);
