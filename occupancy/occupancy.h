/*
 * The occupancy model: what a launch's configuration and resources allow on a device, what limits it, its
 * waves, the occupancy that a balanced grid of that size would reach, and the static causes of what is
 * missing.
 *
 * Pure: no I/O, no allocation, no globals that change; every function may be called from any thread. 64-bit
 * throughout: a grid of (2^31-1) x 65535 x 65535 blocks does not overflow.
 *
 * Four numbers are called occupancy; this module knows the two static ones:
 *   theoretical       resident warps that the launch's resources allow / most warps an SM holds
 *   expected          what a perfectly balanced grid of that size would reach, in two normalisations:
 *     expected_achieved   warp-cycles / (SM-active cycles  x max warps)     (ncu's sense)
 *     expected_elapsed    warp-cycles / (SM-elapsed cycles x max warps)     (DCGM's sense)
 * They count warps, never threads: a block of 100 threads is 4 warps. All are ratios 0...1.
 *
 * Formulas, G blocks in the grid, S SMs, B blocks per SM, C = S*B, w = G/C, r = G - C*floor(w):
 *   expected_elapsed  = theoretical * w / ceil(w)
 *   expected_achieved = G * warps_per_block / (W_max * (S*floor(w) + min(r, S)))
 *
 * With clusters a wave is whole clusters: C = size * min(floor(S*B / size), max_active_clusters if known),
 * where B is what the other limits allow; the CLUSTER limit, and with it theoretical, is ceil(C / S) blocks.
 * Then expected_elapsed has C / (S*B) as a further factor (SMs on which no cluster fits stand idle but time
 * passes) and min(C, S) stands for S in expected_achieved (they are not active). Where the driver's number is not
 * known and the SMs of each GPC are, max_active_clusters is sum over GPCs of floor(SMs * B / size).
 *
 * The waterfall explains 1 - expected_elapsed from the top down; causes.c has the picture:
 *   1. The resource limits: warps that do not fit, in equal shares to all resources that tie. The warp
 *      limit is called BLOCK_SIZE (what is lost is the remainder of W_max / warps_per_block), the limit of
 *      blocks BLOCKS.
 *   2. CARVEOUT: what the largest carve-out would give back. Not 0 only if shared memory alone limits, under
 *      a carve-out smaller than the largest; then 1. is about the limits under the largest.
 *   3. CLUSTER: blocks of a wave that do not run because clusters stay whole or the driver allows fewer.
 *   4. SMALL_GRID: the empty part of the only wave; or TAIL: of the last wave after full ones, spread over
 *      all.
 */
#ifndef OCC_OCCUPANCY_H
#define OCC_OCCUPANCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up whenever the same input could give another result; stored beside every result. */
#define OCC_MODEL_VERSION 1

#define OCC_NO_LIMIT UINT32_MAX
#define OCC_MAX_GPCS 16 /* no GPU has more */

/* What can limit the blocks per SM, in the order in which co-limiters are listed. X(NAME, word, text) */
#define OCC_LIMITS(X)                                                                                        \
    X(WARPS, "warps", "warps per SM")                                                                        \
    X(REGISTERS, "registers", "registers")                                                                   \
    X(SMEM, "shared_memory", "shared memory")                                                                \
    X(BLOCKS, "blocks", "blocks per SM")                                                                     \
    X(BARRIERS, "barriers", "barriers")                                                                      \
    X(CLUSTER, "cluster", "cluster size")

enum occ_limit {
#define X(name, word, text) OCC_LIMIT_##name,
    OCC_LIMITS(X)
#undef X
        OCC_LIMIT_COUNT
};

/* Static causes of lost occupancy, in the order of the waterfall. X(NAME, word, text) */
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

enum occ_cause {
#define X(name, word, text) OCC_CAUSE_##name,
    OCC_CAUSES(X)
#undef X
        OCC_CAUSE_COUNT
};

/* What a device can hold. Fields in the driver's words (CUdevice_attribute); 0 in a field that a device did
 * not report means unknown and is filled by occ_device_complete(). */
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
    uint32_t max_barriers_per_sm; /* OCC_NO_LIMIT: barriers are not considered (before 9.0) */
    uint32_t max_cluster_size;    /* 1: no clusters */
    /* SMs of each GPC (the SMs among which a cluster has to stay), ended by 0; the first 0: not known, and the
     * device counts as one GPC. Their sum is sm_count. Never filled by occ_device_complete(): chips of one
     * product differ. */
    uint32_t gpc_sms[OCC_MAX_GPCS];
};

/* One launch, as CUPTI or a user gives it. */
struct occ_launch {
    uint32_t grid[3];    /* blocks */
    uint32_t block[3];   /* threads */
    uint32_t cluster[3]; /* blocks; 0 or 1 everywhere: no cluster */
    uint32_t registers_per_thread;
    uint32_t static_smem_bytes; /* without the system's reserve */
    uint32_t dynamic_smem_bytes;
    /* Shared memory per SM that the driver configured; 0: unknown. One that holds no block gives way to the
     * smallest that does, one above the device's largest is taken as the largest. */
    uint32_t smem_config_bytes;
    int32_t carveout_percent; /* preferred carve-out, used when smem_config_bytes is unknown; -1: default */
    uint32_t barriers;        /* per block; 0: unknown, not considered */
    uint32_t max_active_clusters; /* on the whole device, as the driver says; 0: unknown */
    bool smem_optin_known;        /* false: whatever the launch needs is taken as opted in */
    bool smem_optin;
    /* The kernel's attribute "maximum of dynamic shared memory". Known: a launch with more dynamic memory is
     * refused, and the kernel has opted in exactly if static + reserve + this is more than a block has without
     * opting in (smem_optin_known with smem_optin false still means that it has not). */
    bool max_dynamic_smem_known;
    uint32_t max_dynamic_smem_bytes;
};

/* Why a launch cannot run as described. X(NAME, text) */
#define OCC_STATUSES(X)                                                                                      \
    /* fine */                                                                                               \
    X(OK, "ok")                                                                                              \
    /* compute capability not in the table, or limits that no device has */                                  \
    X(BAD_DEVICE, "unknown or impossible device")                                                            \
    /* a dimension 0, x > 2^31-1 (before 3.0: 65535), y or z > 65535 */                                      \
    X(BAD_GRID, "grid out of range")                                                                         \
    /* 0, or more threads than the device allows, x or y > 1024, z > 64 */                                   \
    X(BAD_BLOCK, "block out of range")                                                                       \
    /* 0, over the per-thread limit, or the block's exceed the SM's */                                       \
    X(BAD_REGISTERS, "too many registers (or none)")                                                         \
    /* more shared memory than a block may have */                                                           \
    X(BAD_SMEM, "too much shared memory for a block")                                                        \
    /* too large, does not divide the grid, does not fit, or the device has none */                          \
    X(BAD_CLUSTER, "cluster not possible")                                                                   \
    /* more than 16 */                                                                                       \
    X(BAD_BARRIERS, "more barriers than a block may have")                                                   \
    /* preferred carve-out not -1...100 while the driver's choice is unknown */                              \
    X(BAD_CARVEOUT, "carve-out not a percentage")

enum occ_status {
#define X(name, text) OCC_##name,
    OCC_STATUSES(X)
#undef X
};

/* By-design marks: low, and meant to be. Bits. */
enum occ_design {
    OCC_DESIGN_PERSISTENT = 1u,     /* grid is a small multiple of the SMs that fits in one wave */
    OCC_DESIGN_ONE_BLOCK_SMEM = 2u, /* one block per SM that takes most of the shared memory */
    OCC_DESIGN_CLUSTER = 4u,        /* launched in clusters */
};

struct occ_result {
    /* allocation */
    uint32_t warps_per_block;
    uint32_t registers_per_warp;   /* allocated, after rounding */
    uint32_t registers_per_block;  /* allocated */
    uint32_t smem_per_block_bytes; /* allocated: static + dynamic + reserve, rounded */
    uint32_t smem_config_bytes;    /* carve-out that the calculation used */
    bool smem_config_from_driver;
    /* blocks per SM */
    /* Blocks per SM under each resource; OCC_NO_LIMIT: does not limit. CLUSTER: only where
     * max_active_clusters says that fewer blocks run than the others allow; what the fullest SM then holds in
     * an even spread. */
    uint32_t limit[OCC_LIMIT_COUNT];
    /* bit mask 1u << enum occ_limit: all that tie for the smallest; but not SMEM where the driver only made the
     * carve-out as large as the others need, and the largest would not tie */
    uint32_t limiters;
    uint32_t blocks_per_sm;
    uint32_t blocks_per_sm_largest_carveout; /* the same under the largest carve-out */
    uint32_t warps_per_sm;                   /* resident */
    uint32_t max_warps_per_sm;
    double theoretical;
    /* waves */
    uint64_t grid_blocks;
    uint64_t wave_blocks; /* blocks that fill the device once */
    double waves;         /* grid_blocks / wave_blocks */
    uint64_t full_waves;
    uint64_t partial_blocks; /* blocks of the partial last wave; 0: none */
    double expected_achieved;
    double expected_elapsed;
    /* 1 = expected_elapsed + sum of cause[]; every part >= 0; within 1e-9. PARTIAL_WARP is about threads and
     * is not part of the sum (occupancy counts warps): it is the share of resident threads that do not exist.
     */
    double cause[OCC_CAUSE_COUNT];
    uint32_t design; /* enum occ_design bits */
};

/* The table's row for a compute capability. OCC_BAD_DEVICE: not in the table. sm_count stays 0. */
enum occ_status occ_device_from_cc(uint32_t cc, struct occ_device *device);

/* Fills what is 0 in `device` from the table's row for device->cc; what the device reported stays. For a
 * capability newer than the table the newest row of the same or the last major version is used.
 * OCC_BAD_DEVICE: cc unknown or older than the table. */
enum occ_status occ_device_complete(struct occ_device *device);

/* The table's rows in ascending order of compute capability; OCC_BAD_DEVICE past the end. sm_count stays 0.
 */
enum occ_status occ_device_at(size_t index, struct occ_device *device);

/* The device of a name that occ_gpu_find() knows, with its SM count. OCC_BAD_DEVICE: no such name. */
enum occ_status occ_device_from_name(const char *name, struct occ_device *device);

/* The smallest shared memory an SM of `device` can be configured for that is not below `bytes`, which is what
 * a driver chooses; OCC_NO_LIMIT if there is none. Devices before 7.0 always give the largest. */
uint32_t occ_carveout_at_least(const struct occ_device *device, uint32_t bytes);

/* Every size that an SM's shared memory can be configured for, ascending, the largest last; what of them fits
 * goes to `steps`. Returns how many there are (at most OCC_MAX_CARVEOUTS; 1 where it is not shared with a
 * cache). Before 7.0 they are chosen by the cache preference and never by a percentage. */
#define OCC_MAX_CARVEOUTS 11
size_t occ_carveout_steps(const struct occ_device *device, uint32_t *steps, size_t max);

/* A named GPU ("t4", "a100", "h200", ... lower case without blanks) or MIG slice of one ("a100-1g.5gb") with its
 * SM count; `index` walks the table, the slices after the whole GPUs. NULL: no such GPU, or past the end. */
struct occ_gpu {
    const char *name;  /* t4 */
    const char *title; /* "Tesla T4" */
    uint32_t cc;
    uint32_t sm_count;
    const char *slice_of; /* name of the whole GPU; NULL: it is one */
};
const struct occ_gpu *occ_gpu_find(const char *name);
const struct occ_gpu *occ_gpu_at(size_t index);

/* The GPUs whose names are nearest to one that is not there (fewest letters to add, leave out, exchange or swap, and
 * not more than half of it), nearest first, ties in the table's order. Case and blanks do not count. Returns
 * how many went to `gpus`. */
size_t occ_gpu_nearest(const char *name, const struct occ_gpu **gpus, size_t max);

/* Computes everything. `device` must be complete. On any other status than OCC_OK *result is untouched. */
enum occ_status occ_analyse(const struct occ_device *device, const struct occ_launch *launch,
                            struct occ_result *result);

/* Words. Never NULL. */
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

#endif
