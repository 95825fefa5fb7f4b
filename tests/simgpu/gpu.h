/*
 * The GPU models: what a card of each kind says of itself. One table, gpu_attributes.h, in the driver's
 * words.
 *
 * Sources: what decides occupancy (threads, blocks, registers, shared memory per SM and block, reserve,
 * opt-in, clusters) is from the CUDA programming guide's table of compute capabilities and cuda_occupancy.h;
 * clocks, memory, L2 and SM counts are from NVIDIA's data sheets and published deviceQuery outputs. Not
 * compared with a card.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_GPU_MAX_GPCS 8
#define SIM_UUID_BYTES   16

struct sim_gpu {
    const char *key;   /* h200 */
    const char *title; /* NVIDIA H200 (simulated) */
    const char *chip;  /* GH100 */
    size_t column;     /* in gpu_attributes.h */
    uint64_t memory_bytes;
    uint8_t gpc_sms[SIM_GPU_MAX_GPCS]; /* SMs in each GPC; a cluster stays inside one. All 0: no clusters */
    uint16_t carveout_kib[12]; /* shared memory per SM that the driver can configure, ascending; 0 ends */
};

/* NULL: no such model. */
const struct sim_gpu *sim_gpu_find(const char *key, size_t key_length);

/* The model at a place of a comma-separated list; NULL: the list is shorter, or the name is none. */
const struct sim_gpu *sim_gpu_listed(const char *list, uint32_t ordinal);

/* What a device of this model says that it is. */
void sim_gpu_uuid(const struct sim_gpu *gpu, uint32_t ordinal, uint8_t ret_uuid[SIM_UUID_BYTES]);

/* The value of a CUdevice_attribute. false: this attribute has no value in the table. */
bool sim_gpu_attribute(const struct sim_gpu *gpu, int attribute, int *ret_value);

/* The same for attributes that are certainly in the table. */
uint32_t sim_gpu_limit(const struct sim_gpu *gpu, int attribute);
