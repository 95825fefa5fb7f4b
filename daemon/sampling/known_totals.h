/*
 * Evidence on launches without a value of their own: the counted total of a second, less the share of
 * launches with a value, is the occupancy of the others together. If it differs from the mean that the
 * history holds of them, that mean does not stand for all launches (store/measured.h, OCC_MEASURED_EVIDENCE).
 *
 * In a second let C be the counted occupancy x 1 s, V the sum of value x time over launches with a value, and
 * P the sum of mean x time over the others, whose time is R; mean: of the values of the same run and
 * configuration before and after, and for a configuration without any the mean of the rest's others, with a
 * standard error of UNKNOWN_SD. Then (C - V - P) / R is how much the others are above their means. Launches
 * of a configuration share their error; errors of configurations and of the counter are added as variances.
 *
 * Launches arrive after their seconds: one is judged LAG_S later, when values of later bursts are known too.
 * Memory is bounded; without room a launch or a second is no evidence. One thread.
 */
#pragma once

#include "gpu_queues.h"

struct occ_known_totals;

/* NULL: no memory. */
struct occ_known_totals *occ_known_totals_new(void);
void occ_known_totals_free(struct occ_known_totals *totals);
/* Drops all seconds and means. */
void occ_known_totals_clear(struct occ_known_totals *totals);

/* A settled launch; tag and shape as for occ_gpu_results_add_value(). */
void occ_known_totals_add_value(struct occ_known_totals *totals, const struct occ_attribution_value *value);
void occ_known_totals_add_sample(struct occ_known_totals *totals,
                                 const struct occ_attribution_sample *sample);

/* Adds the evidence of seconds before `until_ns` to the results, and drops these seconds. Without `now` only
 * seconds that ended LAG_S before it, several at once. */
void occ_known_totals_close(struct occ_known_totals *totals, int64_t until_ns, bool now,
                            struct occ_gpu_results *results);
