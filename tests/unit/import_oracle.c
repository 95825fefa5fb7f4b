/*
 * import_oracle HISTORY: checks for every launch configuration of a history that blocks per SM and
 * theoretical occupancy equal the results of NVIDIA's cuda_occupancy.h for the same device and launch. Prints
 * the number of configurations and the number of their launches.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/store.h"
#include "test_occupancy_nvidia.h"

/* Returns the preferred carve-out, in percent, with which NVIDIA's calculator takes the driver's carve-out of
 * `bytes`; -1 (no preference) if `bytes` is 0 (unknown). */
static int percent_of(const struct nvidia_device *device, struct nvidia_launch launch, uint32_t bytes)
{
    if (bytes == 0)
        return -1;
    for (launch.carveout_percent = 0; launch.carveout_percent <= 100; launch.carveout_percent++)
        if (nvidia_carveout(device, &launch) == bytes)
            return launch.carveout_percent;
    return 100;
}

static bool same(const struct occ_config_row *row)
{
    const struct occ_device *d = &row->limits;
    const struct occ_launch *l = &row->launch;
    const struct nvidia_device device = {.cc = d->cc,
                                         .sm_count = d->sm_count,
                                         .warp_size = d->warp_size,
                                         .threads_per_block = d->max_threads_per_block,
                                         .threads_per_sm = d->max_threads_per_sm,
                                         .registers_per_block = d->registers_per_block,
                                         .registers_per_sm = d->registers_per_sm,
                                         .smem_per_block_bytes = d->smem_per_block_bytes,
                                         .smem_per_block_optin_bytes = d->smem_per_block_optin_bytes,
                                         .smem_per_sm_bytes = d->smem_per_sm_bytes,
                                         .smem_reserved_bytes = d->smem_reserved_per_block_bytes};
    struct nvidia_launch launch = {.threads = l->block[0] * l->block[1] * l->block[2],
                                   .registers = l->registers_per_thread,
                                   .static_smem_bytes = l->static_smem_bytes,
                                   .dynamic_smem_bytes = l->dynamic_smem_bytes,
                                   .carveout_percent = -1,
                                   .optin = true};
    struct nvidia_result theirs = {0};
    launch.carveout_percent = percent_of(&device, launch, l->smem_config_bytes);
    bool accepted = nvidia_occupancy(&device, &launch, &theirs) && theirs.blocks > 0;
    if (accepted != row->analysed)
        return false;
    double theoretical = (double)theirs.blocks * ((launch.threads + 31) / 32) * 32 / d->max_threads_per_sm;
    return !accepted || (theirs.blocks == row->result.blocks_per_sm &&
                         fabs(theoretical - row->result.theoretical) < 1e-12);
}

int main(int argc, char **argv)
{
    static const struct occ_store_options reading = {.mode = OCC_STORE_READ};
    static const struct occ_filter all = {0};
    struct occ_store *store = NULL;
    struct occ_config_rows configs;
    struct occ_error err = OCC_ERROR_INIT;
    uint64_t launches = 0;
    int different = 0;
    if (argc != 2 || occ_store_open(argv[1], &reading, &store, &err) != 0 ||
        occ_store_configs(store, &all, &configs, &err) != 0) {
        (void)fprintf(stderr, "import_oracle: %s\n", err.message);
        return 2;
    }
    for (size_t i = 0; i < configs.n; i++) {
        launches += configs.rows[i].launches;
        if (same(&configs.rows[i]))
            continue;
        different++;
        (void)fprintf(stderr, "launch configuration %lld of %s differs\n", (long long)configs.rows[i].id,
                      configs.rows[i].kernel.short_name);
    }
    (void)printf("%zu configurations, %llu launches, %d different\n", configs.n, (unsigned long long)launches,
                 different);
    occ_config_rows_free(&configs);
    occ_store_close(store);
    return different ? 1 : 0;
}
