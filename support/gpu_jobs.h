/*
 * Which jobs the scheduler gives the GPUs of this machine, by the directory that dcgm-exporter reads too
 * (--hpc-job-mapping-dir), which the scheduler's prolog and epilog write: a file for each GPU, named by
 * NVML's number of it (the order of PCI addresses), with a job on each line. Files of MIG instances
 * (GPU.INSTANCE) are not read, and a GPU that is cut into instances has no jobs here: what runs on them has
 * other UUIDs.
 *
 * Directory and file are believed only if they are root's and nobody else may write them. Bounded: 1 KiB of a
 * file, 8 jobs of a GPU; what is not printable or has 64 characters is no job. No state; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OCC_GPU_JOBS_MAX 8
#define OCC_JOB_BYTES    64

struct occ_gpu_jobs {
    uint8_t gpu[16]; /* uuid */
    unsigned int number;
    int64_t since_s; /* when the file was written last: its jobs have the GPU at least since then */
    size_t n;
    char names[OCC_GPU_JOBS_MAX][OCC_JOB_BYTES];
};

/* At most `max` GPUs; returns their number. `root` is "" or the directory that stands for "/" before /proc
 * (tests). directory "": there are no jobs. */
size_t occ_jobs_read(const char *root, const char *directory, struct occ_gpu_jobs *gpus, size_t max);
