/*
 * Details of an image beyond the resources of image/: the choice of the entry for a device, kernels by name,
 * parameters, global variables, the size of the constant bank. Pure apart from malloc; any thread.
 */
#pragma once

#include "image/image.h"

struct sim_parameters {
    uint32_t bytes, count;
    struct sim_parameter {
        uint16_t offset, bytes;
    } * list; /* by index */
};

struct sim_global {
    const char *name;
    uint64_t bytes;
    const uint8_t *initial; /* NULL: all zero */
};

struct sim_image {
    struct occ_image *cubin;
    struct sim_parameters *parameters; /* by kernel */
    struct sim_global *globals;
    uint32_t global_count;
    uint32_t constant_bytes; /* of user constants */
};

/* Opens the best entry of a file for a device of capability `sm` (75, 90, 121): the highest SM version that
 * runs there, the last of several. OCC_IMAGE_E_NO_BINARY lists the entries of the file. Codes and messages as
 * in image/image.h. */
int sim_image_open(const void *bytes, size_t size, uint32_t sm, struct sim_image **ret_image,
                   struct occ_image_error *err);

/* NULL is fine. */
void sim_image_free(struct sim_image *image);

/* Returns NULL for an unknown kernel. */
const struct occ_image_kernel *sim_image_kernel(const struct sim_image *image, const char *name);
