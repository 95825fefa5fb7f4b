/*
 * Pictures in SVG that need nothing else, light or dark as the reader's browser is. A picture is a number of
 * plots, each in a group of its own (<g transform=...>); classes of the style: head, title, value (texts),
 * grid, curve, band, mark, label (lines and areas). What cannot be is filled with url(#hatch).
 *
 * One thread (stdio). Write errors stay in the stream.
 */
#ifndef OCC_CLI_SVG_H
#define OCC_CLI_SVG_H

#include <stdio.h>

void cli_svg_begin(FILE *out, double width, double height);
/* Instead, for elements <svg class="picture"> of a page that has the style of svg.css: the pattern, once. */
void cli_svg_hatch(FILE *out);
void cli_svg_end(FILE *out);

/* At most 511 bytes; markup is escaped, what is no printable UTF-8 replaced. x is where it starts, or with
 * the class middle or end its middle or end. */
void cli_svg_text(FILE *out, double x, double y, const char *classes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A plot's area is `width` by `height`, its upper left corner is 0, 0. */
struct cli_svg_plot {
    FILE *out;
    double width, height;
};
void cli_svg_tick_x(const struct cli_svg_plot *plot, double x, const char *label);
void cli_svg_tick_y(const struct cli_svg_plot *plot, double y, const char *label);
/* Below and to the left of the ticks; NULL: none. */
void cli_svg_titles(const struct cli_svg_plot *plot, const char *x_title, const char *y_title);

#endif
