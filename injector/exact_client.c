/* See exact_client.h. */
#include "exact_client.h"

#include "companion.h"

void occ_exact_client_start(struct occ_exact_client *client, const char *self, const struct occ_cupti *cupti,
                            char reason[OCC_REASON_BYTES])
{
    client->call = occ_companion_open(self, "libocctrace-exact.so", "occ_exact_library", OCC_EXACT_ABI,
                                      "exact values", reason);
    client->run = client->call ? client->call->start(cupti, reason) : NULL;
}
