/* Calibration of the table of predictions, with one repository left out. */
#pragma once

#include "corpus.h"

/* The table with exponents and interval from the rows whose source is not `left_out` (NULL: from all). */
struct occ_prediction_table fit_table(const struct corpus *corpus, const char *left_out);

/* The row's prediction. */
struct occ_prediction fit_predict(const struct occ_prediction_table *table, const struct corpus_row *row);
