/* What A's advice predicted, where B follows it, and what it brought. One thread. */
#ifndef OCC_OCCQ_DIFF_ADVICE_H
#define OCC_OCCQ_DIFF_ADVICE_H

#include "diff/report.h"

/* Sets `advice` and `advised_saves` of the lines whose launch configuration in B has what `occq show` advises
 * for A's; of several pieces of advice, the one that saves most. */
void diff_add_advice(struct diff_line *lines, size_t n);

#endif
