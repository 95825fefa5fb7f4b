/*
 * A load whose occupancy is known by construction: a kernel of load.cu with so much dynamic shared memory
 * that exactly the wanted number of its blocks fits on an SM, in a grid of exactly one wave (or as many
 * blocks as said). The driver's own occupancy calculation confirms the number, or the program ends.
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
    uint32_t blocks_per_sm; /* 0: by `percent` */
    uint32_t percent;       /* of the warps of an SM; 0: as many blocks as fit without shared memory */
    uint64_t blocks;        /* of the grid; 0: one wave */
    uint64_t ns, short_ns;  /* how long blocks (or warps) last; FMA: ns is the rounds */
};

struct gpu_load {
    struct gpu_load_options options;
    struct sample_device device;
    CUmodule module;
    CUfunction function;
    CUdeviceptr buffer; /* tickets, or where FMA would write */
    struct sample_shape shape;
    uint32_t max_warps_per_sm, warps_per_block, blocks_per_sm;
    double theoretical; /* resident warps / most */
    double achieved;    /* what the construction gives while an SM is active; a grid of at most one wave */
    double elapsed;     /* the same over all SMs while the kernel runs */
};

void gpu_load_open(struct gpu_load *load, const struct gpu_load_options *options);
void gpu_load_launch(struct gpu_load *load); /* does not wait */
void gpu_load_wait(struct gpu_load *load);
void gpu_load_close(struct gpu_load *load);

/* GPU_LOAD_KERNEL_COUNT: no such word. */
enum gpu_load_kernel gpu_load_kernel_named(const char *word);
