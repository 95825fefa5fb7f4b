/*
 * The transformer on the CPU, slow and plain, to check the device's results against. Pure functions.
 */
#pragma once

#include <stdbool.h>

#include "transformer.h"

/* The logits of the first sequence, TOKENS x WORDS. False: out of memory. */
bool reference_logits(const struct model *model, const int *words, float *logits);

/* The loss of one row of logits. */
double reference_loss(const float *logits, int target);

/* Element (i, j) of the head's gradient, from what the head was given and the gradient of the logits. */
double reference_gradient(const float *normed, const float *gradient_logits, int i, int j);
