/* Decoder of one LZ4 block (lz4.org, "LZ4 Block Format Description"): nvcc --compress-mode=speed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes `in_size` bytes to exactly `out_size`. Returns false for a damaged block or another size. Never
 * reads or writes outside the two buffers. */
bool occ_image_lz4_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);
