/*
 * A request of OTLP/HTTP with JSON that has profiles: for each job "gpu_time", all GPU time, and "lost_time",
 * its part that by the model the launches leave empty. A sample's stack is, from the outside, the layers, the
 * kernel, and the cause of the loss; "(used)" and "(not analysed)" take the place of a cause in gpu_time.
 * Values are nanoseconds. One thread.
 */
#pragma once

#include "resource.h"
#include "stacks.h"

/* Writes a document of all stacks (an occ_stacks_write()); origin: struct occ_otlp_origin. The caller frees
 * *ret_text. OCC_E_FULL: longer than OCC_OTLP_BODY_MAX. */
int occ_otlp_profile(struct occ_sums *sums, const void *origin, char **ret_text, size_t *ret_n,
                     struct occ_error *err);
