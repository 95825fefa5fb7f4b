/*
 * X(attribute, t4, a100, h200): the value of each CUdevice_attribute (CU_DEVICE_ATTRIBUTE_ in front). ALL:
 * the same on every model. A feature that the simulation lacks is 0, whatever the card has. Differences
 * between two cards of one model (PCI bus) are in driver_device.c.
 */
#pragma once

#define SIM_GPU_ATTRIBUTES(X, ALL)                                                                           \
    X(COMPUTE_CAPABILITY_MAJOR, 7, 8, 9)                                                                     \
    X(COMPUTE_CAPABILITY_MINOR, 5, 0, 0)                                                                     \
    X(MULTIPROCESSOR_COUNT, 40, 108, 132)                                                                    \
    X(MAX_THREADS_PER_MULTIPROCESSOR, 1024, 2048, 2048)                                                      \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, 16, 32, 32)                                                             \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 65536, 166912, 232448)                                              \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 65536, 167936, 233472)                                           \
    X(RESERVED_SHARED_MEMORY_PER_BLOCK, 0, 1024, 1024)                                                       \
    X(CLUSTER_LAUNCH, 0, 0, 1)                                                                               \
    X(CLOCK_RATE, 1590000, 1410000, 1980000)                                                                 \
    X(MEMORY_CLOCK_RATE, 5001000, 1593000, 3201000)                                                          \
    X(GLOBAL_MEMORY_BUS_WIDTH, 256, 5120, 6144)                                                              \
    X(L2_CACHE_SIZE, 4194304, 41943040, 62914560)                                                            \
    X(MAX_PERSISTING_L2_CACHE_SIZE, 0, 31457280, 39321600)                                                   \
    X(MAX_ACCESS_POLICY_WINDOW_SIZE, 0, 134213632, 134217728)                                                \
    X(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 32, 2, 2)                                                       \
    X(GENERIC_COMPRESSION_SUPPORTED, 0, 1, 1)                                                                \
    X(MEM_SYNC_DOMAIN_COUNT, 1, 1, 4)                                                                        \
    X(TENSOR_MAP_ACCESS_SUPPORTED, 0, 0, 1)                                                                  \
    X(GPU_PCI_DEVICE_ID, 0x1eb810de, 0x20b210de, 0x233510de)                                                 \
    ALL(MAX_THREADS_PER_BLOCK, 1024)                                                                         \
    ALL(MAX_BLOCK_DIM_X, 1024)                                                                               \
    ALL(MAX_BLOCK_DIM_Y, 1024)                                                                               \
    ALL(MAX_BLOCK_DIM_Z, 64)                                                                                 \
    ALL(MAX_GRID_DIM_X, 2147483647)                                                                          \
    ALL(MAX_GRID_DIM_Y, 65535)                                                                               \
    ALL(MAX_GRID_DIM_Z, 65535)                                                                               \
    ALL(MAX_SHARED_MEMORY_PER_BLOCK, 49152)                                                                  \
    ALL(TOTAL_CONSTANT_MEMORY, 65536)                                                                        \
    ALL(WARP_SIZE, 32)                                                                                       \
    ALL(MAX_PITCH, 2147483647)                                                                               \
    ALL(MAX_REGISTERS_PER_BLOCK, 65536)                                                                      \
    ALL(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536)                                                             \
    ALL(TEXTURE_ALIGNMENT, 512)                                                                              \
    ALL(TEXTURE_PITCH_ALIGNMENT, 32)                                                                         \
    ALL(SURFACE_ALIGNMENT, 512)                                                                              \
    ALL(GPU_OVERLAP, 1)                                                                                      \
    ALL(ASYNC_ENGINE_COUNT, 3)                                                                               \
    ALL(KERNEL_EXEC_TIMEOUT, 0)                                                                              \
    ALL(INTEGRATED, 0)                                                                                       \
    ALL(CAN_MAP_HOST_MEMORY, 1)                                                                              \
    ALL(COMPUTE_MODE, 0)                                                                                     \
    ALL(CONCURRENT_KERNELS, 1)                                                                               \
    ALL(ECC_ENABLED, 1)                                                                                      \
    ALL(PCI_DEVICE_ID, 0)                                                                                    \
    ALL(PCI_DOMAIN_ID, 0)                                                                                    \
    ALL(TCC_DRIVER, 0)                                                                                       \
    ALL(UNIFIED_ADDRESSING, 1)                                                                               \
    ALL(STREAM_PRIORITIES_SUPPORTED, 1)                                                                      \
    ALL(GLOBAL_L1_CACHE_SUPPORTED, 1)                                                                        \
    ALL(LOCAL_L1_CACHE_SUPPORTED, 1)                                                                         \
    ALL(MANAGED_MEMORY, 1)                                                                                   \
    ALL(CONCURRENT_MANAGED_ACCESS, 1)                                                                        \
    ALL(PAGEABLE_MEMORY_ACCESS, 0)                                                                           \
    ALL(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0)                                                     \
    ALL(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0)                                                              \
    ALL(HOST_NATIVE_ATOMIC_SUPPORTED, 0)                                                                     \
    ALL(MULTI_GPU_BOARD, 0)                                                                                  \
    ALL(COMPUTE_PREEMPTION_SUPPORTED, 1)                                                                     \
    ALL(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1)                                                          \
    ALL(COOPERATIVE_LAUNCH, 1)                                                                               \
    ALL(HOST_REGISTER_SUPPORTED, 1)                                                                          \
    ALL(READ_ONLY_HOST_REGISTER_SUPPORTED, 1)                                                                \
    ALL(MEMORY_POOLS_SUPPORTED, 1)                                                                           \
    ALL(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0)                                                              \
    ALL(GPU_DIRECT_RDMA_SUPPORTED, 0)                                                                        \
    ALL(IPC_EVENT_SUPPORTED, 0)                                                                              \
    ALL(MULTICAST_SUPPORTED, 0)                                                                              \
    ALL(MPS_ENABLED, 0)                                                                                      \
    ALL(NUMA_CONFIG, 0)                                                                                      \
    ALL(NUMA_ID, -1)                                                                                         \
    ALL(HOST_NUMA_ID, -1)                                                                                    \
    ALL(MAXIMUM_TEXTURE1D_WIDTH, 131072)                                                                     \
    ALL(MAXIMUM_TEXTURE2D_WIDTH, 131072)                                                                     \
    ALL(MAXIMUM_TEXTURE2D_HEIGHT, 65536)                                                                     \
    ALL(MAXIMUM_TEXTURE3D_WIDTH, 16384)                                                                      \
    ALL(MAXIMUM_TEXTURE3D_HEIGHT, 16384)                                                                     \
    ALL(MAXIMUM_TEXTURE3D_DEPTH, 16384)                                                                      \
    ALL(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768)                                                              \
    ALL(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048)                                                              \
    ALL(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768)                                                              \
    ALL(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768)                                                             \
    ALL(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048)                                                              \
    ALL(MAXIMUM_SURFACE1D_WIDTH, 32768)                                                                      \
    ALL(MAXIMUM_SURFACE2D_WIDTH, 131072)                                                                     \
    ALL(MAXIMUM_SURFACE2D_HEIGHT, 65536)
