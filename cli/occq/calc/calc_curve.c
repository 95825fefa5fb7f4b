/*
 * The curves: the model over a range of one parameter, and how they look on a terminal. A plot has two by
 * four dots a character (U+2800 and up), or one mark a character in ASCII; the heights of neighbouring
 * columns are joined by a vertical line, so that steps read as steps.
 *
 * One thread.
 */
#include "calc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOTS_X = 2, DOTS_Y = 4, HEIGHT = DOTS_Y * CALC_PLOT_ROWS };

void calc_curves_release(struct calc_curves *curves)
{
    for (size_t i = 0; i < curves->n; i++)
        free(curves->list[i].points);
    curves->n = 0;
}

static int add_curve(const struct calc_case *c, enum occ_axis axis, const struct occ_range *range,
                     struct calc_curves *curves, struct occ_error *err)
{
    size_t n = (range->last - range->first) / range->step + 1;
    struct occ_point *points = calloc(n, sizeof *points);
    if (!points)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    size_t there = occ_sweep(&c->target->device, &c->launch, axis, range, points, n);
    curves->list[curves->n++] = (struct calc_curve){.axis = axis,
                                                    .present = occ_sweep_present(&c->launch, axis),
                                                    .points = points,
                                                    .n = there < n ? there : n};
    return 0;
}

int calc_curves_new(const struct calc_case *c, struct calc_curves *ret_curves, struct occ_error *err)
{
    struct calc_curves curves = {.n = 0};
    for (int axis = 0; axis < OCC_AXIS_COUNT; axis++) {
        struct occ_range range;
        if (!occ_sweep_range(&c->target->device, (enum occ_axis)axis, &range) || range.first == range.last)
            continue;
        if (add_curve(c, (enum occ_axis)axis, &range, &curves, err) != 0) {
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

struct canvas {
    unsigned char dots[HEIGHT][DOTS_X * CALC_PLOT_COLUMNS_MAX];
    int width, height;
};

/* The point that a column shows. */
static const struct occ_point *point_of_column(const struct calc_curve *curve, int column, int width)
{
    return &curve->points[(size_t)column * (curve->n - 1) / (size_t)(width - 1)];
}

/* 0 is the top. */
static int row_of(double ratio, int height)
{
    return (int)lround((1 - fmin(fmax(ratio, 0), 1)) * (height - 1));
}

static void draw(const struct calc_curve *curve, struct canvas *canvas)
{
    int last = -1;
    for (int x = 0; x < canvas->width; x++) {
        const struct occ_point *point = point_of_column(curve, x, canvas->width);
        if (point->status != OCC_OK) {
            last = -1;
            continue;
        }
        int y = row_of(point->full_wave, canvas->height);
        int from = last < 0 ? y : last < y ? last + 1 : y, to = last > y ? last - 1 : y;
        for (int i = from; i <= to; i++)
            canvas->dots[i][x] = 1;
        last = y;
    }
}

/* Where the present point is, in dots; false: it is not among the points. */
static bool find_present(const struct calc_curve *curve, const struct canvas *canvas, int *ret_x, int *ret_y)
{
    uint32_t first = curve->points[0].value, last = curve->points[curve->n - 1].value;
    if (curve->present < first || curve->present > last ||
        calc_curve_at(curve, curve->present)->status != OCC_OK)
        return false;
    double part = (double)(curve->present - first) / (last - first);
    *ret_x = (int)lround(part * (canvas->width - 1));
    *ret_y = row_of(calc_curve_at(curve, curve->present)->full_wave, canvas->height);
    return true;
}

/* Bits of U+2800's block: the dots are numbered by column, the lowest row was added later. */
static unsigned int braille_bits(const struct canvas *canvas, int row, int column)
{
    static const unsigned char bits[DOTS_Y][DOTS_X] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned int all = 0;
    for (int y = 0; y < DOTS_Y; y++)
        for (int x = 0; x < DOTS_X; x++)
            if (canvas->dots[row * DOTS_Y + y][column * DOTS_X + x])
                all |= bits[y][x];
    return all;
}

static size_t put_utf8(char *out, unsigned int character)
{
    out[0] = (char)(0xe0 | character >> 12);
    out[1] = (char)(0x80 | (character >> 6 & 0x3f));
    out[2] = (char)(0x80 | (character & 0x3f));
    return 3;
}

static void plot_braille(const struct canvas *canvas, int columns, int mark_x, int mark_y,
                         struct calc_plot *plot)
{
    for (int row = 0; row < CALC_PLOT_ROWS; row++) {
        size_t used = 0;
        for (int column = 0; column < columns; column++) {
            bool marked = mark_x / DOTS_X == column && mark_y / DOTS_Y == row;
            used += put_utf8(plot->rows[row] + used,
                             marked ? 0x25cf : 0x2800 + braille_bits(canvas, row, column));
        }
        plot->rows[row][used] = '\0';
    }
}

static void plot_ascii(const struct canvas *canvas, int columns, int mark_x, int mark_y,
                       struct calc_plot *plot)
{
    for (int row = 0; row < CALC_PLOT_ROWS; row++) {
        for (int column = 0; column < columns; column++)
            plot->rows[row][column] = canvas->dots[row][column] ? '*' : ' ';
        if (mark_y == row)
            plot->rows[row][mark_x] = 'O';
        plot->rows[row][columns] = '\0';
    }
}

/* Labels centred on their columns, as many as have room. */
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
    struct canvas canvas = {.width = ascii ? columns : DOTS_X * columns,
                            .height = ascii ? CALC_PLOT_ROWS : HEIGHT};
    int x = 0, y = 0;
    draw(curve, &canvas);
    put_ticks(curve, columns, ret_plot);
    if (!find_present(curve, &canvas, &x, &y))
        x = y = -DOTS_X * DOTS_Y; /* in no character */
    if (ascii)
        plot_ascii(&canvas, columns, x, y, ret_plot);
    else
        plot_braille(&canvas, columns, x, y, ret_plot);
}
