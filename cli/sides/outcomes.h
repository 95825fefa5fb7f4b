/* Keeps the measured effect of changes that advice had named, in the history of both sides. One thread. */
#pragma once

#include "sides.h"

/* Keeps the outcomes of the rows of a comparison. Keeps none, without a message and without waiting, if the
 * sides are not of one history of this user and of this version, if it cannot be written, or another program
 * writes it. Of rows with the same configurations the one with most time counts. */
void diff_keep_outcomes(const struct sides *sides, const struct diff_report *report,
                        const struct diff_line *lines);
