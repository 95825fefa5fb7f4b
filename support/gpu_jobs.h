/*
 * Jobs that the scheduler has placed on the GPUs of this machine. Source: the directory that dcgm-exporter
 * reads too (--hpc-job-mapping-dir) and that the scheduler's prolog and epilog write. Each GPU has a file,
 * named by NVML's index (the order of PCI addresses), with a job on each line. Files of MIG instances
 * (GPU.INSTANCE) are not read, and a GPU with MIG instances has no jobs here: programs on instances see other
 * UUIDs.
 *
 * Directory and file are trusted only if they belong to root and no other user may write them. Bounds: 1 KiB
 * of a file, 8 jobs of a GPU. A line that is not printable or has 64 characters is not a job. No state; any
 * thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OCC_GPU_JOBS_MAX 8
#define OCC_JOB_BYTES    64

struct occ_gpu_jobs {
    uint8_t gpu[16]; /* uuid */
    unsigned int number;
    int64_t since_s; /* modification time of the file: its jobs have had the GPU at least since then */
    size_t n;
    char names[OCC_GPU_JOBS_MAX][OCC_JOB_BYTES];
};

/* Reads the jobs of at most `max` GPUs and returns the number of GPUs. `root` is "" or the directory that
 * stands for "/" before /proc (tests). directory "": no jobs. */
size_t occ_jobs_read(const char *root, const char *directory, struct occ_gpu_jobs *gpus, size_t max);
