/* See plots.h. One thread. */
#include "plots.h"

#include <inttypes.h>
#include <math.h>

#include "cli/values.h"
#include "html.h"
#include "support/text.h"

/* Begins a plot as wide as the page, with tick labels on its left. `sentence`: description for screen
 * readers. */
static struct draw_svg_plot begin(FILE *out, const char *title, const char *sentence)
{
    enum { WIDTH = 1000, HEIGHT = 120, TOP = 8, BELOW = 30 };
    const struct draw_svg_plot plot = {out, WIDTH, HEIGHT, "100%"};
    html_put(out, "<figure class=\"plot\"><figcaption>@</figcaption>", title);
    html_put(out,
             "<svg class=\"picture\" width=\"100%\" font-size=\"11\" overflow=\"visible\" role=\"img\" "
             "aria-label=\"@\"",
             sentence);
    (void)fprintf(out, " height=\"%d\">\n", TOP + HEIGHT + BELOW);
    draw_svg_plot_begin(&plot, 0, TOP);
    return plot;
}

static void end(FILE *out)
{
    draw_svg_end(out);
    (void)fputs("</svg></figure>\n", out);
}

/* ---- over time ---- */

static void put_series(FILE *out, const struct trend *t, enum trend_series which)
{
    const struct trend_series_text *text = &trend_series[which];
    char low[32], high[32], first[32], last[32], title[256], sentence[256];
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < t->n; i++) {
        const struct trend_value v = trend_value(&t->points[i], which);
        least = fmin(least, v.mean);
        most = fmax(most, v.mean);
    }
    if (!(most > 0)) {
        if (t->n > 0)
            html_put(out, "<p>No plot of @: no unit of time has a value above 0.</p>\n", text->name);
        return;
    }
    (void)snprintf(title, sizeof title, "%s%s%s", text->name, text->source, text->band);
    (void)snprintf(sentence, sizeof sentence, "%s from %s to %s: between %s and %s; the table has each value",
                   text->name, trend_time_text(t, t->points[0].start_ns, first, sizeof first),
                   trend_time_text(t, t->points[t->n - 1].start_ns + t->unit_ns, last, sizeof last),
                   trend_value_text(which, least, low, sizeof low),
                   trend_value_text(which, most, high, sizeof high));
    const struct draw_svg_plot plot = begin(out, title, sentence);
    trend_plot(&plot, t, which);
    end(out);
}

void plots_trend(FILE *out, const struct trend *t)
{
    for (int which = 0; which < TREND_SERIES_COUNT; which++)
        put_series(out, t, (enum trend_series)which);
}

/* ---- durations ---- */

/* Draws one bar per bin. `log_low`, `log_span`: begin and length of the logarithmic axis. */
static void put_bins(const struct draw_svg_plot *plot, const struct occ_duration_bins *bins, double log_low,
                     double log_span, uint64_t most)
{
    draw_svg_shapes_begin(plot);
    for (const struct occ_duration_bin *bin = bins->list; bin < bins->list + bins->n; bin++) {
        double x = (log2((double)bin->from_ns + 1) - log_low) / log_span * plot->width,
               end_x = (log2((double)bin->until_ns + 1) - log_low) / log_span * plot->width;
        double height = (double)bin->launches / (double)most * plot->height;
        (void)fprintf(plot->out, "<rect class=\"bin\" x=\"%.1f\" width=\"%.1f\" y=\"%.1f\" height=\"%.1f\"/>",
                      x, end_x - x, plot->height - height, height);
    }
    draw_svg_end(plot->out);
}

void plots_durations(FILE *out, const struct occ_config_row *row)
{
    const struct occ_duration_bins *bins = &row->durations;
    char most_text[32], first[32], last[32], p50[32], p95[32], sentence[256];
    uint64_t most = 0;
    for (size_t i = 0; i < bins->n; i++)
        most = bins->list[i].launches > most ? bins->list[i].launches : most;
    if (bins->n < 2) /* the text already has the only value */
        return;
    double low = log2((double)bins->list[0].from_ns + 1);
    double span = log2((double)bins->list[bins->n - 1].until_ns + 1) - low;
    (void)occ_format_duration((int64_t)bins->list[0].from_ns, first, sizeof first);
    (void)occ_format_duration((int64_t)bins->list[bins->n - 1].until_ns, last, sizeof last);
    (void)snprintf(
        sentence, sizeof sentence,
        "Launches by duration, from %s to %s on a logarithmic scale: half are below %s, 95%% below %s", first,
        last, occ_format_duration((int64_t)row->p50_ns, p50, sizeof p50),
        occ_format_duration((int64_t)row->p95_ns, p95, sizeof p95));
    (void)snprintf(most_text, sizeof most_text, "%" PRIu64, most);
    const struct draw_svg_plot plot = begin(out, "Launches by duration (logarithmic)", sentence);
    draw_svg_tick_y(&plot, 0, most_text);
    draw_svg_tick_y(&plot, plot.height, "0");
    draw_svg_tick_x(&plot, 0, false, first);
    draw_svg_tick_x(&plot, plot.width, false, last);
    put_bins(&plot, bins, low, span, most);
    end(out);
}
