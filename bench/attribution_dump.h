/* Writes the rows of one solution as JSON. tests/unit/attribution_numpy.py computes the solution again from
 * these rows. */
#pragma once

#include "attribution/attribution.h"

/* The callback for occ_attribution_options: writes one of the solutions to stdout. */
void dump_solution(void *context, const struct occ_attribution *attribution,
                   const struct occ_solution *solution);
