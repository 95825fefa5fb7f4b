/* Maps fields of structs to columns of stored_device and stored_launch_config; the same list is used for
 * inserting and for reading. */
#pragma once

/* X(column of stored_device, field of struct occ_device) */
#define OCC_DEVICE_COLUMNS(X)                                                                                \
    X(cc, cc)                                                                                                \
    X(sm_count, sm_count)                                                                                    \
    X(warp_size, warp_size)                                                                                  \
    X(max_threads_per_block, max_threads_per_block)                                                          \
    X(max_threads_per_sm, max_threads_per_sm)                                                                \
    X(max_blocks_per_sm, max_blocks_per_sm)                                                                  \
    X(registers_per_block, registers_per_block)                                                              \
    X(registers_per_sm, registers_per_sm)                                                                    \
    X(shared_per_block_bytes, smem_per_block_bytes)                                                          \
    X(shared_per_block_optin_bytes, smem_per_block_optin_bytes)                                              \
    X(shared_per_sm_bytes, smem_per_sm_bytes)                                                                \
    X(shared_reserved_per_block_bytes, smem_reserved_per_block_bytes)                                        \
    X(max_registers_per_thread, max_registers_per_thread)                                                    \
    X(register_unit, register_unit)                                                                          \
    X(warp_unit, warp_unit)                                                                                  \
    X(sub_partitions, sub_partitions)                                                                        \
    X(shared_unit_bytes, smem_unit_bytes)                                                                    \
    X(max_barriers_per_sm, max_barriers_per_sm)                                                              \
    X(max_cluster_size, max_cluster_size)

/* X(column of stored_launch_config, field of struct occ_launch): the parameters of the launch */
#define OCC_LAUNCH_COLUMNS(X)                                                                                \
    X(grid_x, grid[0])                                                                                       \
    X(grid_y, grid[1])                                                                                       \
    X(grid_z, grid[2])                                                                                       \
    X(block_x, block[0])                                                                                     \
    X(block_y, block[1])                                                                                     \
    X(block_z, block[2])                                                                                     \
    X(cluster_x, cluster[0])                                                                                 \
    X(cluster_y, cluster[1])                                                                                 \
    X(cluster_z, cluster[2])                                                                                 \
    X(registers_per_thread, registers_per_thread)                                                            \
    X(static_shared_bytes, static_smem_bytes)                                                                \
    X(dynamic_shared_bytes, dynamic_smem_bytes)                                                              \
    X(shared_config_bytes, smem_config_bytes)                                                                \
    X(carveout_percent, carveout_percent)                                                                    \
    X(barriers, barriers)                                                                                    \
    X(max_active_clusters, max_active_clusters)

/* X(column of stored_launch_config, field of struct occ_launch_config): further fields of the identity */
#define OCC_CONFIG_COLUMNS(X)                                                                                \
    X(local_bytes_per_thread, local_bytes_per_thread)                                                        \
    X(max_cluster_size, max_cluster_size)                                                                    \
    X(launch_type, launch_type)                                                                              \
    X(cache_config, cache_config)                                                                            \
    X(device_launched, device_launched)

/* X(column of stored_launch_config, field of struct occ_result, its type): the model's answer */
#define OCC_RESULT_REALS(X)                                                                                  \
    X(theoretical, theoretical)                                                                              \
    X(expected_achieved_low, expected_achieved_low)                                                          \
    X(expected_achieved_high, expected_achieved_high)                                                        \
    X(expected_elapsed_low, expected_elapsed_low)                                                            \
    X(expected_elapsed_high, expected_elapsed_high)                                                          \
    X(waves, waves)

#define OCC_RESULT_INTEGERS(X)                                                                               \
    X(full_waves, full_waves, uint64_t)                                                                      \
    X(partial_blocks, partial_blocks, uint64_t)                                                              \
    X(grid_blocks, grid_blocks, uint64_t)                                                                    \
    X(wave_blocks, wave_blocks, uint64_t)                                                                    \
    X(blocks_per_sm, blocks_per_sm, uint32_t)                                                                \
    X(blocks_per_sm_largest_carveout, blocks_per_sm_largest_carveout, uint32_t)                              \
    X(warps_per_block, warps_per_block, uint32_t)                                                            \
    X(warps_per_sm, warps_per_sm, uint32_t)                                                                  \
    X(max_warps_per_sm, max_warps_per_sm, uint32_t)                                                          \
    X(registers_per_warp, registers_per_warp, uint32_t)                                                      \
    X(registers_per_block, registers_per_block, uint32_t)                                                    \
    X(shared_per_block_bytes, smem_per_block_bytes, uint32_t)                                                \
    X(used_shared_config_bytes, smem_config_bytes, uint32_t)                                                 \
    X(shared_config_from_driver, smem_config_from_driver, bool)                                              \
    X(limiter_bits, limiters, uint32_t)                                                                      \
    X(by_design_bits, by_design, uint32_t)

/* The columns of a SELECT list, each with a comma in front. */
#define OCC_COLUMN_2(column, field)        ", " #column
#define OCC_COLUMN_3(column, field, type)  ", " #column
#define OCC_COLUMN_LIMIT(name, word, text) ", limit_" word
#define OCC_COLUMN_CAUSE(name, word, text) ", cause_" word
