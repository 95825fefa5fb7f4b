/* occ_analyse(): the model's steps: limits.c (allocation, blocks per SM), waves.c, causes.c. Threads: any. */
#include "model.h"

enum occ_status occ_analyse(const struct occ_device *device, const struct occ_launch *launch,
                            struct occ_result *result)
{
    struct occ_result made = {0};
    enum occ_status status = occ_model_check(device, launch);
    if (status == OCC_OK)
        status = occ_model_allocate(device, launch, &made);
    if (status == OCC_OK)
        status = occ_model_limit(device, launch, &made);
    if (status != OCC_OK)
        return status;
    occ_model_waves(device, launch, &made);
    occ_model_causes(device, launch, &made);
    *result = made;
    return OCC_OK;
}
