/* See plots.h. One thread. */
#include "plots.h"

#include <inttypes.h>
#include <math.h>

#include "cli/values.h"
#include "html.h"
#include "support/text.h"

/* The drawing's own units, stretched to the page. */
enum { WIDTH = 1000, HEIGHT = 100 };

/* `sentence`: for those who do not see it. */
static void begin(FILE *out, const char *title, const char *top, const char *sentence)
{
    html_put(out,
             "<figure class=\"plot\"><figcaption>@</figcaption><div class=\"y\" "
             "aria-hidden=\"true\"><span>@</span>"
             "<span>0</span></div><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" "
             "aria-label=\"@\">",
             title, top, sentence);
}

static void end(FILE *out, const char *first, const char *last)
{
    html_put(out, "</svg><div class=\"x\" aria-hidden=\"true\"><span>@</span><span>@</span></div></figure>\n",
             first, last);
}

/* ---- over time ---- */

struct series {
    const struct trend *trend;
    enum trend_series which;
    double top; /* of the axis */
};

/* The ends of waste are those of all warp-seconds less what is used. */
static struct trend_value value_of(const struct series *s, const struct trend_point *p)
{
    struct trend_value value = trend_value(p, s->which);
    if (s->which == TREND_WASTE && p->elapsed < 1) {
        value.low = p->waste * (1 - p->elapsed_high) / (1 - p->elapsed);
        value.high = p->waste * (1 - p->elapsed_low) / (1 - p->elapsed);
    }
    return value;
}

static double x_of(const struct trend *t, int64_t ns)
{
    double first = (double)t->points[0].start_ns;
    double span = (double)t->points[t->n - 1].start_ns + (double)t->unit_ns - first;
    return ((double)ns - first) / span * WIDTH;
}

static double y_of(const struct series *s, double value)
{
    return HEIGHT - fmin(fmax(value / s->top, 0), 1) * HEIGHT;
}

static void put_band(FILE *out, const struct series *s, const struct trend_point *p)
{
    const struct trend_value v = value_of(s, p);
    double from = x_of(s->trend, p->start_ns);
    if (v.high > v.low)
        (void)fprintf(out, "M%.1f %.1fH%.1fV%.1fH%.1fZ", from, y_of(s, v.low),
                      x_of(s->trend, p->start_ns + s->trend->unit_ns), y_of(s, v.high), from);
}

/* A step for each unit of time, joined to the one before. */
static void put_step(FILE *out, const struct series *s, size_t i)
{
    const struct trend_point *p = &s->trend->points[i];
    double value = value_of(s, p).mean;
    bool joined =
        i > 0 && p[-1].start_ns + s->trend->unit_ns == p->start_ns && !isnan(value_of(s, p - 1).mean);
    if (isnan(value))
        return;
    if (joined)
        (void)fprintf(out, "V%.1f", y_of(s, value));
    else
        (void)fprintf(out, "M%.1f %.1f", x_of(s->trend, p->start_ns), y_of(s, value));
    (void)fprintf(out, "H%.1f", x_of(s->trend, p->start_ns + s->trend->unit_ns));
}

static void put_series(FILE *out, const struct series *s)
{
    const struct trend *t = s->trend;
    (void)fputs("<path class=\"band\" d=\"M0 0", out);
    for (size_t i = 0; i < t->n; i++)
        put_band(out, s, &t->points[i]);
    (void)fputs("\"/><path class=\"line\" d=\"M0 0", out);
    for (size_t i = 0; i < t->n; i++)
        put_step(out, s, i);
    (void)fputs("\"/>", out);
    for (size_t i = 0; i < t->n_changes; i++)
        if (t->changes[i].in == s->which)
            (void)fprintf(out, "<path class=\"%s\" d=\"M%.1f 0V%d\"/>",
                          t->changes[i].possible ? "change possible" : "change",
                          x_of(t, t->changes[i].start_ns), HEIGHT);
}

static void plot(FILE *out, struct series *s)
{
    const struct trend *t = s->trend;
    const struct trend_series_text *text = &trend_series[s->which];
    char top[32], low[32], high[32], first[32], last[32], title[256], sentence[256];
    double least = INFINITY, most = -INFINITY, ceiling = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trend_value v = value_of(s, &t->points[i]);
        least = fmin(least, v.mean);
        most = fmax(most, v.mean);
        ceiling = fmax(ceiling, fmax(v.mean, v.high));
    }
    s->top = text->unit == CLI_RATIO ? 1 : ceiling;
    if (!(ceiling > 0))
        return;
    (void)snprintf(title, sizeof title, "%s%s%s", text->name, text->source,
                   s->which == TREND_WASTE ? "; band: as that of elapsed occupancy" : text->band);
    (void)snprintf(sentence, sizeof sentence, "%s from %s to %s: between %s and %s; the table has each value",
                   text->name, cli_time_text(t->points[0].start_ns, first, sizeof first),
                   cli_time_text(t->points[t->n - 1].start_ns + t->unit_ns, last, sizeof last),
                   trend_value_text(s->which, least, low, sizeof low),
                   trend_value_text(s->which, most, high, sizeof high));
    begin(out, title, trend_value_text(s->which, s->top, top, sizeof top), sentence);
    put_series(out, s);
    end(out, first, last);
}

void plots_trend(FILE *out, const struct trend *t)
{
    for (int which = 0; which < TREND_SERIES_COUNT; which++)
        plot(out, &(struct series){.trend = t, .which = (enum trend_series)which});
}

/* ---- durations ---- */

void plots_durations(FILE *out, const struct occ_config_row *row)
{
    const struct occ_duration_bins *bins = &row->durations;
    char most_text[32], first[32], last[32], p50[32], p95[32], sentence[256];
    uint64_t most = 0;
    for (size_t i = 0; i < bins->n; i++)
        most = bins->list[i].launches > most ? bins->list[i].launches : most;
    if (bins->n < 2) /* nothing that the text does not say */
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
    begin(out, "Launches by duration (logarithmic)", most_text, sentence);
    for (const struct occ_duration_bin *bin = bins->list; bin < bins->list + bins->n; bin++) {
        double x = (log2((double)bin->from_ns + 1) - low) / span * WIDTH,
               end_x = (log2((double)bin->until_ns + 1) - low) / span * WIDTH;
        double height = (double)bin->launches / (double)most * HEIGHT;
        (void)fprintf(out, "<rect class=\"bin\" x=\"%.1f\" width=\"%.1f\" y=\"%.1f\" height=\"%.1f\"/>", x,
                      end_x - x, HEIGHT - height, height);
    }
    end(out, first, last);
}
