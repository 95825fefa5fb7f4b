/* Writes the rows of one solution as JSON, from which tests/unit/attribution_numpy.py computes the solution
 * again. */
#pragma once

#include "attribution/attribution.h"

/* For occ_attribution_options: writes one of the solutions to stdout. */
void dump_solution(void *context, const struct occ_attribution *attribution,
                   const struct occ_solution *solution);
