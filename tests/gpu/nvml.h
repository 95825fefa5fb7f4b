/*
 * The NVML queries of the experiments: clocks and their reasons. Bound at run time; only reads. One thread.
 */
#pragma once

#include <stdint.h>

#include "support/error.h"

struct gpu_nvml;

/* Opens the CUDA driver's first GPU, found by its UUID. */
int gpu_nvml_open(struct gpu_nvml **ret_nvml, struct occ_error *err);
/* Returns MHz; NaN without NVML's answer. */
double gpu_nvml_sm_clock(const struct gpu_nvml *nvml);
double gpu_nvml_sm_clock_most(const struct gpu_nvml *nvml);
/* Returns bits of nvmlClocksEventReason*; 0 also without NVML's answer. */
uint64_t gpu_nvml_clock_reasons(const struct gpu_nvml *nvml);
void gpu_nvml_close(struct gpu_nvml *nvml); /* NULL is fine */
