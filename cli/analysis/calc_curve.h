/* Occupancy of a full wave over one parameter of a launch: the model's points, drawn on a terminal and in
 * SVG. One thread (stdio). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "draw/canvas.h"
#include "occupancy/occupancy.h"
#include "occupancy/sweep.h"
#include "support/error.h"

/* Occupancy of a full wave over one parameter of a launch. */
struct calc_curve {
    enum occ_axis axis;
    uint32_t present;
    struct occ_point *points; /* ascending, at equal distances */
    size_t n;
};

/* The curves of the axes that the device has. */
struct calc_curves {
    struct calc_curve list[OCC_AXIS_COUNT];
    size_t n;
};
int calc_curves_new(const struct occ_device *device, const struct occ_launch *launch,
                    struct calc_curves *ret_curves, struct occ_error *err);
void calc_curves_release(struct calc_curves *curves);

/* Returns the last point with a value up to `value`, or the first point. */
const struct occ_point *calc_curve_at(const struct calc_curve *curve, uint32_t value);

/* Return the distance of ticks, a power of two for at most six ticks, and the first tick. */
uint32_t calc_tick_step(const struct calc_curve *curve);
uint32_t calc_first_tick(const struct calc_curve *curve);
/* Formats a value of an axis: "64", for shared memory "64 KiB". */
const char *calc_axis_value(enum occ_axis axis, uint32_t value, char *buffer, size_t size);
/* Returns the quantity of an axis, in the unit of calc_axis_value(). */
const char *calc_axis_title(enum occ_axis axis);

#define CALC_PLOT_ROWS 8
/* The curve on a terminal, with a mark at the present point. */
struct calc_plot {
    struct draw_canvas canvas;
    char ticks[2 * DRAW_CANVAS_COLUMNS]; /* line below the plot: values at their columns */
};
void calc_plot(const struct calc_curve *curve, int columns, bool ascii, struct calc_plot *ret_plot);

/* The size of a panel in SVG. */
enum { CALC_PANEL_X = 390, CALC_PANEL_Y = 235 };
/* Writes a panel into a picture. */
void calc_svg_curve(FILE *out, double x, double y, const struct calc_curve *curve);
/* Writes an <svg> element with one panel for a page, which needs draw_svg_hatch() once. */
void calc_svg_panel(FILE *out, const struct calc_curve *curve);
