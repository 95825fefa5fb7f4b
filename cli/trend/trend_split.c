/* Splits the change of a mean over all launches between kernels and their mix. Weights: launches for the mean
 * time, total time for occupancy. One thread. */
#include <math.h>
#include <stdlib.h>

#include "compare/mix.h"
#include "trend.h"

static double value_of(const struct occ_top_row *row, enum trend_series series)
{
    return series == TREND_MEAN ? (double)row->total_ns / (double)row->launches : row->used;
}

/* The parts of a side: kernels or configurations. The caller frees `parts`. */
struct side {
    struct diff_mix_part *parts;
    size_t n;
};

static int load(struct occ_store *store, const struct occ_filter *filter, enum occ_top_by by,
                enum trend_series series, struct side *ret_side, struct occ_error *err)
{
    struct occ_top top = {0};
    int status = occ_store_top(store, filter, by, &top, err);
    struct side side = {.parts = status == 0 ? calloc(top.n + 1, sizeof *side.parts) : NULL, .n = top.n};
    if (status == 0 && !side.parts)
        status = occ_no_memory(err);
    for (size_t i = 0; i < top.n && status == 0; i++) {
        const struct occ_top_row *row = &top.rows[i];
        side.parts[i] = (struct diff_mix_part){
            .key = (uint64_t)row->kernel.id << 32 | (uint32_t)row->kernel.device,
            .weight = series == TREND_MEAN ? (double)row->launches : (double)row->total_ns,
            .value = value_of(row, series)};
    }
    occ_top_free(&top);
    *ret_side = side;
    return status;
}

int trend_split(struct occ_store *store, const struct occ_filter filters[2], enum occ_top_by by,
                enum trend_series series, struct trend_split *ret_split, struct occ_error *err)
{
    struct side sides[2] = {{.parts = NULL}, {.parts = NULL}};
    struct diff_mix mix;
    int status = load(store, &filters[0], by, series, &sides[0], err);
    if (status == 0)
        status = load(store, &filters[1], by, series, &sides[1], err);
    if (status == 0)
        status = diff_mix_split(
            (const struct diff_mix_side[]){{sides[0].parts, sides[0].n}, {sides[1].parts, sides[1].n}}, &mix,
            err);
    if (status == 0)
        *ret_split = (struct trend_split){.kernels = mix.parts, .mix = mix.mix};
    free(sides[0].parts);
    free(sides[1].parts);
    return status;
}
