/* The CUDA driver's answer to cuInit in words, for the guest and the daemon. Uses libc only. Any thread. */
#pragma once

#include <stddef.h>

/* CUresult values of the public cuda.h. */
#define OCC_DRIVER_NO_DEVICE 100

/* Room for every text. */
#define OCC_DRIVER_TEXT_BYTES 96

/* "the CUDA driver found no GPU (error 100)"; "" for 0, success. */
void occ_driver_text(int result, char text[OCC_DRIVER_TEXT_BYTES]);
