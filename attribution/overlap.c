/* See overlap.h. */
#include "overlap.h"

#include <math.h>

#define WIDE_SAMPLES 0.25 /* launches longer than this have segments ... */
#define LONG_SAMPLES 2.0  /* ... and these more of them */

/* Where a profile may bend; the knot in the middle has no function of its own. */
struct knots {
    uint32_t n, middle;
    double at[OCC_PROFILE_FUNCTIONS];
};
static const struct knots few = {7, 3, {0, 0.08, 0.25, 0.5, 0.75, 0.92, 1}},
                          many = {10, 4, {0, 0.05, 0.12, 0.25, 0.42, 0.6, 0.75, 0.87, 0.95, 1}};

static const struct knots *knots_of(uint32_t functions)
{
    return functions == many.n ? &many : &few;
}

/* A hat: 1 at its knot, 0 at the knots beside it and beyond. */
struct hat {
    double left, knot, right; /* left = knot or knot = right at the launch's ends */
};

static struct hat hat_of(uint32_t functions, uint32_t function)
{
    const struct knots *k = knots_of(functions);
    uint32_t i = function - 1 < k->middle ? function - 1 : function;
    return (struct hat){k->at[i > 0 ? i - 1 : 0], k->at[i], k->at[i + 1 < k->n ? i + 1 : i]};
}

static double hat_mean(const struct hat *hat)
{
    return (hat->right - hat->left) / 2;
}

static double hat_at(const struct hat *hat, double u)
{
    if (u <= hat->knot)
        return u > hat->left ? (u - hat->left) / (hat->knot - hat->left) : u == hat->knot;
    return u < hat->right ? (hat->right - u) / (hat->right - hat->knot) : 0;
}

/* Integral from 0 to u. */
static double hat_until(const struct hat *hat, double u)
{
    double up = hat->knot - hat->left, down = hat->right - hat->knot;
    if (u <= hat->left)
        return 0;
    if (u <= hat->knot)
        return (u - hat->left) * (u - hat->left) / (2 * up);
    if (u >= hat->right)
        return (up + down) / 2;
    return (up + down) / 2 - (hat->right - u) * (hat->right - u) / (2 * down);
}

uint32_t occ_overlap_functions(double samples)
{
    return samples < WIDE_SAMPLES ? 1 : samples < LONG_SAMPLES ? few.n : many.n;
}

double occ_overlap_function_at(uint32_t functions, uint32_t function, double u)
{
    if (function == 0)
        return 1;
    const struct hat hat = hat_of(functions, function);
    return hat_at(&hat, u) - hat_mean(&hat);
}

static void fill(struct occ_overlap_part *part, uint32_t functions, double start, double duration, double a,
                 double b, double per_sample)
{
    bool at_start = a >= start, at_end = b <= start + duration, whole = !at_start && !at_end;
    double low = at_start ? (a - start) / duration : 0, high = at_end ? (b - start) / duration : 1;
    double scale = duration * per_sample;
    part->time_share = (high - low) * scale;
    part->at_start = at_start ? low : -1;
    part->at_end = at_end ? high : -1;
    part->share[0] = part->time_share;
    for (uint32_t i = 1; i < functions; i++) {
        const struct hat hat = hat_of(functions, i);
        part->share[i] =
            whole ? 0
                  : (hat_until(&hat, high) - hat_until(&hat, low) - (high - low) * hat_mean(&hat)) * scale;
    }
}

/* Launches that start before `b` become active. */
static void admit(struct occ_overlap *o, double a, double b, int64_t origin_ns)
{
    for (; o->next < o->n && (double)(o->launches[o->next].start_ns - origin_ns) < b; o->next++) {
        if ((double)(o->launches[o->next].end_ns - origin_ns) <= a)
            continue;
        if (o->n_active < OCC_OVERLAP_PARTS) /* else it is left out */
            o->active[o->n_active++] = (uint32_t)o->next;
    }
}

size_t occ_overlap_next(struct occ_overlap *o, double a, double b, int64_t origin_ns,
                        struct occ_overlap_part *parts)
{
    size_t n = 0, kept = 0;
    double per_sample = 1 / (b - a);
    admit(o, a, b, origin_ns);
    for (size_t i = 0; i < o->n_active; i++) {
        uint32_t at = o->active[i];
        const struct occ_overlap_launch *l = &o->launches[at];
        double start = (double)(l->start_ns - origin_ns), end = (double)(l->end_ns - origin_ns);
        if (end <= a)
            continue;
        o->active[kept++] = at;
        if (start >= b)
            continue; /* samples overlap: it was admitted for an earlier one */
        parts[n].launch = at;
        fill(&parts[n++], o->functions(o->context, l->key), start, end - start, a, b, per_sample);
    }
    o->n_active = kept;
    return n;
}
