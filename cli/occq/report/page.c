/* The page, from its head to its data; see report.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assets.h"
#include "bars.h"
#include "cli/marks.h"
#include "html.h"
#include "plots.h"
#include "report.h"
#include "support/text.h"

static void put_head(FILE *out)
{
    (void)fprintf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-%s'; "
        "style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>GPU occupancy report</title>\n<style>",
        report_script_sha256, report_style_sha256);
    (void)fputs(report_style, out);
    (void)fputs("</style></head>\n<body>\n", out);
    bars_patterns(out);
}

/* ---- verdict ---- */

static void count(FILE *out, uint64_t n, const char *one)
{
    (void)fprintf(out, "<b>%" PRIu64 "</b> %s%s", n, one,
                  n == 1                       ? ""
                  : strcmp(one, "launch") == 0 ? "es"
                                               : "s");
}

static void put_devices(FILE *out, const struct report *r)
{
    const char *last = NULL, *separator = "";
    for (size_t i = 0; i < r->top->n; i++) {
        const char *name = r->top->rows[i].kernel.device_name;
        bool known = !name || (last && strcmp(last, name) == 0);
        for (size_t k = 0; k < i && !known; k++)
            known =
                r->top->rows[k].kernel.device_name && strcmp(r->top->rows[k].kernel.device_name, name) == 0;
        if (!known) {
            (void)fputs(separator, out);
            html_put(out, "<bdi>@</bdi>", name);
            separator = ", ";
        }
        last = name;
    }
}

/* What would save most, of kernels with a section. */
static void put_best_advice(FILE *out, const struct report *r)
{
    const struct top_line *best = NULL;
    char anchor[REPORT_ANCHOR_BYTES], saves[32];
    for (size_t i = 0; i < r->n_groups; i++)
        if (r->lines[i].advice[0] && (!best || r->lines[i].advice_saves_ns > best->advice_saves_ns))
            best = &r->lines[i];
    if (!best)
        return;
    html_put(out, "<p>What may save most: @ in <a href=\"#@\"><bdi>@</bdi></a>, 0 to @. <code>@</code></p>\n",
             best->advice, report_anchor(&best->row.kernel, anchor), best->row.kernel.short_name,
             occ_format_duration((int64_t)best->advice_saves_ns, saves, sizeof saves), best->knob);
}

/* Whether the kernel communicates, which is low by design. */
static bool put_waster(FILE *out, const struct top_line *line)
{
    char anchor[REPORT_ANCHOR_BYTES], part[16], loss[16], words[CLI_MARKS_BYTES];
    unsigned cause = top_part_of(line->row.main_cause);
    (void)cli_marks_text(cli_marks(false, 0, line->row.kernel.demangled), true, words);
    html_put(out, "<p><a href=\"#@\"><bdi>@</bdi></a> has @ of that",
             report_anchor(&line->row.kernel, anchor), line->row.kernel.short_name,
             cli_percent_text(line->waste_ratio, part, sizeof part));
    if (words[0])
        html_put(out, ": @", words);
    else if (cause < OCC_PART_COUNT)
        html_put(out, ": @ (@ of its occupancy)", occ_part_text(cause, 1),
                 cli_percent_text(line->main_cause_ratio, loss, sizeof loss));
    (void)fputs(".</p>\n", out);
    return words[0] != '\0';
}

/* The largest, and where that is so by design, the next. */
static void put_largest(FILE *out, const struct report *r)
{
    enum { MOST = 3 };
    bool by_design = true;
    for (size_t i = 0; by_design && i < r->n_lines && i < MOST && !isnan(r->lines[i].waste_ratio); i++)
        by_design = put_waster(out, &r->lines[i]);
}

static void put_lost(FILE *out, const struct report *r)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRId64, sql_count_partial(r->store, r->filter).lost);
    if (strcmp(text, "0") != 0)
        html_put(out,
                 "<p class=\"note\">Launches that could not be recorded: @. <a href=\"#runs\">Runs</a> have "
                 "the causes.</p>\n",
                 text);
}

static void put_notes(FILE *out, const struct report *r)
{
    size_t simulated = 0, measured = 0;
    char text[2][32];
    for (size_t i = 0; i < r->top->n; i++) {
        simulated += r->top->rows[i].kernel.simulated;
        measured += isnan(r->top->rows[i].elapsed) ? 0 : 1;
    }
    (void)snprintf(text[0], sizeof text[0], "%zu", simulated);
    (void)snprintf(text[1], sizeof text[1], "%zu", measured);
    if (simulated)
        html_put(out, "<p class=\"note\">@ kernels ran on a simulated device: no real GPU did.</p>\n",
                 text[0]);
    if (measured == 0)
        (void)fputs("<p class=\"note\">Nothing was measured by hardware counters: occupancy is the low end "
                    "of what the model expects.</p>\n",
                    out);
    else
        html_put(out,
                 "<p class=\"note\">Hardware counters measured @ of the kernels; of others the low end of "
                 "what the model expects counts.</p>\n",
                 text[1]);
}

static void put_verdict(FILE *out, const struct report *r)
{
    char time[32], waste[32];
    (void)fputs("<header><h1>GPU occupancy report</h1>\n<p>", out);
    put_devices(out, r);
    if (r->asked[0])
        html_put(out, " \xc2\xb7 <bdi>@</bdi>", r->asked);
    if (r->diff)
        html_put(out, " \xc2\xb7 all but <a href=\"#diff\">what changed</a> is about B: <bdi>@</bdi>",
                 r->diff->side[DIFF_B].title);
    (void)fputs(
        "</p></header>\n<main>\n<section aria-labelledby=\"verdict\"><h2 id=\"verdict\">Verdict</h2>\n<p>",
        out);
    count(out, r->sums.launches, "launch");
    (void)fputs(" of ", out);
    count(out, r->top->n, "kernel");
    html_put(out, " took <b>@</b> and wasted <b>@</b> warp-seconds.</p>\n",
             occ_format_duration((int64_t)r->sums.ns, time, sizeof time),
             cli_amount_text(r->sums.waste, waste, sizeof waste));
    put_largest(out, r);
    put_best_advice(out, r);
    put_notes(out, r);
    put_lost(out, r);
    (void)fputs("</section>\n", out);
}

/* ---- kernels ---- */

static bool is_same_device(const struct occ_row_kernel *a, const struct occ_row_kernel *b)
{
    return strcmp(a->device_name ? a->device_name : "", b->device_name ? b->device_name : "") == 0;
}

/* The kernel's name, with its GPU where the name appears for several. */
static void put_name(FILE *out, const struct report *r, const struct occ_row_kernel *kernel)
{
    char anchor[REPORT_ANCHOR_BYTES];
    bool is_on_others = false;
    for (size_t i = 0; i < r->n_groups && !is_on_others; i++) {
        const struct occ_row_kernel *other = &r->lines[i].row.kernel;
        is_on_others = strcmp(other->short_name, kernel->short_name) == 0 && !is_same_device(other, kernel);
    }
    html_put(out, "<a href=\"#@\"><bdi>@</bdi></a>", report_anchor(kernel, anchor), kernel->short_name);
    if (is_on_others)
        html_put(out, " on <bdi>@</bdi>", kernel->device_name);
}

static void put_where(FILE *out, const struct report *r)
{
    char waste[32], ratio[16];
    double largest = 0, seconds;
    for (size_t i = 0; i < r->n_groups; i++) {
        (void)report_devices(r, &r->groups[i], &seconds);
        largest = fmax(largest, seconds);
    }
    (void)fputs("<section aria-labelledby=\"where\"><h2 id=\"where\">Where the warp-seconds go</h2>\n"
                "<p>A bar is what the GPU could hold while the kernel ran: what was used, and what was lost "
                "to each cause. The most wasteful kernels:</p>\n",
                out);
    bars_legend(out, r->lines, r->n_groups);
    (void)fputs(
        "<table class=\"where\"><caption>Warp-seconds of the most wasteful kernels</caption><thead><tr><th "
        "scope=\"col\" class=\"l\">kernel</th><th scope=\"col\" class=\"l\">used and lost</th><th "
        "scope=\"col\">wasted</th><th scope=\"col\">of all waste</th></tr></thead><tbody>\n",
        out);
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct top_line *line = &r->lines[i];
        (void)fputs("<tr><th scope=\"row\" class=\"l\">", out);
        put_name(out, r, &line->row.kernel);
        (void)fputs("</th><td class=\"wide\">", out);
        (void)report_devices(r, &r->groups[i], &seconds);
        bars_stacked(out, &line->row, seconds / largest);
        html_put(out, "</td><td>@</td><td>@</td></tr>\n",
                 cli_amount_text(line->waste_warp_seconds, waste, sizeof waste),
                 cli_percent_text(line->waste_ratio, ratio, sizeof ratio));
    }
    (void)fputs("</tbody></table></section>\n", out);
}

static void put_others(FILE *out, const struct report *r)
{
    char n[32], waste[16];
    if (r->n_lines == r->top->n)
        return;
    (void)snprintf(n, sizeof n, "%zu", r->top->n - r->n_lines);
    html_put(out,
             "<p>@ more kernels, with @ of the waste, are not in the table: <code>occq top -n "
             "1000000</code></p>\n",
             n, cli_percent_text(1 - r->lines[r->n_lines - 1].running_waste_ratio, waste, sizeof waste));
}

static void put_kernels(FILE *out, const struct report *r)
{
    struct cli_selection columns;
    char anchor[REPORT_ANCHOR_BYTES];
    bool several = false;
    for (size_t i = 1; i < r->top->n && !several; i++)
        several = !is_same_device(&r->top->rows[0].kernel, &r->top->rows[i].kernel);
    html_choose(
        top_columns,
        "kernel,waste,waste%,cause,loss,launches,time,share,theor,expect_low,expect_high,achieved,device",
        &columns);
    columns.n -= several ? 0 : 1;
    (void)fputs(
        "<section aria-labelledby=\"kernels\"><h2 id=\"kernels\">Kernels</h2>\n<div id=\"controls\"></div>\n",
        out);
    html_table_begin(out, "top", "Kernels by wasted warp-seconds", &columns);
    for (size_t i = 0; i < r->n_lines; i++) {
        (void)report_anchor(&r->lines[i].row.kernel, anchor);
        if (i < r->n_groups)
            (void)fputs("<tr>", out);
        else
            html_put(out, "<tr id=\"@\">", anchor);
        html_cells(out, &columns, &r->lines[i], i < r->n_groups ? anchor : NULL);
        (void)fputc('\n', out);
    }
    html_table_end(out);
    put_others(out, r);
    (void)fputs("</section>\n", out);
}

/* ---- over time, comparison, runs ---- */

static void put_trend(FILE *out, const struct report *r)
{
    struct cli_selection columns;
    char text[512];
    html_put(out,
             "<section aria-labelledby=\"time\"><h2 id=\"time\">Over time</h2>\n<p>By @s@; nothing is drawn "
             "where there are no launches.</p>\n",
             r->trend->unit, strcmp(r->trend->unit, "day") == 0 ? " of UTC" : "");
    plots_trend(out, r->trend);
    (void)fputs("<h3>Changes</h3>\n<ol>\n", out);
    for (size_t i = 0; i < r->trend->n_changes; i++)
        html_put(out, "<li>@</li>\n", trend_change_text(r->trend, &r->trend->changes[i], text, sizeof text));
    (void)fputs(r->trend->n_changes ? "</ol>\n" : "</ol>\n<p>None was found.</p>\n", out);
    (void)fputs("<details><summary>Show as table</summary>\n", out);
    html_choose(trend_point_columns, "start,launches,time,mean,elapsed,low,high,measured,waste", &columns);
    html_table_begin(out, "points", "Launches by time", &columns);
    html_rows(out, &columns, r->trend->points, r->trend->n, sizeof *r->trend->points);
    html_table_end(out);
    (void)fputs("</details></section>\n", out);
}

static void put_ranges(FILE *out, const struct report *r)
{
    struct cli_column table[TOP_COLUMNS_MAX];
    struct cli_selection columns;
    char covered[16], n[64];
    if (r->n_ranges == 0)
        return;
    (void)snprintf(n, sizeof n, "%zu of %zu", r->n_ranges, r->ranges->n);
    html_put(out,
             "<section aria-labelledby=\"in\"><h2 id=\"in\">Where launches were made</h2>\n<p>@ of kernel "
             "time has a range (NVTX, PyTorch's operators and modules); the most wasteful, @:</p>\n",
             cli_percent_text(floor(top_covered_ratio(r->ranges) * 1000) / 1000, covered, sizeof covered), n);
    report_range_columns(table, &columns);
    html_table_begin(out, "ranges", "Ranges by wasted warp-seconds", &columns);
    html_rows(out, &columns, r->range_lines, r->n_ranges, sizeof *r->range_lines);
    html_table_end(out);
    (void)fputs("</section>\n", out);
}

static void put_diff(FILE *out, const struct report *r)
{
    const struct diff_report *diff = r->diff;
    struct cli_selection columns;
    char side[DIFF_SIDES][DIFF_SIDE_BYTES], note[DIFF_NOTE_BYTES];
    size_t n = diff->diff->n_pairs < diff->shown ? diff->diff->n_pairs : diff->shown;
    bool has_ranges = false;
    for (size_t i = 0; i < n; i++)
        has_ranges = has_ranges || r->diff_lines[i].range[0];
    html_put(out,
             "<section aria-labelledby=\"diff\"><h2 id=\"diff\">What "
             "changed</h2>\n<p><bdi>@</bdi><br><bdi>@</bdi></p>\n<p class=\"note\">@ @</p>\n<pre>",
             diff_side_text(diff, DIFF_A, side[DIFF_A]), diff_side_text(diff, DIFF_B, side[DIFF_B]),
             diff_caveat(diff->diff), diff_devices_note(&diff->side[DIFF_A], &diff->side[DIFF_B], note));
    diff_print_summary(out, diff);
    (void)fputs("</pre>\n", out);
    html_choose(diff_columns,
                has_ranges ? "verdict,kernel,range,share,change,low,high,changes"
                           : "verdict,kernel,share,change,low,high,changes",
                &columns);
    html_table_begin(out, "changed", "Kernels by change of their time", &columns);
    html_rows(out, &columns, r->diff_lines, n, sizeof *r->diff_lines);
    html_table_end(out);
    (void)fputs("<p>", out);
    diff_print_footer(out, diff);
    (void)fputs("</p></section>\n", out);
}

struct rows {
    FILE *out;
    struct cli_selection columns;
};

static int put_row(void *context, const void *row, struct occ_error *err)
{
    const struct rows *rows = context;
    (void)err;
    html_rows(rows->out, &rows->columns, row, 1, 0);
    return 0;
}

static int put_list(FILE *out, const struct report *r, const struct report_list *list, struct occ_error *err)
{
    const char *name = list->list->name;
    struct rows rows = {.out = out};
    html_choose(list->list->table, list->columns, &rows.columns);
    html_put(out, "<section aria-labelledby=\"@-title\"><h2 id=\"@-title\">@</h2>\n", name, name,
             list->title);
    html_table_begin(out, name, list->title, &rows.columns);
    int status = report_visit(r, list, &rows.columns, &(struct sql_visitor){put_row, &rows}, err);
    html_table_end(out);
    (void)fputs("</section>\n", out);
    return status;
}

/* ---- all ---- */

int report_page(FILE *out, const struct report *r, struct occ_error *err)
{
    int status = 0;
    put_head(out);
    put_verdict(out, r);
    if (r->diff)
        put_diff(out, r);
    put_where(out, r);
    put_kernels(out, r);
    put_ranges(out, r);
    put_trend(out, r);
    (void)fputs("<section aria-labelledby=\"each\"><h2 id=\"each\">Each kernel</h2>\n", out);
    for (size_t i = 0; i < r->n_groups && status == 0; i++)
        status = report_kernel(out, r, &r->groups[i], err);
    (void)fputs("</section>\n", out);
    for (const struct report_list *list = report_lists; list->list && status == 0; list++)
        status = put_list(out, r, list, err);
    (void)fputs("</main>\n", out);
    if (status == 0)
        status = report_data(out, r, err);
    (void)fprintf(out, "<script>%s</script>\n</body></html>\n", report_script);
    return status;
}
