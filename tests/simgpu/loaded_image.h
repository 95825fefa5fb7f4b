/*
 * Images that a program passes to the driver: the formats of image/ without formats that a driver refuses,
 * also without a size. The log (OCCSIM_LOG) has the reason of a refusal.
 */
#pragma once

#include "image_details.h"

/* Reads the best entry of a cubin or fat binary for a device of capability `sm`. 0 or an OCC_IMAGE_E_*. */
int sim_image_read(const void *bytes, size_t size, uint32_t sm, struct sim_image **ret_image);

/* The same for calls without a size, like cuModuleLoadData: uses the headers' length and follows nvcc's
 * wrapper. Returns OCC_IMAGE_E_NO_BINARY for PTX text. */
int sim_image_read_memory(const void *bytes, uint32_t sm, struct sim_image **ret_image);
