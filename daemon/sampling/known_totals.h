/*
 * Evidence on launches without a value of their own (store/measured.h, OCC_MEASURED_EVIDENCE): does the mean
 * of their configuration in the history represent them?
 *
 * A rough value (struct occ_measured), too uncertain to be a launch's own value, is compared with that mean.
 * Of launches without a rough value only the total is known: the counted total of a second minus the share of
 * launches with a value is the occupancy of the other launches together.
 *
 * For a second let C be the counted occupancy x 1 s, V the sum of value x time over launches with a value,
 * and P the sum of mean x time over the others, whose time is R. A launch's mean is that of the earlier and
 * later values of the same run and configuration; a configuration without values gets the mean of the other
 * launches without a value, with a standard error of UNKNOWN_SD. Then (C - V - P) / R is the excess of the
 * launches without a value over their means. Launches of a configuration share their error; errors of
 * configurations and of the counter are added as variances.
 *
 * Launches arrive after their seconds: a second is judged LAG_S later, when values of later bursts are known
 * too. Memory is bounded; without room a launch or a second is no evidence. One thread.
 */
#pragma once

#include "gpu_queues.h"

struct occ_known_totals;

/* NULL: no memory. */
struct occ_known_totals *occ_known_totals_new(void);
void occ_known_totals_free(struct occ_known_totals *totals);
/* Drops all seconds and means. */
void occ_known_totals_clear(struct occ_known_totals *totals);

/* Adds a settled launch; tag and shape as for occ_gpu_results_add_value(). */
void occ_known_totals_add_value(struct occ_known_totals *totals, const struct occ_attribution_value *value);
void occ_known_totals_add_sample(struct occ_known_totals *totals,
                                 const struct occ_attribution_sample *sample);

/* Adds the evidence of seconds before `until_ns` to the results and closes these seconds. Without `now` only
 * seconds that ended LAG_S earlier, several at once. */
void occ_known_totals_close(struct occ_known_totals *totals, int64_t until_ns, bool now,
                            struct occ_gpu_results *results);
