/* See exact_client.h. */
#include "exact_client.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "libocctrace-exact.so"

/* NULL with the reason, or the library's interface. */
static const struct occ_exact_library *open_library(const char *self, char reason[OCC_REASON_BYTES])
{
    char path[PATH_MAX];
    const char *slash = strrchr(self, '/');
    int directory_bytes = slash ? (int)(slash - self) : 0;
    int n = snprintf(path, sizeof path, "%.*s/" FILE_NAME, directory_bytes, self);
    void *handle = NULL;
    if (directory_bytes > 0 && n > 0 && (size_t)n < sizeof path)
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct occ_exact_library *library = handle ? dlsym(handle, "occ_exact_library") : NULL;
    if (!library)
        (void)dlerror(); /* the program must not read our error */
    if (library && library->abi == OCC_EXACT_ABI)
        return library;
    (void)snprintf(reason, OCC_REASON_BYTES, "no exact values: %s %.120s",
                   library ? "another version of occtrace has" : "cannot open", path);
    return NULL;
}

void occ_exact_client_start(struct occ_exact_client *client, const char *self, const struct occ_cupti *cupti,
                            char reason[OCC_REASON_BYTES])
{
    client->call = open_library(self, reason);
    client->run = client->call ? client->call->start(cupti, reason) : NULL;
}
