/* Shared by the judgement of a configuration and the order of findings. No state; any thread. */
#pragma once

#include "totals.h"

/* A forecast of NaN: no prediction. */
extern const struct occ_forecast occ_no_forecast;

/* Returns the sort key of a saving: its median, else the middle of its bounds, else half of `lost`. All are
 * shares of the same time. */
double occ_rank_of(const struct occ_saving *saving, double lost);
