/*
 * A load with an occupancy known by construction: a kernel of load.cu with so much dynamic shared memory that
 * exactly the wanted number of blocks fits on an SM, in a grid of one wave (or of the given number of
 * blocks). The driver's own occupancy calculation must confirm the number; otherwise the program ends.
 *
 * Errors end the program as in the samples (samples/common.h): 1 a CUDA call failed, 77 no device. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "samples/common.h"

/* X(NAME, word, function) */
#define GPU_LOAD_KERNELS(X)                                                                                  \
    X(SPIN, "spin", "load_spin")                                                                             \
    X(UNEVEN_BLOCKS, "uneven-blocks", "load_uneven_blocks")                                                  \
    X(UNEVEN_WARPS, "uneven-warps", "load_uneven_warps")                                                     \
    X(FMA, "fma", "load_fma")

enum gpu_load_kernel {
#define X(name, word, function) GPU_LOAD_##name,
    GPU_LOAD_KERNELS(X)
#undef X
        GPU_LOAD_KERNEL_COUNT
};

struct gpu_load_options {
    enum gpu_load_kernel kernel;
    uint32_t threads;       /* of a block */
    uint32_t blocks_per_sm; /* 0: determined by `percent` */
    uint32_t percent;       /* of an SM's warps; 0: maximum blocks without dynamic shared memory */
    uint64_t blocks;        /* of the grid; 0: one wave */
    uint64_t ns, short_ns;  /* duration of blocks (or warps); FMA: ns is the rounds */
};

struct gpu_load {
    struct gpu_load_options options;
    struct sample_device device;
    CUmodule module;
    CUfunction function;
    CUdeviceptr buffer; /* tickets, or FMA's output */
    struct sample_shape shape;
    uint32_t max_warps_per_sm, warps_per_block, blocks_per_sm;
    double theoretical; /* resident warps / maximum */
    double achieved;    /* constructed mean while an SM is active; grid of at most one wave */
    double elapsed;     /* the same over all SMs while the kernel runs */
};

void gpu_load_open(struct gpu_load *load, const struct gpu_load_options *options);
void gpu_load_launch(struct gpu_load *load); /* returns without waiting */
void gpu_load_wait(struct gpu_load *load);
void gpu_load_close(struct gpu_load *load);

/* Returns GPU_LOAD_KERNEL_COUNT for an unknown word. */
enum gpu_load_kernel gpu_load_kernel_named(const char *word);
