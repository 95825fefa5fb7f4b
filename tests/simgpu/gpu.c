/*
 * The GPU models. See gpu.h. Constant tables; any thread.
 */
#include "gpu.h"

#include "gpu_attributes.h"

#include <assert.h>
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

enum { COLUMN_T4, COLUMN_A100, COLUMN_H200, COLUMNS };

static const struct sim_gpu gpus[] = {
    {"t4", "Tesla T4 (simulated)", "TU104", COLUMN_T4, 15109 * MIB, {0}, {32, 64, 0}},
    {"a100",
     "NVIDIA A100-SXM4-80GB (simulated)",
     "GA100",
     COLUMN_A100,
     81153 * MIB,
     {0},
     {8, 16, 32, 64, 100, 132, 164, 0}},
    {"h200",
     "NVIDIA H200 (simulated)",
     "GH100",
     COLUMN_H200,
     140 * GIB,
     {18, 18, 16, 16, 16, 16, 16, 16},
     {8, 16, 32, 64, 100, 132, 164, 196, 228, 0}},
};

struct row {
    int attribute;
    int value[COLUMNS];
};

static const struct row rows[] = {
#define X(name, ...)     {CU_DEVICE_ATTRIBUTE_##name, {__VA_ARGS__}},
#define ALL(name, value) {CU_DEVICE_ATTRIBUTE_##name, {value, value, value}},
    SIM_GPU_ATTRIBUTES(X, ALL)
#undef ALL
#undef X
};

const struct sim_gpu *sim_gpu_find(const char *key, size_t key_length)
{
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        if (strlen(gpus[i].key) == key_length && memcmp(gpus[i].key, key, key_length) == 0)
            return &gpus[i];
    }
    return NULL;
}

const struct sim_gpu *sim_gpu_listed(const char *list, uint32_t ordinal)
{
    for (; ordinal && *list; ordinal--) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return sim_gpu_find(list, strcspn(list, ","));
}

void sim_gpu_uuid(const struct sim_gpu *gpu, uint32_t ordinal, uint8_t ret_uuid[SIM_UUID_BYTES])
{
    char text[SIM_UUID_BYTES + 1];
    snprintf(text, sizeof text, "occsim-%-6.6s-%02x", gpu->key, (unsigned)ordinal);
    memcpy(ret_uuid, text, SIM_UUID_BYTES);
}

bool sim_gpu_attribute(const struct sim_gpu *gpu, int attribute, int *ret_value)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].attribute == attribute) {
            *ret_value = rows[i].value[gpu->column];
            return true;
        }
    }
    return false;
}

uint32_t sim_gpu_limit(const struct sim_gpu *gpu, int attribute)
{
    int value = 0;
    bool known = sim_gpu_attribute(gpu, attribute, &value);
    assert(known);
    (void)known;
    return (uint32_t)value;
}
