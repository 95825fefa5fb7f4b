/* Decoder of one LZ4 block (lz4.org, "LZ4 Block Format Description"), as nvcc's --compress-mode=speed makes them. */
#ifndef OCC_IMAGE_LZ4_H
#define OCC_IMAGE_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills exactly `out_size` bytes from `in_size` bytes. false: the input is not such a block. Reads and writes
 * nothing outside the two buffers, whatever the input. */
bool occ_image_lz4_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
