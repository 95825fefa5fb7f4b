/* See mix.h. */
#include "mix.h"

#include <math.h>
#include <stddef.h>

#include "support/map.h"

struct indexed {
    const struct diff_mix_side *side;
    struct occ_map index; /* key -> index of the part */
    double weight, mean;  /* sum of weights, and mean, of the parts with a known value */
};

static double known_weight(const struct diff_mix_part *part)
{
    return isnan(part->value) ? 0 : part->weight;
}

static int read_side(const struct diff_mix_side *side, struct indexed *ret_indexed, struct occ_error *err)
{
    double sum = 0;
    int status = 0;
    ret_indexed->side = side;
    for (size_t i = 0; i < side->n && status == 0; i++) {
        const struct diff_mix_part *part = &side->parts[i];
        double weight = known_weight(part);
        if (occ_map_put(&ret_indexed->index, part->key, (uint32_t)i) == OCC_MAP_NONE)
            status = occ_no_memory(err);
        ret_indexed->weight += weight;
        sum += weight > 0 ? weight * part->value : 0;
    }
    ret_indexed->mean = sum / ret_indexed->weight;
    return status;
}

/* Adds the two terms of one part. parts[side] NULL: the part is on the other side only. */
static void add(const struct indexed sides[2], const struct diff_mix_part *parts[2], struct diff_mix *mix)
{
    double w[2], x[2];
    for (int i = 0; i < 2; i++) {
        w[i] = parts[i] ? known_weight(parts[i]) / sides[i].weight : 0;
        x[i] = parts[i] ? parts[i]->value : (double)NAN;
    }
    x[0] = isnan(x[0]) ? x[1] : x[0];
    x[1] = isnan(x[1]) ? x[0] : x[1];
    if (isnan(x[0]))
        return;
    mix->mix += (w[1] - w[0]) * (x[0] + x[1]) / 2 / sides[0].mean;
    mix->parts += (w[0] + w[1]) / 2 * (x[1] - x[0]) / sides[0].mean;
}

static const struct diff_mix_part *find(const struct indexed *indexed, const struct diff_mix_part *part)
{
    uint32_t i = occ_map_get(&indexed->index, part->key);
    return i == OCC_MAP_NONE ? NULL : &indexed->side->parts[i];
}

int diff_mix_split(const struct diff_mix_side sides[2], struct diff_mix *ret_mix, struct occ_error *err)
{
    struct indexed indexed[2] = {{.weight = 0}, {.weight = 0}};
    struct diff_mix mix = {0, 0};
    int status = read_side(&sides[0], &indexed[0], err);
    if (status == 0)
        status = read_side(&sides[1], &indexed[1], err);
    for (size_t i = 0; i < sides[0].n && status == 0; i++) {
        const struct diff_mix_part *part = &sides[0].parts[i];
        add(indexed, (const struct diff_mix_part *[]){part, find(&indexed[1], part)}, &mix);
    }
    for (size_t i = 0; i < sides[1].n && status == 0; i++) {
        const struct diff_mix_part *part = &sides[1].parts[i];
        if (!find(&indexed[0], part))
            add(indexed, (const struct diff_mix_part *[]){NULL, part}, &mix);
    }
    occ_map_free(&indexed[0].index);
    occ_map_free(&indexed[1].index);
    if (status == 0)
        *ret_mix = mix;
    return status;
}
