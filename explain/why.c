/* Causes in words that fit in a table; see verdict.h. No state; any thread. */
#include <inttypes.h>
#include <stdio.h>

#include "verdict.h"

/* Words of causes without numbers. */
static const char *const words[OCC_PART_COUNT] = {
    [OCC_CAUSE_REGISTERS] = "registers",
    [OCC_CAUSE_SMEM] = "shared memory",
    [OCC_CAUSE_BLOCKS] = "small blocks",
    [OCC_CAUSE_BLOCK_SIZE] = "block size",
    [OCC_CAUSE_SMALL_GRID] = "too few blocks",
    [OCC_CAUSE_CARVEOUT] = "small carve-out",
    [OCC_CAUSE_BARRIERS] = "barriers of a block",
    [OCC_CAUSE_CLUSTER] = "clusters do not fit",
    [OCC_CAUSE_PARTIAL_WARP] = "partly filled warps",
    [OCC_CAUSE_TAIL] = "partial last wave",
    [OCC_PART_IDLE] = "idle SMs",
    [OCC_PART_IMBALANCE_ACROSS_BLOCKS] = "missing blocks",
    [OCC_PART_BLOCK_START] = "starting blocks",
    [OCC_PART_UNEQUAL_BLOCKS] = "unequal blocks",
    [OCC_PART_IMBALANCE_WITHIN_BLOCK] = "unequal warps",
    [OCC_PART_NOT_SPLIT] = "start or imbalance",
    [OCC_PART_UNEXPLAINED] = "not explained",
};

static void few_blocks(const struct occ_why *why, char *text, size_t size)
{
    const char *plural = why->grid_blocks == 1 ? "" : "s";
    if (why->grid_blocks < why->sm_count)
        (void)snprintf(text, size, "%" PRIu64 " block%s, %u SMs", why->grid_blocks, plural, why->sm_count);
    else
        (void)snprintf(text, size, "%" PRIu64 " of %" PRIu64 " blocks", why->grid_blocks, why->wave_blocks);
}

static void cause_text(const struct occ_why *why, char *text, size_t size)
{
    if (why->cause == OCC_CAUSE_REGISTERS && why->registers_per_thread > 0)
        (void)snprintf(text, size, "%u registers", why->registers_per_thread);
    else if (why->cause == OCC_CAUSE_SMEM && why->blocks_per_sm > 0)
        (void)snprintf(text, size, "shared memory, %u/SM", why->blocks_per_sm);
    else if ((why->cause == OCC_CAUSE_BLOCKS || why->cause == OCC_CAUSE_BLOCK_SIZE) && why->block_threads > 0)
        (void)snprintf(text, size, "blocks of %u threads", why->block_threads);
    else
        (void)snprintf(text, size, "%s", words[why->cause]);
}

const char *occ_why_text(const struct occ_why *why, char *text, size_t size)
{
    bool is_of_launch = why->cause <= OCC_CAUSE_SMALL_GRID; /* resources, or too few blocks */
    bool is_small = why->grid_blocks > 0 && why->grid_blocks < why->wave_blocks;
    text[0] = '\0';
    if (why->is_communication)
        (void)snprintf(text, size, "communication");
    else if (is_of_launch && is_small)
        few_blocks(why, text, size);
    else if (why->cause < OCC_PART_COUNT)
        cause_text(why, text, size);
    return text;
}
