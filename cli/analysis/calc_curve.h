/* The occupancy of a full wave over one parameter of a launch: the model's points, and how they look on a
 * terminal and in SVG. One thread (stdio). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "draw/canvas.h"
#include "occupancy/occupancy.h"
#include "occupancy/sweep.h"
#include "support/error.h"

/* The occupancy of a full wave over one parameter of a launch. */
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

/* The last point that is not after `value`. */
const struct occ_point *calc_curve_at(const struct calc_curve *curve, uint32_t value);

/* Where an axis has ticks: multiples of a power of two, at most six. */
uint32_t calc_tick_step(const struct calc_curve *curve);
uint32_t calc_first_tick(const struct calc_curve *curve);
/* A value of an axis for people: "64", of shared memory "64 KiB". */
const char *calc_axis_value(enum occ_axis axis, uint32_t value, char *buffer, size_t size);
/* What an axis counts, in the unit of these texts. */
const char *calc_axis_title(enum occ_axis axis);

#define CALC_PLOT_ROWS 8
/* What a terminal shows, the present point marked. */
struct calc_plot {
    struct draw_canvas canvas;
    char ticks[2 * DRAW_CANVAS_COLUMNS]; /* the line below: values where they are */
};
void calc_plot(const struct calc_curve *curve, int columns, bool ascii, struct calc_plot *ret_plot);

/* The same in SVG, in panels of this size. */
enum { CALC_PANEL_X = 390, CALC_PANEL_Y = 235 };
/* A panel of a picture. */
void calc_svg_curve(FILE *out, double x, double y, const struct calc_curve *curve);
/* A picture in a page; see draw_svg_hatch(). */
void calc_svg_panel(FILE *out, const struct calc_curve *curve);
