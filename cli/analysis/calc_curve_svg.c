/* Draws curves in SVG; see calc_curve.h. Impossible values are hatched. */
#include "calc_curve.h"

#include "draw/svg.h"

enum {
    PLOT_X = 300, /* a panel has room for half of the last tick's label beside the plot */
    PLOT_Y = 150,
    MARGIN_X = 65,
    MARGIN_Y = 20
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

static void put_axes(const struct draw_svg_plot *plot, const struct calc_curve *curve)
{
    char label[24];
    for (int percent = 0; percent <= 100; percent += 25) {
        (void)snprintf(label, sizeof label, "%d%%", percent);
        draw_svg_tick_y(plot, PLOT_Y * (100 - percent) / 100.0, label);
    }
    for (uint64_t value = calc_first_tick(curve); value <= curve->points[curve->n - 1].value;
         value += calc_tick_step(curve))
        draw_svg_tick_x(plot, x_of(curve, (uint32_t)value), false,
                        calc_axis_value(curve->axis, (uint32_t)value, label, sizeof label));
    draw_svg_titles(plot, calc_axis_title(curve->axis), "occupancy");
}

/* Hatches a gap of impossible launches and writes the reason, upright in a narrow gap. */
static void put_gap(FILE *out, double from, double to, const char *reason)
{
    bool is_wide = to - from > PLOT_X / 2.0;
    (void)fprintf(out, "<rect x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\" fill=\"url(#hatch)\"/>\n", from,
                  to - from, PLOT_Y);
    (void)fprintf(out, "<g transform=\"translate(%.1f %d) rotate(%d)\">", (from + to) / 2, PLOT_Y / 2,
                  is_wide ? 0 : -90);
    draw_svg_text(out, 0, -3, "middle", "cannot launch:");
    draw_svg_text(out, 0, 10, "middle", "%s", reason);
    (void)fputs("</g>\n", out);
}

/* Finds the gaps: each ends at the next possible value. */
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

/* Draws steps: an occupancy holds up to the next value. Impossible launches leave a gap. */
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
    draw_svg_text(out, x + (is_right ? -8 : 8), y + (point->full_wave > 0.9 ? 14 : -7),
                  is_right ? "value end" : "value", "%s: %.1f%%",
                  calc_axis_value(curve->axis, curve->present, value, sizeof value), point->full_wave * 100);
}

void calc_svg_curve(FILE *out, double x, double y, const struct calc_curve *curve)
{
    const struct draw_svg_plot plot = {.out = out, .width = PLOT_X, .height = PLOT_Y};
    draw_svg_plot_begin(&plot, x + MARGIN_X, y + MARGIN_Y);
    put_axes(&plot, curve);
    put_gaps(out, curve);
    put_line(out, curve);
    put_present(out, curve);
    draw_svg_end(out);
}

void calc_svg_panel(FILE *out, const struct calc_curve *curve)
{
    char value[24];
    (void)fprintf(out,
                  "<svg class=\"picture\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Occupancy of a "
                  "full wave over %s; of this launch, %s: %.1f%%\">\n",
                  CALC_PANEL_X, CALC_PANEL_Y, calc_axis_title(curve->axis),
                  calc_axis_value(curve->axis, curve->present, value, sizeof value),
                  calc_curve_at(curve, curve->present)->full_wave * 100);
    calc_svg_curve(out, 0, 0, curve);
    draw_svg_end(out);
}
