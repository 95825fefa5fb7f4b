/* Series as plots with their bands over an axis of time, for `occq history --svg`, where the changes are
 * below them, and for `occq report`. Changes are numbered in their plots. One thread (stdio). */
#include <math.h>
#include <string.h>
#include <time.h>

#include "draw/svg.h"
#include "trend.h"

enum { COLUMNS = 395 }; /* of a plot; units of time are added up in them */

/* What the units of time of a column say; x, end: where the first begins, and the last or the column ends. */
struct column {
    double x, end, sum, low, high;
    int n;
};

struct plot {
    const struct draw_svg_plot *svg;
    const struct trend *trend;
    enum trend_series series;
    double top; /* value at the upper end */
    struct column columns[COLUMNS];
};

/* From the start of the first unit of time to the end of the last, 0 ... 1. */
static double place_of(const struct trend *t, int64_t ns)
{
    double first = (double)t->points[0].start_ns;
    double end = (double)t->points[t->n - 1].start_ns + (double)t->unit_ns;
    return fmin(fmax(((double)ns - first) / (end - first), 0), 1);
}

static double x_of(const struct plot *plot, int64_t ns)
{
    return place_of(plot->trend, ns) * plot->svg->width;
}

static double column_width(const struct plot *plot)
{
    return plot->svg->width / COLUMNS;
}

static double y_of(const struct plot *plot, double value)
{
    return (1 - fmin(value / plot->top, 1)) * plot->svg->height;
}

/* ---- axes ---- */

/* The next of 1, 1.5, 2, 3, 4, 5, 6, 8 and 10 times a power of ten. */
static double round_up(double value)
{
    static const double steps[] = {1, 1.5, 2, 3, 4, 5, 6, 8, 10};
    double power = pow(10, floor(log10(value)));
    size_t i = 0;
    while (i + 1 < sizeof steps / sizeof *steps && steps[i] * power < value)
        i++;
    return steps[i] * power;
}

static void put_values(const struct plot *plot)
{
    char label[32];
    for (int half = 0; half <= 2; half++) {
        double value = plot->top * half / 2;
        (void)trend_value_text(plot->series, value, label, sizeof label);
        draw_svg_tick_y(plot->svg, y_of(plot, value), half ? label : "0");
    }
}

/* Minutes between two ticks: so few that at most eight fit. */
static int tick_minutes(const struct trend *t)
{
    static const int steps[] = {1,    5,    15,   30,    60,    180,   360,   720,
                                1440, 2880, 5760, 10080, 20160, 43200, 129600};
    double span = (double)(t->points[t->n - 1].start_ns - t->points[0].start_ns) / 60e9;
    size_t i = 0;
    while (i + 1 < sizeof steps / sizeof *steps && span / steps[i] > 8)
        i++;
    int minutes = steps[i];
    while (span / minutes > 8)
        minutes *= 2;
    return minutes;
}

/* Broken-down time in the zone of the trend, and back. */
static void split_time(const struct trend *t, time_t at, struct tm *ret_tm)
{
    (void)(trend_is_utc(t) ? gmtime_r(&at, ret_tm) : localtime_r(&at, ret_tm));
}

static time_t join_time(const struct trend *t, struct tm *tm)
{
    tm->tm_isdst = -1;
    return trend_is_utc(t) ? timegm(tm) : mktime(tm);
}

/* The zone of an axis. Where clocks change between its ends, two names: "CET/CEST". */
static const char *zone_text(const struct trend *t, char *buffer, size_t size)
{
    struct tm first, last;
    char zones[2][16];
    if (trend_is_utc(t))
        return "UTC";
    split_time(t, (time_t)(t->points[0].start_ns / 1000000000), &first);
    split_time(t, (time_t)(t->points[t->n - 1].start_ns / 1000000000), &last);
    (void)strftime(zones[0], sizeof zones[0], "%Z", &first);
    (void)strftime(zones[1], sizeof zones[1], "%Z", &last);
    bool is_one = strcmp(zones[0], zones[1]) == 0;
    (void)snprintf(buffer, size, "%s%s%s", zones[0], is_one ? "" : "/", is_one ? "" : zones[1]);
    return buffer;
}

/* At whole hours or days. */
static void put_times(const struct plot *plot)
{
    const struct trend *t = plot->trend;
    int step = tick_minutes(t);
    time_t at = (time_t)(t->points[0].start_ns / 1000000000),
           last = (time_t)(t->points[t->n - 1].start_ns / 1000000000);
    struct tm tm;
    char label[32];
    int n = 0;
    split_time(t, at, &tm);
    tm.tm_min = step < 1440 ? (tm.tm_hour * 60 + tm.tm_min) / step * step : 0;
    tm.tm_hour = tm.tm_sec = 0;
    for (; (at = join_time(t, &tm)) != -1 && at <= last; tm.tm_min += step) {
        (void)strftime(label, sizeof label, step < 1440 ? "%m-%d %H:%M" : "%Y-%m-%d", &tm);
        if ((int64_t)at * 1000000000 >= t->points[0].start_ns)
            draw_svg_tick_x(plot->svg, x_of(plot, (int64_t)at * 1000000000), n++ % 4 != 0, label);
    }
}

/* ---- a series ---- */

static void add_up(struct plot *plot)
{
    const struct trend *t = plot->trend;
    for (size_t i = 0; i < t->n; i++) {
        struct trend_value v = trend_value(&t->points[i], plot->series);
        double x = x_of(plot, t->points[i].start_ns);
        int at = (int)fmin(x / column_width(plot), COLUMNS - 1);
        struct column *c = &plot->columns[at];
        if (isnan(v.mean))
            continue;
        c->x = c->n ? c->x : x;
        c->end = fmax(x_of(plot, t->points[i].start_ns + t->unit_ns), (at + 1) * column_width(plot));
        c->low = c->n ? fmin(c->low, fmin(v.low, v.mean)) : fmin(v.low, v.mean);
        c->high = c->n ? fmax(c->high, fmax(v.high, v.mean)) : fmax(v.high, v.mean);
        c->sum += v.mean;
        c->n++;
        plot->top = fmax(plot->top, c->high);
    }
    plot->top = trend_series[plot->series].unit == CLI_RATIO ? 1 : plot->top > 0 ? round_up(plot->top) : 0;
}

static void put_band(const struct plot *plot)
{
    (void)fputs("<path class=\"band\" fill-opacity=\".25\" d=\"", plot->svg->out);
    for (const struct column *c = plot->columns; c < plot->columns + COLUMNS; c++)
        if (c->n && c->high > c->low)
            (void)fprintf(plot->svg->out, "M%.1f %.1fV%.1fH%.1fV%.1fz", c->x, y_of(plot, c->high),
                          y_of(plot, c->low), c->end, y_of(plot, c->high));
    (void)fputs("\"/>\n", plot->svg->out);
}

/* A step for each unit of time or column, joined to the next if that follows. */
static void put_means(const struct plot *plot)
{
    double end = -plot->svg->width;
    (void)fputs("<path class=\"curve\" fill=\"none\" stroke=\"#1b66b3\" d=\"", plot->svg->out);
    for (const struct column *c = plot->columns; c < plot->columns + COLUMNS; c++) {
        if (c->n == 0)
            continue;
        (void)fprintf(plot->svg->out, "%c%.1f %.1fH%.1f", c->x <= end + column_width(plot) ? 'L' : 'M', c->x,
                      y_of(plot, c->sum / c->n), c->end);
        end = c->end;
    }
    (void)fputs("\"/>\n", plot->svg->out);
}

static void put_line(const struct plot *plot, const char *class, int64_t ns)
{
    double x = x_of(plot, ns);
    (void)fprintf(plot->svg->out, "<path class=\"%s\" stroke=\"#888\" d=\"M%.1f 0V%g\"/>\n", class, x,
                  plot->svg->height);
}

/* Labels and changes. */
static void put_lines(const struct plot *plot)
{
    const struct trend *t = plot->trend;
    for (size_t i = 0; i < t->n_labels; i++)
        put_line(plot, "label", t->labels[i].start_ns);
    for (size_t i = 0; i < t->n_changes; i++)
        if (t->changes[i].in == plot->series)
            put_line(plot, "mark", t->changes[i].start_ns);
}

/* The numbers of changes, beside their lines. */
static void put_numbers(const struct plot *plot)
{
    enum { ROOM = 20, GAP = 3 };
    char number[32];
    for (size_t i = 0; i < plot->trend->n_changes; i++) {
        const struct trend_change *change = &plot->trend->changes[i];
        double x = x_of(plot, change->start_ns);
        bool is_left = x < plot->svg->width - ROOM;
        (void)snprintf(number, sizeof number, "%zu%s", i + 1,
                       change->possible   ? "?"
                       : change->is_drift ? " drift"
                                          : "");
        if (change->in == plot->series)
            draw_svg_plot_text(plot->svg, is_left ? x + GAP : x - GAP, 10, is_left ? "value" : "value end",
                               number);
    }
}

void trend_plot(const struct draw_svg_plot *svg, const struct trend *t, enum trend_series series)
{
    struct plot plot = {.svg = svg, .trend = t, .series = series};
    add_up(&plot);
    if (plot.top > 0)
        put_values(&plot);
    else
        draw_svg_plot_text(svg, svg->width / 2, svg->height / 2, "middle", "not known");
    put_times(&plot);
    draw_svg_shapes_begin(svg);
    if (plot.top > 0) {
        put_band(&plot);
        put_means(&plot);
    }
    put_lines(&plot);
    draw_svg_end(svg->out);
    put_numbers(&plot);
}

/* ---- a picture of its own ---- */

enum {
    WIDTH = 900,
    LEFT = 80,
    PLOT_X = 790,
    PLOT_Y = 120,
    PANEL_Y = 175,
    HEAD = 95,
    LINE = 16,
    CHANGES_SHOWN = 20
};

static void put_panel(const struct trend *t, enum trend_series series, FILE *out)
{
    const struct draw_svg_plot plot = {.out = out, .width = PLOT_X, .height = PLOT_Y};
    char title[64], zone[40];
    draw_svg_plot_begin(&plot, LEFT, HEAD + (int)series * PANEL_Y);
    draw_svg_text(out, 0, -7, "title", "%s%s%s", trend_series[series].name, trend_series[series].source,
                  trend_series[series].band);
    trend_plot(&plot, t, series);
    (void)snprintf(title, sizeof title, "time (%s)", zone_text(t, zone, sizeof zone));
    if (series + 1 == TREND_SERIES_COUNT)
        draw_svg_titles(&plot, title, NULL);
    draw_svg_end(out);
}

/* Above the plots, as many as have room. */
static void put_labels(const struct trend *t, FILE *out)
{
    enum { LETTER_X = 6 };
    double used = 0;
    for (size_t i = 0; i < t->n_labels; i++) {
        double x = PLOT_X * place_of(t, t->labels[i].start_ns),
               width = LETTER_X * (double)(strlen(t->labels[i].label) + 1);
        x = x + width > PLOT_X ? PLOT_X - width : x;
        if (x >= used) {
            draw_svg_text(out, LEFT + x, HEAD - 25, "", "%s", t->labels[i].label);
            used = x + width;
        }
    }
}

static void put_head(const struct trend *t, const char *what, FILE *out)
{
    double in_column = 1 / (COLUMNS * place_of(t, t->points[0].start_ns + t->unit_ns));
    char first[32], end[32], columns[96] = "", kernels[32] = "";
    if (in_column > 1)
        (void)snprintf(columns, sizeof columns, "; a point is the mean of up to %.0f, its band holds theirs",
                       ceil(in_column));
    if (t->n_kernels > 1)
        (void)snprintf(kernels, sizeof kernels, " (%zu kernels)", t->n_kernels);
    draw_svg_text(out, 16, 24, "head", "%s%s%s, by %ss", what, kernels, t->simulated ? " (simulated)" : "",
                  t->unit);
    draw_svg_text(out, 16, 43, "", "%s to %s%s%s",
                  trend_time_text(t, t->points[0].start_ns, first, sizeof first),
                  trend_time_text(t, t->points[t->n - 1].start_ns, end, sizeof end), columns,
                  t->n_labels ? "; labels where they begin" : "");
}

/* Returns the number of lines; `out` NULL: only counts. */
static int put_change(const struct trend *t, size_t i, int y, FILE *out)
{
    enum { LETTERS = 140 };
    char line[512];
    size_t rest = strlen(trend_change_text(t, &t->changes[i], line, sizeof line)), at = LETTERS;
    while (rest > LETTERS && at > 0 && line[at] != ' ')
        at--;
    bool breaks = rest > LETTERS && at > 0;
    if (!out)
        return breaks ? 2 : 1;
    draw_svg_text(out, 16, y, "", "%zu  %.*s", i + 1, breaks ? (int)at : (int)rest, line);
    if (breaks)
        draw_svg_text(out, 32, y + LINE, "", "%.*s", LETTERS, line + at + 1);
    return breaks ? 2 : 1;
}

void trend_svg(const struct trend *t, const char *what, FILE *out)
{
    size_t shown = t->n_changes < CHANGES_SHOWN ? t->n_changes : CHANGES_SHOWN;
    int y = HEAD + TREND_SERIES_COUNT * PANEL_Y, lines = 2;
    for (size_t i = 0; i < shown; i++)
        lines += put_change(t, i, 0, NULL);
    draw_svg_begin(out, WIDTH, y + lines * LINE);
    put_head(t, what, out);
    put_labels(t, out);
    for (int i = 0; i < TREND_SERIES_COUNT; i++)
        put_panel(t, (enum trend_series)i, out);
    draw_svg_text(out, 16, y, "title",
                  shown < t->n_changes ? "changes, the first %zu of %zu"
                  : shown              ? "changes"
                                       : "changes: none was found",
                  shown, t->n_changes);
    for (size_t i = 0; i < shown; i++)
        y += LINE * put_change(t, i, y + LINE, out);
    draw_svg_end(out);
}
