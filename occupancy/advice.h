/*
 * Advice: changes of a launch that use more of the device, each with the value at which it starts to pay, its
 * gain and its cost.
 *
 * Every item is a change of one parameter for which the model ran again: `launch` is the changed launch, and
 * blocks, theoretical and expected occupancies "then" are the results of occ_analyse(). The model does not
 * know how a change affects the duration of a block; that is the cost. A driver's number of active clusters
 * is assumed to hold for the changed launch too. Grids change along x; no advice makes them longer than the
 * device allows.
 *
 * Pure like the model: no allocation, no I/O, any thread.
 */
#pragma once

#include "occupancy.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * X(NAME, id, text, unit of the cost). `cost_amount` counts the unit. In brackets the unit of `now` and
 * `needed`.
 */
/* clang-format off */
#define OCC_ADVICES(X)                                                                                       \
    /* [registers per thread] the largest value for one more block per SM; the largest for the most blocks */\
    /* of those with at least half of the present value */                                                  \
    X(REGISTERS, "registers", "fewer registers per thread",                                                  \
      "bytes per thread that may spill to local memory")                                                     \
    /* [static + dynamic bytes per block] likewise, under the same carve-out */                              \
    X(SMEM, "shared_memory", "less shared memory per block", "fewer bytes of shared memory per block")       \
    /* [bytes per SM] smallest carve-out for one more block; smallest for the most blocks */                 \
    X(CARVEOUT, "carveout", "a larger shared-memory carve-out", "fewer bytes of L1 cache per SM")            \
    /* [barriers per block] the largest value for one more block; the largest for the most blocks */         \
    X(BARRIERS, "barriers", "fewer barriers per block", "fewer barriers per block")                          \
    /* [registers per thread; also_*: static + dynamic bytes] both limit, and only both together gain: the */\
    /* largest values for one more block; for the most blocks with at least half of the registers */         \
    X(REGISTERS_SMEM, "registers+shared_memory", "fewer registers per thread with less shared memory",       \
      "bytes per thread that may spill to local memory")                                                     \
    /* [blocks per cluster] the largest smaller cluster with more blocks in a full wave */                   \
    X(CLUSTER, "cluster", "a smaller cluster", "fewer blocks that share their memory")                       \
    /* [threads per block] all sizes with the best occupancy, of the multiples of a warp that divide the */  \
    /* SM's threads and are at least threads per SM / blocks per SM; the grid keeps its number of threads */ \
    X(BLOCK_SIZE, "block_size", "another block size", "threads of the grid without work")                    \
    /* [blocks] less than one wave: as many blocks as fill it */                                             \
    X(FILL_WAVE, "fill_wave", "a grid that fills one wave", "more blocks for the same work")                 \
    /* [blocks] less than one wave, SMs with k and k + 1 blocks: the next multiple of the SMs */             \
    X(EVEN_GRID, "even_grid", "a grid that divides over the SMs", "more blocks for the same work")           \
    /* [blocks] without the partial last wave: more work for each block */                                   \
    X(GRID_DOWN, "grid_down", "a smaller grid that ends on a full wave", "fewer blocks for the same work")   \
    /* [blocks] with the last wave full: less work for each block */                                         \
    X(GRID_UP, "grid_up", "a larger grid that ends on a full wave", "more blocks for the same work")         \
    /* [blocks] occ_grid_stride_blocks() with OCC_GRID_STRIDE_WAVES, one element per thread before */        \
    X(GRID_STRIDE, "grid_stride", "a grid-stride loop", "fewer blocks for the same work")                    \
    /* The kinds from here on gain no occupancy; occ_suggest() adds them. */                                 \
    /* [blocks] fewer blocks than SMs: one for each SM */                                                    \
    X(FILL_SMS, "fill_sms", "a block for every SM", "more blocks for the same work")                         \
    /* [threads per block] fewer large blocks than SMs: the largest half, quarter ... */                     \
    /* with a block for each SM, or the smallest one */                                                      \
    X(SPLIT_BLOCK, "split_block", "smaller blocks, one for every SM", "more blocks for the same work")       \
    /* [registers per thread] the most without fewer blocks per SM */                                        \
    X(FREE_REGISTERS, "free_registers", "more registers per thread cost no block",                           \
      "more registers per thread")                                                                           \
    /* [static + dynamic bytes per block] the most without fewer blocks per SM; the carve-out may grow */    \
    X(FREE_SMEM, "free_shared_memory", "more shared memory per block costs no block",                        \
      "more bytes of shared memory per block")                                                               \
    /* [threads per block] large blocks with shared memory, at most OCC_CROWDED_BLOCKS per SM: half of it */ \
    X(HALF_BLOCK, "half_block", "smaller blocks, more of them per SM: warps wait at barriers",               \
      "more blocks for the same work")                                                                       \
    /* [threads per block] below OCC_SMALL_BLOCK, and warps or blocks per SM limit: that many */             \
    X(LARGER_BLOCK, "larger_block", "larger blocks", "threads of the grid without work")                     \
    /* [threads per block] the last warp is partly filled: whole warps */                                    \
    X(WHOLE_WARPS, "whole_warps", "blocks of whole warps", "threads of the grid without work")
/* clang-format on */

#define OCC_ADVICE_OF_OCCUPANCY OCC_ADVICE_FILL_SMS /* kinds below it gain occupancy */

#define OCC_ADVICE_ENUMERATOR(name, id, text, cost) OCC_ADVICE_##name,
enum occ_advice_kind { OCC_ADVICES(OCC_ADVICE_ENUMERATOR) OCC_ADVICE_COUNT };

/* Minimum gain of theoretical or elapsed occupancy (ratio) of an item. */
#define OCC_ADVICE_MIN_GAIN 0.0005

/* Enough room for all advice on any device of the table. */
#define OCC_ADVICE_MAX 40

#define OCC_GRID_STRIDE_WAVES 32

struct occ_advice {
    enum occ_advice_kind kind;
    uint64_t now;                     /* the parameter's value; the unit depends on the kind */
    uint64_t needed;                  /* its value after the change */
    uint64_t also_now, also_needed;   /* the second parameter of a kind that changes two; both 0: none */
    uint32_t blocks_now, blocks_then; /* blocks per SM */
    double theoretical_now, theoretical_then;
    double elapsed_low_now, elapsed_low_then; /* expected_elapsed_low */
    double elapsed_high_now, elapsed_high_then;
    uint64_t cost_amount;     /* in the unit of occ_advice_cost() */
    struct occ_launch launch; /* with the change */
};

/* All advice in the order of OCC_ADVICES, within a kind by growing gain in blocks; the first `max` items are
 * stored. `result` is from occ_analyse() of the same device and launch; where that gives none, there is no
 * advice. Returns the number of items, which may exceed `max`. */
size_t occ_advise(const struct occ_device *device, const struct occ_launch *launch,
                  const struct occ_result *result, struct occ_advice *advice, size_t max);

/* Blocks of a grid-stride loop over n elements: max(1, min(ceil(n / block), SMs * max_threads_per_sm / block
 * * waves)), 64-bit, saturating. block, sms, max_threads_per_sm: 0 gives 1. */
uint64_t occ_grid_stride_blocks(uint64_t n, uint32_t block, uint32_t sms, uint32_t max_threads_per_sm,
                                uint32_t waves);

/* Identifier, text, unit of the cost. Never NULL. */
const char *occ_advice_word(enum occ_advice_kind kind);
const char *occ_advice_text(enum occ_advice_kind kind);
const char *occ_advice_cost(enum occ_advice_kind kind);

#ifdef __cplusplus
}
#endif
