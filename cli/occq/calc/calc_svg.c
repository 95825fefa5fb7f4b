/*
 * `occq calc --svg`: the curves, one panel each, in a file that needs nothing else (SVG 1.1; colours that are
 * told apart on light and dark ground). One thread (stdio).
 */
#include "calc.h"

#include <errno.h>
#include <stdio.h>

#include "support/cleanup.h"

enum {
    PANEL_X = 380,
    PANEL_Y = 240,
    PLOT_X = 300,
    PLOT_Y = 150,
    MARGIN_X = 50,
    MARGIN_Y = 50,
    HEAD = 50,
    IN_A_ROW = 2
};

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            (void)fputs("&lt;", out);
        else if (*text == '>')
            (void)fputs("&gt;", out);
        else if (*text == '&')
            (void)fputs("&amp;", out);
        else
            (void)fputc(*text, out);
    }
}

static double x_of(const struct calc_curve *curve, uint32_t value)
{
    uint32_t first = curve->points[0].value, last = curve->points[curve->n - 1].value;
    return (double)(value - first) / (last - first) * PLOT_X;
}

static double y_of(const struct occ_point *point)
{
    return (1 - point->full_wave) * PLOT_Y;
}

static void put_axes(FILE *out, const struct calc_curve *curve)
{
    (void)fprintf(out, "<text x=\"%d\" y=\"-14\" text-anchor=\"middle\">%s</text>\n", PLOT_X / 2,
                  occ_axis_text(curve->axis));
    for (int percent = 0; percent <= 100; percent += 25) {
        double y = PLOT_Y * (100 - percent) / 100.0;
        (void)fprintf(out,
                      "<line x1=\"0\" y1=\"%g\" x2=\"%d\" y2=\"%g\" class=\"grid\"/><text x=\"-6\" y=\"%g\" "
                      "text-anchor=\"end\">%d%%</text>\n",
                      y, PLOT_X, y, y + 4, percent);
    }
    for (size_t i = 0; i <= 4; i++) {
        const struct occ_point *point = &curve->points[(curve->n - 1) * i / 4];
        (void)fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n",
                      x_of(curve, point->value), PLOT_Y + 18, point->value);
    }
}

/* Steps: a value holds up to the next one. What cannot be launched leaves a gap. */
static void put_line(FILE *out, const struct calc_curve *curve)
{
    const struct occ_point *last = NULL;
    (void)fputs("<path class=\"curve\" d=\"", out);
    for (size_t i = 0; i < curve->n; i++) {
        const struct occ_point *point = &curve->points[i];
        if (point->status == OCC_OK && !last)
            (void)fprintf(out, "M%.1f %.2f", x_of(curve, point->value), y_of(point));
        else if (point->status == OCC_OK && (point->full_wave != last->full_wave || i + 1 == curve->n))
            (void)fprintf(out, "H%.1fV%.2f", x_of(curve, point->value), y_of(point));
        else if (point->status != OCC_OK && last)
            (void)fprintf(out, "H%.1f", x_of(curve, curve->points[i - 1].value));
        last = point->status == OCC_OK ? point : NULL;
    }
    (void)fputs("\"/>\n", out);
}

static void put_present(FILE *out, const struct calc_curve *curve)
{
    const struct occ_point *point = calc_curve_at(curve, curve->present);
    if (curve->present < curve->points[0].value || point->status != OCC_OK)
        return;
    double x = x_of(curve, curve->present);
    (void)fprintf(out,
                  "<circle cx=\"%.1f\" cy=\"%.2f\" r=\"4\"/><text x=\"%.1f\" y=\"%.2f\" class=\"value\" "
                  "text-anchor=\"%s\">%u: %.1f%%</text>\n",
                  x, y_of(point), x + (x > PLOT_X / 2.0 ? -8 : 8),
                  y_of(point) + (point->full_wave > 0.9 ? 14 : -7), x > PLOT_X / 2.0 ? "end" : "start",
                  curve->present, point->full_wave * 100);
}

static void put_document(FILE *out, const struct calc_case *c, const struct calc_curves *curves)
{
    size_t rows = (curves->n + IN_A_ROW - 1) / IN_A_ROW;
    (void)fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" font-family=\"sans-serif\" "
        "font-size=\"11\">\n<style>text{fill:#555}.grid{stroke:#8884}.curve{fill:none;stroke:#2a78c8;stroke-"
        "width:2}circle{fill:#d6402b}.value{fill:#d6402b}</style>\n<rect "
        "width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"16\" y=\"24\" font-size=\"14\">",
        PANEL_X * IN_A_ROW, HEAD + rows * PANEL_Y);
    if (c->kernel->name) {
        put_escaped(out, c->kernel->name);
        (void)fputs(" on ", out);
    }
    put_escaped(out, c->target->title);
    (void)fputs(": occupancy of a full wave</text>\n", out);
    for (size_t i = 0; i < curves->n; i++) {
        (void)fprintf(out, "<g transform=\"translate(%zu %zu)\">\n", i % IN_A_ROW * PANEL_X + MARGIN_X,
                      HEAD + i / IN_A_ROW * PANEL_Y + MARGIN_Y);
        put_axes(out, &curves->list[i]);
        put_line(out, &curves->list[i]);
        put_present(out, &curves->list[i]);
        (void)fputs("</g>\n", out);
    }
    (void)fputs("</svg>\n", out);
}

int calc_svg(const struct calc_case *c, const char *path, struct occ_error *err)
{
    _cleanup_(calc_curves_release) struct calc_curves curves = {.n = 0};
    int status = calc_curves_new(c, &curves, err);
    if (status != 0)
        return status;
    FILE *out = fopen(path, "we");
    if (!out)
        return occ_fail_errno(err, errno, "--svg: cannot write %s", path);
    put_document(out, c, &curves);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed)
        return occ_fail_errno(err, errno ? errno : EIO, "--svg: cannot write %s", path);
    return 0;
}
