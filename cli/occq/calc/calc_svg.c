/* `occq calc --svg`: the curves, one panel each. What cannot be launched is hatched. One thread (stdio). */
#include "calc.h"

#include <stdio.h>

#include "cli/file.h"
#include "cli/svg.h"
#include "support/cleanup.h"

enum {
    PANEL_X = 390, /* room for the largest tick's half behind the plot */
    PANEL_Y = 235,
    PLOT_X = 300,
    PLOT_Y = 150,
    MARGIN_X = 65,
    MARGIN_Y = 20,
    HEAD = 80,
    IN_A_ROW = 2
};

static double x_of(const struct calc_curve *curve, uint32_t value)
{
    uint32_t first = curve->points[0].value, last = curve->points[curve->n - 1].value;
    return (double)(value - first) / (last - first) * PLOT_X;
}

static double y_of(const struct occ_point *point)
{
    return (1 - point->full_wave) * PLOT_Y;
}

static void put_axes(const struct cli_svg_plot *plot, const struct calc_curve *curve)
{
    char label[24];
    for (int percent = 0; percent <= 100; percent += 25) {
        (void)snprintf(label, sizeof label, "%d%%", percent);
        cli_svg_tick_y(plot, PLOT_Y * (100 - percent) / 100.0, label);
    }
    for (uint64_t value = calc_first_tick(curve); value <= curve->points[curve->n - 1].value;
         value += calc_tick_step(curve))
        cli_svg_tick_x(plot, x_of(curve, (uint32_t)value), false,
                       calc_axis_value(curve->axis, (uint32_t)value, label, sizeof label));
    cli_svg_titles(plot, calc_axis_title(curve->axis), "occupancy");
}

/* What cannot be launched, and why; in a narrow gap upright. */
static void put_gap(FILE *out, double from, double to, const char *reason)
{
    bool is_wide = to - from > PLOT_X / 2.0;
    (void)fprintf(out, "<rect x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\" fill=\"url(#hatch)\"/>\n", from,
                  to - from, PLOT_Y);
    (void)fprintf(out, "<g transform=\"translate(%.1f %d) rotate(%d)\">", (from + to) / 2, PLOT_Y / 2,
                  is_wide ? 0 : -90);
    cli_svg_text(out, 0, -3, "middle", "cannot launch:");
    cli_svg_text(out, 0, 10, "middle", "%s", reason);
    (void)fputs("</g>\n", out);
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
                    i < curve->n ? x_of(curve, curve->points[i].value) : PLOT_X,
                    occ_status_text(curve->points[first].status));
    }
}

/* Steps: a value holds up to the next one. What cannot be launched leaves a gap. */
static void put_line(FILE *out, const struct calc_curve *curve)
{
    const struct occ_point *last = NULL;
    (void)fputs("<path class=\"curve\" fill=\"none\" stroke=\"#1b66b3\" d=\"", out);
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
    double x = x_of(curve, curve->present), y = y_of(point);
    bool is_right = x > PLOT_X / 2.0;
    (void)fprintf(out, "<circle cx=\"%.1f\" cy=\"%.2f\" r=\"4\"/>", x, y);
    cli_svg_text(out, x + (is_right ? -8 : 8), y + (point->full_wave > 0.9 ? 14 : -7),
                 is_right ? "value end" : "value", "%s: %.1f%%",
                 calc_axis_value(curve->axis, curve->present, value, sizeof value), point->full_wave * 100);
}

/* "matmul on NVIDIA H200", and below it the launch and what limits it. */
static void put_head(FILE *out, const struct calc_case *c)
{
    const struct occ_launch *l = &c->launch;
    const char *name = c->kernel->name;
    char block[48], shared[24], limiters[128];
    cli_svg_text(out, 16, 24, "head", "%s%s%s: occupancy of a full wave", name ? name : "",
                 name ? " on " : "", c->target->title);
    cli_svg_text(
        out, 16, 43, "", "%s threads per block, %u registers per thread, %s of shared memory per block",
        analysis_dimensions(l->block, block, sizeof block), l->registers_per_thread,
        calc_axis_value(OCC_AXIS_SMEM, l->static_smem_bytes + l->dynamic_smem_bytes, shared, sizeof shared));
    cli_svg_text(out, 16, 59, "", "theoretical occupancy %.1f%%, limited by %s", c->result.theoretical * 100,
                 occ_limiters_text(c->result.limiters, limiters, sizeof limiters));
}

static void put_curve(FILE *out, double x, double y, const struct calc_curve *curve)
{
    const struct cli_svg_plot plot = {.out = out, .width = PLOT_X, .height = PLOT_Y};
    cli_svg_plot_begin(&plot, x, y);
    put_axes(&plot, curve);
    put_gaps(out, curve);
    put_line(out, curve);
    put_present(out, curve);
    cli_svg_end(out);
}

void calc_svg_panel(FILE *out, const struct calc_curve *curve)
{
    char value[24];
    (void)fprintf(out,
                  "<svg class=\"picture\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Occupancy of a "
                  "full wave over %s; of this launch, %s: %.1f%%\">\n",
                  PANEL_X, PANEL_Y, calc_axis_title(curve->axis),
                  calc_axis_value(curve->axis, curve->present, value, sizeof value),
                  calc_curve_at(curve, curve->present)->full_wave * 100);
    put_curve(out, MARGIN_X, MARGIN_Y, curve);
    cli_svg_end(out);
}

static void put_document(FILE *out, const struct calc_case *c, const struct calc_curves *curves)
{
    size_t rows = (curves->n + IN_A_ROW - 1) / IN_A_ROW;
    cli_svg_begin(out, PANEL_X * IN_A_ROW, (double)(HEAD + rows * PANEL_Y));
    put_head(out, c);
    for (size_t i = 0; i < curves->n; i++)
        put_curve(out, (double)(i % IN_A_ROW * PANEL_X + MARGIN_X),
                  (double)(HEAD + i / IN_A_ROW * PANEL_Y + MARGIN_Y), &curves->list[i]);
    cli_svg_end(out);
}

int calc_svg(const struct calc_case *c, const char *path, struct occ_error *err)
{
    _cleanup_(calc_curves_release) struct calc_curves curves = {.n = 0};
    struct cli_file output;
    int status = calc_curves_new(c, &curves, err);
    if (status == 0)
        status = cli_file_open(path, &output, err);
    if (status != 0)
        return occ_error_prefix(err, "--svg");
    put_document(output.out, c, &curves);
    return cli_file_finish(&output, err) == 0 ? 0 : occ_error_prefix(err, "--svg");
}
