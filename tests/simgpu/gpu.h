/*
 * The GPU models: the attributes of each kind of card, in one table, gpu_attributes.h, with the driver's
 * names.
 *
 * Sources: limits of occupancy (threads, blocks, registers, shared memory per SM and block, reserve,
 * opt-in, clusters) are from the CUDA programming guide's table of compute capabilities and cuda_occupancy.h;
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

/* Returns NULL for an unknown model. */
const struct sim_gpu *sim_gpu_find(const char *key, size_t key_length);

/* Returns the model at a position of a comma-separated list; NULL: beyond the end, or an unknown name. */
const struct sim_gpu *sim_gpu_listed(const char *list, uint32_t ordinal);

/* Makes the UUID of a device of this model. */
void sim_gpu_uuid(const struct sim_gpu *gpu, uint32_t ordinal, uint8_t ret_uuid[SIM_UUID_BYTES]);

/* Gets the value of a CUdevice_attribute; false: not in the table. */
bool sim_gpu_attribute(const struct sim_gpu *gpu, int attribute, int *ret_value);

/* Returns an attribute that must be in the table. */
uint32_t sim_gpu_limit(const struct sim_gpu *gpu, int attribute);
