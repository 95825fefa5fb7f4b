/* A kernel's section of the page; see report.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bars.h"
#include "cli/marks.h"
#include "cli/analysis/calc_curve.h"
#include "cli/analysis/calc_target.h"
#include "html.h"
#include "plots.h"
#include "report.h"
#include "support/cleanup.h"
#include "support/text.h"

const char *report_anchor(const struct occ_row_kernel *kernel, char anchor[REPORT_ANCHOR_BYTES])
{
    (void)snprintf(anchor, REPORT_ANCHOR_BYTES, "kernel-%" PRId64 "-%" PRId64, kernel->id, kernel->device);
    return anchor;
}

/* ---- a launch configuration ---- */

static void put_times(FILE *out, const struct occ_config_row *row)
{
    char text[6][32], launches[32];
    const uint64_t times[6] = {row->total_ns, row->min_ns, row->p50_ns,
                               row->p95_ns,   row->p99_ns, row->max_ns};
    for (size_t i = 0; i < 6; i++)
        (void)occ_format_duration((int64_t)times[i], text[i], sizeof text[i]);
    (void)snprintf(launches, sizeof launches, "%" PRIu64, row->launches);
    html_put(out, "<p>Launches: @, @ in all. A launch: min @, p50 @, p95 @, p99 @, max @.</p>\n", launches,
             text[0], text[1], text[2], text[3], text[4], text[5]);
    plots_durations(out, row);
}

static void put_configuration(FILE *out, const struct occ_config_row *row)
{
    const struct occ_launch *l = &row->launch;
    char id[32], grid[48], block[48], cluster[48], registers[16], fixed[32], dynamic[32];
    (void)snprintf(id, sizeof id, "%" PRId64, row->id);
    (void)snprintf(registers, sizeof registers, "%u", l->registers_per_thread);
    html_put(out, "<h4>Launch configuration @: grid @, block @", id,
             analysis_dimensions(l->grid, grid, sizeof grid),
             analysis_dimensions(l->block, block, sizeof block));
    if (calc_cluster_blocks(l) > 1)
        html_put(out, ", cluster @", analysis_dimensions(l->cluster, cluster, sizeof cluster));
    html_put(out, "</h4>\n<p>@ registers per thread, shared memory @ static + @ dynamic per block.</p>\n",
             registers, occ_format_bytes(l->static_smem_bytes, fixed, sizeof fixed),
             occ_format_bytes(l->dynamic_smem_bytes, dynamic, sizeof dynamic));
}

static void put_advice(FILE *out, const struct analysis *a)
{
    struct analysis_advice advice[OCC_ADVICE_MAX];
    char change[96], note[256], expected[192];
    size_t n = analysis_advise(a, advice);
    (void)analysis_advice_note(a, note, sizeof note);
    (void)fputs("<h5>Advice</h5>\n", out);
    if (note[0])
        html_put(out, "<p>@.</p>\n", note);
    if (n == 0 && !note[0])
        (void)fputs("<p>None: no single change is predicted to help.</p>\n", out);
    (void)fputs(n ? "<ul>\n" : "", out);
    for (size_t i = 0; i < n; i++) {
        if (analysis_begins_below_unknown(advice, i))
            html_put(out, "<li>@:</li>\n", analysis_unknown_text(a, note, sizeof note));
        html_put(out, "<li>@: @. <code>@</code></li>\n",
                 analysis_advice_change(&advice[i].change, change, sizeof change),
                 analysis_expectation_text(&advice[i], expected, sizeof expected), advice[i].knob);
    }
    (void)fputs(n ? "</ul>\n" : "", out);
}

/* Writes the calculator's curves of the launch: block size, registers, shared memory. */
static int put_curves(FILE *out, const struct occ_config_row *row, struct occ_error *err)
{
    _cleanup_(calc_curves_release) struct calc_curves curves = {.n = 0};
    int status = calc_curves_new(&row->limits, &row->launch, &curves, err);
    (void)fputs("<div class=\"panels\">\n", out);
    for (size_t i = 0; i < curves.n; i++)
        if (curves.list[i].axis <= OCC_AXIS_SMEM)
            calc_svg_panel(out, &curves.list[i]);
    (void)fputs("</div>\n", out);
    return status;
}

/* Writes the measured share of the time, the withheld values with the reason, and the fields that the
 * recording lacks. */
static void put_withheld(FILE *out, const struct occ_config_row *row, const struct occ_measurement *m)
{
    const struct occ_measured_sums *sums = &row->measured;
    double group = occ_measured_mean(sums, OCC_MEASURED_group_elapsed);
    char percent[16], covered[16];
    (void)cli_percent_text(m->measured_ratio, covered, sizeof covered);
    if (m->source == OCC_FROM_MODEL)
        (void)fputs("<p>Not measured: below are the model's values.</p>\n", out);
    else if (m->withheld > OCC_WITHHELD_GROUP)
        html_put(out, "<p>Measured in @ of the time, but withheld: @.</p>\n", covered,
                 occ_withheld_text(m->withheld));
    else if (!isnan(group) && isnan(m->elapsed))
        html_put(out,
                 "<p>Its own value is withheld: its launches cannot be told apart from others. Its group's "
                 "elapsed occupancy is @.</p>\n",
                 cli_percent_text(group, percent, sizeof percent));
    else
        html_put(out, "<p>Measured in @ of the time: @. The interval covers the other launches, too.</p>\n",
                 covered, occ_value_source_text(m->source));
    if (row->missing_fields)
        html_put(out, "<p>Not in such recordings: @.</p>\n", row->missing_fields);
}

static int put_config(FILE *out, const struct occ_config_row *row, struct occ_error *err)
{
    struct occ_measurement measured;
    const struct analysis a = show_analysis(row, &measured);
    char limiters[128];
    put_configuration(out, row);
    put_withheld(out, row, &measured);
    if (!row->analysed)
        html_put(out, "<p>Not analysed: @.</p>\n", row->refused);
    if (row->analysed) {
        html_put(out, "<p>Limited by @.</p>\n",
                 occ_limiters_text(row->result.limiters, limiters, sizeof limiters));
        bars_occupancies(out, &a);
        bars_waterfall(out, &a);
        html_put(out, "<p>Would more warps help? @.</p>\n", occ_bound_text(analysis_bound(&a)));
        put_advice(out, &a);
    }
    put_times(out, row);
    return row->analysed ? put_curves(out, row, err) : 0;
}

/* ---- the section ---- */

static void put_marks(FILE *out, const struct occ_config_row *row)
{
    char words[CLI_MARKS_BYTES];
    if (row->kernel.simulated)
        (void)fputs("<p class=\"note\">Simulated device: no real GPU ran this.</p>\n", out);
    (void)cli_marks_text(cli_marks(false, row->analysed ? row->result.by_design : 0, row->kernel.demangled),
                         true, words);
    if (words[0])
        html_put(out, "<p class=\"note\">@.</p>\n", words);
}

int report_kernel(FILE *out, const struct show_group *group, struct occ_error *err)
{
    const struct occ_config_row *first = group->configs;
    char anchor[REPORT_ANCHOR_BYTES], id[32], gpu[32], more[64];
    int status = 0;
    (void)report_anchor(&first->kernel, anchor);
    (void)snprintf(id, sizeof id, "%" PRId64, first->kernel.id);
    (void)snprintf(gpu, sizeof gpu, "%" PRId64, first->kernel.device);
    html_put(out,
             "<section class=\"kernel\" id=\"@\" aria-labelledby=\"@-name\">\n<h3 "
             "id=\"@-name\"><bdi>@</bdi></h3>\n"
             "<p class=\"full\"><bdi>@</bdi></p><p>On GPU @: <bdi>@</bdi>. <a href=\"#kernels\">All "
             "kernels</a></p>\n",
             anchor, anchor, anchor, first->kernel.short_name, first->kernel.demangled, gpu,
             first->kernel.device_name);
    put_marks(out, first);
    for (size_t i = 0; i < group->shown && status == 0; i++)
        status = put_config(out, &group->configs[i], err);
    if (group->shown < group->n) {
        (void)snprintf(more, sizeof more, "%zu more launch configuration%s", group->n - group->shown,
                       group->n - group->shown == 1 ? "" : "s");
        html_put(out, "<p>@: <code>occq show @ --gpu @</code></p>\n", more, id, gpu);
    }
    (void)fputs("</section>\n", out);
    return status;
}
