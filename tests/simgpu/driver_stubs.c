/*
 * Every other public name of the driver: logs the call and returns NOT_SUPPORTED.
 *
 * The definitions are weak, so that a strong one elsewhere in the library replaces them; driver_stubs.inc
 * lists every name of cudaTypedefs.h. They are declared without parameters, which is harmless as the caller
 * passes parameters in registers.
 */
#include "env.h"

#define CUDA_ERROR_NOT_SUPPORTED 801 /* cuda.h itself would clash with these declarations */

static int not_supported(const char *name)
{
    sim_log("%s is not simulated", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define X(name)                                                                                              \
    int name(void);                                                                                          \
    __attribute__((weak, visibility("default"))) int name(void)                                              \
    {                                                                                                        \
        return not_supported(#name);                                                                         \
    }
#include "driver_stubs.inc"
