/* occ_advise(), and its advice about the launch itself: cluster, block size, grid. Threads: any. */
#include "model.h"

/* ---- clusters ---- */

/* Halves the cluster along its first even axis; false: there is none. */
static bool halve_cluster(struct occ_launch *launch)
{
    for (int axis = 0; axis < 3; axis++) {
        if (launch->cluster[axis] > 1 && launch->cluster[axis] % 2 == 0) {
            launch->cluster[axis] /= 2;
            return true;
        }
    }
    return false;
}

/* Only if the model computes the number of active clusters: a driver's number holds only for the present
 * size. */
static void advise_cluster(struct adviser *a)
{
    struct occ_launch launch = *a->launch;
    uint32_t size = occ_cluster_size(&launch);
    if (size == 1 || launch.max_active_clusters > 0)
        return;
    while (halve_cluster(&launch)) {
        struct occ_result then;
        if (occ_analyse(a->device, &launch, &then) != OCC_OK || then.wave_blocks <= a->result->wave_blocks)
            continue;
        uint32_t smaller = occ_cluster_size(&launch);
        if (occ_adviser_change(a, OCC_ADVICE_CLUSTER, size, smaller, size - smaller, &launch))
            return;
    }
}

/* ---- block sizes ---- */

static bool good_block(const struct occ_device *device, uint32_t threads)
{
    return device->max_threads_per_sm % threads == 0 &&
           (uint64_t)threads * device->max_blocks_per_sm >= device->max_threads_per_sm;
}

static double theoretical_with_block(const struct occ_device *device, const struct occ_launch *launch,
                                     uint32_t threads)
{
    struct occ_launch changed = *launch;
    struct occ_result then;
    if (!occ_model_set(&changed, OCC_AXIS_BLOCK_SIZE, threads) ||
        occ_analyse(device, &changed, &then) != OCC_OK)
        return 0;
    return then.theoretical;
}

static void offer_block(struct adviser *a, uint32_t threads)
{
    struct occ_launch launch = *a->launch;
    if (!occ_model_set(&launch, OCC_AXIS_BLOCK_SIZE, threads))
        return;
    uint64_t idle = occ_model_threads_along_x(&launch) - occ_model_threads_along_x(a->launch);
    (void)occ_adviser_change(a, OCC_ADVICE_BLOCK_SIZE, occ_model_threads(a->launch), threads,
                             idle * a->launch->grid[1] * a->launch->grid[2], &launch);
}

static void advise_block_size(struct adviser *a)
{
    const struct occ_device *device = a->device;
    double best = a->result->theoretical;
    for (uint32_t t = device->warp_size; t <= device->max_threads_per_block; t += device->warp_size) {
        double then = good_block(device, t) ? theoretical_with_block(device, a->launch, t) : 0;
        best = then > best ? then : best;
    }
    if (best - a->result->theoretical < OCC_ADVICE_MIN_GAIN)
        return;
    for (uint32_t t = device->warp_size; t <= device->max_threads_per_block; t += device->warp_size)
        if (good_block(device, t) && theoretical_with_block(device, a->launch, t) >= best)
            offer_block(a, t);
}

/* ---- grids ---- */

/* Gives the launch `blocks` blocks: by changing x if y and z divide them, else along x alone. */
static bool set_grid(struct occ_launch *launch, uint64_t blocks)
{
    uint64_t plane = (uint64_t)launch->grid[1] * launch->grid[2];
    uint64_t cluster = launch->cluster[0] ? launch->cluster[0] : 1;
    if (blocks % (plane * cluster) == 0 && blocks / plane <= OCC_MAX_GRID_X) {
        launch->grid[0] = (uint32_t)(blocks / plane);
        return true;
    }
    uint32_t size = occ_cluster_size(launch);
    if (blocks > OCC_MAX_GRID_X || blocks % size != 0)
        return false;
    launch->grid[0] = (uint32_t)blocks;
    launch->grid[1] = launch->grid[2] = 1;
    launch->cluster[0] = size;
    launch->cluster[1] = launch->cluster[2] = 1;
    return true;
}

static void offer_grid(struct adviser *a, enum occ_advice_kind kind, uint64_t blocks)
{
    struct occ_launch launch = *a->launch;
    uint64_t now = a->result->grid_blocks;
    if (!set_grid(&launch, blocks))
        return;
    (void)occ_adviser_change(a, kind, now, blocks, blocks > now ? blocks - now : now - blocks, &launch);
}

static uint64_t next_multiple(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Number of SMs that have blocks in a full wave. */
static uint64_t wave_sms(const struct adviser *a)
{
    return a->result->wave_blocks < a->device->sm_count ? a->result->wave_blocks : a->device->sm_count;
}

static void advise_grid(struct adviser *a)
{
    const struct occ_result *result = a->result;
    if (result->partial_blocks == 0)
        return;
    uint64_t down = result->full_waves * result->wave_blocks;
    if (result->full_waves == 0) {
        uint64_t even = next_multiple(result->grid_blocks, wave_sms(a));
        offer_grid(a, OCC_ADVICE_FILL_WAVE, result->wave_blocks);
        if (occ_uneven_grid(result) > 0 && even < result->wave_blocks)
            offer_grid(a, OCC_ADVICE_EVEN_GRID, even);
        return;
    }
    offer_grid(a, OCC_ADVICE_GRID_DOWN, down);
    offer_grid(a, OCC_ADVICE_GRID_UP, down + result->wave_blocks);
}

uint64_t occ_grid_stride_blocks(uint64_t n, uint32_t block, uint32_t sms, uint32_t max_threads_per_sm,
                                uint32_t waves)
{
    if (n == 0 || block == 0)
        return 1;
    uint64_t needed = (n - 1) / block + 1;
    uint64_t resident = (uint64_t)sms * max_threads_per_sm / block;
    uint64_t max = waves > 0 && resident > UINT64_MAX / waves ? UINT64_MAX : resident * waves;
    uint64_t blocks = needed < max ? needed : max;
    return blocks > 0 ? blocks : 1;
}

static void advise_grid_stride(struct adviser *a)
{
    uint32_t block = occ_model_threads(a->launch);
    uint64_t grid = a->result->grid_blocks;
    uint64_t n = grid > UINT64_MAX / block ? UINT64_MAX : grid * block;
    uint64_t blocks = occ_grid_stride_blocks(n, block, a->device->sm_count, a->device->max_threads_per_sm,
                                             OCC_GRID_STRIDE_WAVES);
    if (blocks < grid)
        offer_grid(a, OCC_ADVICE_GRID_STRIDE, blocks);
}

size_t occ_advise(const struct occ_device *device, const struct occ_launch *launch,
                  const struct occ_result *result, struct occ_advice *advice, size_t max)
{
    struct adviser a = {device, launch, result, advice, max, 0};
    struct occ_result unused;
    /* a stored result may belong to another device or launch */
    if (occ_analyse(device, launch, &unused) != OCC_OK)
        return 0;
    occ_advise_resources(&a);
    advise_cluster(&a);
    advise_block_size(&a);
    advise_grid(&a);
    advise_grid_stride(&a);
    return a.count;
}
