/* The GPUs that the driver shows to this process: launches name a GPU by its uuid, counter sources by its
 * CUDA ordinal. cuInit only, no context. Any thread, one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "source.h"

#define OCC_GPUS_MAX 32

/* Starts the driver (cuInit) and describes at most `max` GPUs. States other than OK: no driver, or a driver
 * that does not start; `err` has the reason. */
enum occ_source_state occ_gpus_find(struct occ_gpu_found *gpus, size_t max, size_t *ret_n,
                                    struct occ_error *err);

/* The driver's version and the result of its start. */
struct occ_driver_answer {
    int version; /* newest supported CUDA version: 13000 is 13.0 */
    int result;  /* CUresult of the start; 0: there are GPUs */
    int gpus;
};

/* Starts the driver. false: no driver is installed. */
bool occ_gpus_ask_driver(struct occ_driver_answer *ret_answer);
