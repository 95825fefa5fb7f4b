/*
 * Fuzzes the reader of ptxas -v: any text gives kernels with values within their limits, or an error with a
 * message.
 */
#include "image/ptxas.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_ptxas *report = NULL;
    struct occ_image_error err = {0};
    if (occ_ptxas_read((const char *)data, size, &report, &err)) {
        if (!err.code || !*err.message)
            abort();
        return 0;
    }
    for (size_t i = 0; i < report->count; i++) {
        const struct occ_ptxas_kernel *kernel = &report->kernels[i];
        if (!*kernel->name || !kernel->registers || kernel->registers > 255 || kernel->barriers > 16 ||
            kernel->sm > 999)
            abort();
    }
    occ_ptxas_free(report);
    return 0;
}
