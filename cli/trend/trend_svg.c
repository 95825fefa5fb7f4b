/* Draws series as plots with bands over a time axis, for `occq history --svg`, with the changes below the
 * plots, and for `occq report`. Changes are numbered in their plots. One thread (stdio). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"
#include "draw/time_plot.h"
#include "support/cleanup.h"
#include "trend.h"

static double fraction_of(const struct trend *t, int64_t ns)
{
    return draw_time_fraction(t->points[0].start_ns, t->points[t->n - 1].start_ns + t->unit_ns, ns);
}

/* ---- a series ---- */

enum { NUMBER_BYTES = 32 };

/* The points and marks of a series. */
struct picture {
    struct draw_time_point *points;
    struct draw_time_mark *marks;
    char (*numbers)[NUMBER_BYTES]; /* numbers of changes */
};

static void picture_free(struct picture *picture)
{
    free(picture->points);
    free(picture->marks);
    free(picture->numbers);
}

static bool picture_new(const struct trend *t, struct picture *ret_picture)
{
    ret_picture->points = calloc(t->n + 1, sizeof *ret_picture->points);
    ret_picture->marks = calloc(t->n_labels + t->n_changes + 1, sizeof *ret_picture->marks);
    ret_picture->numbers = calloc(t->n_changes + 1, sizeof *ret_picture->numbers);
    return ret_picture->points && ret_picture->marks && ret_picture->numbers;
}

/* Writes marks of labels, then of the series' changes with their numbers. Returns the number of marks. */
static size_t put_marks(const struct trend *t, enum trend_series series, const struct picture *picture)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_labels; i++)
        picture->marks[n++] = (struct draw_time_mark){.ns = t->labels[i].start_ns, .class = "label"};
    for (size_t i = 0; i < t->n_changes; i++) {
        const struct trend_change *change = &t->changes[i];
        (void)snprintf(picture->numbers[i], NUMBER_BYTES, "%zu%s", i + 1,
                       change->possible   ? "?"
                       : change->is_drift ? " drift"
                                          : "");
        if (change->in == series)
            picture->marks[n++] = (struct draw_time_mark){
                .ns = change->start_ns, .class = "mark", .label = picture->numbers[i]};
    }
    return n;
}

static const char *value_text(double value, const void *series, char *buffer, size_t size)
{
    return trend_value_text(*(const enum trend_series *)series, value, buffer, size);
}

void trend_plot(const struct draw_svg_plot *svg, const struct trend *t, enum trend_series series)
{
    _cleanup_(picture_free) struct picture picture = {0};
    if (!picture_new(t, &picture)) {
        cli_screen_lose_text();
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct trend_value v = trend_value(&t->points[i], series);
        picture.points[i] = (struct draw_time_point){t->points[i].start_ns, v.mean, v.low, v.high};
    }
    const struct draw_time_plot plot = {.svg = svg,
                                        .points = picture.points,
                                        .n = t->n,
                                        .unit_ns = t->unit_ns,
                                        .is_utc = trend_is_utc(t),
                                        .top = trend_series[series].unit == CLI_RATIO ? 1 : 0,
                                        .marks = picture.marks,
                                        .n_marks = put_marks(t, series, &picture),
                                        .value_text = value_text,
                                        .context = &series};
    draw_time_plot(&plot);
}

/* ---- the picture of all series ---- */

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
    (void)snprintf(title, sizeof title, "time (%s)",
                   draw_time_zone(t->points[0].start_ns, t->points[t->n - 1].start_ns, trend_is_utc(t), zone,
                                  sizeof zone));
    if (series + 1 == TREND_SERIES_COUNT)
        draw_svg_titles(&plot, title, NULL);
    draw_svg_end(out);
}

/* Writes labels above the plots; omits labels without room. */
static void put_labels(const struct trend *t, FILE *out)
{
    enum { LETTER_X = 6 };
    double used = 0;
    for (size_t i = 0; i < t->n_labels; i++) {
        double x = PLOT_X * fraction_of(t, t->labels[i].start_ns),
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
    double in_column = 1 / (DRAW_TIME_COLUMNS * fraction_of(t, t->points[0].start_ns + t->unit_ns));
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

/* Writes a change on one or two lines. Returns the number of lines. `out` NULL: only counts. */
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
