/*
 * What a cubin says about its kernels: the resources that decide occupancy, parameters and global variables.
 *
 * Reads ELF of ABI version 8 (CUDA 13), fat binaries (uncompressed, zstd, LZ4 entries) and nvcc's wrapper of one.
 * The bytes are hostile until checked; an image is copied in full, so that the caller's bytes may go away.
 */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_parameter {
    uint16_t offset, bytes;
};

struct sim_kernel {
    const char *name; /* mangled; lives as long as the image */
    uint32_t registers;
    uint32_t static_smem_bytes; /* without the system's reserve */
    uint32_t local_bytes;       /* per thread */
    uint32_t barriers;
    uint32_t max_threads; /* launch bounds; 0: none */
    uint32_t cluster[3];  /* compiled in; 0: none */
    uint32_t parameter_bytes;
    uint32_t parameter_count;
    struct sim_parameter *parameters; /* by index */
};

struct sim_global {
    const char *name;
    uint64_t bytes;
    const uint8_t *initial; /* NULL: zero */
};

struct sim_image {
    uint32_t sm; /* 75, 80, 90 */
    uint32_t kernel_count, global_count;
    uint32_t constant_bytes;
    struct sim_kernel *kernels;
    struct sim_global *globals;
    uint8_t *bytes; /* the ELF */
};

enum sim_image_status {
    SIM_IMAGE_OK = 0,
    SIM_IMAGE_INVALID,   /* not an image, or damaged */
    SIM_IMAGE_NO_BINARY, /* nothing in it that a device of this capability can run without a compiler */
    SIM_IMAGE_NO_MEMORY,
};

/* Reads the best entry for a device of capability `sm` (same major version, minor not above). */
enum sim_image_status sim_image_read(const void *bytes, size_t size, uint32_t sm,
                                     struct sim_image **ret_image);

/* The same for calls that give no size, as cuModuleLoadData: the length is what the headers claim, and nvcc's
 * wrapper is followed. PTX text is SIM_IMAGE_NO_BINARY. */
enum sim_image_status sim_image_read_memory(const void *bytes, uint32_t sm, struct sim_image **ret_image);

/* NULL is fine. */
void sim_image_free(struct sim_image *image);

/* NULL: no such kernel. */
const struct sim_kernel *sim_image_kernel(const struct sim_image *image, const char *name);

#endif
