/*
 * Where in its program a launch was made: ranges of threads (NVTX, PyTorch's operators, modules and
 * annotations) and calls of CUDA's API go in, in any order; each launch gets the ranges that were open when
 * its call was made. Internal to import/.
 *
 *   - A launch's call is found by process and correlation id, never by order; the kernel's own time plays no
 *     part. A launch of a CUDA graph is placed where its node was made, or nowhere.
 *   - Of the ranges on the call's thread those count that contain the whole call; of two that begin and end
 *     together the one that comes first in the file is the outer one.
 *   - What autograd launches (inside its evaluate_function) belongs to the operator of the forward pass: of
 *     the operators with the same sequence number on another thread of the process, and outside of autograd,
 *     the one that starts last before it. The phase is then "backward". Without such an operator, and where
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
/* The launches are numbered as they come. */
int occ_ranges_add_launch(struct occ_ranges *ranges, const struct occ_import_origin *origin,
                          struct occ_error *err);

/* When all are in: the place of the next launch, in the order in which they came; 0: none. */
int occ_ranges_next(struct occ_ranges *ranges, uint32_t *ret_place, struct occ_error *err);

#define OCC_RANGES_PLACES_MAX (1u << 17)
/* A place < OCC_RANGES_PLACES_MAX as occ_store_put_range() takes it. */
const char *occ_ranges_path(const struct occ_ranges *ranges, uint32_t place,
                            char path[OCC_STORE_RANGE_BYTES + 1], const char **ret_phase);
