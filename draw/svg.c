/* See svg.h. */
#include "svg.h"

#include <stdarg.h>
#include <string.h>

#include "support/text.h"

extern const char draw_svg_style[]; /* svg.css */

void draw_svg_hatch(FILE *out)
{
    (void)fputs("<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" "
                "class=\"hatch\"/></pattern></defs>\n",
                out);
}

void draw_svg_begin(FILE *out, double width, double height)
{
    (void)fprintf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" width=\"%g\" height=\"%g\" "
                  "viewBox=\"0 0 %g %g\">\n<style>%s</style>\n",
                  width, height, width, height, draw_svg_style);
    draw_svg_hatch(out);
}

void draw_svg_end(FILE *out)
{
    (void)fputs("</svg>\n", out);
}

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (entity)
            (void)fputs(entity, out);
        else
            (void)fputc(*text, out);
    }
}

/* Writes a text; `unit` is the unit of x: "" or "%". */
static void put_text(FILE *out, double x, const char *unit, double y, const char *classes, char *text)
{
    const char *anchor = strstr(classes, "end") ? "end" : strstr(classes, "middle") ? "middle" : "start";
    occ_text_sanitise(text);
    (void)fprintf(out, "<text x=\"%.4g%s\" y=\"%.4g\" text-anchor=\"%s\" class=\"%s\">", x, unit, y, anchor,
                  classes);
    put_escaped(out, text);
    (void)fputs("</text>\n", out);
}

void draw_svg_text(FILE *out, double x, double y, const char *classes, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    put_text(out, x, "", y, classes, text);
}

/* ---- plots ---- */

static double percent(const struct draw_svg_plot *plot, double x)
{
    return x / plot->width * 100;
}

void draw_svg_plot_begin(const struct draw_svg_plot *plot, double x, double y)
{
    char width[32];
    (void)snprintf(width, sizeof width, "%g", plot->width);
    (void)fprintf(plot->out,
                  "<svg class=\"area\" x=\"%g\" y=\"%g\" width=\"%s\" height=\"%g\" overflow=\"visible\">\n",
                  x, y, plot->shown ? plot->shown : width, plot->height);
}

void draw_svg_shapes_begin(const struct draw_svg_plot *plot)
{
    (void)fprintf(plot->out, "<svg viewBox=\"0 0 %g %g\" preserveAspectRatio=\"none\">\n", plot->width,
                  plot->height);
}

void draw_svg_plot_text(const struct draw_svg_plot *plot, double x, double y, const char *classes,
                        const char *text)
{
    char copy[512];
    (void)snprintf(copy, sizeof copy, "%s", text);
    put_text(plot->out, percent(plot, x), "%", y, classes, copy);
}

void draw_svg_tick_x(const struct draw_svg_plot *plot, double x, bool minor, const char *label)
{
    const char *class = minor ? " minor" : "";
    (void)fprintf(plot->out,
                  "<line x1=\"%.2f%%\" y1=\"%g\" x2=\"%.2f%%\" y2=\"%g\" class=\"grid%s\" stroke=\"#888\"/>",
                  percent(plot, x), plot->height, percent(plot, x), plot->height + 4, class);
    draw_svg_plot_text(plot, x, plot->height + 17, minor ? "middle minor" : "middle", label);
}

void draw_svg_tick_y(const struct draw_svg_plot *plot, double y, const char *label)
{
    (void)fprintf(plot->out,
                  "<line x1=\"0\" y1=\"%g\" x2=\"100%%\" y2=\"%g\" class=\"grid\" stroke=\"#888\"/>", y, y);
    draw_svg_text(plot->out, -6, y + 4, "end", "%s", label);
}

void draw_svg_titles(const struct draw_svg_plot *plot, const char *x_title, const char *y_title)
{
    if (x_title)
        draw_svg_plot_text(plot, plot->width / 2, plot->height + 35, "title middle", x_title);
    if (!y_title)
        return;
    (void)fprintf(plot->out, "<g transform=\"translate(-48 %g) rotate(-90)\">", plot->height / 2);
    draw_svg_text(plot->out, 0, 0, "title middle", "%s", y_title);
    (void)fputs("</g>\n", plot->out);
}
