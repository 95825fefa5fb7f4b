/*
 * Limits of each compute capability.
 *
 * One row per capability that shipped from 2.0 on. A row describes a device that is only named, or fills the
 * fields that a device did not report; reported values have precedence, only allocation rules always come
 * from here.
 *
 * Sources, named in each row:
 *   [G]  CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" and the sections about
 *        each capability's shared memory, in the edition that last listed the capability
 *        (2.x: 8.0, 3.0: 10.2, 3.2-3.7: 11.8, 5.0-7.2: 12.9, the others: 13.x)
 *   [O]  cuda_occupancy.h of CUDA 13.0: allocation units, sub-partitions, blocks, barriers, carve-outs
 *   [S]  NVIDIA's occupancy spreadsheet of CUDA 8.0 (the last one with 2.x)
 *   [T]  tuning guides: cluster sizes (Hopper: 16 non-portable; Blackwell: 16 non-portable on B200,
 *        8 portable)
 *   [C]  arch_traits of NVIDIA's CUDA C++ core libraries
 *
 * Threads: any; nothing here changes.
 */
#include "model.h"

/* Carve-outs, ascending, where shared memory and L1 cache share their memory; none: always the largest.
 * by_percent: a launch can request a percentage of the largest (7.0 and later); before, the cache preference
 * only, and without one the SM has the largest. */
#define MAX_CARVEOUTS 10
struct carveouts {
    bool by_percent;
    uint32_t count;
    uint16_t kib[MAX_CARVEOUTS];
};

static const struct carveouts fixed = {false, 0, {0}};
static const struct carveouts fermi = {false, 2, {16, 48}};
static const struct carveouts kepler = {false, 3, {16, 32, 48}};
static const struct carveouts gk210 = {false, 3, {80, 96, 112}};
static const struct carveouts gv100 = {true, 6, {0, 8, 16, 32, 64, 96}};
static const struct carveouts tu10x = {true, 2, {32, 64}};
static const struct carveouts ga100 = {true, 8, {0, 8, 16, 32, 64, 100, 132, 164}};
static const struct carveouts ga10x = {true, 6, {0, 8, 16, 32, 64, 100}};
static const struct carveouts gh100 = {true, 10, {0, 8, 16, 32, 64, 100, 132, 164, 196, 228}};

struct row {
    struct occ_device device;
    const struct carveouts *carveouts;
};

#define KIB                1024u
#define WARP_THREADS       32u
#define BLOCK_THREADS      1024u /* since 2.0 [G] */
#define SMEM_PER_BLOCK_KIB 48u   /* without opting in, since 2.0 [G] */

#define ROW(capability, threads, blocks, kiregisters_block, kiregisters, registers_thread, registers_unit,   \
            files, warps_unit, smem_kib, optin_kib, smem_unit, reserve, barriers, cluster, carve_outs)       \
    {{.cc = capability,                                                                                      \
      .warp_size = WARP_THREADS,                                                                             \
      .max_threads_per_block = BLOCK_THREADS,                                                                \
      .max_threads_per_sm = threads,                                                                         \
      .max_blocks_per_sm = blocks,                                                                           \
      .registers_per_block = kiregisters_block * KIB,                                                        \
      .registers_per_sm = kiregisters * KIB,                                                                 \
      .smem_per_block_bytes = SMEM_PER_BLOCK_KIB * KIB,                                                      \
      .smem_per_block_optin_bytes = optin_kib * KIB,                                                         \
      .smem_per_sm_bytes = smem_kib * KIB,                                                                   \
      .smem_reserved_per_block_bytes = reserve,                                                              \
      .max_registers_per_thread = registers_thread,                                                          \
      .register_unit = registers_unit,                                                                       \
      .warp_unit = warps_unit,                                                                               \
      .sub_partitions = files,                                                                               \
      .smem_unit_bytes = smem_unit,                                                                          \
      .max_barriers_per_sm = barriers,                                                                       \
      .max_cluster_size = cluster},                                                                          \
     carve_outs},

/* Barriers limit the blocks per SM from 9.0 on [O]. */
#define ANY OCC_NO_LIMIT

/* Registers per thread: 255 from 3.2 on [G]; [O] checks for 256 from 7.0 on, which is the same allocation.
 * Warp unit: the hardware checks a block's registers as if they were spread over all register files. 6.0 has
 * two, but the launch check is that of the family's four [O]. */
/* clang-format off */
static const struct row rows[] = {
    /* cc; threads, blocks per SM; Ki registers per block, per SM; registers per thread; register unit, files,
     * warp unit; KiB shared per SM, per block after opting in; shared unit, reserve; barriers; cluster */
    ROW(20, 1536,  8, 32,  32,  63,  64, 2, 2,  48,  48, 128,    0, ANY,  1, &fermi ) /* [G] [S] */
    ROW(21, 1536,  8, 32,  32,  63,  64, 2, 2,  48,  48, 128,    0, ANY,  1, &fermi ) /* [G] [S] */
    ROW(30, 2048, 16, 64,  64,  63, 256, 4, 4,  48,  48, 256,    0, ANY,  1, &kepler) /* [G] [O] */
    ROW(32, 2048, 16, 32,  64, 255, 256, 4, 4,  48,  48, 256,    0, ANY,  1, &kepler) /* [G] [O] */
    ROW(35, 2048, 16, 64,  64, 255, 256, 4, 4,  48,  48, 256,    0, ANY,  1, &kepler) /* [G] [O] */
    ROW(37, 2048, 16, 64, 128, 255, 256, 4, 4, 112,  48, 256,    0, ANY,  1, &gk210 ) /* [G] [O] */
    ROW(50, 2048, 32, 64,  64, 255, 256, 4, 4,  64,  48, 256,    0, ANY,  1, &fixed ) /* [G] [O] */
    ROW(52, 2048, 32, 64,  64, 255, 256, 4, 4,  96,  48, 256,    0, ANY,  1, &fixed ) /* [G] [O] */
    ROW(53, 2048, 32, 32,  64, 255, 256, 4, 4,  64,  48, 256,    0, ANY,  1, &fixed ) /* [G] [O] */
    ROW(60, 2048, 32, 64,  64, 255, 256, 2, 4,  64,  48, 256,    0, ANY,  1, &fixed ) /* [G] [O] [C] */
    ROW(61, 2048, 32, 64,  64, 255, 256, 4, 4,  96,  48, 256,    0, ANY,  1, &fixed ) /* [G] [O] [C] */
    ROW(62, 2048, 32, 32,  64, 255, 256, 4, 4,  64,  48, 256,    0, ANY,  1, &fixed ) /* [G] [O] [C] */
    ROW(70, 2048, 32, 64,  64, 255, 256, 4, 4,  96,  96, 256,    0, ANY,  1, &gv100 ) /* [G] [O] [C] */
    ROW(72, 2048, 32, 64,  64, 255, 256, 4, 4,  96,  96, 256,    0, ANY,  1, &gv100 ) /* [G] [O] */
    ROW(75, 1024, 16, 64,  64, 255, 256, 4, 4,  64,  64, 256,    0, ANY,  1, &tu10x ) /* [G] [O] [C] */
    ROW(80, 2048, 32, 64,  64, 255, 256, 4, 4, 164, 163, 128, 1024, ANY,  1, &ga100 ) /* [G] [O] [C] */
    ROW(86, 1536, 16, 64,  64, 255, 256, 4, 4, 100,  99, 128, 1024, ANY,  1, &ga10x ) /* [G] [O] [C] */
    ROW(87, 1536, 16, 64,  64, 255, 256, 4, 4, 164, 163, 128, 1024, ANY,  1, &ga100 ) /* [G] [O] [C] */
    ROW(88, 1536, 16, 64,  64, 255, 256, 4, 4, 100,  99, 128, 1024, ANY,  1, &ga10x ) /* [O] [C] (as 8.6) */
    ROW(89, 1536, 24, 64,  64, 255, 256, 4, 4, 100,  99, 128, 1024, ANY,  1, &ga10x ) /* [G] [O] [C] */
    ROW(90, 2048, 32, 64,  64, 255, 256, 4, 4, 228, 227, 128, 1024,  64, 16, &gh100 ) /* [G] [O] [C] [T] */
    ROW(100, 2048, 32, 64,  64, 255, 256, 4, 4, 228, 227, 128, 1024,  64, 16, &gh100 ) /* [G] [O] [C] [T] */
    ROW(101, 1536, 24, 64,  64, 255, 256, 4, 4, 228, 227, 128, 1024,  24,  8, &gh100 ) /* [O] (later 11.0) */
    ROW(103, 2048, 32, 64,  64, 255, 256, 4, 4, 228, 227, 128, 1024,  64, 16, &gh100 ) /* [G] [O] [C] */
    ROW(110, 1536, 24, 64,  64, 255, 256, 4, 4, 228, 227, 128, 1024,  24,  8, &gh100 ) /* [G] [O] [C] [T] */
    ROW(120, 1536, 24, 64,  64, 255, 256, 4, 4, 100,  99, 128, 1024,  24,  8, &ga10x ) /* [G] [O] [C] [T] */
    ROW(121, 1536, 24, 64,  64, 255, 256, 4, 4, 100,  99, 128, 1024,  24,  8, &ga10x ) /* [G] [O] [C] [T] */
};
/* clang-format on */
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* The row with the largest capability that is not above `cc`; NULL below the table. */
static const struct row *row_at_or_below(uint32_t cc)
{
    size_t low = 0;
    size_t high = ROW_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].device.cc <= cc)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &rows[low - 1] : NULL;
}

/* The row for `cc`: its own, the closest older one of the same major version, or the newest row for a
 * capability above the table. NULL for a major version inside the table that never existed. */
static const struct row *row_for(uint32_t cc)
{
    const struct row *row = row_at_or_below(cc);
    if (row && row->device.cc / 10 != cc / 10 && row != &rows[ROW_COUNT - 1])
        return NULL;
    return row;
}

enum occ_status occ_device_from_cc(uint32_t cc, struct occ_device *device)
{
    const struct row *row = row_at_or_below(cc);
    if (!row || row->device.cc != cc)
        return OCC_BAD_DEVICE;
    *device = row->device;
    return OCC_OK;
}

enum occ_status occ_device_complete(struct occ_device *device)
{
    const struct row *row = row_for(device->cc);
    if (!row)
        return OCC_BAD_DEVICE;
#define COMPLETE(field, smallest, largest)                                                                   \
    if (device->field == 0)                                                                                  \
        device->field = row->device.field;
    OCC_DEVICE_FIELDS(COMPLETE)
    return OCC_OK;
}

uint32_t occ_device_rules_of(uint32_t cc)
{
    const struct row *row = row_for(cc);
    return row ? row->device.cc : 0;
}

enum occ_status occ_device_from_name(const char *name, struct occ_device *device)
{
    const struct occ_gpu *gpu = occ_gpu_find(name);
    if (!gpu || occ_device_from_cc(gpu->cc, device) != OCC_OK)
        return OCC_BAD_DEVICE;
    device->sm_count = gpu->sm_count;
    return OCC_OK;
}

enum occ_status occ_device_at(size_t index, struct occ_device *device)
{
    if (index >= ROW_COUNT)
        return OCC_BAD_DEVICE;
    *device = rows[index].device;
    return OCC_OK;
}

static const struct carveouts *carveouts_of(const struct occ_device *device)
{
    const struct row *row = row_for(device->cc);
    return row ? row->carveouts : &fixed;
}

uint32_t occ_carveout_at_least(const struct occ_device *device, uint32_t bytes)
{
    if (bytes > device->smem_per_sm_bytes)
        return OCC_NO_LIMIT;
    const struct carveouts *steps = carveouts_of(device);
    for (uint32_t i = 0; steps->by_percent && i < steps->count; i++) {
        uint32_t step = steps->kib[i] * KIB;
        if (step >= bytes && step < device->smem_per_sm_bytes)
            return step;
    }
    return device->smem_per_sm_bytes;
}

bool occ_carveout_by_percent(const struct occ_device *device)
{
    return carveouts_of(device)->by_percent;
}

size_t occ_carveout_steps(const struct occ_device *device, uint32_t *steps, size_t max)
{
    const struct carveouts *known = carveouts_of(device);
    size_t count = 0;
    for (uint32_t i = 0; i < known->count; i++) {
        uint32_t step = known->kib[i] * KIB;
        if (step >= device->smem_per_sm_bytes)
            break;
        if (count < max)
            steps[count] = step;
        count++;
    }
    if (count < max)
        steps[count] = device->smem_per_sm_bytes;
    return count + 1;
}
