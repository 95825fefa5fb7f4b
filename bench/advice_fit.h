/* Calibrates the table of predictions without one repository. */
#pragma once

#include "corpus.h"

/* Returns the published table with exponents and interval fitted to all rows except source `left_out` (NULL:
 * to all rows). */
struct occ_prediction_table fit_table(const struct corpus *corpus, const char *left_out);

/* Returns the row's prediction. */
struct occ_prediction fit_predict(const struct occ_prediction_table *table, const struct corpus_row *row);
