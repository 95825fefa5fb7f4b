/* Rows of a comparison with A's advice where B follows it: the prediction and the result. One thread. */
#pragma once

#include "sides.h"

/*
 * Fills the answer about two compared sides: `diff`, `side`, `incomparable`, `levels`, `layers`, `gpu_time`
 * and `aligned` of the report (the caller sets the other members), and its rows. The caller frees the rows,
 * and ends the report with diff_report_done(), also after a failure. A row has A's advice if B's launch
 * configuration follows it: the first followed advice in the order of `occq show`. OCC_E_INVALID: the sides
 * are not comparable, and `force` is false.
 */
int diff_answer(const struct sides *sides, bool force, struct diff_report *report,
                struct diff_line **ret_lines, struct occ_error *err);
