/*
 * The few questions to NVML that experiments have: clocks and why they are what they are. Bound at run time;
 * only reads. One thread.
 */
#pragma once

#include <stdint.h>

#include "support/error.h"

struct gpu_nvml;

/* The GPU that the CUDA driver counts as the first, found by its uuid. */
int gpu_nvml_open(struct gpu_nvml **ret_nvml, struct occ_error *err);
/* MHz; NaN: NVML does not say. */
double gpu_nvml_sm_clock(const struct gpu_nvml *nvml);
double gpu_nvml_sm_clock_most(const struct gpu_nvml *nvml);
/* Bits of nvmlClocksEventReason*; 0 also when NVML does not say. */
uint64_t gpu_nvml_clock_reasons(const struct gpu_nvml *nvml);
void gpu_nvml_close(struct gpu_nvml *nvml); /* NULL is fine */
