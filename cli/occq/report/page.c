/* The page, from its head to its data; see report.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assets.h"
#include "bars.h"
#include "html.h"
#include "overview.h"
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

/* ---- kernels ---- */

static bool is_same_device(const struct occ_row_kernel *a, const struct occ_row_kernel *b)
{
    return a->device == b->device;
}

/* Writes the kernel's name, with its GPU if kernels of several GPUs have this name. */
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
        (void)fprintf(out, " on GPU %" PRId64, kernel->device);
}

/* Returns the warp-seconds that the GPU could hold during the launches; 0: not analysed, or without
 * measurable time. */
static double capacity_of(const struct show_group *group)
{
    double seconds = 0;
    for (size_t i = 0; i < group->n; i++)
        seconds += (double)group->configs[i].total_ns * 1e-9 * group->configs[i].limits.sm_count *
                   group->configs[i].result.max_warps_per_sm;
    return seconds;
}

/* Draws the bar of a row, or prints the reason for its absence. */
static void put_bar(FILE *out, const struct occ_top_row *row, double capacity, double largest)
{
    if (capacity > 0 && !isnan(row->used))
        bars_stacked(out, row, capacity / largest);
    else
        (void)fputs(isnan(row->used) ? "not analysed: the model refuses its launch configurations"
                                     : "no bar: its launches took no measurable time",
                    out);
}

static void put_where(FILE *out, const struct report *r)
{
    char share[16], used[16];
    double largest = 0;
    for (size_t i = 0; i < r->n_groups; i++)
        largest = fmax(largest, capacity_of(&r->groups[i]));
    (void)fputs("<section aria-labelledby=\"where\"><h2 id=\"where\">Where the time goes</h2>\n"
                "<p>A bar is what the GPU could hold while the kernel ran: what was used, and what was lost "
                "to each cause. The largest losses:</p>\n",
                out);
    bars_legend(out, r->lines, r->n_groups);
    (void)fputs(
        "<table class=\"where\"><caption>Kernels by loss, in percent of the GPU time</caption><thead><tr><th "
        "scope=\"col\" class=\"l\">kernel</th><th scope=\"col\" class=\"l\">used and lost</th><th "
        "scope=\"col\">GPU time</th><th scope=\"col\">used</th></tr></thead><tbody>\n",
        out);
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct top_line *line = &r->lines[i];
        (void)fputs("<tr><th scope=\"row\" class=\"l\">", out);
        put_name(out, r, &line->row.kernel);
        (void)fputs("</th><td class=\"wide\">", out);
        put_bar(out, &line->row, capacity_of(&r->groups[i]), largest);
        html_put(out, "</td><td>@</td><td>@</td></tr>\n",
                 cli_percent_text(line->gpu_share, share, sizeof share),
                 cli_percent_text(line->row.used, used, sizeof used));
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
             "<p>@ more rows, with @ of the waste, are not in the table: <code>occq top -n "
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
    html_choose(top_columns,
                "kernel,share,used,cause,loss,launches,time,kernel%,waste,waste%,theor,expect_low,expect_"
                "high,achieved,"
                "measured,device_id,"
                "device",
                &columns);
    columns.n -= several ? 0 : 2; /* the device's columns */
    (void)fputs(
        "<section aria-labelledby=\"kernels\"><h2 id=\"kernels\">Kernels</h2>\n<div id=\"controls\"></div>\n",
        out);
    html_table_begin(out, "top", "Kernels by loss", &columns);
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
    if (r->trend->n == 0)
        (void)fputs("<p>Nothing to draw: the recordings of these launches do not name the origin of their "
                    "times.</p>\n",
                    out);
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

static void put_verdicts(FILE *out, const struct report *r)
{
    const struct diff_report *diff = r->diff;
    char place[DIFF_PLACE_BYTES], text[DIFF_GROUP_BYTES];
    size_t shown = 0;
    (void)fputs("<ul>\n", out);
    if (sides_gpu_time_text(&diff->gpu_time, diff->floor, text)[0])
        html_put(out, "<li><strong>@</strong> " DIFF_GPU_TIME_PLACE ": @</li>\n",
                 diff_group_word(diff_gpu_time_verdict(diff)), text);
    for (const struct diff_group_line *line = NULL;
         shown < diff->shown && (line = diff_next_group(diff, r->diff_groups, line)); shown++)
        html_put(out, "<li><strong>@</strong> <bdi>@: @</bdi></li>\n", diff_group_word(line->group->verdict),
                 diff_group_place(line, place), diff_group_text(diff, r->diff_groups, line, text));
    (void)fputs("</ul>\n", out);
    html_put(out, "<p>@</p>\n", diff_control_text(diff, text));
    html_put(out, "<p>@</p>\n", diff_undecided_text(diff, r->diff_groups, text));
}

static void put_diff(FILE *out, const struct report *r)
{
    const struct diff_report *diff = r->diff;
    struct cli_selection columns;
    char side[DIFF_SIDES][DIFF_SIDE_BYTES], note[DIFF_NOTE_BYTES], kernels[DIFF_KERNELS_BYTES];
    size_t n = diff->diff->n_pairs < diff->shown ? diff->diff->n_pairs : diff->shown;
    bool has_ranges = false, has_reasons = false;
    for (size_t i = 0; i < n; i++) {
        has_ranges = has_ranges || r->diff_lines[i].range[0];
        has_reasons = has_reasons || r->diff_lines[i].reason[0];
    }
    html_put(out,
             "<section aria-labelledby=\"diff\"><h2 id=\"diff\">What "
             "changed</h2>\n<p><bdi>@</bdi><br><bdi>@</bdi></p>\n<p class=\"note\">@ @</p>\n",
             diff_side_text(diff, DIFF_A, side[DIFF_A]), diff_side_text(diff, DIFF_B, side[DIFF_B]),
             diff_caveat(diff->diff), diff_devices_note(&diff->side[DIFF_A], &diff->side[DIFF_B], note));
    if (diff_kernels_note(diff, kernels)[0])
        html_put(out, "<p class=\"note\">Note: <bdi>@</bdi>.</p>\n", kernels);
    if (r->shared_runs > 0)
        (void)fprintf(out, "<p class=\"note\">Note: %u run%s on both sides.</p>\n", r->shared_runs,
                      r->shared_runs == 1 ? " is" : "s are");
    put_verdicts(out, r);
    (void)fputs("<pre>", out);
    diff_print_summary(out, diff);
    (void)fputs("</pre>\n", out);
    char chosen[96];
    (void)snprintf(chosen, sizeof chosen, "verdict,kernel%s,share,change,basis,low,high%s,changes",
                   has_ranges ? ",range" : "", has_reasons ? ",reason" : "");
    html_choose(diff_columns, chosen, &columns);
    html_table_begin(out, "changed", "Kernels by change of their time", &columns);
    html_rows(out, &columns, r->diff_lines, n, sizeof *r->diff_lines);
    html_table_end(out);
    (void)fputs("<p>", out);
    diff_print_footer(out, diff, n);
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
    status = report_verdict(out, r, err);
    if (r->diff)
        put_diff(out, r);
    (void)fputs("<div class=\"beside\">\n", out);
    report_layers(out, r);
    put_where(out, r);
    (void)fputs("</div>\n", out);
    put_kernels(out, r);
    put_ranges(out, r);
    put_trend(out, r);
    (void)fputs("<section aria-labelledby=\"each\"><h2 id=\"each\">Each kernel</h2>\n", out);
    for (size_t i = 0; i < r->n_groups && status == 0; i++)
        status = report_kernel(out, &r->groups[i], err);
    (void)fputs("</section>\n", out);
    for (const struct report_list *list = report_lists; list->list && status == 0; list++)
        status = put_list(out, r, list, err);
    (void)fputs("</main>\n", out);
    if (status == 0)
        status = report_data(out, r, err);
    (void)fprintf(out, "<script>%s</script>\n</body></html>\n", report_script);
    return status;
}
