/* A mean over all launches is the sum of w x, w a kernel's share of the launches (of the occupancy: of the
 * time) and x its own mean. From a to b it changes by the sum of (wb - wa)(xa + xb)/2, another mix, and of
 * (wa + wb)/2 (xb - xa), the kernels themselves; a kernel of one side only is mix. One thread. */
#include <math.h>

#include "support/map.h"
#include "trend.h"

struct side {
    struct occ_top top;
    struct occ_map index; /* of rows */
    double weight, mean;
};

static void side_release(struct side *side)
{
    occ_top_free(&side->top);
    occ_map_free(&side->index);
}

static uint64_t key_of(const struct occ_top_row *row)
{
    return (uint64_t)row->kernel.id << 32 | (uint32_t)row->kernel.device;
}

static double value_of(const struct occ_top_row *row, enum trend_series series)
{
    return series == TREND_MEAN ? (double)row->total_ns / (double)row->launches : row->used;
}

/* Of a row whose value is known. */
static double weight_of(const struct occ_top_row *row, enum trend_series series)
{
    double weight = series == TREND_MEAN ? (double)row->launches : (double)row->total_ns;
    return isnan(value_of(row, series)) ? 0 : weight;
}

static int load(struct occ_store *store, const struct occ_filter *filter, enum occ_top_by by,
                enum trend_series series, struct side *side, struct occ_error *err)
{
    double sum = 0;
    int status = occ_store_top(store, filter, by, &side->top, err);
    for (size_t i = 0; i < side->top.n && status == 0; i++) {
        const struct occ_top_row *row = &side->top.rows[i];
        double weight = weight_of(row, series);
        if (occ_map_put(&side->index, key_of(row), (uint32_t)i) == OCC_MAP_NONE)
            status = occ_no_memory(err);
        side->weight += weight;
        sum += weight > 0 ? weight * value_of(row, series) : 0;
    }
    side->mean = sum / side->weight;
    return status;
}

/* NULL: a kernel of the other side only. */
static void add(const struct side sides[2], const struct occ_top_row *rows[2], enum trend_series series,
                struct trend_split *split)
{
    double w[2], x[2];
    for (int i = 0; i < 2; i++) {
        w[i] = rows[i] ? weight_of(rows[i], series) / sides[i].weight : 0;
        x[i] = rows[i] ? value_of(rows[i], series) : NAN;
    }
    x[0] = isnan(x[0]) ? x[1] : x[0];
    x[1] = isnan(x[1]) ? x[0] : x[1];
    if (isnan(x[0]))
        return;
    split->mix += (w[1] - w[0]) * (x[0] + x[1]) / 2 / sides[0].mean;
    split->kernels += (w[0] + w[1]) / 2 * (x[1] - x[0]) / sides[0].mean;
}

static const struct occ_top_row *find(const struct side *side, const struct occ_top_row *row)
{
    uint32_t i = occ_map_get(&side->index, key_of(row));
    return i == OCC_MAP_NONE ? NULL : &side->top.rows[i];
}

int trend_split(struct occ_store *store, const struct occ_filter filters[2], enum occ_top_by by,
                enum trend_series series, struct trend_split *ret_split, struct occ_error *err)
{
    struct side sides[2] = {{.weight = 0}, {.weight = 0}};
    struct trend_split split = {0, 0};
    int status = load(store, &filters[0], by, series, &sides[0], err);
    if (status == 0)
        status = load(store, &filters[1], by, series, &sides[1], err);
    for (size_t i = 0; i < sides[0].top.n && status == 0; i++) {
        const struct occ_top_row *row = &sides[0].top.rows[i];
        add(sides, (const struct occ_top_row *[]){row, find(&sides[1], row)}, series, &split);
    }
    for (size_t i = 0; i < sides[1].top.n && status == 0; i++) {
        const struct occ_top_row *row = &sides[1].top.rows[i];
        if (!find(&sides[0], row))
            add(sides, (const struct occ_top_row *[]){NULL, row}, series, &split);
    }
    side_release(&sides[0]);
    side_release(&sides[1]);
    if (status == 0)
        *ret_split = split;
    return status;
}
