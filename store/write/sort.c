/*
 * Orders launches by start, stable. They come as a few ordered sequences (CUPTI's buffers), and nearly
 * ordered within each: merges of halves that are in order already are skipped. No state.
 */
#include <string.h>

#include "store/internal.h"

#define BLOCK 16u

static void insertion_sort(struct occ_store_launch *rows, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct occ_store_launch row = rows[i];
        uint32_t at = i;
        for (; at > 0 && rows[at - 1].start_ns > row.start_ns; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

/* Merges rows[0, middle) and rows[middle, n), both in order. */
static void merge(struct occ_store_launch *rows, struct occ_store_launch *scratch, uint32_t middle,
                  uint32_t n)
{
    uint32_t left = 0, right = middle, out = 0;
    if (rows[middle - 1].start_ns <= rows[middle].start_ns)
        return;
    memcpy(scratch, rows, middle * sizeof *rows);
    while (left < middle && right < n)
        rows[out++] = rows[right].start_ns < scratch[left].start_ns ? rows[right++] : scratch[left++];
    memcpy(rows + out, scratch + left, (middle - left) * sizeof *rows);
}

void occ_launches_sort(struct occ_store_launch *rows, struct occ_store_launch *scratch, uint32_t n)
{
    for (uint32_t at = 0; at < n; at += BLOCK)
        insertion_sort(rows + at, n - at < BLOCK ? n - at : BLOCK);
    for (uint32_t width = BLOCK; width < n; width *= 2)
        for (uint32_t at = 0; at < n && n - at > width; at += 2 * width)
            merge(rows + at, scratch, width, n - at < 2 * width ? n - at : 2 * width);
}
