/* SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for passwords' hashes and pseudonyms. No state; any
 * thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OCC_SHA256_BYTES     32
#define OCC_SHA256_HEX_BYTES (2 * OCC_SHA256_BYTES + 1)

void occ_sha256(const void *data, size_t n, uint8_t ret_hash[OCC_SHA256_BYTES]);
void occ_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t n,
                     uint8_t ret_hash[OCC_SHA256_BYTES]);
