/*
 * Images as a program hands them to the driver: what image/ reads, less what a driver does not take, and the
 * calls that give no size. Why one is refused goes to the log (OCCSIM_LOG).
 */
#pragma once

#include "image_details.h"

/* Reads the best entry of a cubin or fat binary for a device of capability `sm`. 0 or an OCC_IMAGE_E_*. */
int sim_image_read(const void *bytes, size_t size, uint32_t sm, struct sim_image **ret_image);

/* The same for calls that give no size, as cuModuleLoadData: the length is what the headers claim, and nvcc's
 * wrapper is followed. PTX text is OCC_IMAGE_E_NO_BINARY. */
int sim_image_read_memory(const void *bytes, uint32_t sm, struct sim_image **ret_image);
