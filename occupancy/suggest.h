/*
 * The advice list that users see: the changes of occ_advise(), and changes that need no more occupancy, each
 * with its predicted time, in the order in which they are worth trying.
 *
 * First the changes with a promised gain, by predicted saving x share of published cases that were faster,
 * then by effort for the owner. Fewer registers by force come after all other promises, because a compiler
 * may spill. Changes without a promise follow: measure them. Left out: changes that are predicted to be
 * slower, tails of more than OCC_TAIL_WAVES waves, whole waves of persistent kernels, advice per SM where
 * most SMs have no block, and the farther of two grids of whole waves.
 *
 * A launch takes OCC_LAUNCH_NS at least, so no prediction is below it.
 *
 * Pure like the model: no allocation, no I/O, any thread.
 */
#pragma once

#include "advice.h"
#include "bound.h"
#include "predict.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OCC_TAIL_WAVES 4.0

/* The shortest kernels of recordings take about 2 us. */
#define OCC_LAUNCH_NS   2000.0
#define OCC_PROMISED_NS 5000.0 /* shorter launches: no gain is promised, since fixed time is a large part */

struct occ_suggest_input {
    const struct occ_device *device;
    const struct occ_launch *launch;
    const struct occ_result *result; /* result of occ_analyse() for `launch` */
    enum occ_work_bound bound;
    enum occ_owner owner;
    uint32_t traits;      /* enum occ_kernel_trait */
    int64_t spill_bytes;  /* per thread; -1: not known */
    uint32_t local_bytes; /* per thread: spills, arrays, stack; 0: none, or not known */
    double duration_ns;   /* mean of the launches; 0: not known */
    bool has_grid;        /* false: no grid is known, and `result` is of one full wave */
};

struct occ_suggestion {
    struct occ_advice advice;
    struct occ_prediction prediction;
    bool is_forced;   /* fewer registers by force: the compiler may spill */
    bool is_unlikely; /* no promise, because the SM has enough warps */
};

/* True for a change of the number of blocks or warps that an SM holds: it matters only if the grid has enough
 * blocks. */
bool occ_advice_is_per_sm(enum occ_advice_kind kind);

/* Returns the unit that bounds the kernel by counters. `utilization` NULL: not measured. */
enum occ_work_bound occ_work_bound_of(const struct occ_hw_utilization *utilization, enum occ_bound bound);
/* Returns the traits without the use of tensor cores if counters refute it. */
uint32_t occ_likely_traits(uint32_t traits, const struct occ_hw_utilization *utilization);

/* True if few warps are likely by design: tensor cores, clusters, one block per SM, a persistent kernel. A
 * measured latency bound refutes it. */
bool occ_few_warps_by_design(const struct occ_suggest_input *input);

/* At most OCC_ADVICE_MAX items. Returns their number. */
size_t occ_suggest(const struct occ_suggest_input *input, struct occ_suggestion ret_list[OCC_ADVICE_MAX]);

/* The share of published cases that were faster, with one faster and one slower case added, so that few cases
 * give about a half. */
double occ_confidence(const struct occ_term_row *published);

#ifdef __cplusplus
}
#endif
