/*
 * cuGetProcAddress: the entry point of a name for a CUDA version. Threads: any; constant after the build.
 *
 * driver_names.inc is made by cmake/ from the toolkit's cudaTypedefs.h, which says since which version each
 * form of a function exists: X(name asked for, since, symbol, 1 for the per-thread-stream form).
 */
#include "driver.h"

#include "env.h"

#include <dlfcn.h>
#include <string.h>

struct row {
    const char *name;
    int since;
    const char *symbol;
    bool per_thread;
};

static const struct row rows[] = {
#define X(name, since, symbol, per_thread) {name, since, symbol, per_thread},
#include "driver_names.inc"
#undef X
};

/* Returns the newest form that `version` has; *ret_known: the name exists in some version. */
static const struct row *find(const char *name, int version, bool per_thread, bool *ret_known)
{
    const struct row *best = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].per_thread != per_thread || strcmp(rows[i].name, name) != 0)
            continue;
        *ret_known = true;
        if (rows[i].since <= version && (!best || rows[i].since > best->since))
            best = &rows[i];
    }
    return best;
}

/* Returns this library's own symbol, even if another library has the name too. */
static void *own_symbol(const char *symbol)
{
    static void *self;
    Dl_info info;
    if (!self && dladdr(own_symbol, &info))
        self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    return self ? dlsym(self, symbol) : NULL;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *symbolStatus)
{
    if (!symbol || !pfn)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = false;
    const struct row *row = NULL;
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        row = find(symbol, cudaVersion, true, &known);
    if (!row)
        row = find(symbol, cudaVersion, false, &known);
    *pfn = row ? own_symbol(row->symbol) : NULL;
    if (symbolStatus)
        *symbolStatus = *pfn    ? CU_GET_PROC_ADDRESS_SUCCESS
                        : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!*pfn)
        sim_log("cuGetProcAddress: no %s for version %d", symbol, cudaVersion);
    return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
