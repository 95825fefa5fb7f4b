/*
 * The transformer on the CPU, slow and plain, as the reference for the device's results. Pure functions.
 */
#pragma once

#include <stdbool.h>

#include "transformer.h"

/* Computes the logits of the first sequence, TOKENS x WORDS. Returns false without memory. */
bool reference_logits(const struct model *model, const int *words, float *logits);

/* Returns the loss of one row of logits. */
double reference_loss(const float *logits, int target);

/* Returns element (i, j) of the head's gradient, from the head's input and the gradient of the logits. */
double reference_gradient(const float *normed, const float *gradient_logits, int i, int j);
