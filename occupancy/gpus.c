/*
 * GPUs by name, with the SMs that a whole one has enabled (NVIDIA's data sheets and architecture white
 * papers). Only products whose count is beyond doubt; a device that was seen brings its own. Boards with two
 * GPUs count one of them.
 *
 * Threads: any.
 */
#include "occupancy.h"

#include <string.h>

static const struct occ_gpu gpus[] = {
    /* Fermi */
    {"gtx480", "GeForce GTX 480", 20, 15},
    {"gtx580", "GeForce GTX 580", 20, 16},
    {"c2050", "Tesla C2050", 20, 14},
    {"gtx550ti", "GeForce GTX 550 Ti", 21, 4},
    {"gtx560ti", "GeForce GTX 560 Ti", 21, 8},
    /* Kepler */
    {"gtx680", "GeForce GTX 680", 30, 8},
    {"gtxtitan", "GeForce GTX Titan", 35, 14},
    {"gtx780ti", "GeForce GTX 780 Ti", 35, 15},
    {"k20", "Tesla K20", 35, 13},
    {"k20x", "Tesla K20X", 35, 14},
    {"k40", "Tesla K40", 35, 15},
    {"k80", "Tesla K80 (one of two GPUs)", 37, 13},
    /* Maxwell */
    {"gtx750ti", "GeForce GTX 750 Ti", 50, 5},
    {"gtx970", "GeForce GTX 970", 52, 13},
    {"gtx980", "GeForce GTX 980", 52, 16},
    {"gtx980ti", "GeForce GTX 980 Ti", 52, 22},
    {"m40", "Tesla M40", 52, 24},
    {"m60", "Tesla M60 (one of two GPUs)", 52, 16},
    {"jetsontx1", "Jetson TX1", 53, 2},
    /* Pascal */
    {"p100", "Tesla P100", 60, 56},
    {"gtx1060", "GeForce GTX 1060 6 GB", 61, 10},
    {"gtx1070", "GeForce GTX 1070", 61, 15},
    {"gtx1080", "GeForce GTX 1080", 61, 20},
    {"gtx1080ti", "GeForce GTX 1080 Ti", 61, 28},
    {"titanxp", "Titan Xp", 61, 30},
    {"p4", "Tesla P4", 61, 20},
    {"p40", "Tesla P40", 61, 30},
    {"jetsontx2", "Jetson TX2", 62, 2},
    /* Volta */
    {"v100", "Tesla V100", 70, 80},
    {"titanv", "Titan V", 70, 80},
    {"jetsonxavier", "Jetson AGX Xavier", 72, 8},
    /* Turing */
    {"t4", "Tesla T4", 75, 40},
    {"gtx1660ti", "GeForce GTX 1660 Ti", 75, 24},
    {"rtx2060", "GeForce RTX 2060", 75, 30},
    {"rtx2070", "GeForce RTX 2070", 75, 36},
    {"rtx2080", "GeForce RTX 2080", 75, 46},
    {"rtx2080ti", "GeForce RTX 2080 Ti", 75, 68},
    {"titanrtx", "Titan RTX", 75, 72},
    /* Ampere */
    {"a100", "A100", 80, 108},
    {"a30", "A30", 80, 56},
    {"a2", "A2", 86, 10},
    {"a10", "A10", 86, 72},
    {"a10g", "A10G", 86, 80},
    {"a40", "A40", 86, 84},
    {"rtxa4000", "RTX A4000", 86, 48},
    {"rtxa5000", "RTX A5000", 86, 64},
    {"rtxa6000", "RTX A6000", 86, 84},
    {"rtx3060", "GeForce RTX 3060", 86, 28},
    {"rtx3070", "GeForce RTX 3070", 86, 46},
    {"rtx3080", "GeForce RTX 3080 10 GB", 86, 68},
    {"rtx3090", "GeForce RTX 3090", 86, 82},
    {"rtx3090ti", "GeForce RTX 3090 Ti", 86, 84},
    {"jetsonorin", "Jetson AGX Orin 64 GB", 87, 16},
    /* Ada */
    {"l4", "L4", 89, 58},
    {"l40", "L40", 89, 142},
    {"l40s", "L40S", 89, 142},
    {"rtx6000ada", "RTX 6000 Ada Generation", 89, 142},
    {"rtx4060", "GeForce RTX 4060", 89, 24},
    {"rtx4070", "GeForce RTX 4070", 89, 46},
    {"rtx4080", "GeForce RTX 4080", 89, 76},
    {"rtx4090", "GeForce RTX 4090", 89, 128},
    /* Hopper */
    {"h100", "H100 SXM", 90, 132},
    {"h100pcie", "H100 PCIe", 90, 114},
    {"h200", "H200", 90, 132},
    {"gh200", "GH200", 90, 132},
    {"h20", "H20", 90, 78},
    /* Blackwell */
    {"b200", "B200", 100, 148},
    {"jetsonthor", "Jetson AGX Thor", 110, 20},
    {"rtx5070", "GeForce RTX 5070", 120, 48},
    {"rtx5070ti", "GeForce RTX 5070 Ti", 120, 70},
    {"rtx5080", "GeForce RTX 5080", 120, 84},
    {"rtx5090", "GeForce RTX 5090", 120, 170},
    {"rtxpro6000", "RTX PRO 6000 Blackwell", 120, 188},
    {"gb10", "GB10 (DGX Spark)", 121, 48},
};

const struct occ_gpu *occ_gpu_at(size_t index)
{
    return index < sizeof(gpus) / sizeof(gpus[0]) ? &gpus[index] : NULL;
}

const struct occ_gpu *occ_gpu_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof(gpus) / sizeof(gpus[0]); i++)
        if (strcmp(gpus[i].name, name) == 0)
            return &gpus[i];
    return NULL;
}
