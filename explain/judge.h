/* Shared by the judgement of a configuration and the order of findings. No state; any thread. */
#pragma once

#include "totals.h"

/* NaN: no prediction. */
extern const struct occ_forecast occ_no_forecast;

/* Returns the sort key of a saving, a share of the same time as `lost`. */
double occ_rank_of(const struct occ_saving *saving, double lost);
