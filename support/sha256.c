/* See sha256.h: Nettle behind two functions without a context. */
#include "sha256.h"

#include <nettle/hmac.h>
#include <nettle/sha2.h>

void occ_sha256(const void *data, size_t n, uint8_t ret_hash[OCC_SHA256_BYTES])
{
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, n, data);
    sha256_digest(&context, OCC_SHA256_BYTES, ret_hash);
}

void occ_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t n,
                     uint8_t ret_hash[OCC_SHA256_BYTES])
{
    struct hmac_sha256_ctx context;
    hmac_sha256_set_key(&context, key_bytes, key);
    hmac_sha256_update(&context, n, data);
    hmac_sha256_digest(&context, OCC_SHA256_BYTES, ret_hash);
}
