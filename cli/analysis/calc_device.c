/* See calc_device.h. */
#include "calc_device.h"

#include <math.h>
#include <stdio.h>

#define FIELD(name, key, flags, member, help)                                                                \
    CLI_FIELD(name, key, CLI_PLAIN, flags, struct calc_device_row, member, help)
#define MEMORY(name, key, flags, member, help)                                                               \
    CLI_FIELD(name, key, CLI_MEMORY, flags, struct calc_device_row, member, help)

const struct cli_column calc_device_columns[] = {
    FIELD("gpu", "gpu", CLI_DEFAULT | CLI_LEFT, gpu, "argument of --gpu"),
    FIELD("name", "name", CLI_DEFAULT | CLI_LEFT | CLI_CUTS, name, "the product's name"),
    FIELD("cc", "compute_capability", CLI_DEFAULT | CLI_LEFT, compute_capability, "compute capability"),
    FIELD("sms", "sm_count", CLI_DEFAULT, device.sm_count, "SMs"),
    FIELD("warp_size", "warp_size", 0, device.warp_size, "threads per warp"),
    FIELD("warps", "max_warps_per_sm", CLI_DEFAULT, max_warps_per_sm, "maximum warps per SM"),
    FIELD("threads", "max_threads_per_sm", 0, device.max_threads_per_sm, "maximum threads per SM"),
    FIELD("threads_block", "max_threads_per_block", 0, device.max_threads_per_block,
          "maximum threads per block"),
    FIELD("blocks", "max_blocks_per_sm", CLI_DEFAULT | CLI_SPARE(2), device.max_blocks_per_sm,
          "maximum blocks per SM"),
    FIELD("regs", "registers_per_sm", CLI_DEFAULT, device.registers_per_sm, "registers per SM"),
    FIELD("regs_block", "registers_per_block", 0, device.registers_per_block, "maximum registers per block"),
    FIELD("regs_thread", "max_registers_per_thread", 0, device.max_registers_per_thread,
          "maximum registers per thread"),
    FIELD("regs_unit", "register_unit", 0, device.register_unit, "register allocation unit size (per warp)"),
    FIELD("warps_unit", "warp_unit", 0, device.warp_unit, "warp allocation unit size"),
    FIELD("partitions", "sub_partitions", 0, device.sub_partitions, "register files per SM"),
    MEMORY("shared", "shared_per_sm_bytes", CLI_DEFAULT, device.smem_per_sm_bytes, "shared memory per SM"),
    MEMORY("shared_block", "shared_per_block_bytes", 0, device.smem_per_block_bytes,
           "maximum shared memory per block"),
    MEMORY("optin", "shared_per_block_optin_bytes", CLI_DEFAULT, device.smem_per_block_optin_bytes,
           "maximum shared memory per block (opt-in)"),
    MEMORY("reserved", "shared_reserved_per_block_bytes", 0, device.smem_reserved_per_block_bytes,
           "reserved shared memory per block"),
    MEMORY("shared_unit", "shared_unit_bytes", 0, device.smem_unit_bytes,
           "shared memory allocation unit size"),
    FIELD("barriers", "max_barriers_per_sm", CLI_DEFAULT | CLI_SPARE(1), max_barriers_per_sm,
          "barriers per SM (where considered)"),
    FIELD("cluster", "max_cluster_size", CLI_DEFAULT | CLI_SPARE(1), device.max_cluster_size,
          "maximum cluster size (1: no clusters)"),
    FIELD("slice_of", "slice_of", CLI_LEFT, slice_of, "of a MIG slice: the whole GPU"),
    CLI_COLUMN_END,
};

void calc_device_fill(struct calc_device_row *row, const struct occ_device *device)
{
    row->device = *device;
    (void)snprintf(row->compute_capability, sizeof row->compute_capability, "%u.%u", device->cc / 10,
                   device->cc % 10);
    row->max_warps_per_sm = device->max_threads_per_sm / device->warp_size;
    row->max_barriers_per_sm =
        device->max_barriers_per_sm == OCC_NO_LIMIT ? (double)NAN : device->max_barriers_per_sm;
}
