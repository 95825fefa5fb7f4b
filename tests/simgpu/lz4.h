/* Decoder of one LZ4 block (lz4.org, "LZ4 Block Format Description"), as nvcc's --compress-mode=speed makes them. */
#ifndef SIM_LZ4_H
#define SIM_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills exactly `out_size` bytes from `in_size` bytes. false: the input is not such a block. Reads and writes
 * nothing outside the two buffers, whatever the input. */
bool sim_lz4_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
