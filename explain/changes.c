/* Changes by the owner of a kernel, and the words of a verdict; see verdict.h. No state; any thread. */
#include <math.h>
#include <stdio.h>

#include "support/text.h"
#include "verdict.h"

#define CHANGE(name) OCC_CHANGE_##name

/* Rows: changes of a parameter. Columns: the change that the owner can make instead; NONE: no change. A
 * caller of a library chooses shapes, alignment and algorithm. A framework's kernels get other grids from one
 * shape, so that no shape suits their waves; fused with its neighbours, such a kernel has more work for the
 * same grid, but needs no fewer registers and no less shared memory. Triton computes registers and shared
 * memory from the tile, num_warps and num_stages. */
static const enum occ_owner_change changes[OCC_ADVICE_COUNT][OCC_OWNERS] = {
#define ROW(kind, user, triton, framework, library)                                                          \
    [OCC_ADVICE_##                                                                                           \
        kind] = {[OCC_OWNER_UNKNOWN] = CHANGE(user),    [OCC_OWNER_USER] = CHANGE(user),                     \
                 [OCC_OWNER_TRITON] = CHANGE(triton),   [OCC_OWNER_FRAMEWORK] = CHANGE(framework),           \
                 [OCC_OWNER_LIBRARY] = CHANGE(library), [OCC_OWNER_COMMUNICATION] = CHANGE(OVERLAP)}
    ROW(REGISTERS, LAUNCH_BOUNDS, NUM_WARPS, NONE, ALGORITHM),
    ROW(SMEM, SMEM, NUM_STAGES, NONE, ALGORITHM),
    ROW(CARVEOUT, CARVEOUT, NONE, NONE, NONE),
    ROW(BARRIERS, BARRIERS, NUM_WARPS, NONE, ALGORITHM),
    ROW(REGISTERS_SMEM, SMEM, BLOCK, NONE, ALGORITHM),
    ROW(CLUSTER, CLUSTER, NONE, NONE, ALGORITHM),
    ROW(BLOCK_SIZE, BLOCK_SIZE, NUM_WARPS, NONE, ALGORITHM),
    ROW(FILL_WAVE, TILE, BLOCK, FUSE, BATCH),
    ROW(EVEN_GRID, GRID, BLOCK, FUSE, SHAPES),
    ROW(GRID_DOWN, GRID, BLOCK, FUSE, SHAPES),
    ROW(GRID_UP, GRID, BLOCK, FUSE, SHAPES),
    ROW(GRID_STRIDE, GRID_STRIDE, BLOCK, NONE, NONE),
    ROW(FILL_SMS, TILE, BLOCK, FUSE, BATCH),
    ROW(SPLIT_BLOCK, BLOCK_SIZE, NUM_WARPS, NONE, ALGORITHM),
    ROW(FREE_REGISTERS, USE_REGISTERS, NONE, NONE, NONE),
    ROW(FREE_SMEM, USE_SMEM, NONE, NONE, NONE),
    ROW(HALF_BLOCK, BLOCK_SIZE, NUM_WARPS, NONE, ALGORITHM),
    ROW(LARGER_BLOCK, BLOCK_SIZE, NUM_WARPS, NONE, ALGORITHM),
    ROW(WHOLE_WARPS, BLOCK_SIZE, NONE, NONE, NONE),
#undef ROW
};

enum occ_owner_change occ_change_for(enum occ_owner owner, enum occ_advice_kind kind)
{
    return owner < OCC_OWNERS && kind < OCC_ADVICE_COUNT ? changes[kind][owner] : OCC_CHANGE_NONE;
}

bool occ_advice_is_about(enum occ_advice_kind kind, unsigned cause)
{
#define PART(name)  (1u << OCC_CAUSE_##name)
#define GRID        (PART(SMALL_GRID) | 1u << OCC_PART_IDLE)
#define LAST_WAVE   (PART(TAIL) | 1u << OCC_PART_IDLE)
#define BLOCK_TIMES (1u << OCC_PART_BLOCK_START | 1u << OCC_PART_UNEQUAL_BLOCKS)
    static const uint32_t causes[OCC_ADVICE_COUNT] = {
        [OCC_ADVICE_REGISTERS] = PART(REGISTERS),
        [OCC_ADVICE_SMEM] = PART(SMEM) | PART(CARVEOUT),
        [OCC_ADVICE_CARVEOUT] = PART(SMEM) | PART(CARVEOUT),
        [OCC_ADVICE_BARRIERS] = PART(BARRIERS),
        [OCC_ADVICE_REGISTERS_SMEM] = PART(REGISTERS) | PART(SMEM) | PART(CARVEOUT),
        [OCC_ADVICE_CLUSTER] = PART(CLUSTER),
        [OCC_ADVICE_BLOCK_SIZE] = PART(REGISTERS) | PART(SMEM) | PART(CARVEOUT) | PART(BARRIERS) |
                                  PART(BLOCKS) | PART(BLOCK_SIZE) | PART(PARTIAL_WARP) |
                                  1u << OCC_PART_IMBALANCE_WITHIN_BLOCK,
        [OCC_ADVICE_FILL_WAVE] = GRID,
        [OCC_ADVICE_EVEN_GRID] = GRID | LAST_WAVE,
        [OCC_ADVICE_GRID_DOWN] = LAST_WAVE,
        [OCC_ADVICE_GRID_UP] = LAST_WAVE,
        [OCC_ADVICE_GRID_STRIDE] = LAST_WAVE | BLOCK_TIMES | 1u << OCC_PART_IMBALANCE_ACROSS_BLOCKS,
        [OCC_ADVICE_FILL_SMS] = GRID,
        [OCC_ADVICE_SPLIT_BLOCK] = GRID,
        [OCC_ADVICE_HALF_BLOCK] = 1u << OCC_PART_IMBALANCE_WITHIN_BLOCK,
        [OCC_ADVICE_LARGER_BLOCK] = PART(BLOCKS) | 1u << OCC_PART_BLOCK_START,
        [OCC_ADVICE_WHOLE_WARPS] = PART(PARTIAL_WARP),
    };
#undef PART
#undef GRID
#undef LAST_WAVE
#undef BLOCK_TIMES
    return kind < OCC_ADVICE_COUNT && cause < OCC_PART_COUNT && (causes[kind] >> cause & 1u) != 0;
}

enum occ_effort occ_change_effort(enum occ_owner_change change)
{
#define EFFORT(name, word, text, effort) OCC_EFFORT_##effort,
    static const enum occ_effort efforts[] = {OCC_CHANGES(EFFORT)};
#undef EFFORT
    return efforts[change];
}

OCC_WORDS(occ_finding_word, enum occ_finding_kind, OCC_FINDINGS)
OCC_WORDS(occ_change_word, enum occ_owner_change, OCC_CHANGES)
OCC_WORDS(occ_confidence_word, enum occ_confidence, OCC_CONFIDENCES)
OCC_WORDS(occ_aside_text, enum occ_aside, OCC_ASIDES)

#define TEXT(name, word, text, ...) text,

const char *occ_finding_text(enum occ_finding_kind kind)
{
    static const char *const texts[] = {OCC_FINDINGS(TEXT)};
    return texts[kind];
}

const char *occ_change_text(enum occ_owner_change change)
{
    static const char *const texts[] = {OCC_CHANGES(TEXT)};
    return texts[change];
}

const char *occ_low_reason_text(uint32_t low_reasons)
{
    static const struct {
        uint32_t bit;
        const char *text;
    } texts[] = {{OCC_LOW_COMMUNICATION, "low by design: communication"},
                 {OCC_LOW_PERSISTENT, "low by design: persistent kernel"},
                 {OCC_LOW_TENSOR_CORES, "low by design: a few warps keep the tensor cores busy"},
                 {OCC_LOW_MAYBE_PERSISTENT, "maybe a persistent kernel: the grid is a multiple of the SMs"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (low_reasons & texts[i].bit)
            return texts[i].text;
    return "";
}

const char *occ_predicted_text(double ratio, double low, double high, char *text, size_t size)
{
    if (isnan(low))
        (void)snprintf(text, size, "predicted time x%.2f, the time of an empty launch", ratio);
    else
        (void)snprintf(text, size, "predicted time x%.2f (80%% interval x%.2f to x%.2f)", ratio, low, high);
    return text;
}
