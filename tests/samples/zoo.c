/*
 * The occupancy zoo: one kernel for every resource that can limit occupancy and for every static cause of its
 * loss, each with the correct answer beside it. `zoo` launches them, `zoo --answers` prints the answers; a
 * profiler is correct if it prints the same answers.
 *
 * The answers are literals. They were calculated with the toolkit's cuda_occupancy.h and by hand, for three
 * devices: T4 (cc 7.5, 40 SMs: 32 warps, 16 blocks, 64 KB of shared memory), A100 (8.0, 108 SMs: 64 warps,
 * 32 blocks, 164 KB, 1 KB of system reserve per block) and H200 (9.0, 132 SMs: the same with 228 KB); all
 * have 65536 registers. An H100 SXM has the H200's SMs and the same answers. On any other device only the
 * words hold, not the numbers.
 *
 * The grid is: waves * (SMs * blocks per SM) + half_sms * SMs / 2 + extra, with the blocks per SM of
 * the driver's own occupancy calculation. One thread.
 */
#include "common.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char zoo_image[];

enum { KB = 1024, GPUS = 3, BUFFER_ELEMENTS = 65536, ROUNDS = 2000 };

static const struct gpu {
    const char *name;
    int cc, sm_count;
} gpus[GPUS] = {{"t4", 75, 40}, {"a100", 80, 108}, {"h200", 90, 132}};

/* Rules for shared memory that depends on the device. */
enum smem_rule {
    SMEM_FIXED,   /* `smem_bytes` */
    SMEM_HALF_SM, /* the size with which two blocks fill an SM */
    SMEM_LARGEST, /* the maximum of a block */
};

struct answer {
    unsigned warps_per_sm; /* 0: not launched on this device */
    unsigned full_waves, partial_blocks;
};

struct animal {
    const char *kernel;
    unsigned threads;
    const char *limiters, *cause;    /* words of the model, joined by "+"; "none": no loss */
    struct answer answers[GPUS];     /* T4, A100, H200 */
    unsigned waves, half_sms, extra; /* size of the grid, see above */
    unsigned smem_bytes;             /* dynamic */
    enum smem_rule smem;
    bool small_carveout; /* prefers 64 KB of shared memory per SM (T4: 32 KB), whatever the block needs */
    unsigned cluster;    /* blocks per cluster; more than 8 need a permission */
};

/* clang-format off */
static const struct animal animals[] = {
    /* no loss: 8 (T4: 4) blocks of 8 warps fill an SM, for four waves */
    {"perfect", 256, "warps", "none", {{32, 4, 0}, {64, 4, 0}, {64, 4, 0}}, .waves = 4},
    /* the same with smaller blocks and more waves */
    {"full_waves", 128, "warps", "none", {{32, 7, 0}, {64, 7, 0}, {64, 7, 0}}, .waves = 7},
    /* blocks of 2 warps: as many as an SM can track use exactly all its warps: two limits tie */
    {"warps_and_blocks", 64, "warps+blocks", "none", {{32, 2, 0}, {64, 2, 0}, {64, 2, 0}}, .waves = 2},
    /* 32 warps a block: one fills a T4's SM, two an A100's (48 warps per SM would lose a third) */
    {"block_1024", 1024, "warps", "none", {{32, 2, 0}, {64, 2, 0}, {64, 2, 0}}, .waves = 2},
    /* 24 warps a block: one block on a T4 (8 warps stay free), two on the others (16 stay free) */
    {"block_768", 768, "warps", "block_size", {{24, 2, 0}, {48, 2, 0}, {48, 2, 0}}, .waves = 2},
    /* 3 warps a block: 10 blocks leave 2 of 32 warps free, 21 leave 1 of 64 */
    {"block_96", 96, "warps", "block_size", {{30, 2, 0}, {63, 2, 0}, {63, 2, 0}}, .waves = 2},
    /* 1 warp a block: 16 (T4) or 32 blocks are an SM's maximum and use half of its warps */
    {"block_32", 32, "blocks", "blocks", {{16, 2, 0}, {32, 2, 0}, {32, 2, 0}}, .waves = 2},
    /* 100 threads are 4 warps: all warps are resident, but 22 % of their threads do not exist */
    {"partial_warp", 100, "warps", "partial_warp", {{32, 2, 0}, {64, 2, 0}, {64, 2, 0}}, .waves = 2},

    /* 128 registers a thread: 65536 / (128 * 256) = 2 blocks */
    {"registers", 256, "registers", "registers", {{16, 2, 0}, {16, 2, 0}, {16, 2, 0}}, .waves = 2},
    /* 2 blocks by registers, and 2 by shared memory */
    {"registers_and_smem", 256, "registers+shared_memory", "registers",
     {{16, 2, 0}, {16, 2, 0}, {16, 2, 0}}, .waves = 2, .smem = SMEM_HALF_SM},
    /* 40 KB in the kernel: 64 / 40 = 1, 164 / 41 = 4, 228 / 41 = 5 blocks of 4 warps */
    {"static_smem", 128, "shared_memory", "shared_memory", {{4, 2, 0}, {16, 2, 0}, {20, 2, 0}}, .waves = 2},
    /* 24 KB at launch: 64 / 24 = 2, 164 / 25 = 6, 228 / 25 = 9 blocks of 4 warps */
    {"dynamic_smem", 128, "shared_memory", "shared_memory", {{8, 2, 0}, {24, 2, 0}, {36, 2, 0}},
     .waves = 2, .smem_bytes = 24 * KB},
    /* 60 KB, with the kernel's opt-in: 64 / 60 = 1, 164 / 61 = 2, 228 / 61 = 3 blocks of 8 warps */
    {"optin_smem", 256, "shared_memory", "shared_memory", {{8, 2, 0}, {16, 2, 0}, {24, 2, 0}},
     .waves = 2, .smem_bytes = 60 * KB},
    /* one block with all of an SM's shared memory, one block for each SM: low by design */
    {"one_block_smem", 256, "shared_memory", "shared_memory", {{8, 1, 0}, {8, 1, 0}, {8, 1, 0}},
     .half_sms = 2, .smem = SMEM_LARGEST},
    /* 8 KB a block allow full occupancy, but the kernel prefers L1: 32 / 8 = 4, 64 / 9 = 7 blocks of 4 warps.
     * 56 blocks for each SM are 14 or 8 waves */
    {"carveout", 128, "shared_memory", "carveout", {{16, 14, 0}, {28, 8, 0}, {28, 8, 0}},
     .half_sms = 112, .small_carveout = true},

    /* one block on the whole device */
    {"tiny_grid", 256, "warps", "small_grid", {{32, 0, 1}, {64, 0, 1}, {64, 0, 1}}, .extra = 1},
    /* one block for every second SM */
    {"half_grid", 256, "warps", "small_grid", {{32, 0, 20}, {64, 0, 54}, {64, 0, 66}}, .half_sms = 1},
    /* two full waves and one block more: this block takes a third of the time */
    {"tail", 256, "warps", "tail", {{32, 2, 1}, {64, 2, 1}, {64, 2, 1}}, .waves = 2, .extra = 1},
    /* two blocks for each SM that stay until the work is done: low by design */
    {"persistent", 256, "warps", "small_grid", {{32, 0, 80}, {64, 0, 216}, {64, 0, 264}}, .half_sms = 4},
    /* clusters of four blocks on neighbouring SMs; no loss */
    {"clusters", 256, "warps", "none", {{0}, {0}, {64, 2, 0}}, .waves = 2, .cluster = 4},
    /* clusters of 16, two blocks an SM: 132 SMs have room for 264 blocks, 16 whole clusters are 256 */
    {"uneven_clusters", 1024, "warps", "cluster", {{0}, {0}, {64, 2, 0}}, .waves = 2, .cluster = 16},
};
/* clang-format on */

enum { ANIMALS = sizeof animals / sizeof animals[0] };

/* Returns the column of a device's answers; -1: no answers. */
static int answers_of(int cc, int sm_count)
{
    for (int i = 0; i < GPUS; i++)
        if (gpus[i].cc == cc && gpus[i].sm_count == sm_count)
            return i;
    return -1;
}

static int answers_named(const char *name)
{
    for (int i = 0; i < GPUS; i++)
        if (strcmp(gpus[i].name, name) == 0)
            return i;
    sample_die(SAMPLE_USAGE, "--gpu wants t4, a100 or h200");
}

/* True if the device can launch the kernel. Clusters need cc 9.0; more than 8 blocks per cluster need a GPU
 * for data centres. */
static bool lives_on(const struct animal *animal, int cc)
{
    return animal->cluster == 0 || (cc >= 90 && (animal->cluster <= 8 || cc < 110));
}

static void print_answers(int gpu, int cc)
{
    printf("kernel,threads,limiters,warps_per_sm,full_waves,partial_blocks,main_cause\n");
    for (size_t i = 0; i < ANIMALS; i++) {
        const struct animal *a = &animals[i];
        if (!lives_on(a, cc))
            continue;
        const struct answer *answer = gpu < 0 ? NULL : &a->answers[gpu];
        printf("%s,%u,%s,", a->kernel, a->threads, a->limiters);
        if (answer)
            printf("%u,%u,%u,", answer->warps_per_sm, answer->full_waves, answer->partial_blocks);
        else
            printf(",,,");
        printf("%s\n", a->cause);
    }
}

static unsigned smem_bytes(const struct animal *animal, const struct sample_device *device)
{
    switch (animal->smem) {
    case SMEM_HALF_SM:
        return (unsigned)(device->smem_per_sm_bytes / 2 - device->smem_reserved_bytes);
    case SMEM_LARGEST:
        return (unsigned)device->smem_optin_bytes;
    case SMEM_FIXED:
        break;
    }
    return animal->smem_bytes;
}

/* Prefers a small carve-out, a percentage of the maximum; the driver rounds up to a size of the hardware. */
static void prefer_small_carveout(CUfunction kernel, const struct sample_device *device)
{
    int wanted_bytes = device->smem_per_sm_bytes > 64 * KB ? 64 * KB : device->smem_per_sm_bytes / 2;
    CHECK(cu.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                (int)(100LL * wanted_bytes / device->smem_per_sm_bytes)));
}

static void launch_in_clusters(CUfunction kernel, const struct sample_shape *shape, unsigned cluster,
                               void **arguments)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = cluster;
    attribute.value.clusterDim.y = 1;
    attribute.value.clusterDim.z = 1;
    CUlaunchConfig config = {.gridDimX = shape->grid[0],
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = shape->block[0],
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = shape->smem_bytes,
                             .attrs = &attribute,
                             .numAttrs = 1};
    CHECK(cu.cuLaunchKernelEx(&config, kernel, arguments, NULL));
    sample_count(1);
}

/* Gets the driver's blocks per SM. Returns false if they differ from the answer. */
static bool ask_driver(const struct animal *animal, CUfunction kernel, unsigned smem, int gpu,
                       unsigned *blocks_per_sm)
{
    int blocks = 0;
    CHECK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)animal->threads, smem));
    *blocks_per_sm = (unsigned)blocks;
    if (gpu < 0 ||
        animal->small_carveout) /* the driver's calculator need not know the carve-out that it will choose */
        return true;
    unsigned warps = *blocks_per_sm * ((animal->threads + 31) / 32);
    if (warps == animal->answers[gpu].warps_per_sm)
        return true;
    fprintf(stderr, "%s: the driver says %u warps per SM, the answer is %u\n", animal->kernel, warps,
            animal->answers[gpu].warps_per_sm);
    return false;
}

static unsigned grid_of(const struct animal *animal, unsigned sm_count, unsigned blocks_per_sm)
{
    unsigned wave = sm_count * blocks_per_sm;
    if (animal->cluster > 0)
        wave -= wave % animal->cluster;
    return animal->waves * wave + animal->half_sms * sm_count / 2 + animal->extra;
}

static bool show(const struct animal *animal, const struct sample_device *device, int gpu, CUmodule module,
                 CUdeviceptr buffer, uint64_t repeat)
{
    CUfunction kernel = sample_kernel(module, animal->kernel);
    struct sample_shape shape = {{1, 1, 1}, {animal->threads, 1, 1}, smem_bytes(animal, device)};
    unsigned blocks_per_sm = 0, sm_count = (unsigned)device->sm_count, rounds = ROUNDS;
    int registers = 0;
    if (shape.smem_bytes > 48 * KB)
        sample_permit_smem(kernel, shape.smem_bytes);
    if (animal->small_carveout)
        prefer_small_carveout(kernel, device);
    bool agreed = ask_driver(animal, kernel, shape.smem_bytes, gpu, &blocks_per_sm);
    if (animal->cluster > 8)
        CHECK(cu.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    shape.grid[0] = grid_of(animal, sm_count, blocks_per_sm);
    void *arguments[] = {&buffer, &rounds};
    for (uint64_t i = 0; i < repeat; i++) {
        if (animal->cluster > 0)
            launch_in_clusters(kernel, &shape, animal->cluster, arguments);
        else
            sample_launch(kernel, &shape, NULL, arguments);
    }
    CHECK(cu.cuCtxSynchronize());
    CHECK(cu.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel));
    printf("%-18s %5u blocks of %4u threads, %3d registers, %6u bytes of dynamic shared memory, %s%u blocks "
           "per SM\n",
           animal->kernel, shape.grid[0], animal->threads, registers, shape.smem_bytes,
           animal->small_carveout ? "without its carve-out " : "", blocks_per_sm);
    return agreed;
}

static int run(uint64_t repeat, bool answers)
{
    struct sample_device device;
    CUdeviceptr buffer = 0;
    bool agreed = true;
    sample_open(&device);
    int gpu = answers_of(device.cc, device.sm_count);
    if (answers) {
        print_answers(gpu, device.cc);
        return 0;
    }
    CUmodule module = sample_load(zoo_image);
    CHECK(cu.cuMemAlloc(&buffer, BUFFER_ELEMENTS * sizeof(float)));
    for (size_t i = 0; i < ANIMALS; i++)
        if (lives_on(&animals[i], device.cc))
            agreed &= show(&animals[i], &device, gpu, module, buffer, repeat);
    CHECK(cu.cuMemFree(buffer));
    CHECK(cu.cuModuleUnload(module));
    sample_close(&device);
    sample_finish();
    return agreed ? 0 : SAMPLE_FAILED;
}

int main(int argc, char **argv)
{
    uint64_t repeat = 3;
    bool answers = false;
    const char *gpu_name = NULL;
    const struct sample_option known[] = {
        {"--repeat", "N", "launches of each kernel (3)", .number = &repeat, .min = 1, .max = 1000000},
        {"--answers", NULL, "print the right answers as CSV instead", .flag = &answers},
        {"--gpu", "NAME", "with --answers: of t4, a100 or h200, not of the device here", .text = &gpu_name},
        {.name = NULL}};
    (void)argc;
    sample_parse(argv, "zoo: one kernel for every limit and every cause of low occupancy.", known);
    if (answers && gpu_name) {
        int gpu = answers_named(gpu_name);
        print_answers(gpu, gpus[gpu].cc);
        return 0;
    }
    return run(repeat, answers);
}
