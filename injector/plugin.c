/* See plugin.h. */
#include "plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

const void *occ_plugin_open(const char *self, const char *file, const char *symbol, uint32_t abi,
                            const char *what, char reason[OCC_REASON_BYTES])
{
    static char path[PATH_MAX]; /* large for a stack of the program's */
    const char *slash = strrchr(self, '/');
    int directory_bytes = slash ? (int)(slash - self) : 0;
    int n = snprintf(path, sizeof path, "%.*s/%s", directory_bytes, self, file);
    void *handle = NULL;
    if (directory_bytes > 0 && n > 0 && (size_t)n < sizeof path)
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const uint32_t *library = handle ? dlsym(handle, symbol) : NULL;
    if (!library)
        (void)dlerror(); /* the program must not read this error */
    if (library && *library == abi)
        return library;
    (void)snprintf(reason, OCC_REASON_BYTES, "no %s: %s %.120s", what,
                   library ? "another version of occtrace has" : "cannot open", path);
    return NULL;
}
