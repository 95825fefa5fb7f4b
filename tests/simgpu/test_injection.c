/*
 * The library that the simulated driver injects in a test: counts its calls in the environment and, like
 * profilers, calls the driver within cuInit.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    static int calls;
    int devices = 0;
    char text[64];
    cuInit(0);
    cuDeviceGetCount(&devices);
    snprintf(text, sizeof text, "%d call, %d device", ++calls, devices);
    setenv("SIM_TEST_INJECTED", text, 1);
    return 1;
}
