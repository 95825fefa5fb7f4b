/* See time_plot.h. */
#include "time_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Sums of the points of a column; x: start of the first point; end: end of the last point or of the column.
 */
struct column {
    double x, end, sum, low, high;
    int n;
};

struct plot {
    const struct draw_time_plot *of;
    double top; /* value at the upper end; 0: no value is above 0 */
    struct column columns[DRAW_TIME_COLUMNS];
};

static int64_t first_of(const struct draw_time_plot *plot)
{
    return plot->points[0].start_ns;
}

static int64_t last_of(const struct draw_time_plot *plot)
{
    return plot->points[plot->n - 1].start_ns;
}

double draw_time_fraction(int64_t first_ns, int64_t end_ns, int64_t ns)
{
    double first = (double)first_ns, end = (double)end_ns;
    return fmin(fmax(((double)ns - first) / (end - first), 0), 1);
}

static double x_of(const struct plot *plot, int64_t ns)
{
    const struct draw_time_plot *of = plot->of;
    return draw_time_fraction(first_of(of), last_of(of) + of->unit_ns, ns) * of->svg->width;
}

static double column_width(const struct plot *plot)
{
    return plot->of->svg->width / DRAW_TIME_COLUMNS;
}

static double y_of(const struct plot *plot, double value)
{
    return (1 - fmin(value / plot->top, 1)) * plot->of->svg->height;
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
        (void)plot->of->value_text(value, plot->of->context, label, sizeof label);
        draw_svg_tick_y(plot->of->svg, y_of(plot, value), half ? label : "0");
    }
}

/* Minutes between two ticks: so few that at most eight fit. */
static int tick_minutes(const struct draw_time_plot *plot)
{
    static const int steps[] = {1,    5,    15,   30,    60,    180,   360,   720,
                                1440, 2880, 5760, 10080, 20160, 43200, 129600};
    double span = (double)(last_of(plot) - first_of(plot)) / 60e9;
    size_t i = 0;
    while (i + 1 < sizeof steps / sizeof *steps && span / steps[i] > 8)
        i++;
    int minutes = steps[i];
    while (span / minutes > 8)
        minutes *= 2;
    return minutes;
}

/* Broken-down time in the zone of the axis, and back. */
static void split_time(bool is_utc, time_t at, struct tm *ret_tm)
{
    (void)(is_utc ? gmtime_r(&at, ret_tm) : localtime_r(&at, ret_tm));
}

static time_t join_time(bool is_utc, struct tm *tm)
{
    tm->tm_isdst = -1;
    return is_utc ? timegm(tm) : mktime(tm);
}

const char *draw_time_zone(int64_t first_ns, int64_t last_ns, bool is_utc, char *buffer, size_t size)
{
    struct tm first, last;
    char zones[2][16];
    if (is_utc)
        return "UTC";
    split_time(is_utc, (time_t)(first_ns / 1000000000), &first);
    split_time(is_utc, (time_t)(last_ns / 1000000000), &last);
    (void)strftime(zones[0], sizeof zones[0], "%Z", &first);
    (void)strftime(zones[1], sizeof zones[1], "%Z", &last);
    bool is_one = strcmp(zones[0], zones[1]) == 0;
    (void)snprintf(buffer, size, "%s%s%s", zones[0], is_one ? "" : "/", is_one ? "" : zones[1]);
    return buffer;
}

/* Ticks at whole hours or days. */
static void put_times(const struct plot *plot)
{
    const struct draw_time_plot *of = plot->of;
    int step = tick_minutes(of);
    time_t at = (time_t)(first_of(of) / 1000000000), last = (time_t)(last_of(of) / 1000000000);
    struct tm tm;
    char label[32];
    int n = 0;
    split_time(of->is_utc, at, &tm);
    tm.tm_min = step < 1440 ? (tm.tm_hour * 60 + tm.tm_min) / step * step : 0;
    tm.tm_hour = tm.tm_sec = 0;
    for (; (at = join_time(of->is_utc, &tm)) != -1 && at <= last; tm.tm_min += step) {
        (void)strftime(label, sizeof label, step < 1440 ? "%m-%d %H:%M" : "%Y-%m-%d", &tm);
        if ((int64_t)at * 1000000000 >= first_of(of))
            draw_svg_tick_x(of->svg, x_of(plot, (int64_t)at * 1000000000), n++ % 4 != 0, label);
    }
}

/* ---- the series ---- */

static void add_up(struct plot *plot)
{
    const struct draw_time_plot *of = plot->of;
    double most = 0;
    for (size_t i = 0; i < of->n; i++) {
        const struct draw_time_point *p = &of->points[i];
        double x = x_of(plot, p->start_ns);
        int at = (int)fmin(x / column_width(plot), DRAW_TIME_COLUMNS - 1);
        struct column *c = &plot->columns[at];
        if (isnan(p->mean))
            continue;
        c->x = c->n ? c->x : x;
        c->end = fmax(x_of(plot, p->start_ns + of->unit_ns), (at + 1) * column_width(plot));
        c->low = c->n ? fmin(c->low, fmin(p->low, p->mean)) : fmin(p->low, p->mean);
        c->high = c->n ? fmax(c->high, fmax(p->high, p->mean)) : fmax(p->high, p->mean);
        c->sum += p->mean;
        c->n++;
        most = fmax(most, c->high);
    }
    plot->top = of->top > 0 ? of->top : most > 0 ? round_up(most) : 0;
}

static void put_band(const struct plot *plot)
{
    FILE *out = plot->of->svg->out;
    (void)fputs("<path class=\"band\" fill-opacity=\".25\" d=\"", out);
    for (const struct column *c = plot->columns; c < plot->columns + DRAW_TIME_COLUMNS; c++)
        if (c->n && c->high > c->low)
            (void)fprintf(out, "M%.1f %.1fV%.1fH%.1fV%.1fz", c->x, y_of(plot, c->high), y_of(plot, c->low),
                          c->end, y_of(plot, c->high));
    (void)fputs("\"/>\n", out);
}

/* A step for each point or column, joined to the next if that follows. */
static void put_means(const struct plot *plot)
{
    FILE *out = plot->of->svg->out;
    double end = -plot->of->svg->width;
    (void)fputs("<path class=\"curve\" fill=\"none\" stroke=\"#1b66b3\" d=\"", out);
    for (const struct column *c = plot->columns; c < plot->columns + DRAW_TIME_COLUMNS; c++) {
        if (c->n == 0)
            continue;
        (void)fprintf(out, "%c%.1f %.1fH%.1f", c->x <= end + column_width(plot) ? 'L' : 'M', c->x,
                      y_of(plot, c->sum / c->n), c->end);
        end = c->end;
    }
    (void)fputs("\"/>\n", out);
}

static void put_lines(const struct plot *plot)
{
    const struct draw_svg_plot *svg = plot->of->svg;
    for (const struct draw_time_mark *m = plot->of->marks; m < plot->of->marks + plot->of->n_marks; m++)
        (void)fprintf(svg->out, "<path class=\"%s\" stroke=\"#888\" d=\"M%.1f 0V%g\"/>\n", m->class,
                      x_of(plot, m->ns), svg->height);
}

/* Beside their lines. */
static void put_labels(const struct plot *plot)
{
    enum { ROOM = 20, GAP = 3 };
    const struct draw_svg_plot *svg = plot->of->svg;
    for (const struct draw_time_mark *m = plot->of->marks; m < plot->of->marks + plot->of->n_marks; m++) {
        double x = x_of(plot, m->ns);
        bool is_left = x < svg->width - ROOM;
        if (m->label)
            draw_svg_plot_text(svg, is_left ? x + GAP : x - GAP, 10, is_left ? "value" : "value end",
                               m->label);
    }
}

void draw_time_plot(const struct draw_time_plot *of)
{
    const struct draw_svg_plot *svg = of->svg;
    struct plot plot = {.of = of};
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
    put_labels(&plot);
}
