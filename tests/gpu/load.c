/* See load.h. */
#include "load.h"

#include <stdlib.h>
#include <string.h>

extern const unsigned char load_image[];

enum { WARP = 32, MOST_SMS = 1024 };

static const struct {
    const char *word, *function;
} kernels[] = {
#define X(name, word, function) {word, function},
    GPU_LOAD_KERNELS(X)
#undef X
};

enum gpu_load_kernel gpu_load_kernel_named(const char *word)
{
    int i = 0;
    while (i < GPU_LOAD_KERNEL_COUNT && strcmp(kernels[i].word, word) != 0)
        i++;
    return (enum gpu_load_kernel)i;
}

static uint32_t blocks_that_fit(const struct gpu_load *load)
{
    int blocks = 0;
    CHECK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, load->function, (int)load->options.threads,
                                                         load->shape.smem_bytes));
    return blocks > 0 ? (uint32_t)blocks : 0;
}

/* Claims so much shared memory that `blocks` blocks fill an SM: slightly less than the exact share, since
 * allocation is in units. */
static void claim_smem(struct gpu_load *load, uint32_t blocks)
{
    const struct sample_device *device = &load->device;
    int bytes = device->smem_per_sm_bytes / (int)blocks - device->smem_reserved_bytes - 512;
    if (bytes > device->smem_optin_bytes - 512)
        bytes = device->smem_optin_bytes - 512; /* reserve for the kernel's own memory */
    if (bytes <= 0)
        return;
    load->shape.smem_bytes = (unsigned)bytes & ~255u;
    sample_permit_smem(load->function, load->shape.smem_bytes);
    /* otherwise the driver may choose a carve-out for fewer blocks */
    CHECK(cu.cuFuncSetAttribute(load->function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100));
}

static uint32_t blocks_wanted(const struct gpu_load *load)
{
    const struct gpu_load_options *o = &load->options;
    if (o->blocks_per_sm || !o->percent)
        return o->blocks_per_sm;
    uint32_t blocks = load->max_warps_per_sm * o->percent / (load->warps_per_block * 100);
    return blocks ? blocks : 1;
}

static void settle_residency(struct gpu_load *load)
{
    uint32_t wanted = blocks_wanted(load), most = blocks_that_fit(load);
    if (wanted && wanted < most)
        claim_smem(load, wanted);
    load->blocks_per_sm = blocks_that_fit(load);
    if (load->blocks_per_sm == 0 || (wanted && load->blocks_per_sm != wanted))
        sample_die(SAMPLE_USAGE, "%u blocks of %u threads an SM cannot be had here (%u fit)", wanted,
                   load->options.threads, load->blocks_per_sm);
}

/* Returns the average block's or warp's part of the time: in uneven kernels half of them end early. */
static double presence(const struct gpu_load_options *options)
{
    bool uneven = options->kernel == GPU_LOAD_UNEVEN_BLOCKS || options->kernel == GPU_LOAD_UNEVEN_WARPS;
    return uneven ? (1 + (double)options->short_ns / (double)options->ns) / 2 : 1;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Computes the occupancy. Blocks are distributed breadth first: up to one wave, an SM has floor or ceil(grid
 * / SMs) blocks. */
static void construct(struct gpu_load *load)
{
    double sms = load->device.sm_count, blocks = (double)load->shape.grid[0];
    double per_block = (double)load->warps_per_block / load->max_warps_per_sm * presence(&load->options);
    load->theoretical = (double)load->blocks_per_sm * load->warps_per_block / load->max_warps_per_sm;
    load->achieved = smaller(blocks / smaller(blocks, sms), load->blocks_per_sm) * per_block;
    load->elapsed = smaller(blocks / sms, load->blocks_per_sm) * per_block;
}

static void read_limits(struct gpu_load *load)
{
    int threads = sample_attribute(&load->device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    if (load->device.sm_count <= 0 || load->device.sm_count > MOST_SMS || threads < WARP)
        sample_die(SAMPLE_FAILED, "the device says %d SMs of %d threads", load->device.sm_count, threads);
    load->max_warps_per_sm = (uint32_t)threads / WARP;
    load->warps_per_block = (load->options.threads + WARP - 1) / WARP;
}

void gpu_load_open(struct gpu_load *load, const struct gpu_load_options *options)
{
    static const unsigned char zeros[MOST_SMS * sizeof(uint32_t)];
    *load = (struct gpu_load){.options = *options};
    sample_open(&load->device);
    read_limits(load);
    load->module = sample_load(load_image);
    load->function = sample_kernel(load->module, kernels[options->kernel].function);
    settle_residency(load);
    uint64_t wave = (uint64_t)load->blocks_per_sm * (unsigned)load->device.sm_count;
    uint64_t blocks = options->blocks ? options->blocks : wave;
    if (blocks > INT32_MAX)
        sample_die(SAMPLE_USAGE, "too many blocks");
    load->shape = (struct sample_shape){.grid = {(unsigned)blocks, 1, 1},
                                        .block = {options->threads, 1, 1},
                                        .smem_bytes = load->shape.smem_bytes};
    construct(load);
    CHECK(cu.cuMemAlloc(&load->buffer, sizeof zeros));
    CHECK(cu.cuMemcpyHtoD(load->buffer, zeros, sizeof zeros));
}

void gpu_load_launch(struct gpu_load *load)
{
    struct gpu_load_options *o = &load->options;
    uint32_t rounds = (uint32_t)o->ns;
    void *timed[] = {&o->ns, &o->short_ns, &load->buffer};
    void *counted[] = {&load->buffer, &rounds};
    sample_launch(load->function, &load->shape, NULL, o->kernel == GPU_LOAD_FMA ? counted : timed);
}

void gpu_load_wait(struct gpu_load *load)
{
    (void)load;
    CHECK(cu.cuCtxSynchronize());
}

void gpu_load_close(struct gpu_load *load)
{
    CHECK(cu.cuMemFree(load->buffer));
    CHECK(cu.cuModuleUnload(load->module));
    sample_close(&load->device);
}
