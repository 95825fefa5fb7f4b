/*
 * The model against NVIDIA's cuda_occupancy.h: more than 10^7 configurations on every capability that it
 * knows (3.0 ... 12.1), exhaustive along pairs of axes and random over all axes. Allocations, the limit of
 * every resource, the limiting factors and the blocks per SM must be equal; a launch is refused by one
 * exactly if the other allows no block. Under a sanitizer every seventh configuration is compared.
 *
 * Ours differs on purpose in:
 *   registers          63 a thread at most on 3.0, 255 from 3.2 on (programming guide); NVIDIA's
 *                      calculator has 255 for all 3.x, and 256 from 7.0 on: the same allocation
 *   no registers       refused: no kernel has 0, so it is a caller's mistake (not swept)
 *   limiting factors   where a chosen carve-out ties only because it follows the other limits, ours
 *                      leaves shared
 *                      memory out (occupancy.h), so it is not compared under a cache preference (before
 *                      7.0)
 *   limiting factors   where barriers alone limit, NVIDIA's mask still has the factors that would limit
 *                      without them (it is not cleared when the minimum goes down); ours has the smallest
 *                      only
 */
#include "test_occupancy_nvidia.h"
#include "occupancy/sweep.h"
#include "sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define FIRST_CC          30
#define DIFFERENCES_SHOWN 10

static unsigned config_step = 1; /* from one compared configuration to the next */

struct sweep {
    uint64_t offered;
    uint64_t compared;
    uint64_t launchable;
    uint64_t different;
};

static uint32_t nvidia_limiters(const struct nvidia_result *theirs)
{
    uint32_t barriers = (uint32_t)theirs->barriers_limit << OCC_LIMIT_BARRIERS;
    uint32_t others = (uint32_t)theirs->warps_limit << OCC_LIMIT_WARPS |
                      (uint32_t)theirs->registers_limit << OCC_LIMIT_REGISTERS |
                      (uint32_t)theirs->smem_limits << OCC_LIMIT_SMEM |
                      (uint32_t)theirs->blocks_limit << OCC_LIMIT_BLOCKS;
    bool stale = theirs->barriers_limit && theirs->by_barriers < theirs->by_warps &&
                 theirs->by_barriers < theirs->by_registers && theirs->by_barriers < theirs->by_smem &&
                 theirs->by_barriers < theirs->by_blocks;
    return stale ? barriers : barriers | others;
}

static bool same(const struct occ_result *ours, const struct nvidia_result *theirs, bool preferred)
{
    uint32_t compared = preferred ? ~(1u << OCC_LIMIT_SMEM) : ~0u;
    return ours->blocks_per_sm == theirs->blocks && ours->limit[OCC_LIMIT_WARPS] == theirs->by_warps &&
           ours->limit[OCC_LIMIT_REGISTERS] == theirs->by_registers &&
           ours->limit[OCC_LIMIT_SMEM] == theirs->by_smem &&
           ours->limit[OCC_LIMIT_BLOCKS] == theirs->by_blocks &&
           ours->limit[OCC_LIMIT_BARRIERS] == theirs->by_barriers &&
           ((ours->limiters ^ nvidia_limiters(theirs)) & compared) == 0 &&
           ours->registers_per_block == theirs->registers_per_block &&
           ours->smem_per_block_bytes == theirs->smem_per_block_bytes;
}

static void show(const struct occ_device *device, const struct nvidia_launch *launch, enum occ_status status,
                 const struct occ_result *ours, bool accepted, const struct nvidia_result *theirs)
{
    fprintf(stderr,
            "cc %u: %u threads, %u registers, %u + %u bytes, %u barriers, carve-out %d, opt-in %d:\n"
            "  ours   %s, %u blocks (warps %u registers %u shared %u blocks %u barriers %u), mask %x\n"
            "  theirs %s, %u blocks (warps %u registers %u shared %u blocks %u barriers %u), mask %x\n",
            device->cc, launch->threads, launch->registers, launch->static_smem_bytes,
            launch->dynamic_smem_bytes, launch->barriers, launch->carveout_percent, launch->optin,
            occ_status_text(status), ours->blocks_per_sm, ours->limit[OCC_LIMIT_WARPS],
            ours->limit[OCC_LIMIT_REGISTERS], ours->limit[OCC_LIMIT_SMEM], ours->limit[OCC_LIMIT_BLOCKS],
            ours->limit[OCC_LIMIT_BARRIERS], ours->limiters, accepted ? "ok" : "refused", theirs->blocks,
            theirs->by_warps, theirs->by_registers, theirs->by_smem, theirs->by_blocks, theirs->by_barriers,
            nvidia_limiters(theirs));
}

static struct nvidia_device to_nvidia(const struct occ_device *device)
{
    return (struct nvidia_device){
        .cc = device->cc,
        .sm_count = device->sm_count,
        .warp_size = device->warp_size,
        .threads_per_block = device->max_threads_per_block,
        .threads_per_sm = device->max_threads_per_sm,
        .registers_per_block = device->registers_per_block,
        .registers_per_sm = device->registers_per_sm,
        .smem_per_block_bytes = device->smem_per_block_bytes,
        .smem_per_block_optin_bytes = device->smem_per_block_optin_bytes,
        .smem_per_sm_bytes = device->smem_per_sm_bytes,
        .smem_reserved_bytes = device->smem_reserved_per_block_bytes,
    };
}

static struct occ_launch from_nvidia(const struct nvidia_device *device, const struct nvidia_launch *launch)
{
    return (struct occ_launch){
        .grid = {1, 1, 1},
        .block = {launch->threads, 1, 1},
        .registers_per_thread = launch->registers,
        .static_smem_bytes = launch->static_smem_bytes,
        .dynamic_smem_bytes = launch->dynamic_smem_bytes,
        .carveout_percent = launch->carveout_percent,
        .smem_config_bytes = launch->cache_preference > 0 ? nvidia_carveout(device, launch) : 0,
        .barriers = launch->barriers,
        .smem_optin_known = true,
        .smem_optin = launch->optin,
        .max_dynamic_smem_known = launch->max_dynamic_known,
        .max_dynamic_smem_bytes = launch->max_dynamic_bytes,
    };
}

static void compare(struct sweep *sweep, const struct occ_device *device, const struct nvidia_launch *launch)
{
    if (sweep->offered++ % config_step != 0)
        return;
    struct nvidia_device nvidia = to_nvidia(device);
    struct occ_launch mine = from_nvidia(&nvidia, launch);
    struct nvidia_result theirs = {0};
    struct occ_result ours = {0};
    bool accepted = nvidia_occupancy(&nvidia, launch, &theirs);
    enum occ_status status = occ_analyse(device, &mine, &ours);
    bool beyond_ours = launch->registers > device->max_registers_per_thread;
    bool equal = accepted && theirs.blocks > 0 && !beyond_ours
                     ? status == OCC_OK && same(&ours, &theirs, launch->cache_preference > 0)
                     : status != OCC_OK;
    sweep->compared++;
    sweep->launchable += status == OCC_OK;
    if (!equal && sweep->different++ < DIFFERENCES_SHOWN)
        show(device, launch, status, &ours, accepted, &theirs);
}

/* Every block size with every register count. */
static void sweep_registers(struct sweep *sweep, const struct occ_device *device)
{
    for (uint32_t threads = 1; threads <= 1025; threads++)
        for (uint32_t registers = 1; registers <= 257; registers++)
            compare(sweep, device,
                    &(struct nvidia_launch){
                        .threads = threads, .registers = registers, .carveout_percent = -1, .optin = true});
}

/* Shared memory from nothing to beyond the largest, in steps that hit both sides of every unit, with every
 * preferred carve-out. */
static void sweep_smem(struct sweep *sweep, const struct occ_device *device)
{
    static const uint32_t around[] = {0, 1, 255};
    uint32_t largest = device->smem_per_block_optin_bytes + 4096;
    for (uint32_t base = 0; base <= largest; base += 512)
        for (int carveout = -1; carveout <= 100; carveout++)
            for (int i = 0; i < 3; i++)
                compare(sweep, device,
                        &(struct nvidia_launch){.threads = 32,
                                                .registers = 16,
                                                .dynamic_smem_bytes = base + around[i],
                                                .carveout_percent = carveout,
                                                .optin = i != 1});
}

static void sweep_barriers(struct sweep *sweep, const struct occ_device *device)
{
    for (uint32_t threads = 1; threads <= 1024; threads += 31)
        for (uint32_t registers = 1; registers <= 255; registers += 23)
            for (uint32_t barriers = 0; barriers <= 16; barriers++)
                compare(sweep, device,
                        &(struct nvidia_launch){.threads = threads,
                                                .registers = registers,
                                                .barriers = barriers,
                                                .carveout_percent = -1,
                                                .optin = true});
}

/* The kernel's maximum of dynamic memory around everything it decides: the launch's own, the default limit,
 * the largest. */
static void sweep_maximum(struct sweep *sweep, const struct occ_device *device)
{
    static const uint32_t fixed[] = {0, 1, 127, 1024, 16384, 49152, 49153};
    static const int around[] = {-1024, -1, 0, 1, 1024};
    const uint32_t maxima[] = {1024, 8192, 32768, 49152, 65536, device->smem_per_block_optin_bytes};
    for (uint32_t dynamic = 0; dynamic <= device->smem_per_block_optin_bytes + 1024; dynamic += 512)
        for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
            for (size_t j = 0; j < sizeof(maxima) / sizeof(maxima[0]); j++)
                for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++)
                    compare(sweep, device,
                            &(struct nvidia_launch){.threads = 64,
                                                    .registers = 32,
                                                    .static_smem_bytes = fixed[i],
                                                    .dynamic_smem_bytes = dynamic,
                                                    .carveout_percent = -1,
                                                    .optin = true,
                                                    .max_dynamic_known = true,
                                                    .max_dynamic_bytes = maxima[j] + (uint32_t)around[k]});
}

/* Sweeps devices before 7.0, where the cache preference chooses the carve-out, not a percentage. */
static void sweep_preferences(struct sweep *sweep, const struct occ_device *device)
{
    for (int preference = 1; device->cc < 70 && preference <= 3; preference++)
        for (uint32_t smem = 0; smem <= device->smem_per_block_optin_bytes + 256; smem += 128)
            for (uint32_t threads = 32; threads <= 1024; threads += 96)
                compare(sweep, device,
                        &(struct nvidia_launch){.threads = threads,
                                                .registers = 16,
                                                .static_smem_bytes = smem,
                                                .carveout_percent = -1,
                                                .optin = true,
                                                .cache_preference = preference});
}

/* xorshift64*: seeded, the same on every machine */
static uint32_t next_random(uint64_t *state, uint32_t below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545F4914F6CDD1Dull >> 32) * below >> 32);
}

/* Small values are drawn more often: that is where most blocks fit. */
static uint32_t skewed(uint64_t *state, uint32_t below)
{
    return next_random(state, next_random(state, below) + 1);
}

static void sweep_random(struct sweep *sweep, const struct occ_device *device, uint64_t *state,
                         uint32_t count)
{
    static const uint32_t threads_per_sm[] = {1024, 1536, 2048};
    for (uint32_t i = 0; i < count; i++) {
        struct occ_device varied = *device;
        if (next_random(state, 8) == 0)
            varied.max_threads_per_sm = threads_per_sm[next_random(state, 3)];
        if (next_random(state, 8) == 0)
            varied.registers_per_block = 32768;
        uint32_t smem = skewed(state, device->smem_per_block_optin_bytes + 8192);
        uint32_t fixed = next_random(state, smem + 1);
        bool optin = next_random(state, 4) != 0;
        compare(
            sweep, &varied,
            &(struct nvidia_launch){
                .threads = 1 + next_random(state, 1050),
                .registers = 1 + skewed(state, 258),
                .static_smem_bytes = fixed,
                .dynamic_smem_bytes = smem - fixed,
                .barriers = next_random(state, 17),
                .carveout_percent = (int)next_random(state, 102) - 1,
                .optin = optin,
                .max_dynamic_known = optin && next_random(state, 2),
                .max_dynamic_bytes = smem - fixed + skewed(state, 65536) - skewed(state, smem - fixed + 1),
            });
    }
}

static void agrees_with_nvidia(void **state)
{
    (void)state;
    struct sweep sweep = {0};
    uint64_t random = 0x6f636374;
    struct occ_device device;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++) {
        if (device.cc < FIRST_CC)
            continue;
        device.sm_count = 100;
        sweep_registers(&sweep, &device);
        sweep_smem(&sweep, &device);
        sweep_barriers(&sweep, &device);
        sweep_maximum(&sweep, &device);
        sweep_preferences(&sweep, &device);
        sweep_random(&sweep, &device, &random, 120000);
    }
    printf("%llu configurations compared, %llu of them can be launched, %llu differences\n",
           (unsigned long long)sweep.compared, (unsigned long long)sweep.launchable,
           (unsigned long long)sweep.different);
    assert_int_equal(sweep.different, 0);
    assert_true(sweep.compared >= 10000000 / config_step);
    assert_true(sweep.launchable >= sweep.compared / 4);
}

/* Every step that a percentage or a preference can reach is listed, and nothing else. */
static void carveout_steps_are_nvidias(void **state)
{
    (void)state;
    struct occ_device device;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++) {
        if (device.cc < FIRST_CC)
            continue;
        struct nvidia_device nvidia = to_nvidia(&device);
        uint32_t steps[OCC_MAX_CARVEOUTS];
        size_t count = occ_carveout_steps(&device, steps, OCC_MAX_CARVEOUTS);
        uint32_t reached = 0;
        bool by_percent = device.cc >= 70;
        for (int asked = by_percent ? 0 : 1; asked <= (by_percent ? 100 : 3); asked++) {
            uint32_t bytes =
                nvidia_carveout(&nvidia, &(struct nvidia_launch){.carveout_percent = by_percent ? asked : -1,
                                                                 .cache_preference = by_percent ? 0 : asked});
            size_t step = 0;
            while (step < count && steps[step] != bytes)
                step++;
            assert_true(step < count);
            reached |= 1u << step;
        }
        assert_int_equal(reached, (1u << count) - 1);
    }
}

/* The largest block size with the best occupancy, of our curve and as NVIDIA's configurator recommends it. */
static uint32_t our_best_block(const struct occ_device *device, const struct occ_launch *launch)
{
    struct occ_range range;
    struct occ_point points[32];
    double best = 0;
    uint32_t threads = 0;
    assert_true(occ_sweep_range(device, OCC_AXIS_BLOCK_SIZE, &range));
    assert_int_equal(occ_sweep(device, launch, OCC_AXIS_BLOCK_SIZE, &range, points, 32), 32);
    for (size_t i = 0; i < 32; i++) {
        if (points[i].theoretical > 0 && points[i].theoretical >= best) {
            best = points[i].theoretical;
            threads = points[i].value;
        }
    }
    return threads;
}

static void best_blocks_are_nvidias(void **state)
{
    (void)state;
    struct occ_device device;
    uint64_t random = 0x626c6f636b;
    uint32_t compared = 0;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++) {
        if (device.cc < FIRST_CC)
            continue;
        device.sm_count = 100;
        struct nvidia_device nvidia = to_nvidia(&device);
        for (int n = 0; n < 3000; n++) {
            struct nvidia_launch launch = {
                .threads = 32,
                .registers = 1 + next_random(&random, device.max_registers_per_thread),
                .dynamic_smem_bytes = skewed(&random, device.smem_per_block_optin_bytes - 1024),
                .carveout_percent = (int)next_random(&random, 102) - 1,
                .optin = true,
            };
            struct occ_launch mine = from_nvidia(&nvidia, &launch);
            uint32_t ours = our_best_block(&device, &mine);
            assert_int_equal(ours, nvidia_best_block(&nvidia, &launch));
            compared += ours > 0;
        }
    }
    assert_true(compared > 60000);
}

int main(int argc, char **argv)
{
    config_step = input_step(argc, argv, 7);
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_nvidia),
                                       cmocka_unit_test(carveout_steps_are_nvidias),
                                       cmocka_unit_test(best_blocks_are_nvidias)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
