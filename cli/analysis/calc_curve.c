/*
 * Computes the curves: the model over a range of one parameter, and draws them on a terminal. A vertical line
 * joins the heights of neighbouring columns to show steps.
 *
 * One thread.
 */
#include "calc_curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void calc_curves_release(struct calc_curves *curves)
{
    for (size_t i = 0; i < curves->n; i++)
        free(curves->list[i].points);
    curves->n = 0;
}

static int add_curve(const struct occ_device *device, const struct occ_launch *launch, enum occ_axis axis,
                     const struct occ_range *range, struct calc_curves *curves, struct occ_error *err)
{
    size_t n = (range->last - range->first) / range->step + 1;
    struct occ_point *points = calloc(n, sizeof *points);
    if (!points)
        return occ_no_memory(err);
    size_t there = occ_sweep(device, launch, axis, range, points, n);
    curves->list[curves->n++] = (struct calc_curve){.axis = axis,
                                                    .present = occ_sweep_present(launch, axis),
                                                    .points = points,
                                                    .n = there < n ? there : n};
    return 0;
}

int calc_curves_new(const struct occ_device *device, const struct occ_launch *launch,
                    struct calc_curves *ret_curves, struct occ_error *err)
{
    struct calc_curves curves = {.n = 0};
    for (int axis = 0; axis < OCC_AXIS_COUNT; axis++) {
        struct occ_range range;
        if (!occ_sweep_range(device, (enum occ_axis)axis, &range) || range.first == range.last)
            continue;
        if (add_curve(device, launch, (enum occ_axis)axis, &range, &curves, err) != 0) {
            calc_curves_release(&curves);
            return OCC_E_NO_MEMORY;
        }
    }
    *ret_curves = curves;
    return 0;
}

const struct occ_point *calc_curve_at(const struct calc_curve *curve, uint32_t value)
{
    size_t i = 0;
    while (i + 1 < curve->n && curve->points[i + 1].value <= value)
        i++;
    return &curve->points[i];
}

/* ---- axes ---- */

uint32_t calc_tick_step(const struct calc_curve *curve)
{
    uint32_t range = curve->points[curve->n - 1].value - curve->points[0].value, step = 1;
    while (range / step > 5)
        step *= 2;
    return step;
}

uint32_t calc_first_tick(const struct calc_curve *curve)
{
    uint32_t first = curve->points[0].value, step = calc_tick_step(curve);
    return (first + step - 1) / step * step;
}

const char *calc_axis_value(enum occ_axis axis, uint32_t value, char *buffer, size_t size)
{
    bool is_bytes = axis == OCC_AXIS_SMEM;
    (void)snprintf(buffer, size, is_bytes ? "%.4g KiB" : "%g", is_bytes ? value / 1024.0 : value);
    return buffer;
}

const char *calc_axis_title(enum occ_axis axis)
{
    return axis == OCC_AXIS_SMEM ? "shared memory per block" : occ_axis_text(axis);
}

/* ---- the plot ---- */

/* Returns the point that a column shows. */
static const struct occ_point *point_of_column(const struct calc_curve *curve, int column, int width)
{
    return &curve->points[(size_t)column * (curve->n - 1) / (size_t)(width - 1)];
}

/* Draws the curve; impossible launches leave a gap. */
static void draw(const struct calc_curve *curve, struct draw_canvas *canvas)
{
    int last = -1;
    for (int x = 0; x < canvas->width; x++) {
        const struct occ_point *point = point_of_column(curve, x, canvas->width);
        int y = point->status == OCC_OK ? draw_canvas_y(canvas, point->full_wave) : -1;
        if (y >= 0)
            draw_canvas_line(canvas, x, last < 0 || last == y ? y : last < y ? last + 1 : last - 1, y);
        last = y;
    }
}

static void mark_present(const struct calc_curve *curve, struct draw_canvas *canvas)
{
    uint32_t first = curve->points[0].value, last = curve->points[curve->n - 1].value;
    const struct occ_point *point = calc_curve_at(curve, curve->present);
    if (curve->present < first || curve->present > last || point->status != OCC_OK)
        return;
    canvas->mark_x = draw_canvas_x(canvas, (double)(curve->present - first) / (last - first));
    canvas->mark_y = draw_canvas_y(canvas, point->full_wave);
}

/* Centres labels on their columns; omits labels without room. */
static void put_ticks(const struct calc_curve *curve, int columns, struct calc_plot *plot)
{
    uint32_t first = curve->points[0].value, last = curve->points[curve->n - 1].value;
    uint32_t step = calc_tick_step(curve);
    int used = 0;
    plot->ticks[0] = '\0';
    for (uint64_t value = calc_first_tick(curve); value <= last; value += step) {
        char label[24];
        int width = (int)strlen(calc_axis_value(curve->axis, (uint32_t)value, label, sizeof label));
        int column = (int)lround((double)(value - first) / (last - first) * (columns - 1)) - width / 2;
        column = column > columns - width ? columns - width : column < 0 ? 0 : column;
        if (used == 0 || column > used)
            used += sprintf(plot->ticks + used, "%*s", column - used + width, label);
    }
}

void calc_plot(const struct calc_curve *curve, int columns, bool ascii, struct calc_plot *ret_plot)
{
    draw_canvas_init(&ret_plot->canvas, columns, CALC_PLOT_ROWS, ascii);
    draw(curve, &ret_plot->canvas);
    mark_present(curve, &ret_plot->canvas);
    put_ticks(curve, ret_plot->canvas.columns, ret_plot);
}
