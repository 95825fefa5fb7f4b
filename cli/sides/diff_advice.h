/* What A's advice predicted, where B follows it, and what it brought. One thread. */
#pragma once

#include "sides.h"

/*
 * The answer about two compared sides: sets `diff`, `side` and `incomparable` of the report, whose other
 * members are the caller's, and makes its rows, which the caller frees. Lines whose launch configuration in B
 * has what `occq show` advises for A's get the advice; of several pieces, the one that saves most.
 * OCC_E_INVALID: the sides are not comparable, and it is not to be done by `force`.
 */
int diff_answer(const struct sides *sides, bool force, struct diff_report *report,
                struct diff_line **ret_lines, struct occ_error *err);
