/* A series over time in SVG: its means as steps, a band around them, marks at moments. Points closer than a
 * column of the plot are added up. One thread (stdio, and the zone of localtime_r()). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svg.h"

/* A unit of time with values. */
struct draw_time_point {
    int64_t start_ns;
    double mean, low, high; /* NaN: not known */
};

/* A line at a moment. `label`: beside it; NULL: none. */
struct draw_time_mark {
    int64_t ns;
    const char *class; /* of its line: "mark" or "label" */
    const char *label;
};

struct draw_time_plot {
    const struct draw_svg_plot *svg;
    const struct draw_time_point *points; /* in the order of time; at least one */
    size_t n;
    int64_t unit_ns; /* length of each point */
    bool is_utc;     /* the axis; else local time */
    double top;      /* value at the upper end; 0: a round one above all */
    const struct draw_time_mark *marks;
    size_t n_marks;
    const char *(*value_text)(double value, const void *context, char *buffer, size_t size);
    const void *context; /* of value_text() */
};

/* The plot with its axes; "not known" without any value above 0. */
void draw_time_plot(const struct draw_time_plot *plot);

/* Columns of a plot in which points are added up. */
enum { DRAW_TIME_COLUMNS = 395 };
/* The position of a moment between the start of the first point and the end of the last: 0 ... 1. */
double draw_time_fraction(int64_t first_ns, int64_t end_ns, int64_t ns);
/* The zone of an axis between two moments. Where clocks change between them, two names: "CET/CEST". */
const char *draw_time_zone(int64_t first_ns, int64_t last_ns, bool is_utc, char *buffer, size_t size);
