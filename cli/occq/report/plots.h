/* Plots over time and durations: SVG that is as wide as the page, with its labels as text. One thread. */
#pragma once

#include <stdio.h>

#include "cli/trend/trend.h"
#include "store/store.h"

/* Plots elapsed occupancy with its interval or range, waste, and the time of a launch, by units of time;
 * marks changes. */
void plots_trend(FILE *out, const struct trend *trend);

/* Plots launches by duration. */
void plots_durations(FILE *out, const struct occ_config_row *row);
