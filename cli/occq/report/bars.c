/* See bars.h. One thread. */
#include "bars.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "draw/svg.h"
#include "cli/values.h"
#include "html.h"

/* Letter and hatching angle of each part; NONE: no hatching. report.css has the colours. */
enum { NONE = -1 };
static const struct {
    const char *letter;
    int angle;
} looks[OCC_PART_COUNT] = {
    [OCC_CAUSE_REGISTERS] = {"R", NONE},
    [OCC_CAUSE_SMEM] = {"S", 45},
    [OCC_CAUSE_CARVEOUT] = {"V", 135},
    [OCC_CAUSE_BARRIERS] = {"B", 90},
    [OCC_CAUSE_CLUSTER] = {"C", 0},
    [OCC_CAUSE_BLOCKS] = {"K", 135},
    [OCC_CAUSE_BLOCK_SIZE] = {"Z", 90},
    [OCC_CAUSE_SMALL_GRID] = {"G", 45},
    [OCC_CAUSE_TAIL] = {"T", 0},
    [OCC_PART_IDLE] = {"I", 45},
    [OCC_PART_IMBALANCE_ACROSS_BLOCKS] = {"A", 90},
    [OCC_PART_BLOCK_START] = {"P", NONE},
    [OCC_PART_UNEQUAL_BLOCKS] = {"Q", 45},
    [OCC_PART_IMBALANCE_WITHIN_BLOCK] = {"W", 135},
    [OCC_PART_NOT_SPLIT] = {"M", 0},
    [OCC_PART_UNEXPLAINED] = {"U", 135},
};

void bars_patterns(FILE *out)
{
    (void)fputs("<svg class=\"patterns\" aria-hidden=\"true\" width=\"0\" height=\"0\">\n", out);
    draw_svg_hatch(out);
    (void)fputs("<defs>\n", out);
    for (unsigned part = 0; part < OCC_PART_COUNT; part++) {
        const char *word = occ_part_word(part);
        if (!looks[part].letter)
            continue;
        (void)fprintf(out,
                      "<pattern id=\"fill-%s\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
                      "patternTransform=\"rotate(%d)\"><rect width=\"7\" height=\"7\" "
                      "class=\"fill-%s\"/>%s</pattern>\n",
                      word, looks[part].angle == NONE ? 0 : looks[part].angle, word,
                      looks[part].angle == NONE ? "" : "<path d=\"M3.5 0V7\" class=\"hatching\"/>");
    }
    (void)fputs("</defs></svg>\n", out);
}

/* Draws a part of a bar. Causes have patterns, other parts a class. */
static void put_rect(FILE *out, double from, double width, const char *fill)
{
    bool is_cause = false;
    for (unsigned part = 0; part < OCC_PART_COUNT && !is_cause; part++)
        is_cause = looks[part].letter && strcmp(occ_part_word(part), fill) == 0;
    (void)fprintf(out, "<rect x=\"%.2f%%\" width=\"%.2f%%\" height=\"100%%\" %s%s%s/>", from * 100,
                  width * 100, is_cause ? "fill=\"url(#fill-" : "class=\"", fill, is_cause ? ")\"" : "\"");
}

/* ---- kernels ---- */

void bars_legend(FILE *out, const struct top_line *lines, size_t n)
{
    (void)fputs("<ul class=\"legend\"><li><svg class=\"key\" aria-hidden=\"true\"><rect width=\"100%\" "
                "height=\"100%\" class=\"used\"/></svg> used (elapsed occupancy)</li>",
                out);
    for (unsigned part = 0; part < OCC_PART_COUNT; part++) {
        bool occurs = false;
        for (size_t i = 0; i < n && looks[part].letter; i++)
            occurs = occurs || lines[i].row.part[part] > 0;
        if (!occurs)
            continue;
        (void)fputs("<li><svg class=\"key\" aria-hidden=\"true\">", out);
        put_rect(out, 0, 1, occ_part_word(part));
        html_put(out, "</svg> <b>@</b> @</li>", looks[part].letter, occ_part_text(part, 1));
    }
    (void)fputs("</ul>\n", out);
}

void bars_stacked(FILE *out, const struct occ_top_row *row, double length)
{
    enum { LETTER_MIN_PERMILLE = 35 };
    double at = row->used * length;
    (void)fputs("<svg class=\"bar\" aria-hidden=\"true\">", out);
    put_rect(out, 0, at, "used");
    for (unsigned part = 0; part < OCC_PART_COUNT; part++) {
        double width = row->part[part] * length;
        if (!looks[part].letter || !(width > 0.0005))
            continue;
        put_rect(out, at, width, occ_part_word(part));
        if (width * 1000 > LETTER_MIN_PERMILLE)
            (void)fprintf(out, "<text x=\"%.2f%%\" y=\"70%%\">%s</text>", (at + width / 2) * 100,
                          looks[part].letter);
        at += width;
    }
    (void)fputs("</svg>", out);
}

/* ---- the GPU time ---- */

static const char *fill_of(const struct bars_step *step)
{
    if (step->fill)
        return step->fill;
    return looks[step->part].letter ? occ_part_word(step->part) : "unexplained";
}

void bars_whole(FILE *out, const struct bars_step *steps, size_t n)
{
    unsigned at = 0;
    (void)fputs("<svg class=\"bar whole\" aria-hidden=\"true\">", out);
    for (size_t i = 0; i < n; i++) {
        if (steps[i].percent > 0)
            put_rect(out, at / 100.0, steps[i].percent / 100.0, fill_of(&steps[i]));
        at += steps[i].percent;
    }
    (void)fputs("</svg>\n<ul class=\"legend\">", out);
    for (size_t i = 0; i < n; i++) {
        char percent[16];
        if (steps[i].percent == 0)
            continue;
        (void)snprintf(percent, sizeof percent, "%u", steps[i].percent);
        (void)fputs("<li data-part><svg class=\"key\" aria-hidden=\"true\">", out);
        put_rect(out, 0, 1, fill_of(&steps[i]));
        html_put(out, "</svg> <b>@%</b> @@</li>", percent, steps[i].what ? "" : "lost: ",
                 steps[i].what ? steps[i].what : occ_part_text(steps[i].part, 1));
    }
    (void)fputs("</ul>\n", out);
}

/* ---- a launch configuration ---- */

/* A row with a bar between 0 and 100 %. */
struct level {
    const char *what, *fill, *value, *source;
    double from, width;
};

static void put_level(FILE *out, const struct level *l)
{
    html_put(
        out,
        "<tr><th scope=\"row\" class=\"l\">@</th><td class=\"wide\"><svg class=\"bar\" aria-hidden=\"true\">",
        l->what);
    put_rect(out, l->from, l->width, l->fill);
    html_put(out, "</svg></td><td>@</td><td class=\"l\">@</td></tr>\n", l->value, l->source);
}

static void put_part(FILE *out, const struct analysis_waterfall *w, unsigned part, double *level)
{
    const struct analysis_part *p = &w->parts[part];
    const char *letter = looks[part].letter;
    char value[24], what[128], source[64];
    double ratio = isnan(p->ratio) ? 0 : p->ratio, after = *level - ratio;
    (void)snprintf(what, sizeof what, "%s%s%s", occ_part_text(part, p->ratio), letter ? " " : "",
                   letter ? letter : "");
    (void)snprintf(source, sizeof source, "%s%s", occ_value_source_word(p->source),
                   p->is_within_error ? ", within the error" : "");
    put_level(out,
              &(struct level){.what = what,
                              .fill = letter ? occ_part_word(part) : "used",
                              .value = cli_range_text(p->ratio - p->spread, p->ratio, value, sizeof value),
                              .source = source,
                              .from = fmax(fmin(*level, after), 0),
                              .width = fabs(ratio)});
    *level = after;
}

void bars_waterfall(FILE *out, const struct analysis *a)
{
    struct analysis_waterfall w;
    char value[24], used[64];
    double level = 1;
    analysis_explain(a, &w);
    (void)snprintf(used, sizeof used, "used: %s", w.used_text);
    (void)fputs("<table class=\"waterfall\"><caption>Where the occupancy goes</caption><thead><tr><th "
                "scope=\"col\" class=\"l\">part</th><th scope=\"col\" class=\"l\">from 100% down</th><th "
                "scope=\"col\">of all</th><th scope=\"col\" class=\"l\">source</th></tr></thead><tbody>\n",
                out);
    for (unsigned part = 0; part < OCC_PART_COUNT; part++)
        if (w.parts[part].is_shown)
            put_part(out, &w, part, &level);
    put_level(out, &(struct level){.what = used,
                                   .fill = "used",
                                   .value = cli_range_text(w.used, w.used + w.spread, value, sizeof value),
                                   .source = occ_value_source_word(w.source),
                                   .width = fmax(w.used, 0)});
    (void)fputs("</tbody></table>\n", out);
}

/* Draws a range, or a value with its interval; nothing if `low` is NaN. */
static void put_occupancy(FILE *out, const char *what, double low, double high, double error)
{
    char value[24], ci95[24], text[64];
    double width = fmax(high - low, 0);
    if (isnan(low))
        return;
    (void)snprintf(text, sizeof text, "%s", cli_range_text(low, high, value, sizeof value));
    if (error > 0)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), " \xc2\xb1 %s",
                       cli_percent_text(error, ci95, sizeof ci95));
    html_put(
        out,
        "<tr><th scope=\"row\" class=\"l\">@</th><td class=\"wide\"><svg class=\"bar\" aria-hidden=\"true\">",
        what);
    if (error > 0)
        (void)fprintf(out, "<rect x=\"%.2f%%\" width=\"%.2f%%\" height=\"100%%\" class=\"interval\"/>",
                      fmax(low - error, 0) * 100, 200 * error);
    (void)fprintf(out, "<rect x=\"%.2f%%\" width=\"%.2f%%\" y=\"20%%\" height=\"60%%\" class=\"range\"/>",
                  low * 100, width * 100);
    (void)fprintf(out, "<line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\" class=\"value\"/>", low * 100,
                  low * 100);
    html_put(out, "</svg></td><td>@</td></tr>\n", text);
}

void bars_occupancies(FILE *out, const struct analysis *a)
{
    const struct occ_result *r = a->result;
    const struct occ_measurement *m = a->measured;
    (void)fputs("<table class=\"occupancies\"><caption>Occupancy: what resources allow, what a balanced grid "
                "reaches, what was measured</caption><tbody>\n",
                out);
    put_occupancy(out, "theoretical", r->theoretical, r->theoretical, NAN);
    put_occupancy(out, "expected, of active cycles", r->expected_achieved_low, r->expected_achieved_high,
                  NAN);
    put_occupancy(out, "achieved, of active cycles", m->achieved, m->achieved,
                  m->achieved_error * OCC_ERRORS_OF_95_PERCENT);
    put_occupancy(out, "expected, of elapsed cycles", r->expected_elapsed_low, r->expected_elapsed_high, NAN);
    put_occupancy(out, "measured, of elapsed cycles", m->elapsed, m->elapsed,
                  m->elapsed_error * OCC_ERRORS_OF_95_PERCENT);
    (void)fputs("</tbody></table>\n", out);
}
