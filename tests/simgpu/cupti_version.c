/* The only file of the CUPTI double that differs between its builds. Constant. */
#include "cupti_double.h"

#ifndef SIM_CUPTI_VERSION
#define SIM_CUPTI_VERSION CUPTI_API_VERSION
#endif

const uint32_t sim_cupti_built_version = SIM_CUPTI_VERSION;
