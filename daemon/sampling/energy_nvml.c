/* NVML's counter of a GPU's energy; see energy.h. NVML stays initialised while a counter is open: with the
 * last user of the driver's state gone, the counter could begin anew. Not run on a GPU yet. */
#include <stdlib.h>

#include "cupti/nvml.h"
#include "energy.h"
#include "support/text.h"

struct occ_energy_counter {
    struct occ_nvml nvml;
    struct occ_nvml_energy energy;
    void *device;
};

static bool nvml_read(struct occ_energy_counter *c, uint64_t *ret_mj)
{
    unsigned long long mj = 0;
    bool is_read = c->energy.total(c->device, &mj) == OCC_NVML_SUCCESS;
    *ret_mj = mj;
    return is_read;
}

static void nvml_close(struct occ_energy_counter *c)
{
    (void)c->nvml.shutdown();
    free(c);
}

/* A GPU that refuses to be read now has no counter (MIG, before Volta), or no permission. */
static struct occ_energy_counter *nvml_open(const uint8_t uuid[16])
{
    char text[OCC_GPU_UUID_BYTES];
    const char *reason;
    uint64_t mj;
    void *library = occ_nvml_open(NULL, &reason);
    struct occ_energy_counter *c = library ? calloc(1, sizeof *c) : NULL;
    occ_gpu_uuid_format(uuid, text); /* by uuid: CUDA and NVML number GPUs differently */
    if (!c || occ_nvml_bind(library, &c->nvml) || occ_nvml_bind_energy(library, &c->energy) ||
        c->nvml.init() != OCC_NVML_SUCCESS) {
        free(c);
        return NULL;
    }
    if (c->energy.handle(text, &c->device) == OCC_NVML_SUCCESS && nvml_read(c, &mj))
        return c;
    nvml_close(c);
    return NULL;
}

const struct occ_energy_kind occ_energy_nvml = {.open = nvml_open, .read = nvml_read, .close = nvml_close};
