/*
 * The reorder window. What arrives is nearly sorted: blocks of 16 rows by insertion, then merges bottom up that
 * are skipped where the two halves are in order already, so sorted input costs one comparison a row.
 *
 * No global state; one thread.
 */
#include "reorder.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 16

static void insertion_sort(struct occ_store_launch *rows, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (rows[i - 1].start_ns <= rows[i].start_ns)
            continue;
        struct occ_store_launch row = rows[i];
        size_t at = i;
        for (; at > 0 && rows[at - 1].start_ns > row.start_ns; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

/* Merges rows[0...middle) and rows[middle...n), both in order. */
static void merge(struct occ_store_launch *rows, struct occ_store_launch *scratch, size_t middle, size_t n)
{
    if (rows[middle - 1].start_ns <= rows[middle].start_ns)
        return;
    memcpy(scratch, rows, middle * sizeof *rows);
    size_t left = 0, right = middle, out = 0;
    while (left < middle && right < n)
        rows[out++] = rows[right].start_ns < scratch[left].start_ns ? rows[right++] : scratch[left++];
    memcpy(rows + out, scratch + left, (middle - left) * sizeof *rows);
}

void occ_reorder_sort(struct occ_store_launch *rows, struct occ_store_launch *scratch, size_t n)
{
    for (size_t at = 0; at < n; at += BLOCK)
        insertion_sort(rows + at, n - at < BLOCK ? n - at : BLOCK);
    for (size_t width = BLOCK; width < n; width *= 2)
        for (size_t at = 0; n - at > width; at += 2 * width) {
            size_t both = n - at < 2 * width ? n - at : 2 * width;
            merge(rows + at, scratch, width, both);
            if (n - at <= 2 * width)
                break;
        }
}

struct occ_store_launch *occ_reorder_reserve(struct occ_reorder *reorder, size_t n)
{
    size_t needed = reorder->n + n;
    if (needed > reorder->allocated) {
        size_t rows = reorder->allocated ? reorder->allocated : 64;
        while (rows < needed)
            rows *= 2;
        struct occ_store_launch *grown = realloc(reorder->rows, rows * sizeof *grown);
        if (!grown)
            return NULL;
        reorder->rows = grown;
        reorder->allocated = rows;
    }
    return reorder->rows + reorder->n;
}

void occ_reorder_added(struct occ_reorder *reorder, size_t n)
{
    const struct occ_store_launch *rows = reorder->rows + reorder->n;
    int64_t newest = reorder->n ? reorder->newest_ns : INT64_MIN;
    bool sorted = reorder->n ? reorder->sorted : true;
    for (size_t i = 0; i < n; i++) {
        sorted &= rows[i].start_ns >= newest;
        newest = rows[i].start_ns > newest ? rows[i].start_ns : newest;
    }
    reorder->newest_ns = newest;
    reorder->sorted = sorted;
    reorder->n += n;
}

static int make_sorted(struct occ_reorder *reorder, struct occ_error *err)
{
    if (reorder->sorted || reorder->n < 2)
        return 0;
    struct occ_store_launch *scratch = malloc(reorder->n * sizeof *scratch);
    if (!scratch)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    occ_reorder_sort(reorder->rows, scratch, reorder->n);
    free(scratch);
    reorder->sorted = true;
    return 0;
}

/* First row with start >= limit. */
static size_t lower_bound(const struct occ_store_launch *rows, size_t n, int64_t limit_ns)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].start_ns < limit_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int occ_reorder_emit(struct occ_reorder *reorder, const struct occ_reorder_limits *limits,
                     occ_reorder_sink *sink, void *context, struct occ_error *err)
{
    if (reorder->n == 0 || (limits && reorder->n < limits->rows))
        return 0;
    int status = make_sorted(reorder, err);
    if (status != 0)
        return status;
    size_t leave = reorder->n;
    if (limits) {
        /* starts are positive (checked in the ring), so this does not overflow */
        leave = lower_bound(reorder->rows, reorder->n, reorder->newest_ns - limits->window_ns);
        leave = leave > reorder->n / 2 ? leave : (reorder->n + 1) / 2;
    }
    status = sink(context, reorder->rows, leave, err);
    if (status != 0)
        return status;
    reorder->n -= leave;
    memmove(reorder->rows, reorder->rows + leave, reorder->n * sizeof *reorder->rows);
    return 0;
}

void occ_reorder_release(struct occ_reorder *reorder)
{
    free(reorder->rows);
    *reorder = (struct occ_reorder){0};
}
