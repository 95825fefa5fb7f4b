/* How a mean over all launches changes, by kernels and by their mix: kernels weigh by launches, of the
 * occupancy by time. One thread. */
#include <math.h>
#include <stdlib.h>

#include "compare/mix.h"
#include "trend.h"

static double value_of(const struct occ_top_row *row, enum trend_series series)
{
    return series == TREND_MEAN ? (double)row->total_ns / (double)row->launches : row->used;
}

/* *ret_parts is to be freed. */
static int load(struct occ_store *store, const struct occ_filter *filter, enum occ_top_by by,
                enum trend_series series, struct diff_mix_part **ret_parts, size_t *ret_n,
                struct occ_error *err)
{
    struct occ_top top = {0};
    int status = occ_store_top(store, filter, by, &top, err);
    struct diff_mix_part *parts = status == 0 ? calloc(top.n + 1, sizeof *parts) : NULL;
    if (status == 0 && !parts)
        status = occ_no_memory(err);
    for (size_t i = 0; i < top.n && status == 0; i++) {
        const struct occ_top_row *row = &top.rows[i];
        parts[i] = (struct diff_mix_part){
            .key = (uint64_t)row->kernel.id << 32 | (uint32_t)row->kernel.device,
            .weight = series == TREND_MEAN ? (double)row->launches : (double)row->total_ns,
            .value = value_of(row, series)};
    }
    *ret_parts = parts;
    *ret_n = top.n;
    occ_top_free(&top);
    return status;
}

int trend_split(struct occ_store *store, const struct occ_filter filters[2], enum occ_top_by by,
                enum trend_series series, struct trend_split *ret_split, struct occ_error *err)
{
    struct diff_mix_part *parts[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    struct diff_mix mix;
    int status = load(store, &filters[0], by, series, &parts[0], &n[0], err);
    if (status == 0)
        status = load(store, &filters[1], by, series, &parts[1], &n[1], err);
    if (status == 0)
        status =
            diff_mix_split((const struct diff_mix_side[]){{parts[0], n[0]}, {parts[1], n[1]}}, &mix, err);
    if (status == 0)
        *ret_split = (struct trend_split){.kernels = mix.parts, .mix = mix.mix};
    free(parts[0]);
    free(parts[1]);
    return status;
}
