/*
 * Utilization of the node's GPUs: the union of the times of all recorded launches, over all programs and
 * users, in the last whole minute. Overlapping kernels count once. Histories are only read. One thread.
 *
 * A GPU has a value only if the histories know its time: its UUID is known, each program that used it and ran
 * in the minute was recorded without gaps and losses, and no launch of the minute was evicted. If a history
 * is unreadable no GPU has a value, since a program of that history may have used any of them. A GPU without
 * a recorded program in the minute has no value: idle GPUs and unrecorded programs look the same. Kernels of
 * such programs do not count, nor does a kernel that still runs: histories get launches after their end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cluster/seen/seen.h"
#include "sums.h"

/* More launches than these shorten the minute to its end, down to OCC_BUSY_LEAST_NS: sorting them takes
 * milliseconds. */
#define OCC_BUSY_LAUNCHES INT64_C(131072)
#define OCC_BUSY_LEAST_NS INT64_C(1000000000)

struct occ_busy_gpu {
    char gpu[OCC_SUMS_TEXT_BYTES], model[OCC_SUMS_TEXT_BYTES]; /* names, cut by occ_collect_name() */
    double ratio;    /* busy time / time from from_ns to the end of the minute */
    int64_t from_ns; /* start of the measured part of the minute, since 1970 */
};

struct occ_busy {
    struct occ_busy_gpu gpus[OCC_SUMS_GPUS];
    size_t n;
};

/* Reads the last minute that ended before `until_ns`. GPUs with names in the sums come first. A failure only
 * leaves GPUs without a value. idle: histories without running programs, which are not opened while they are
 * unchanged; empty at first. */
void occ_busy_read(struct occ_seen *seen, struct occ_sums *sums, int64_t until_ns, struct occ_map *idle,
                   struct occ_busy *ret_busy);
