/*
 * occ_advise(): each adviser below changes one parameter, and the model says what comes of it.
 *
 * Thresholds are found by bisection, because blocks per SM never grow with registers, shared memory (under one
 * carve-out) or barriers; the search is for the largest value that gives at least some number of blocks.
 *
 * Threads: any.
 */
#include "advice.h"

#include "model.h"

#define GRID_X_MAX 2147483647u

/* What the advisers share: the launch as it is, and the list they fill. */
struct adviser {
    const struct occ_device *device;
    const struct occ_launch *launch;
    const struct occ_result *result;
    struct occ_advice *list;
    size_t max;
    size_t count;
};

/* One change; `launch` has it already. */
struct change {
    enum occ_advice_kind kind;
    uint64_t now, needed;
    uint64_t also_now, also_needed;
    uint64_t cost_amount;
    struct occ_launch launch;
};

/* Puts the change on the list if the model says that it gains something. */
static bool offer(struct adviser *a, const struct change *change)
{
    struct occ_result then;
    if (occ_analyse(a->device, &change->launch, &then) != OCC_OK)
        return false;
    if (then.theoretical - a->result->theoretical < OCC_ADVICE_LEAST_GAIN &&
        then.expected_elapsed - a->result->expected_elapsed < OCC_ADVICE_LEAST_GAIN)
        return false;
    if (a->count < a->max)
        a->list[a->count] = (struct occ_advice){
            .kind = change->kind,
            .now = change->now,
            .needed = change->needed,
            .also_now = change->also_now,
            .also_needed = change->also_needed,
            .blocks_now = a->result->blocks_per_sm,
            .blocks_then = then.blocks_per_sm,
            .theoretical_now = a->result->theoretical,
            .theoretical_then = then.theoretical,
            .elapsed_now = a->result->expected_elapsed,
            .elapsed_then = then.expected_elapsed,
            .achieved_now = a->result->expected_achieved,
            .achieved_then = then.expected_achieved,
            .cost_amount = change->cost_amount,
            .launch = change->launch,
        };
    a->count++;
    return true;
}

/* ---- thresholds of a resource ---- */

/* A resource of a block: its value in a launch, the least that makes sense, and how to set it. */
struct resource {
    enum occ_advice_kind kind;
    enum occ_limit limit;
    uint32_t least;
    uint32_t cost_of_one;
    uint32_t (*get)(const struct occ_launch *launch);
    void (*set)(const struct occ_result *result, struct occ_launch *launch, uint32_t value);
};

static uint32_t get_registers(const struct occ_launch *launch)
{
    return launch->registers_per_thread;
}

static void set_registers(const struct occ_result *result, struct occ_launch *launch, uint32_t value)
{
    (void)result;
    launch->registers_per_thread = value;
}

static uint32_t get_smem(const struct occ_launch *launch)
{
    return launch->static_smem_bytes + launch->dynamic_smem_bytes;
}

/* Dynamic memory is given up first. The carve-out stays what it is now: a driver that chose a larger one for a
 * larger block would choose a smaller one otherwise, and the threshold would not be one. */
static void set_smem(const struct occ_result *result, struct occ_launch *launch, uint32_t value)
{
    uint32_t fixed = occ_min_u32(launch->static_smem_bytes, value);
    launch->static_smem_bytes = fixed;
    launch->dynamic_smem_bytes = value - fixed;
    launch->smem_config_bytes = result->smem_config_bytes;
}

static uint32_t get_barriers(const struct occ_launch *launch)
{
    return launch->barriers;
}

static void set_barriers(const struct occ_result *result, struct occ_launch *launch, uint32_t value)
{
    (void)result;
    launch->barriers = value;
}

#define REGISTER_BYTES 4

static const struct resource registers = {
    OCC_ADVICE_REGISTERS, OCC_LIMIT_REGISTERS, 1, REGISTER_BYTES, get_registers, set_registers,
};
static const struct resource smem = {OCC_ADVICE_SMEM, OCC_LIMIT_SMEM, 0, 1, get_smem, set_smem};
static const struct resource barriers = {
    OCC_ADVICE_BARRIERS, OCC_LIMIT_BARRIERS, 1, 1, get_barriers, set_barriers,
};

static struct occ_launch with(const struct adviser *a, const struct resource *resource, uint32_t value)
{
    struct occ_launch launch = *a->launch;
    resource->set(a->result, &launch, value);
    return launch;
}

static uint32_t blocks_with(const struct adviser *a, const struct resource *resource, uint32_t value)
{
    struct occ_launch launch = with(a, resource, value);
    struct occ_result then;
    return occ_analyse(a->device, &launch, &then) == OCC_OK ? then.blocks_per_sm : 0;
}

/* The largest value below the present one that gives at least `blocks`; the least one gives them. */
static uint32_t largest_with_blocks(const struct adviser *a, const struct resource *resource, uint32_t blocks)
{
    uint32_t enough = resource->least;
    uint32_t too_much = resource->get(a->launch);
    while (too_much - enough > 1) {
        uint32_t middle = enough + (too_much - enough) / 2;
        if (blocks_with(a, resource, middle) >= blocks)
            enough = middle;
        else
            too_much = middle;
    }
    return enough;
}

static void offer_threshold(struct adviser *a, const struct resource *resource, uint32_t blocks)
{
    uint32_t now = resource->get(a->launch);
    uint32_t needed = largest_with_blocks(a, resource, blocks);
    offer(a, &(struct change){
                 .kind = resource->kind,
                 .now = now,
                 .needed = needed,
                 .cost_amount = (uint64_t)(now - needed) * resource->cost_of_one,
                 .launch = with(a, resource, needed),
             });
}

static void advise_resource(struct adviser *a, const struct resource *resource)
{
    uint32_t now = resource->get(a->launch);
    uint32_t blocks = a->result->blocks_per_sm;
    if (!(a->result->limiters & 1u << resource->limit) || now <= resource->least)
        return;
    uint32_t most = blocks_with(a, resource, resource->least);
    if (most <= blocks)
        return;
    offer_threshold(a, resource, blocks + 1);
    struct occ_launch next = with(a, resource, largest_with_blocks(a, resource, blocks + 1));
    struct occ_result then;
    if (occ_analyse(a->device, &next, &then) == OCC_OK && then.blocks_per_sm < most)
        offer_threshold(a, resource, most);
}

/* ---- registers and shared memory that tie ---- */

/* The adviser for the same launch with the least of `resource`, so that it limits nothing. */
static struct adviser without(const struct adviser *a, const struct resource *resource,
                              struct occ_launch *made)
{
    struct adviser relaxed = *a;
    *made = with(a, resource, resource->least);
    relaxed.launch = made;
    return relaxed;
}

/* Returns the blocks per SM that it gives, which may be more than asked. */
static uint32_t offer_both(struct adviser *a, const struct adviser *no_smem,
                           const struct adviser *no_registers, uint32_t blocks)
{
    uint32_t few = largest_with_blocks(no_smem, &registers, blocks);
    uint32_t little = largest_with_blocks(no_registers, &smem, blocks);
    struct occ_launch launch = with(a, &registers, few);
    smem.set(a->result, &launch, little);
    offer(a, &(struct change){
                 .kind = OCC_ADVICE_REGISTERS_SMEM,
                 .now = get_registers(a->launch),
                 .needed = few,
                 .also_now = get_smem(a->launch),
                 .also_needed = little,
                 .cost_amount = (uint64_t)(get_registers(a->launch) - few) * REGISTER_BYTES,
                 .launch = launch,
             });
    struct occ_result then;
    return occ_analyse(a->device, &launch, &then) == OCC_OK ? then.blocks_per_sm : 0;
}

/* Each alone gains nothing; each is searched where the other does not limit, and the two thresholds hold together
 * because blocks are the smallest of all limits. */
static void advise_registers_and_smem(struct adviser *a)
{
    const uint32_t both = 1u << OCC_LIMIT_REGISTERS | 1u << OCC_LIMIT_SMEM;
    if ((a->result->limiters & both) != both || get_registers(a->launch) <= registers.least)
        return;
    struct occ_launch little_smem, few_registers;
    struct adviser no_smem = without(a, &smem, &little_smem);
    struct adviser no_registers = without(a, &registers, &few_registers);
    uint32_t blocks = a->result->blocks_per_sm;
    uint32_t most = blocks_with(&no_smem, &registers, registers.least);
    if (most <= blocks)
        return;
    if (offer_both(a, &no_smem, &no_registers, blocks + 1) < most)
        (void)offer_both(a, &no_smem, &no_registers, most);
}

/* ---- carve-out ---- */

/* A launch that asks for the step `bytes`, in the way in which its device can be asked. */
static struct occ_launch with_carveout(const struct adviser *a, uint32_t bytes)
{
    struct occ_launch launch = *a->launch;
    uint32_t largest = a->device->smem_per_sm_bytes;
    uint32_t percent = (uint32_t)((uint64_t)bytes * 100 / largest);
    uint32_t asked = (uint32_t)((uint64_t)largest * percent / 100);
    launch.smem_config_bytes = bytes;
    if (occ_carveout_by_percent(a->device) && occ_carveout_at_least(a->device, asked) == bytes) {
        launch.smem_config_bytes = 0;
        launch.carveout_percent = (int32_t)percent;
    }
    return launch;
}

/* The smallest step above the present one that gives at least `blocks`; 0: none. */
static uint32_t smallest_carveout_with(const struct adviser *a, uint32_t blocks)
{
    uint32_t steps[OCC_MAX_CARVEOUTS];
    size_t count = occ_carveout_steps(a->device, steps, OCC_MAX_CARVEOUTS);
    for (size_t i = 0; i < count && i < OCC_MAX_CARVEOUTS; i++) {
        struct occ_launch launch = with_carveout(a, steps[i]);
        struct occ_result then;
        if (steps[i] > a->result->smem_config_bytes && occ_analyse(a->device, &launch, &then) == OCC_OK &&
            then.blocks_per_sm >= blocks)
            return steps[i];
    }
    return 0;
}

static void offer_carveout(struct adviser *a, uint32_t bytes)
{
    offer(a, &(struct change){
                 .kind = OCC_ADVICE_CARVEOUT,
                 .now = a->result->smem_config_bytes,
                 .needed = bytes,
                 .cost_amount = bytes - a->result->smem_config_bytes,
                 .launch = with_carveout(a, bytes),
             });
}

static void advise_carveout(struct adviser *a)
{
    uint32_t most = a->result->blocks_per_sm_largest_carveout;
    if (most <= a->result->blocks_per_sm)
        return;
    uint32_t next = smallest_carveout_with(a, a->result->blocks_per_sm + 1);
    uint32_t best = smallest_carveout_with(a, most);
    if (next > 0)
        offer_carveout(a, next);
    if (best > next)
        offer_carveout(a, best);
}

/* ---- clusters ---- */

/* Halves the cluster along its first even axis; false: no axis is. */
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

/* Only where the number of active clusters is computed: the driver's is about the present size. */
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
        if (offer(a, &(struct change){.kind = OCC_ADVICE_CLUSTER,
                                      .now = size,
                                      .needed = smaller,
                                      .cost_amount = size - smaller,
                                      .launch = launch}))
            return;
    }
}

/* ---- block sizes ---- */

static bool good_block(const struct occ_device *device, uint32_t threads)
{
    return device->max_threads_per_sm % threads == 0 &&
           (uint64_t)threads * device->max_blocks_per_sm >= device->max_threads_per_sm;
}

static uint64_t threads_of_grid(const struct occ_launch *launch)
{
    return (uint64_t)launch->grid[0] * launch->block[0] * launch->block[1] * launch->block[2];
}

bool occ_model_set_block(struct occ_launch *launch, uint32_t threads)
{
    uint64_t cluster = launch->cluster[0] ? launch->cluster[0] : 1;
    uint64_t blocks = (threads_of_grid(launch) + threads - 1) / threads;
    blocks = (blocks + cluster - 1) / cluster * cluster;
    if (blocks > GRID_X_MAX)
        return false;
    launch->grid[0] = (uint32_t)blocks;
    launch->block[0] = threads;
    launch->block[1] = launch->block[2] = 1;
    return true;
}

static double theoretical_with_block(const struct occ_device *device, const struct occ_launch *launch,
                                     uint32_t threads)
{
    struct occ_launch changed = *launch;
    struct occ_result then;
    if (!occ_model_set_block(&changed, threads) || occ_analyse(device, &changed, &then) != OCC_OK)
        return 0;
    return then.theoretical;
}

static void offer_block(struct adviser *a, uint32_t threads)
{
    struct occ_launch launch = *a->launch;
    if (!occ_model_set_block(&launch, threads))
        return;
    uint64_t idle = threads_of_grid(&launch) - threads_of_grid(a->launch);
    offer(a, &(struct change){
                 .kind = OCC_ADVICE_BLOCK_SIZE,
                 .now = (uint64_t)a->launch->block[0] * a->launch->block[1] * a->launch->block[2],
                 .needed = threads,
                 .cost_amount = idle * a->launch->grid[1] * a->launch->grid[2],
                 .launch = launch,
             });
}

static void advise_block_size(struct adviser *a)
{
    const struct occ_device *device = a->device;
    double best = a->result->theoretical;
    for (uint32_t t = device->warp_size; t <= device->max_threads_per_block; t += device->warp_size) {
        double then = good_block(device, t) ? theoretical_with_block(device, a->launch, t) : 0;
        best = then > best ? then : best;
    }
    if (best - a->result->theoretical < OCC_ADVICE_LEAST_GAIN)
        return;
    for (uint32_t t = device->warp_size; t <= device->max_threads_per_block; t += device->warp_size)
        if (good_block(device, t) && theoretical_with_block(device, a->launch, t) >= best)
            offer_block(a, t);
}

uint32_t occ_smallest_good_block(const struct occ_device *device)
{
    if (device->warp_size == 0)
        return 0;
    uint32_t most = occ_min_u32(device->max_threads_per_block, device->max_threads_per_sm);
    for (uint64_t t = device->warp_size; t <= most; t += device->warp_size)
        if (good_block(device, (uint32_t)t))
            return (uint32_t)t;
    return 0;
}

/* ---- grids ---- */

/* The launch with `blocks` blocks: in its own shape if they can be had by changing x, else along x alone. */
static bool set_grid(struct occ_launch *launch, uint64_t blocks)
{
    uint64_t plane = (uint64_t)launch->grid[1] * launch->grid[2];
    uint64_t cluster = launch->cluster[0] ? launch->cluster[0] : 1;
    if (blocks % (plane * cluster) == 0 && blocks / plane <= GRID_X_MAX) {
        launch->grid[0] = (uint32_t)(blocks / plane);
        return true;
    }
    uint32_t size = occ_cluster_size(launch);
    if (blocks > GRID_X_MAX || blocks % size != 0)
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
    offer(a, &(struct change){
                 .kind = kind,
                 .now = now,
                 .needed = blocks,
                 .cost_amount = blocks > now ? blocks - now : now - blocks,
                 .launch = launch,
             });
}

static void advise_grid(struct adviser *a)
{
    const struct occ_result *result = a->result;
    if (result->partial_blocks == 0)
        return;
    uint64_t down = result->full_waves * result->wave_blocks;
    if (result->full_waves == 0) {
        offer_grid(a, OCC_ADVICE_FILL_WAVE, result->wave_blocks);
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
    uint64_t most = waves > 0 && resident > UINT64_MAX / waves ? UINT64_MAX : resident * waves;
    uint64_t blocks = needed < most ? needed : most;
    return blocks > 0 ? blocks : 1;
}

static void advise_grid_stride(struct adviser *a)
{
    uint32_t block = a->launch->block[0] * a->launch->block[1] * a->launch->block[2];
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
    advise_resource(&a, &registers);
    advise_resource(&a, &smem);
    advise_carveout(&a);
    advise_resource(&a, &barriers);
    advise_registers_and_smem(&a);
    advise_cluster(&a);
    advise_block_size(&a);
    advise_grid(&a);
    advise_grid_stride(&a);
    return a.count;
}

/* ---- words ---- */

const char *occ_advice_word(enum occ_advice_kind kind)
{
    static const char *const words[] = {
#define X(name, word, text, cost) word,
        OCC_ADVICES(X)
#undef X
    };
    return (unsigned)kind < OCC_ADVICE_COUNT ? words[kind] : "unknown";
}

const char *occ_advice_text(enum occ_advice_kind kind)
{
    static const char *const texts[] = {
#define X(name, word, text, cost) text,
        OCC_ADVICES(X)
#undef X
    };
    return (unsigned)kind < OCC_ADVICE_COUNT ? texts[kind] : "unknown";
}

const char *occ_advice_cost(enum occ_advice_kind kind)
{
    static const char *const costs[] = {
#define X(name, word, text, cost) cost,
        OCC_ADVICES(X)
#undef X
    };
    return (unsigned)kind < OCC_ADVICE_COUNT ? costs[kind] : "unknown";
}
