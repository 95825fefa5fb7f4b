/*
 * Advice about resources of a block: registers, shared memory, barriers, and the carve-out of the SM.
 *
 * Thresholds are found by bisection, because blocks per SM never grow with registers, shared memory (under
 * one carve-out) or barriers: the search is for the largest value that gives at least some number of blocks.
 *
 * Threads: any.
 */
#include "model.h"

struct resource {
    enum occ_advice_kind kind;
    enum occ_limit limit;
    enum occ_axis axis;
    uint32_t min; /* smallest value that makes sense */
    uint32_t unit_cost;
    bool keeps_half; /* also look for the most blocks with at least half of the present value */
};

#define REGISTER_BYTES 4

static const struct resource registers = {
    OCC_ADVICE_REGISTERS, OCC_LIMIT_REGISTERS, OCC_AXIS_REGISTERS, 1, REGISTER_BYTES, true,
};
static const struct resource smem = {OCC_ADVICE_SMEM, OCC_LIMIT_SMEM, OCC_AXIS_SMEM, 0, 1, false};
static const struct resource barriers = {
    OCC_ADVICE_BARRIERS, OCC_LIMIT_BARRIERS, OCC_AXIS_BARRIERS, 1, 1, false};

/* ---- thresholds of one resource ---- */

static uint32_t value_of(const struct adviser *a, const struct resource *resource)
{
    return occ_sweep_present(a->launch, resource->axis);
}

/* Changes the resource and keeps the carve-out. If the driver chose a larger carve-out for a larger block and
 * a smaller one for a smaller block, blocks per SM would no longer be monotonic. */
static void set(const struct adviser *a, const struct resource *resource, uint32_t value,
                struct occ_launch *launch)
{
    (void)occ_model_set(launch, resource->axis, value);
    if (resource->axis == OCC_AXIS_SMEM)
        launch->smem_config_bytes = a->result->smem_config_bytes;
}

static struct occ_launch launch_with(const struct adviser *a, const struct resource *resource, uint32_t value)
{
    struct occ_launch launch = *a->launch;
    set(a, resource, value, &launch);
    return launch;
}

static uint32_t blocks_of(const struct adviser *a, const struct occ_launch *launch)
{
    struct occ_result then;
    return occ_analyse(a->device, launch, &then) == OCC_OK ? then.blocks_per_sm : 0;
}

static uint32_t blocks_with(const struct adviser *a, const struct resource *resource, uint32_t value)
{
    struct occ_launch launch = launch_with(a, resource, value);
    return blocks_of(a, &launch);
}

/* The largest value below the present one with at least `blocks` blocks per SM; the caller ensures that the
 * minimum value reaches them. */
static uint32_t largest_with_blocks(const struct adviser *a, const struct resource *resource, uint32_t blocks)
{
    uint32_t enough = resource->min;
    uint32_t too_much = value_of(a, resource);
    while (too_much - enough > 1) {
        uint32_t middle = enough + (too_much - enough) / 2;
        if (blocks_with(a, resource, middle) >= blocks)
            enough = middle;
        else
            too_much = middle;
    }
    return enough;
}

/* Returns the blocks per SM of the change, which may be more than `blocks`. */
static uint32_t offer_threshold(struct adviser *a, const struct resource *resource, uint32_t blocks)
{
    uint32_t now = value_of(a, resource);
    uint32_t needed = largest_with_blocks(a, resource, blocks);
    const struct occ_launch launch = launch_with(a, resource, needed);
    (void)occ_adviser_change(a, resource->kind, now, needed, (uint64_t)(now - needed) * resource->unit_cost,
                             &launch);
    return blocks_of(a, &launch);
}

static uint32_t least_of(const struct adviser *a, const struct resource *resource)
{
    return resource->keeps_half ? (value_of(a, resource) + 1) / 2 : resource->min;
}

static void advise_resource(struct adviser *a, const struct resource *resource)
{
    uint32_t blocks = a->result->blocks_per_sm, most = blocks_with(a, resource, least_of(a, resource));
    if (!(a->result->limiters & 1u << resource->limit) || value_of(a, resource) <= resource->min ||
        blocks_with(a, resource, resource->min) <= blocks)
        return;
    if (offer_threshold(a, resource, blocks + 1) < most)
        (void)offer_threshold(a, resource, most);
}

/* ---- registers and shared memory that tie ---- */

/* The adviser for the same launch with the minimum of `resource`, so that it limits nothing. */
static struct adviser adviser_without(const struct adviser *a, const struct resource *resource,
                                      struct occ_launch *made)
{
    struct adviser relaxed = *a;
    *made = launch_with(a, resource, resource->min);
    relaxed.launch = made;
    return relaxed;
}

static uint32_t offer_both(struct adviser *a, const struct adviser *no_smem,
                           const struct adviser *no_registers, uint32_t blocks)
{
    uint32_t few = largest_with_blocks(no_smem, &registers, blocks);
    uint32_t little = largest_with_blocks(no_registers, &smem, blocks);
    struct occ_launch launch = launch_with(a, &registers, few);
    set(a, &smem, little, &launch);
    occ_adviser_offer(a, &(struct occ_advice){
                             .kind = OCC_ADVICE_REGISTERS_SMEM,
                             .now = value_of(a, &registers),
                             .needed = few,
                             .also_now = value_of(a, &smem),
                             .also_needed = little,
                             .cost_amount = (uint64_t)(value_of(a, &registers) - few) * REGISTER_BYTES,
                             .launch = launch,
                         });
    return blocks_of(a, &launch);
}

/* Advises a change of both resources, if neither change alone gains. Each threshold is searched with the
 * other resource at its minimum; together the thresholds hold because blocks per SM are the minimum of all
 * limits. */
static void advise_registers_and_smem(struct adviser *a)
{
    const uint32_t both = 1u << OCC_LIMIT_REGISTERS | 1u << OCC_LIMIT_SMEM;
    if ((a->result->limiters & both) != both || value_of(a, &registers) <= registers.min)
        return;
    struct occ_launch little_smem, few_registers;
    struct adviser no_smem = adviser_without(a, &smem, &little_smem);
    struct adviser no_registers = adviser_without(a, &registers, &few_registers);
    uint32_t blocks = a->result->blocks_per_sm,
             most = blocks_with(&no_smem, &registers, least_of(a, &registers));
    if (blocks_with(&no_smem, &registers, registers.min) <= blocks)
        return;
    if (offer_both(a, &no_smem, &no_registers, blocks + 1) < most)
        (void)offer_both(a, &no_smem, &no_registers, most);
}

/* ---- carve-out ---- */

/* A launch that asks for the step `bytes`: by percentage where the device has it, else as the driver's
 * choice. */
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
        if (steps[i] > a->result->smem_config_bytes && blocks_of(a, &launch) >= blocks)
            return steps[i];
    }
    return 0;
}

static void offer_carveout(struct adviser *a, uint32_t bytes)
{
    const struct occ_launch launch = with_carveout(a, bytes);
    uint32_t now = a->result->smem_config_bytes;
    (void)occ_adviser_change(a, OCC_ADVICE_CARVEOUT, now, bytes, bytes - now, &launch);
}

static void advise_carveout(struct adviser *a)
{
    uint32_t max = a->result->blocks_per_sm_largest_carveout;
    if (max <= a->result->blocks_per_sm)
        return;
    uint32_t next = smallest_carveout_with(a, a->result->blocks_per_sm + 1);
    uint32_t best = smallest_carveout_with(a, max);
    if (next > 0)
        offer_carveout(a, next);
    if (best > next)
        offer_carveout(a, best);
}

void occ_advise_resources(struct adviser *a)
{
    advise_resource(a, &registers);
    advise_resource(a, &smem);
    advise_carveout(a);
    advise_resource(a, &barriers);
    advise_registers_and_smem(a);
}
