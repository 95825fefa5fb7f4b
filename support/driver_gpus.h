/* The GPUs that NVIDIA's driver lists below /proc, which every user may read. No state; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct occ_driver_gpu {
    uint8_t uuid[16];
    unsigned int number; /* NVML's index: the order of PCI addresses */
    bool has_instances;  /* divided into MIG instances, whose UUIDs are not in this list */
};

/* Reads at most `max` GPUs and returns their number. `root` is "" or the directory that stands for "/" before
 * /proc (tests). */
size_t occ_driver_gpus_read(const char *root, struct occ_driver_gpu *gpus, size_t max);
