/*
 * The occupancy model: theoretical occupancy of a launch on a device, its limiters, its waves, the occupancy
 * that a balanced grid of that size would reach, and the static causes of the rest.
 *
 * Pure: no I/O, no allocation, no mutable globals; every function may be called from any thread. 64-bit
 * throughout: a grid of (2^31-1) x 65535 x 65535 blocks does not overflow.
 *
 * Four numbers are called occupancy; this module computes the two static ones:
 *   theoretical       active warps per SM that the launch's resources allow / maximum warps per SM
 *   expected          a range, of a perfectly balanced grid of that size, in two normalisations:
 *     expected_achieved   warp-cycles / (SM-active cycles  x max warps)     (as ncu)
 *     expected_elapsed    warp-cycles / (SM-elapsed cycles x max warps)     (as DCGM)
 * They count warps, never threads: a block of 100 threads is 4 warps. All are ratios 0...1.
 *
 * Formulas, G blocks in the grid, S SMs, B blocks per SM, C = S*B, f = floor(G/C), r = G - C*f, m = min(r,
 * S): with a partial last wave that takes t times as long as a full one (r = 0: there is none, and m = t = 0)
 *   expected_elapsed  = warps_per_block * (C*f + r*t) / (W_max * S * (f + t))
 *   expected_achieved = warps_per_block * (C*f + r*t) / (W_max * (S*f + m*t))
 * The low end has t = 1: all waves take equally long. The high end has t = r / (m*B): a block's time is
 * proportional to the blocks that it shares its SM with. On full waves the two are equal.
 *
 * An only wave with more blocks than SMs that does not divide over them, k = floor(G/S), r = G - k*S > 0: r
 * SMs hold k + 1 blocks, the others k. One end has SMs that all take equally long, as above; at the other a
 * block's time is proportional to the blocks on its SM, Q = r*(k+1)^2 + (S-r)*k^2: expected_elapsed_low   =
 * warps_per_block * Q / (W_max * S * (k+1)) expected_achieved_high = warps_per_block * Q / (W_max * (r*(k+1)
 * + (S-r)*k)) So elapsed is low where achieved is high.
 *
 * The range is no prediction. On a simulator with greedy dispatch, achieved exceeds the high end where few
 * SMs take the whole last wave; elapsed does not exceed its own. Decision 0024 has the measurements.
 *
 * With clusters a wave is whole clusters: C = size * min(floor(S*B / size), max_active_clusters if known),
 * where B is the minimum of the other limits; the CLUSTER limit, and with it theoretical, is ceil(C / S)
 * blocks. Then expected_elapsed counts SMs on which no cluster fits (they are idle but elapse), and
 * expected_achieved has min(C, S) instead of S (they are not active), and B is C / min(C, S). Where the
 * driver's number is unknown and the SMs of each GPC are known, max_active_clusters is the sum over GPCs of
 * floor(SMs * B / size): the blocks of a cluster are assumed to fit on any SMs of its GPC. That is an upper
 * bound: an H100's driver has fewer (docs/evidence/2026-11-28-h100).
 *
 * The waterfall explains 1 - expected_elapsed_low from the top down; analyse.c has the picture:
 *   1. The resource limits: warps that do not fit, in equal shares for the resources that tie. The warp limit
 *      is called BLOCK_SIZE (the loss is the remainder of W_max / warps_per_block), that of blocks BLOCKS.
 *   2. CARVEOUT: the gain of the largest carve-out. Above 0 only if shared memory alone limits, under a
 *      carve-out smaller than the largest; then 1. has the limits under the largest.
 *   3. CLUSTER: blocks missing in a wave because clusters stay whole or the driver allows fewer.
 *   4. SMALL_GRID: the empty part of the only wave, and the time for which SMs with fewer blocks wait for the
 *      others; or TAIL: the empty part of the last wave after full ones. Both are ranges too: the part is
 * smaller by expected_elapsed_high - expected_elapsed_low at the high end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increases when the same input could give another result; stored with every result. */
#define OCC_MODEL_VERSION 3

#define OCC_NO_LIMIT UINT32_MAX
#define OCC_MAX_GPCS 16 /* no GPU has more */

/* Limits of the blocks per SM, in the order in which co-limiters are listed. X(NAME, id, text) */
#define OCC_LIMITS(X)                                                                                        \
    X(WARPS, "warps", "warps per SM")                                                                        \
    X(REGISTERS, "registers", "registers")                                                                   \
    X(SMEM, "shared_memory", "shared memory")                                                                \
    X(BLOCKS, "blocks", "blocks per SM")                                                                     \
    X(BARRIERS, "barriers", "barriers")                                                                      \
    X(CLUSTER, "cluster", "cluster size")

#define OCC_LIMIT_ENUMERATOR(name, id, text) OCC_LIMIT_##name,
enum occ_limit { OCC_LIMITS(OCC_LIMIT_ENUMERATOR) OCC_LIMIT_COUNT };

/* Static causes of lost occupancy, in the order of the waterfall. X(NAME, id, text) */
#define OCC_CAUSES(X)                                                                                        \
    X(REGISTERS, "registers", "limited by registers")                                                        \
    X(SMEM, "shared_memory", "limited by shared memory")                                                     \
    X(CARVEOUT, "carveout", "the driver's shared-memory carve-out is smaller than the largest")              \
    X(BARRIERS, "barriers", "limited by barriers")                                                           \
    X(CLUSTER, "cluster", "cluster does not fit evenly")                                                     \
    X(BLOCKS, "blocks", "limited by blocks per SM (small blocks)")                                           \
    X(BLOCK_SIZE, "block_size", "warps per block do not divide the SM's warps")                              \
    X(PARTIAL_WARP, "partial_warp", "threads missing in each block's last warp")                             \
    X(SMALL_GRID, "small_grid", "too few blocks for one full wave")                                          \
    X(TAIL, "tail", "partial last wave")

#define OCC_CAUSE_ENUMERATOR(name, id, text) OCC_CAUSE_##name,
enum occ_cause { OCC_CAUSES(OCC_CAUSE_ENUMERATOR) OCC_CAUSE_COUNT };

/* Limits of a device, named after CUdevice_attribute. 0: unknown, until occ_device_complete() fills it. */
struct occ_device {
    uint32_t cc; /* compute capability, major * 10 + minor: 75, 80, 90, 100, 121 */
    uint32_t sm_count;
    uint32_t warp_size;
    uint32_t max_threads_per_block;
    uint32_t max_threads_per_sm;
    uint32_t max_blocks_per_sm;
    uint32_t registers_per_block;
    uint32_t registers_per_sm;
    uint32_t smem_per_block_bytes;       /* without opting in */
    uint32_t smem_per_block_optin_bytes; /* largest after opting in */
    uint32_t smem_per_sm_bytes;          /* largest carve-out */
    uint32_t smem_reserved_per_block_bytes;
    /* architecture rules, from the table only */
    uint32_t max_registers_per_thread;
    uint32_t register_unit;       /* registers are allocated to a warp in multiples of this */
    uint32_t warp_unit;           /* warps are allocated in multiples of this */
    uint32_t sub_partitions;      /* register files (warp schedulers) per SM */
    uint32_t smem_unit_bytes;     /* shared memory is allocated to a block in multiples of this */
    uint32_t max_barriers_per_sm; /* OCC_NO_LIMIT: barriers do not limit (before 9.0) */
    uint32_t max_cluster_size;    /* 1: no clusters */
    /* SMs of each GPC (a cluster runs within one), terminated by 0; the first 0: unknown, and the device
     * counts as one GPC. Their sum is sm_count. Never filled by occ_device_complete(): chips of one product
     * differ. */
    uint32_t gpc_sms[OCC_MAX_GPCS];
};

/* A launch, as reported by CUPTI or described by a user. */
struct occ_launch {
    uint32_t grid[3];    /* blocks */
    uint32_t block[3];   /* threads */
    uint32_t cluster[3]; /* blocks; 0 or 1 everywhere: no cluster */
    uint32_t registers_per_thread;
    uint32_t static_smem_bytes; /* without the system's reserve */
    uint32_t dynamic_smem_bytes;
    /* Shared memory per SM that the driver configured; 0: unknown. Raised to the smallest step that holds a
     * block, limited to the device's largest. */
    uint32_t smem_config_bytes;
    int32_t carveout_percent; /* preferred carve-out, used when smem_config_bytes is unknown; -1: default */
    uint32_t barriers;        /* per block; 0: unknown, does not limit */
    uint32_t max_active_clusters; /* on the whole device, from the driver; 0: unknown */
    bool smem_optin_known;        /* false: opting in is assumed where the launch needs it */
    bool smem_optin;
    /* The kernel's attribute "maximum dynamic shared memory". Known: more dynamic memory is an error, and the
     * kernel has opted in if and only if static + reserve + this exceeds a block's limit without opting in
     * (smem_optin_known with smem_optin false has precedence). */
    bool max_dynamic_smem_known;
    uint32_t max_dynamic_smem_bytes;
};

/* Why a launch is impossible. X(NAME, text) */
#define OCC_STATUSES(X)                                                                                      \
    /* fine */                                                                                               \
    X(OK, "ok")                                                                                              \
    /* compute capability not in the table, or limits that no device has */                                  \
    X(BAD_DEVICE, "unknown or impossible device")                                                            \
    /* a dimension 0, x > 2^31-1 (before 3.0: 65535), y or z > 65535 */                                      \
    X(BAD_GRID, "grid out of range")                                                                         \
    /* 0, or more threads than the device allows, x or y > 1024, z > 64 */                                   \
    X(BAD_BLOCK, "block out of range")                                                                       \
    /* 0, over the per-thread limit, or over the block's limit */                                            \
    X(BAD_REGISTERS, "too many registers (or none)")                                                         \
    /* more shared memory than a block may have */                                                           \
    X(BAD_SMEM, "too much shared memory for a block")                                                        \
    /* too large, does not divide the grid, does not fit, or the device has none */                          \
    X(BAD_CLUSTER, "cluster not possible")                                                                   \
    /* more than 16 */                                                                                       \
    X(BAD_BARRIERS, "more barriers than a block may have")                                                   \
    /* preferred carve-out not -1...100 while the driver's choice is unknown */                              \
    X(BAD_CARVEOUT, "carve-out not a percentage")

#define OCC_ENUMERATOR(name, text) OCC_##name,
enum occ_status { OCC_STATUSES(OCC_ENUMERATOR) };

/* Reasons for which a low occupancy is intended. Bits. */
enum occ_by_design {
    OCC_BY_DESIGN_PERSISTENT = 1u,     /* the grid is a multiple of the SMs that fits in one wave */
    OCC_BY_DESIGN_ONE_BLOCK_SMEM = 2u, /* one block per SM with more than half of the shared memory */
    OCC_BY_DESIGN_CLUSTER = 4u,        /* launched in clusters */
};

struct occ_result {
    /* allocation */
    uint32_t warps_per_block;
    uint32_t registers_per_warp;   /* allocated, after rounding */
    uint32_t registers_per_block;  /* allocated */
    uint32_t smem_per_block_bytes; /* allocated: static + dynamic + reserve, rounded */
    uint32_t smem_config_bytes;    /* carve-out of the calculation */
    bool smem_config_from_driver;
    /* Blocks per SM under each resource; OCC_NO_LIMIT: does not limit. CLUSTER: only where fewer clusters are
     * active than the others allow; then the blocks on the fullest SM in an even distribution. */
    uint32_t limit[OCC_LIMIT_COUNT];
    /* bit mask 1u << enum occ_limit of all that tie for the minimum; without SMEM where the driver fitted the
     * carve-out to the other limits, and the largest carve-out would not tie */
    uint32_t limiters;
    uint32_t blocks_per_sm;
    uint32_t blocks_per_sm_largest_carveout; /* the same under the largest carve-out */
    uint32_t warps_per_sm;                   /* active */
    uint32_t max_warps_per_sm;
    double theoretical;
    /* waves */
    uint64_t grid_blocks;
    uint64_t wave_blocks; /* blocks of a full wave */
    double waves;         /* grid_blocks / wave_blocks */
    uint64_t full_waves;
    uint64_t partial_blocks; /* blocks of the partial last wave; 0: none */
    double expected_achieved_low, expected_achieved_high;
    double expected_elapsed_low, expected_elapsed_high;
    /* 1 = expected_elapsed_low + sum of cause[]; every part >= 0; within 1e-9. PARTIAL_WARP counts threads
     * and is not in the sum (occupancy counts warps): the share of empty lanes in active warps. */
    double cause[OCC_CAUSE_COUNT];
    uint32_t by_design; /* enum occ_by_design bits */
};

/* The part of SMALL_GRID that is lost at most because the grid does not divide over the SMs; 0: it does, or
 * there are full waves. */
double occ_uneven_grid(const struct occ_result *result);

/*
 * The share of the elapsed time that starting and ending blocks costs, of a launch of `duration_ns`: elapsed
 * occupancy is the expected one times 1 - OCC_BLOCK_START_NS / (time of a wave). An estimate from real
 * launches (decision 0024), no bound. NaN: the duration is not known, or waves are shorter than
 * OCC_BLOCK_START_MIN_WAVE_NS, for which no constant fits.
 */
#define OCC_BLOCK_START_NS          920.0
#define OCC_BLOCK_START_MIN_WAVE_NS 5000.0
double occ_block_start_loss(const struct occ_result *result, double duration_ns);

/* The table's row for a compute capability. OCC_BAD_DEVICE: not in the table. sm_count stays 0. */
enum occ_status occ_device_from_cc(uint32_t cc, struct occ_device *device);

/* Fills the fields that are 0 from the table's row for device->cc. A capability that is newer than the table
 * gets the newest row of the same or the last major version. OCC_BAD_DEVICE: cc unknown or older than the
 * table. */
enum occ_status occ_device_complete(struct occ_device *device);

/* The capability whose row occ_device_complete() uses for `cc`: another capability if the table lacks `cc`;
 * 0: none. */
uint32_t occ_device_rules_of(uint32_t cc);

/* The table's rows in ascending order of compute capability; OCC_BAD_DEVICE: no more. sm_count is 0. */
enum occ_status occ_device_at(size_t index, struct occ_device *device);

/* The device of a name that occ_gpu_find() knows, with its SM count. OCC_BAD_DEVICE: no such name. */
enum occ_status occ_device_from_name(const char *name, struct occ_device *device);

/* The smallest carve-out (shared memory per SM) of at least `bytes`, which is the driver's choice;
 * OCC_NO_LIMIT: none. Devices before 7.0 have the largest only. */
uint32_t occ_carveout_at_least(const struct occ_device *device, uint32_t bytes);

/* All carve-outs of a device, ascending; the first `max` are stored. Returns their number (at most
 * OCC_MAX_CARVEOUTS; 1 where shared memory is separate from the L1 cache). Before 7.0 the cache preference
 * chooses, never a percentage. */
#define OCC_MAX_CARVEOUTS 11
size_t occ_carveout_steps(const struct occ_device *device, uint32_t *steps, size_t max);

/* A GPU by name ("t4", "a100", "h200", ... lower case without blanks) or a MIG slice of one ("a100-1g.5gb")
 * with its SM count; by index the slices come after the whole GPUs. NULL: no such GPU, or past the end. */
struct occ_gpu {
    const char *name;  /* t4 */
    const char *title; /* "Tesla T4" */
    uint32_t cc;
    uint32_t sm_count;
    const char *slice_of; /* name of the whole GPU; NULL: it is one */
};
const struct occ_gpu *occ_gpu_find(const char *name);
const struct occ_gpu *occ_gpu_at(size_t index);

/* `device` must be complete. On any other status than OCC_OK *result is untouched. */
enum occ_status occ_analyse(const struct occ_device *device, const struct occ_launch *launch,
                            struct occ_result *result);

/* Identifiers and texts. Never NULL. */
const char *occ_status_text(enum occ_status status);
const char *occ_limit_word(enum occ_limit limit);
const char *occ_limit_text(enum occ_limit limit);
const char *occ_cause_word(enum occ_cause cause);
const char *occ_cause_text(enum occ_cause cause);

/* The limiters of a mask joined by "+" in the order of OCC_LIMITS, NUL-terminated; "" for an empty mask.
 * `size` of 64 is always enough. Returns `buffer`. */
const char *occ_limiters_text(uint32_t limiters, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
