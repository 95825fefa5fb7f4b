/*
 * The verdict about totals of launches: the uses of the GPU time, and the changes that save most of it.
 *
 * GPU time is the recorded time of each GPU, added up. Every second has one place:
 *
 *   GPU time  = idle + communication + copies + kernels
 *   idle      = waiting for launches + longer pauses
 *   kernels   = used + lost by cause + unknown (kernels without a model)
 *
 * A second of a kernel with an elapsed occupancy of 30 % counts 0.3 s as used and 0.7 s as lost. Parts are
 * never negative: a gain over the model (waterfall.h) reduces the nearest losses. Idle time contains copies
 * unless copies are recorded.
 *
 * Pure apart from malloc: no I/O; any thread.
 */
#pragma once

#include "totals.h"

/* ---- GPU time ---- */

/* Shares of the GPU time; they add up to 1. All 0: there is no recorded time. */
struct occ_gpu_time {
    int64_t key;         /* identifies the GPU, run or job; 0: all */
    double window_s;     /* the GPU time that is 1 here, in seconds */
    double unrecorded_s; /* time without recording between launches, which is not a part of window_s */
    double launch_wait, pause, communication, copies, kernels;
    double used, unknown, lost[OCC_PART_COUNT]; /* add up to `kernels` */
    bool has_copies;                            /* copies are recorded on all GPUs */
    bool is_divided; /* kernels overlapped communication by an unknown time: both shares are estimates */
};

/* The unit of a row. X(NAME, word) */
#define OCC_TIME_BY(X)                     X(ALL, "all") X(GPU, "gpu") X(RUN, "run") X(JOB, "job")
#define OCC_TIME_BY_ENUMERATOR(name, word) OCC_TIME_BY_##name,
enum occ_time_by { OCC_TIME_BY(OCC_TIME_BY_ENUMERATOR) OCC_TIME_BYS };

/* Makes rows in ascending order of their keys, or one row for ALL; no row if there is no GPU. The caller
 * frees *ret_rows, also if *ret_n is 0. Returns 0 or OCC_E_NO_MEMORY. */
int occ_gpu_times(const struct occ_totals *totals, enum occ_time_by by, struct occ_gpu_time **ret_rows,
                  size_t *ret_n);

/* Rounds `n` ratios to steps of 1 / `steps` (100: percent) so that the steps add up to the rounded sum of the
 * ratios: the largest remainders are rounded up. Ratios are finite and not negative, and their sum is at most
 * about 1. */
void occ_round_shares(const double *ratios, size_t n, unsigned steps, unsigned *ret_steps);

/* ---- findings ---- */

/* X(NAME, word, text) */
#define OCC_FINDINGS(X)                                                                                      \
    X(LAUNCH_WAIT, "launch_wait", "the GPU waits for launches")                                              \
    X(PAUSE, "pause", "the GPU is idle in longer pauses")                                                    \
    X(COMMUNICATION, "communication", "communication without other work")                                    \
    X(COPIES, "copies", "copies without other work")                                                         \
    X(KERNEL, "kernel", "a kernel leaves warp slots empty")
#define OCC_FINDING_ENUMERATOR(name, word, text) OCC_FINDING_##name,
enum occ_finding_kind { OCC_FINDINGS(OCC_FINDING_ENUMERATOR) OCC_FINDING_KINDS };

/* The effort of a change, the cheapest first. */
enum occ_effort {
    OCC_EFFORT_ATTRIBUTE, /* one call before the launch */
    OCC_EFFORT_LAUNCH,    /* launch parameters, or arguments of a library call */
    OCC_EFFORT_COMPILER,  /* compiler flags and launch bounds */
    OCC_EFFORT_CODE,
    OCC_EFFORTS
};

/* Changes. X(NAME, word, text, effort) */
#define OCC_CHANGES(X)                                                                                       \
    X(NONE, "none", "no change known", CODE)                                                                 \
    X(BUSY, "busy", "nothing for occupancy: a unit of the GPU is busy", CODE)                                \
    X(LEAVE, "leave", "nothing: low by design", CODE)                                                        \
    X(CUDA_GRAPHS, "cuda_graphs", "CUDA graphs, or fewer and larger kernels", CODE)                          \
    X(FIND_WAIT, "find_wait", "find the wait: input data, synchronisation, copies", CODE)                    \
    X(OVERLAP, "overlap", "overlap with computation", CODE)                                                  \
    X(PAD, "pad", "pad the operands: rows of a multiple of 16 bytes", LAUNCH)                                \
    X(BATCH, "batch", "a larger batch: the shape has too few tiles", LAUNCH)                                 \
    X(SHAPES, "shapes", "shapes that end on a full wave", LAUNCH)                                            \
    X(ALGORITHM, "algorithm", "another algorithm or tile (autotuning)", LAUNCH)                              \
    X(FUSE, "fuse", "fuse with its neighbours, or batch", CODE)                                              \
    X(NUM_WARPS, "num_warps", "another num_warps", LAUNCH)                                                   \
    X(NUM_STAGES, "num_stages", "fewer num_stages", LAUNCH)                                                  \
    X(BLOCK, "block", "other BLOCK sizes", LAUNCH)                                                           \
    X(CARVEOUT, "carveout", "a larger shared-memory carve-out", ATTRIBUTE)                                   \
    X(BLOCK_SIZE, "block_size", "another block size", LAUNCH)                                                \
    X(GRID, "grid", "another grid", LAUNCH)                                                                  \
    X(CLUSTER, "cluster", "a smaller cluster", LAUNCH)                                                       \
    X(LAUNCH_BOUNDS, "launch_bounds", "fewer registers: __launch_bounds__, -maxrregcount", COMPILER)         \
    X(SMEM, "shared_memory", "less shared memory per block", CODE)                                           \
    X(USE_REGISTERS, "use_registers", "more registers per thread, which cost no block", COMPILER)            \
    X(USE_SMEM, "use_shared_memory", "more shared memory per block, which costs no block", CODE)             \
    X(BARRIERS, "barriers", "fewer barriers", CODE)                                                          \
    X(TILE, "tile", "smaller tiles, split-K or a larger batch: too few blocks", CODE)                        \
    X(GRID_STRIDE, "grid_stride", "a grid-stride loop", CODE)
#define OCC_CHANGE_ENUMERATOR(name, word, text, effort) OCC_CHANGE_##name,
enum occ_owner_change { OCC_CHANGES(OCC_CHANGE_ENUMERATOR) OCC_CHANGE_COUNT };

/* X(NAME, word) */
#define OCC_CONFIDENCES(X)                    X(MEASURED, "measured") X(MODELLED, "modelled") X(SIMULATED, "simulated")
#define OCC_CONFIDENCE_ENUMERATOR(name, word) OCC_CONFIDENCE_##name,
enum occ_confidence { OCC_CONFIDENCES(OCC_CONFIDENCE_ENUMERATOR) OCC_CONFIDENCE_COUNT };

/* Reasons why a low occupancy is intended, or may be. Bits. */
enum occ_low_reason {
    OCC_LOW_COMMUNICATION = 1u,
    OCC_LOW_PERSISTENT = 2u,       /* the kernel's name says so */
    OCC_LOW_TENSOR_CORES = 4u,     /* a few warps keep the tensor cores busy */
    OCC_LOW_MAYBE_PERSISTENT = 8u, /* the grid is a multiple of the SMs */
};

/* Reasons why the advised change is not about the largest cause. X(NAME, text) */
#define OCC_ASIDES(X)                                                                                        \
    X(NONE, "")                                                                                              \
    X(FEW_BLOCKS, "the largest cause matters only with more blocks")                                         \
    X(SAVES_LESS, "a change for the largest cause is predicted to save less")                                \
    X(NO_CHANGE, "no useful change for the largest cause is known")                                          \
    X(NO_LOSS, "for its time only: no warp slots are empty")                                                 \
    X(ALIGNMENT, "its operands are aligned to single elements")                                              \
    X(LAUNCH_TIME, "a launch without work takes as long")
#define OCC_ASIDE_ENUMERATOR(name, text) OCC_ASIDE_##name,
enum occ_aside { OCC_ASIDES(OCC_ASIDE_ENUMERATOR) OCC_ASIDE_COUNT };

/* A subject that loses GPU time: one kernel in all its configurations with one change, or one kind of time.
 * Shares are of the GPU time. */
struct occ_finding {
    enum occ_finding_kind kind;
    /* index in totals->kernels of the configuration with most loss; for COMMUNICATION with most time;
     * SIZE_MAX: none */
    size_t kernel;
    double share;   /* the subject's share; overlapping kernels divide their common time */
    double lost;    /* part of `share` with empty warp slots; equal to `share` if the subject is no kernel */
    unsigned cause; /* largest part of the loss, enum occ_part; OCC_PART_COUNT: none */
    enum occ_owner_change change;
    enum occ_aside aside;        /* NONE: the change is about the cause */
    enum occ_advice_kind advice; /* the change of a parameter, from now to needed; OCC_ADVICE_COUNT: none */
    uint64_t now, needed;
    /* share of the GPU time that the change saves. NaN: unknown; `high` is at most `share`. The median and
     * the low end count only launch configurations with a prediction; the high end assumes the same saving
     * for the others. */
    struct occ_saving saves;
    struct occ_forecast forecast; /* forecast for the launch configuration `kernel`; NaN ratios: none */
    uint32_t low_reasons;         /* enum occ_low_reason bits */
    enum occ_confidence confidence;
    double measured_ratio; /* measured part of the subject's time */
};

/* Smallest loss that is a finding of occ_find(), as a share of the GPU time. */
#define OCC_FINDING_MIN 0.005
/* A kernel with a smaller part of empty warp slots gets a change of a parameter only with a promised gain. */
#define OCC_LOSS_MIN 0.005
/* Savings that differ by at most this part of the larger saving are equal: then the cheaper change wins. */
#define OCC_SAVINGS_EQUAL 0.1

/* Finds losses of at least OCC_FINDING_MIN, the largest predicted saving first. A saving without a median is
 * sorted by the middle of its bounds, without bounds by half of the loss. Kernels whose occupancy the model
 * does not know have no finding. The caller frees *ret_findings. Returns 0 or OCC_E_NO_MEMORY. */
int occ_find(const struct occ_totals *totals, struct occ_finding **ret_findings, size_t *ret_n);

/* Makes the finding about kernels[at], whose `used` is known, however small its loss. `share`: the kernel's
 * share of the time to which the finding's shares refer. Reads no other kernel and no GPU. */
struct occ_finding occ_judge(const struct occ_totals *totals, size_t at, double share);

/* Sets shares[i] to the share of kernels[i] in the GPU time, 0 for communication: the kernel time of a GPU is
 * divided in proportion to durations. Returns 0 or OCC_E_NO_MEMORY. */
int occ_share_kernels(const struct occ_totals *totals, double *shares);

/* Returns true if advice of `kind` makes the loss by `cause` (enum occ_part) smaller; false for no advice
 * (OCC_ADVICE_COUNT) or no cause (OCC_PART_COUNT). */
bool occ_advice_is_about(enum occ_advice_kind kind, unsigned cause);
/* Translates advice into a change that the kernel's owner can make; NONE: there is none. */
enum occ_owner_change occ_change_for(enum occ_owner owner, enum occ_advice_kind kind);
/* Returns the change's effort in OCC_CHANGES. */
enum occ_effort occ_change_effort(enum occ_owner_change change);

/* Return words for programs and texts for people: static, never NULL. */
const char *occ_finding_word(enum occ_finding_kind kind);
const char *occ_finding_text(enum occ_finding_kind kind);
const char *occ_change_word(enum occ_owner_change change);
const char *occ_change_text(enum occ_owner_change change);
const char *occ_aside_text(enum occ_aside aside);
const char *occ_confidence_word(enum occ_confidence confidence);
/* Returns the text of the lowest bit, such as "low by design: communication"; "": no bit is set. */
const char *occ_low_reason_text(uint32_t low_reasons);
/* "predicted time x0.85 (80% interval x0.60 to x1.02)"; see struct occ_forecast. Returns `text`. */
const char *occ_predicted_text(double ratio, double low, double high, char *text, size_t size);

/* ---- a cause in words ---- */

/* A cause, and the launch configuration in which it is the largest. */
struct occ_why {
    unsigned cause; /* enum occ_part; OCC_PART_COUNT: none */
    bool is_communication;
    /* 0: not known */
    uint64_t grid_blocks, wave_blocks; /* wave_blocks: blocks of a full wave */
    uint32_t blocks_per_sm, sm_count, registers_per_thread, block_threads;
};

#define OCC_WHY_BYTES 48
/* Formats the cause: "32 blocks, 148 SMs", "512 of 2112 blocks" (of a full wave), "96 registers" (per
 * thread), "shared memory, 2/SM" (blocks), "communication"; "": no cause. A grid below a wave is named before
 * resources, which matter only with more blocks. Returns `text`; `size`: OCC_WHY_BYTES. */
const char *occ_why_text(const struct occ_why *why, char *text, size_t size);
