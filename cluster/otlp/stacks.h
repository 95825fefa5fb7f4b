/*
 * GPU time by stack (job, GPU, layers, kernel, cause of loss) of the minutes that no profile had: tables in
 * the file of the sums. A pass adds the GPU time that it counts for the first time; then all stacks become
 * one request, which is kept until a server accepts or refuses it for good. Each nanosecond is in one request
 * only, and a repeated request has the same bytes. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "occupancy/occupancy.h"
#include "sums.h"

/* Stacks with names of their own, by GPU time; the rest is added up by job and GPU, with the kernel
 * OCC_SUMS_OTHER. */
#define OCC_STACKS_MAX        2000
#define OCC_STACKS_PATH_BYTES 513 /* the longest path of layers, with its NUL; a longer one keeps its end */
/* Layers of GPU time whose launches were not read: too many in a minute, evicted, or damaged. */
#define OCC_STACKS_UNREAD "(layers not read)"

struct occ_stack {
    const char *job, *gpu, *path, *kernel; /* path: names of layers, none empty, joined by '/'; "": none */
    bool is_simulated;
    int64_t minute, ns;
    /* parts of the launch configuration's GPU time lost to each cause, enum occ_cause; NaN: none. NULL: the
     * model refuses the configuration, and the loss is unknown */
    const double *causes;
};

struct occ_stacks;

/* Uses the open file of the sums, which must outlive *ret_stacks. */
int occ_stacks_open(struct occ_sums *sums, struct occ_stacks **ret_stacks, struct occ_error *err);
void occ_stacks_close(struct occ_stacks *stacks);
/* Forgets everything, also a request: the rest of an earlier use is not sent when profiles are switched
 * on again. */
int occ_stacks_clear(struct occ_sums *sums, struct occ_error *err);

/* ---- in a pass ---- */

/* Adds GPU time to a stack. */
int occ_stacks_add(struct occ_stacks *stacks, const struct occ_stack *stack, struct occ_error *err);

/* Identifies counted GPU time: one launch configuration, range, run and minute of a history. */
struct occ_stacks_key {
    int64_t identity, minute, run, config, range;
};
/* Counts `ns` of GPU time. *ret_new_ns: the part that was not counted before, at most `most_ns`. */
int occ_stacks_count(struct occ_stacks *stacks, const struct occ_stacks_key *key, int64_t ns, int64_t most_ns,
                     int64_t *ret_new_ns, struct occ_error *err);
/* Forgets the counted time of a history's minutes before `minute`. */
int occ_stacks_forget(struct occ_stacks *stacks, int64_t identity, int64_t minute, struct occ_error *err);

/* ---- requests, between passes ---- */

struct occ_stacks_request {
    char *body; /* the caller frees it; NULL: nothing is to be sent */
    size_t n;
    double gpu_ns;
};
/* Loads the request that is to be sent, or sent again. */
int occ_stacks_load_request(struct occ_stacks *stacks, struct occ_stacks_request *ret_request,
                            struct occ_error *err);
/* Writes a document of all stacks; see occ_otlp_profile(). */
typedef int occ_stacks_write(struct occ_sums *sums, const void *origin, char **ret_text, size_t *ret_n,
                             struct occ_error *err);
/* Makes a request of the stacks, which are forgotten; none if there are none. A document that is too long
 * (OCC_E_FULL) is written again with half as many stacks. */
int occ_stacks_make_request(struct occ_stacks *stacks, occ_stacks_write *write, const void *origin,
                            struct occ_error *err);
/* Forgets the request: a server has accepted it, or refused it for good. */
int occ_stacks_drop_request(struct occ_stacks *stacks, struct occ_error *err);

/* ---- internal ---- */

/* Parts of a stack's GPU time, as columns that add up to `ns`: used, lost to each cause, and unknown. */
#define OCC_STACKS_CAUSE(NAME, id, text) OCC_STACKS_ADDED(id)
#define OCC_STACKS_ADDED(column)         ", " column " = " column " + excluded." column
#define OCC_STACKS_MERGE                                                                                     \
    "is_simulated = max(is_simulated, excluded.is_simulated), first_minute = min(first_minute, "             \
    "excluded.first_minute), last_minute = max(last_minute, excluded.last_minute)" OCC_STACKS_ADDED("ns")    \
        OCC_STACKS_ADDED("used") OCC_STACKS_ADDED("unknown") OCC_CAUSES(OCC_STACKS_CAUSE)
#define OCC_STACKS_SUM_CAUSE(NAME, id, text) ", total(" id ") AS " id
/* All columns after the key, of stacks that become one. */
#define OCC_STACKS_SUMS                                                                                      \
    "max(is_simulated) AS is_simulated, min(first_minute) AS first_minute, max(last_minute) AS "             \
    "last_minute, total(ns) AS ns, total(used) AS used, total(unknown) AS unknown" OCC_CAUSES(               \
        OCC_STACKS_SUM_CAUSE)
#define OCC_STACKS_COLUMN(NAME, id, text) id ", "
#define OCC_STACKS_SCHEMA                                                                                    \
    "CREATE TABLE IF NOT EXISTS stack (job TEXT, gpu TEXT, path TEXT, kernel TEXT, "                         \
    "is_simulated, first_minute, last_minute, ns, used, unknown, " OCC_CAUSES(                               \
        OCC_STACKS_COLUMN) "UNIQUE (job, gpu, path, kernel));"                                               \
                           "CREATE TABLE IF NOT EXISTS counted_range (identity, minute, run, config, "       \
                           "range, ns, PRIMARY KEY (identity, minute, run, config, range)) WITHOUT ROWID;"   \
                           "CREATE TABLE IF NOT EXISTS profile_request (id INTEGER PRIMARY KEY CHECK (id "   \
                           "= 1), body TEXT NOT NULL, gpu_ns);"
