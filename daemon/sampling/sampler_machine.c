/* See sampler_machine.h. */
#include "sampler_machine.h"

#include "support/clock.h"

const struct occ_sampler_machine occ_sampler_this_machine = {
    .now_ns = occ_now_ns,
    .monotonic_ns = occ_monotonic_ns,
    .kinds = {[OCC_SLOT_PM] = &occ_source_pm, [OCC_SLOT_GPM] = &occ_source_gpm},
    .find_gpus = occ_gpus_find,
    .energy = &occ_energy_nvml,
    .proc = "/proc",
    .has_threads = true,
};
