/*
 * Advice: what could be changed about a launch so that more of the device is used, each with the value at which
 * it starts to pay, what it gains and what it costs.
 *
 * Nothing is guessed. Every item is a change of one parameter that the model was run again with: `launch` is the
 * changed launch, and blocks, theoretical and expected occupancies "then" are what occ_analyse() says about it.
 * What a change does to the time that one block takes is not known here; that is the cost. A driver's number of
 * active clusters is taken to hold for the changed launch too. Grids change along x, if need be along x alone; what
 * would be too long there (65535 blocks before 3.0) is not advised.
 *
 * Pure like the model: no allocation, no I/O, any thread.
 */
#ifndef OCC_OCCUPANCY_ADVICE_H
#define OCC_OCCUPANCY_ADVICE_H

#include "occupancy.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * X(NAME, word, text, cost's text). What `now` and `needed` are, in brackets; `cost_amount` is what the cost's text
 * counts.
 */
#define OCC_ADVICES(X)                                                                                           \
    /* [registers per thread] the most that give one block per SM more; the most that give all there are */      \
    X(REGISTERS, "registers", "fewer registers per thread",                                                      \
      "bytes per thread that may be spilled to local memory")                                                    \
    /* [static + dynamic bytes per block] likewise, under the same carve-out */                                  \
    X(SMEM, "shared_memory", "less shared memory per block", "bytes less shared memory for a block")             \
    /* [bytes per SM] smallest carve-out with one block more; smallest with the most blocks */                   \
    X(CARVEOUT, "carveout", "a larger shared-memory carve-out", "bytes less L1 cache per SM")                    \
    /* [barriers per block] the most that give one block more; the most that give all there are */               \
    X(BARRIERS, "barriers", "fewer barriers per block", "barriers less for a block")                             \
    /* [registers per thread; also_*: static + dynamic bytes] both limit, so only both together gain: the      \
     * most of each that give one block more; the most that give all there are */ \
    X(REGISTERS_SMEM, "registers+shared_memory", "fewer registers per thread with less shared memory",           \
      "bytes per thread that may be spilled to local memory")                                                    \
    /* [blocks per cluster] largest smaller cluster with which a full wave has more blocks */                    \
    X(CLUSTER, "cluster", "a smaller cluster", "blocks less that share their memory")                            \
    /* [threads per block] all sizes with the best occupancy among the multiples of a warp that divide the   \
     * SM's threads and are not below threads per SM / blocks per SM. Work stays: the grid has as many       \
     * threads; registers per thread and shared memory per block stay too */   \
    X(BLOCK_SIZE, "block_size", "another block size", "threads in the grid without work")                        \
    /* [blocks] the grid is below one wave: as many blocks as fill it */                                         \
    X(FILL_WAVE, "fill_wave", "a grid that fills one wave", "blocks more that share the same work")              \
    /* [blocks] without the partial last wave: more work for each block */                                       \
    X(GRID_DOWN, "grid_down", "a smaller grid that ends on a full wave", "blocks less for the same work")        \
    /* [blocks] with the last wave filled up: less work for each block */                                        \
    X(GRID_UP, "grid_up", "a larger grid that ends on a full wave", "blocks more that share the same work")      \
    /* [blocks] as occ_grid_stride_blocks() with OCC_GRID_STRIDE_WAVES, one element a thread now */              \
    X(GRID_STRIDE, "grid_stride", "a grid-stride loop", "blocks less for the same work")

enum occ_advice_kind {
#define X(name, word, text, cost) OCC_ADVICE_##name,
    OCC_ADVICES(X)
#undef X
        OCC_ADVICE_COUNT
};

/* What occupancy has to gain (theoretical or elapsed, as a ratio) for an item to be worth its line. */
#define OCC_ADVICE_LEAST_GAIN 0.0005

/* Enough room for all advice on any device of the table. */
#define OCC_ADVICE_MAX 32

#define OCC_GRID_STRIDE_WAVES 32

struct occ_advice {
    enum occ_advice_kind kind;
    uint64_t now;                     /* the parameter's value; the unit depends on the kind */
    uint64_t needed;                  /* its value after the change */
    uint64_t also_now, also_needed;   /* the second parameter of a kind that changes two; both 0: none */
    uint32_t blocks_now, blocks_then; /* per SM */
    double theoretical_now, theoretical_then;
    double elapsed_now, elapsed_then;   /* expected_elapsed */
    double achieved_now, achieved_then; /* expected_achieved */
    uint64_t cost_amount;               /* of what occ_advice_cost() says */
    struct occ_launch launch;           /* with the change */
};

/* All that can be gained, in the order of OCC_ADVICES and by growing gain in blocks within a kind; what of it fits
 * goes to `advice`. `result` is what occ_analyse() made of the same device and launch. Returns how many items
 * there are, which may be more than `max`. */
size_t occ_advise(const struct occ_device *device, const struct occ_launch *launch,
                  const struct occ_result *result, struct occ_advice *advice, size_t max);

/* Blocks of a grid-stride loop over n elements: max(1, min(ceil(n / block), SMs * max_threads_per_sm / block *
 * waves)), 64-bit, saturating. block, sms, max_threads_per_sm: 0 gives 1. */
uint64_t occ_grid_stride_blocks(uint64_t n, uint32_t block, uint32_t sms, uint32_t max_threads_per_sm,
                                uint32_t waves);

/* The smallest multiple of a warp that divides the SM's threads and with which the SM's blocks hold all of them;
 * 0: none (or an impossible device). */
uint32_t occ_smallest_good_block(const struct occ_device *device);

/* Words. Never NULL. */
const char *occ_advice_word(enum occ_advice_kind kind);
const char *occ_advice_text(enum occ_advice_kind kind);
const char *occ_advice_cost(enum occ_advice_kind kind);

#ifdef __cplusplus
}
#endif

#endif
