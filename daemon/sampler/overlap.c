/* See overlap.h. */
#include "overlap.h"

#include <math.h>

#define EDGE 0.15 /* of a launch that HEAD and TAIL take */

struct occ_overlap_course occ_overlap_course_of(uint64_t grid_blocks, uint64_t wave_blocks)
{
    struct occ_overlap_course course = {1, 1, 1};
    if (grid_blocks == 0 || wave_blocks == 0 || grid_blocks % wave_blocks == 0 || grid_blocks < wave_blocks)
        return course;
    double waves = (double)grid_blocks / (double)wave_blocks, steps = ceil(waves);
    course.body_end = floor(waves) / steps;
    course.body = steps / waves;
    course.last = course.body * (waves - floor(waves));
    return course;
}

/* Integral from 0 to u. */
static double integral(const struct occ_overlap_course *course, enum occ_course which, double u)
{
    const double off = EDGE / (1 - EDGE);
    if (which == OCC_COURSE_MEAN)
        return u <= course->body_end
                   ? u * course->body
                   : course->body_end * course->body + (u - course->body_end) * course->last;
    if (which == OCC_COURSE_TAIL)
        return u <= 1 - EDGE ? -off * u : -off * (1 - EDGE) + (u - (1 - EDGE));
    return u <= EDGE ? u : EDGE - off * (u - EDGE);
}

static double value(const struct occ_overlap_course *course, enum occ_course which, double u)
{
    const double off = EDGE / (1 - EDGE);
    if (which == OCC_COURSE_MEAN)
        return u <= course->body_end ? course->body : course->last;
    if (which == OCC_COURSE_TAIL)
        return u <= 1 - EDGE ? -off : 1;
    return u <= EDGE ? 1 : -off;
}

static void fill(struct occ_overlap_part *part, const struct occ_overlap_course *course, double start,
                 double duration, double a, double b)
{
    double low = fmax((a - start) / duration, 0), high = fmin((b - start) / duration, 1);
    bool at_start = a >= start, at_end = b <= start + duration;
    part->time_share = (high - low) * duration / (b - a);
    for (int i = 0; i < OCC_COURSE_COUNT; i++) {
        enum occ_course which = (enum occ_course)i;
        part->share[i] = (integral(course, which, high) - integral(course, which, low)) * duration / (b - a);
        part->at_start[i] = at_start ? value(course, which, low) : 0;
        part->at_end[i] = at_end ? value(course, which, high) : 0;
    }
    if (low <= 0 && high >= 1)
        part->share[OCC_COURSE_TAIL] = part->share[OCC_COURSE_HEAD] = 0; /* but for rounding */
}

/* Launches that start before `b` become active. */
static void admit(struct occ_overlap *o, double a, double b, int64_t origin_ns)
{
    for (; o->next < o->n && (double)(o->launches[o->next].start_ns - origin_ns) < b; o->next++) {
        if ((double)(o->launches[o->next].end_ns - origin_ns) <= a)
            continue;
        if (o->n_active < OCC_OVERLAP_PARTS)
            o->active[o->n_active++] = (uint32_t)o->next;
        else
            o->crowded++;
    }
}

size_t occ_overlap_next(struct occ_overlap *o, double a, double b, int64_t origin_ns,
                        struct occ_overlap_part *parts)
{
    size_t n = 0, kept = 0;
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
        fill(&parts[n++], o->course(o->context, l->key), start, end - start, a, b);
    }
    o->n_active = kept;
    return n;
}
