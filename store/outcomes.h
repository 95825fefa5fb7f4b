/*
 * Outcomes of advice: changes that advice had named, with the predicted and the measured time. occq diff
 * keeps them, one for each pair of launch configurations. One thread for each store.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store.h"
#include "support/error.h"

enum { OCC_OUTCOMES_MAX = 10000 }; /* rows of a history; the oldest go first */

#define OCC_OUTCOME_WORD_BYTES 32

/* Ratios are time after / before. */
struct occ_advice_outcome {
    int64_t config_before, config_after; /* 0: removed since */
    int64_t compared_ns;
    char change[OCC_OUTCOME_WORD_BYTES]; /* the word of the advice */
    bool is_promised;
    double predicted, predicted_low, predicted_high; /* of the change as it was made; 80 % interval */
    double measured, measured_low, measured_high;    /* 95 % confidence interval */
};

/* Keeps outcomes in one transaction. An outcome of the same configurations is replaced. */
int occ_store_put_outcomes(struct occ_store *store, const struct occ_advice_outcome *outcomes, size_t n,
                           struct occ_error *err);

/* Reads all outcomes, by change. The caller frees *ret_outcomes. A history from before outcomes were kept has
 * none. */
int occ_store_outcomes(struct occ_store *store, struct occ_advice_outcome **ret_outcomes, size_t *ret_n,
                       struct occ_error *err);
