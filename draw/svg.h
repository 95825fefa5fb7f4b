/*
 * Pictures in SVG that need nothing else, light or dark as the reader's browser is. A picture is a number of
 * plots; classes of the style: head, title, value (texts), grid, curve, band, bin, mark, label (lines and
 * areas; they have plain colours, too, where a page's server forbids styles). An area of impossible
 * values is filled with url(#hatch).
 *
 * One thread (stdio). Write errors stay in the stream.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

void draw_svg_begin(FILE *out, double width, double height);
/* Instead, for elements <svg class="picture"> of a page that has the style of svg.css: the pattern, once. */
void draw_svg_hatch(FILE *out);
/* Ends a picture, a plot or shapes. */
void draw_svg_end(FILE *out);

/* At most 511 bytes; markup is escaped, bytes that are no printable UTF-8 are replaced. x is the start of the
 * text; with the class "middle" or "end" the middle or the end. */
void draw_svg_text(FILE *out, double x, double y, const char *classes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/*
 * A plot's area, `width` by `height` units from 0, 0 at its upper left corner. It is as wide in the
 * picture, or `shown` ("85%") of the picture's width: then shapes are stretched, texts are not.
 */
struct draw_svg_plot {
    FILE *out;
    double width, height;
    const char *shown; /* NULL: as wide as `width` */
};
/* An area at x, y of the picture. Ticks, titles and texts belong in it. */
void draw_svg_plot_begin(const struct draw_svg_plot *plot, double x, double y);
/* Around shapes (no texts) that are stretched with the area. */
void draw_svg_shapes_begin(const struct draw_svg_plot *plot);
/* The same as draw_svg_text(), with x and y in the area. */
void draw_svg_plot_text(const struct draw_svg_plot *plot, double x, double y, const char *classes,
                        const char *text);

/* `minor`: not shown where the window is narrow. */
void draw_svg_tick_x(const struct draw_svg_plot *plot, double x, bool minor, const char *label);
void draw_svg_tick_y(const struct draw_svg_plot *plot, double y, const char *label);
/* Below and to the left of the ticks; NULL: none. */
void draw_svg_titles(const struct draw_svg_plot *plot, const char *x_title, const char *y_title);
