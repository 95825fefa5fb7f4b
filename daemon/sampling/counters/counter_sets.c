/* See counter_sets.h. Pure. */
#include "counter_sets.h"

#include <string.h>

#define PERCENT(counter)  counter ".avg.pct_of_peak_sustained_elapsed"
#define UTILIZATION(what) (enum occ_counter)(OCC_COUNTER_UTILIZATION + (int)OCC_UTILIZATION_##what)
#define REASON(what)      "tpc__warp_launch_cycles_stalled_shader_cs_reason_" what "_allocation.sum"

static const struct occ_counter_set
    /* blocks, warps and the distribution of active cycles over SMs, with the two commonest stall reasons */
    main_set = {9,
                {"sm__ctas_active.sum", "tpc__warps_active_shader_cs_realtime.sum", "sm__cycles_active.sum",
                 "sm__cycles_active.min", "sm__cycles_active.max", "sm__cycles_elapsed.max",
                 REASON("register"), REASON("warp"), "sm__ctas_launched.sum"},
                {OCC_COUNTER_BLOCKS, OCC_COUNTER_WARPS, OCC_COUNTER_ACTIVE, OCC_COUNTER_ACTIVE_MIN,
                 OCC_COUNTER_ACTIVE_MAX, OCC_COUNTER_ELAPSED, OCC_COUNTER_STALL_REGISTERS,
                 OCC_COUNTER_STALL_WARPS, OCC_COUNTER_LAUNCHED}},
    reasons_set = {5,
                   {REASON("register"), REASON("shmem"), REASON("cta"), REASON("warp"), REASON("barrier")},
                   {OCC_COUNTER_STALL_REGISTERS, OCC_COUNTER_STALL_SMEM, OCC_COUNTER_STALL_BLOCKS,
                    OCC_COUNTER_STALL_WARPS, OCC_COUNTER_STALL_BARRIERS}},
    blackwell_warps_set = {9,
                           {"sm__warps_active.sum", "sm__cycles_active.sum", "sm__cycles_elapsed.max",
                            REASON("register"), REASON("shmem"), REASON("cta"), REASON("warp"),
                            REASON("barrier"), "gr__ctas_launched.sum"},
                           {OCC_COUNTER_WARPS, OCC_COUNTER_ACTIVE, OCC_COUNTER_ELAPSED,
                            OCC_COUNTER_STALL_REGISTERS, OCC_COUNTER_STALL_SMEM, OCC_COUNTER_STALL_BLOCKS,
                            OCC_COUNTER_STALL_WARPS, OCC_COUNTER_STALL_BARRIERS, OCC_COUNTER_LAUNCHED}},
    blackwell_blocks_set = {7,
                            {"sm__ctas_active.sum", "sm__cycles_elapsed.max", REASON("register"),
                             REASON("shmem"), REASON("cta"), REASON("warp"), REASON("barrier")},
                            {OCC_COUNTER_BLOCKS, OCC_COUNTER_ELAPSED, OCC_COUNTER_STALL_REGISTERS,
                             OCC_COUNTER_STALL_SMEM, OCC_COUNTER_STALL_BLOCKS, OCC_COUNTER_STALL_WARPS,
                             OCC_COUNTER_STALL_BARRIERS}},
    /* units of Nsight Compute's "Speed Of Light" throughput that fit in one pass */
    utilization_set = {7,
                       {"sm__cycles_active.sum", "sm__cycles_elapsed.max", PERCENT("smsp__issue_active"),
                        PERCENT("dram__throughput"), PERCENT("lts__t_sectors"),
                        PERCENT("l1tex__data_pipe_lsu_wavefronts"), PERCENT("sm__pipe_tensor_cycles_active")},
                       {OCC_COUNTER_ACTIVE, OCC_COUNTER_ELAPSED, UTILIZATION(ISSUE), UTILIZATION(DRAM),
                        UTILIZATION(L2), UTILIZATION(L1), UTILIZATION(TENSOR)}},
    /* tensor cores and dram__throughput need a second pass */
    turing_utilization_set = {6,
                              {"sm__cycles_active.sum", "sm__cycles_elapsed.max",
                               PERCENT("smsp__issue_active"), PERCENT("dramc__throughput"),
                               PERCENT("lts__t_sectors"), PERCENT("l1tex__data_pipe_lsu_wavefronts")},
                              {OCC_COUNTER_ACTIVE, OCC_COUNTER_ELAPSED, UTILIZATION(ISSUE), UTILIZATION(DRAM),
                               UTILIZATION(L2), UTILIZATION(L1)}},
    smallest_set = {3,
                    {"sm__warps_active.sum", "sm__cycles_active.sum", "sm__cycles_elapsed.max"},
                    {OCC_COUNTER_WARPS, OCC_COUNTER_ACTIVE, OCC_COUNTER_ELAPSED}};

/* The first row with a matching prefix applies. Source of trigger and buffer mode: cupti_pmsampling.h. */
static const struct occ_chip_sets chips[] = {
    {"TU", 3, {&main_set, &reasons_set, &turing_utilization_set}, true, true},
    {"GA100", 3, {&main_set, &reasons_set, &utilization_set}, true, false},
    {"GA10", 3, {&main_set, &reasons_set, &utilization_set}, false, false},
    {"AD", 3, {&main_set, &reasons_set, &utilization_set}, false, false},
    {"GH", 3, {&main_set, &reasons_set, &utilization_set}, false, false},
    {"GB", 3, {&blackwell_warps_set, &blackwell_blocks_set, &utilization_set}, false, false},
    {"", 1, {&smallest_set}, false, false},
};

const struct occ_chip_sets *occ_chip_sets_find(const char *chip)
{
    const struct occ_chip_sets *row = chips;
    while (strncmp(chip, row->prefix, strlen(row->prefix)) != 0)
        row++;
    return row;
}
