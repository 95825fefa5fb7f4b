/*
 * `occq calc --svg`: the curves, one panel each, in a file that needs nothing else (SVG 1.1, light or dark as
 * the reader's browser is). What cannot be launched is hatched. One thread (stdio).
 */
#include "calc.h"

#include <errno.h>
#include <stdio.h>

#include "cli/command.h"
#include "support/cleanup.h"

enum {
    PANEL_X = 390,
    PANEL_Y = 235,
    PLOT_X = 300,
    PLOT_Y = 150,
    MARGIN_X = 65,
    MARGIN_Y = 20,
    HEAD = 80,
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
    char label[24];
    for (int percent = 0; percent <= 100; percent += 25) {
        double y = PLOT_Y * (100 - percent) / 100.0;
        (void)fprintf(out,
                      "<line x1=\"0\" y1=\"%g\" x2=\"%d\" y2=\"%g\" class=\"grid\"/><text x=\"-6\" y=\"%g\" "
                      "text-anchor=\"end\">%d%%</text>\n",
                      y, PLOT_X, y, y + 4, percent);
    }
    for (uint64_t value = calc_first_tick(curve); value <= curve->points[curve->n - 1].value;
         value += calc_tick_step(curve)) {
        double x = x_of(curve, (uint32_t)value);
        (void)fprintf(out,
                      "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"grid\"/><text x=\"%.1f\" "
                      "y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                      x, PLOT_Y, x, PLOT_Y + 4, x, PLOT_Y + 17,
                      calc_axis_value(curve->axis, (uint32_t)value, label, sizeof label));
    }
    (void)fprintf(out,
                  "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" class=\"title\">%s</text>\n"
                  "<text transform=\"translate(-42 %d) rotate(-90)\" text-anchor=\"middle\" "
                  "class=\"title\">occupancy</text>\n",
                  PLOT_X / 2, PLOT_Y + 35, calc_axis_title(curve->axis), PLOT_Y / 2);
}

static void put_gap(FILE *out, double from, double to)
{
    (void)fprintf(out, "<rect x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\" fill=\"url(#hatch)\"/>\n", from,
                  to - from, PLOT_Y);
    if (to - from > PLOT_X / 5.0)
        (void)fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">cannot launch</text>\n",
                      (from + to) / 2, PLOT_Y / 2);
}

/* Values that cannot be launched, from the first of them to the next that can. */
static void put_gaps(FILE *out, const struct calc_curve *curve)
{
    for (size_t i = 0; i < curve->n; i++) {
        size_t first = i;
        while (i < curve->n && curve->points[i].status != OCC_OK)
            i++;
        if (i > first)
            put_gap(out, x_of(curve, curve->points[first].value),
                    i < curve->n ? x_of(curve, curve->points[i].value) : PLOT_X);
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
    char value[24];
    double x = x_of(curve, curve->present);
    (void)fprintf(out,
                  "<circle cx=\"%.1f\" cy=\"%.2f\" r=\"4\"/><text x=\"%.1f\" y=\"%.2f\" class=\"value\" "
                  "text-anchor=\"%s\">%s: %.1f%%</text>\n",
                  x, y_of(point), x + (x > PLOT_X / 2.0 ? -8 : 8),
                  y_of(point) + (point->full_wave > 0.9 ? 14 : -7), x > PLOT_X / 2.0 ? "end" : "start",
                  calc_axis_value(curve->axis, curve->present, value, sizeof value), point->full_wave * 100);
}

/* "matmul on NVIDIA H200", and below it the launch and what limits it. */
static void put_head(FILE *out, const struct calc_case *c)
{
    const struct occ_launch *l = &c->launch;
    char block[48], shared[24], limiters[128];
    (void)fputs("<text x=\"16\" y=\"24\" class=\"head\">", out);
    if (c->kernel->name) {
        put_escaped(out, c->kernel->name);
        (void)fputs(" on ", out);
    }
    put_escaped(out, c->target->title);
    (void)fprintf(
        out,
        ": occupancy of a full wave</text>\n<text x=\"16\" y=\"43\">%s threads per block, %u registers per "
        "thread, %s of shared memory per block</text>\n<text x=\"16\" y=\"59\">theoretical occupancy %.1f%%, "
        "limited by %s</text>\n",
        analysis_dimensions(l->block, block, sizeof block), l->registers_per_thread,
        calc_axis_value(OCC_AXIS_SMEM, l->static_smem_bytes + l->dynamic_smem_bytes, shared, sizeof shared),
        c->result.theoretical * 100, occ_limiters_text(c->result.limiters, limiters, sizeof limiters));
}

static const char style[] =
    "<style>svg{background:#fff;font:11px "
    "sans-serif}text{fill:#444}.head{font-size:14px;fill:#111}.title{fill:#111}"
    ".grid{stroke:#8886}.curve{fill:none;stroke:#1b66b3;stroke-width:2}circle,.value{fill:#b3321f}"
    ".value{font-weight:bold}.hatch{stroke:#8886}"
    "@media(prefers-color-scheme:dark){svg{background:#16181c}text{fill:#bbb}.head,.title{fill:#eee}"
    ".curve{stroke:#6cb0f5}circle,.value{fill:#ff8f73}}</style>\n"
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" "
    "class=\"hatch\"/></pattern></defs>\n";

static void put_document(FILE *out, const struct calc_case *c, const struct calc_curves *curves)
{
    size_t rows = (curves->n + IN_A_ROW - 1) / IN_A_ROW, height = HEAD + rows * PANEL_Y;
    (void)fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" viewBox=\"0 0 %d %zu\">\n",
        PANEL_X * IN_A_ROW, height, PANEL_X * IN_A_ROW, height);
    (void)fputs(style, out);
    put_head(out, c);
    for (size_t i = 0; i < curves->n; i++) {
        (void)fprintf(out, "<g transform=\"translate(%zu %zu)\">\n", i % IN_A_ROW * PANEL_X + MARGIN_X,
                      HEAD + i / IN_A_ROW * PANEL_Y + MARGIN_Y);
        put_axes(out, &curves->list[i]);
        put_gaps(out, &curves->list[i]);
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
    if (cli_check_output(path, err) != 0)
        return err->code;
    FILE *out = fopen(path, "we");
    if (!out)
        return occ_fail_errno(err, errno, "--svg: cannot write %s", path);
    put_document(out, c, &curves);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed)
        return occ_fail_errno(err, errno ? errno : EIO, "--svg: cannot write %s", path);
    return 0;
}
