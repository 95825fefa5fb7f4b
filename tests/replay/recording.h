/*
 * A recording: what one program said through its ring, in a file, so that it can be said again where there is
 * no CUDA toolkit to build the program with. Little-endian:
 *
 *   char[8] "OCCREC1\n"; u64 log_bytes; u64 launches; log records (ring_abi.h); 40-byte launches (`check`
 * unused)
 *
 * Made by `record`, played by `replay`; both are test tools.
 */
#pragma once

#include <stdint.h>

#define OCC_RECORDING_MAGIC "OCCREC1\n"

struct occ_recording_header {
    char magic[8];
    uint64_t log_bytes;
    uint64_t launches;
};
