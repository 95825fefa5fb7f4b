/*
 * Finds the place in the program where a launch was made. Input, in any order: ranges of threads (NVTX,
 * PyTorch's operators, modules and annotations) and calls of CUDA's API. Each launch gets the ranges that
 * were open when its call was made. Internal to import/.
 *
 *   - A launch's call is found by process and correlation id, never by order; the kernel's own time plays no
 *     part. A launch of a CUDA graph is placed where its node was made, or nowhere.
 *   - A range counts if it is on the call's thread and contains the whole call. If two ranges begin and end
 *     together, the first in the file is the outer range.
 *   - Launches by autograd (inside its evaluate_function) belong to the operator of the forward pass. Among
 * the operators with the same sequence number on another thread of the process, and outside of autograd, this
 *     is the last to start before the call. The phase is then "backward". Without such an operator, and if
 *     evaluate_function has no sequence number (gradient accumulation), the ranges are autograd's own.
 *
 * Memory is bounded whatever the recording's size: records are sorted in files (sorter.h), names, paths and
 * depth have maxima. One thread.
 */
#pragma once

#include "sink.h"

struct occ_ranges;

int occ_ranges_new(uint64_t seed, struct occ_ranges **ret_ranges, struct occ_error *err);
/* NULL is fine. */
void occ_ranges_free(struct occ_ranges *ranges);

int occ_ranges_add(struct occ_ranges *ranges, const struct occ_import_range *range, struct occ_error *err);
int occ_ranges_add_call(struct occ_ranges *ranges, const struct occ_import_call *call, struct occ_error *err);
/* Launches are numbered in the order of these calls. */
int occ_ranges_add_launch(struct occ_ranges *ranges, const struct occ_import_origin *origin,
                          struct occ_error *err);

/* Call after all input: the place of the next launch, in the order of input; 0: none. */
int occ_ranges_next(struct occ_ranges *ranges, uint32_t *ret_place, struct occ_error *err);

#define OCC_RANGES_PLACES_MAX (1u << 17)
/* The path of a place < OCC_RANGES_PLACES_MAX, in the form of occ_store_put_range(). */
const char *occ_ranges_path(const struct occ_ranges *ranges, uint32_t place,
                            char path[OCC_STORE_RANGE_BYTES + 1], const char **ret_phase);
