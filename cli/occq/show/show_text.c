/* `occq show --all` for people: each launch configuration with its resources, times and analysis; see
 * show_text.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/screen.h"
#include "cli/values.h"
#include "cli/analysis/calc_target.h"
#include "show_text.h"
#include "support/text.h"

enum { LINE = 160 };

/* ---- all launch configurations ---- */

/* Returns the source of the waste: measured, model, or the measured share of the time. */
static const char *waste_source(const struct show_group *group, char buffer[LINE])
{
    double measured_ns = 0, all_ns = 0;
    for (size_t i = 0; i < group->n; i++) {
        double ns = group->configs[i].analysed ? (double)group->configs[i].total_ns : 0;
        measured_ns += ns * group->configs[i].waste.measured_ratio;
        all_ns += ns;
    }
    double share = measured_ns / all_ns;
    if (share < 0.9995 && share > 0)
        (void)snprintf(buffer, LINE, "%.1f%% of the time measured, else model", share * 100);
    else
        (void)snprintf(buffer, LINE, "%s", share > 0 ? "measured" : "model");
    return buffer;
}

static void print_waste(const struct show_group *group)
{
    double waste = 0;
    char amount[32], source[LINE];
    for (size_t i = 0; i < group->n; i++)
        waste += isfinite(group->configs[i].waste.warp_seconds) ? group->configs[i].waste.warp_seconds : 0;
    cli_print("\n  %s warp-seconds wasted (%s)\n", cli_amount_text(waste, amount, sizeof amount),
              waste_source(group, source));
}

/* ---- one launch configuration ---- */

static void print_configuration(const struct occ_config_row *row)
{
    const struct occ_launch *l = &row->launch;
    char grid[48], block[48], cluster[48], fixed[32], dynamic[32];
    cli_print("\n  launch configuration %" PRId64 ": grid %s, block %s", row->id,
              analysis_dimensions(l->grid, grid, sizeof grid),
              analysis_dimensions(l->block, block, sizeof block));
    if (calc_cluster_blocks(l) > 1)
        cli_print(", cluster %s", analysis_dimensions(l->cluster, cluster, sizeof cluster));
    cli_print(
        "\n    %u registers per thread, shared memory %s static + %s dynamic, local memory %u B per thread\n",
        l->registers_per_thread, occ_format_bytes(l->static_smem_bytes, fixed, sizeof fixed),
        occ_format_bytes(l->dynamic_smem_bytes, dynamic, sizeof dynamic), row->local_bytes_per_thread);
}

static void print_times(const struct occ_config_row *row)
{
    char text[6][32], since[32], until[32];
    const uint64_t times[6] = {row->total_ns, row->min_ns, row->p50_ns,
                               row->p95_ns,   row->p99_ns, row->max_ns};
    for (size_t i = 0; i < 6; i++)
        (void)occ_format_duration((int64_t)times[i], text[i], sizeof text[i]);
    cli_print("    %" PRIu64 " launch%s, %s in all; min %s, p50 %s, p95 %s, p99 %s, max %s\n", row->launches,
              row->launches == 1 ? "" : "es", text[0], text[1], text[2], text[3], text[4], text[5]);
    cli_print("    from %s to %s\n", cli_time_text(row->first_ns, since, sizeof since),
              cli_time_text(row->last_ns, until, sizeof until));
}

/* Prints the recording's own occupancy beside ours. */
static void print_reported(const struct occ_config_row *row)
{
    const char *difference = reported_difference(row);
    char reported[16], expected[16];
    const char *source = row->source ? row->source : "the recording";
    if (row->reported.launches == 0)
        return;
    cli_print(
        "\n    %s reports an achieved occupancy of %s (its own estimate, not measured); expected here: %s\n",
        source, cli_percent_text(row->reported.mean, reported, sizeof reported),
        cli_percent_text(reported_expected(row), expected, sizeof expected));
    if (difference[0])
        cli_print("    why they differ: %s\n", difference);
}

static void print_missing(const struct occ_config_row *row)
{
    if (!row->missing_fields)
        return;
    cli_print("\n    not in %s recordings", row->source ? row->source : "such");
    show_name(": ", row->missing_fields);
}

/* Prints the refusal, and measured values: counters need no model. */
static void print_refused(const struct occ_config_row *row)
{
    struct occ_measurement measured;
    char achieved[16], elapsed[16];
    show_name("    not analysed: ", row->refused);
    occ_measured_means(&row->measured, row->measurable_ns, &measured);
    if (measured.source == OCC_FROM_MODEL)
        return;
    cli_print("    achieved %s, elapsed %s\n", cli_percent_text(measured.achieved, achieved, sizeof achieved),
              cli_percent_text(measured.elapsed, elapsed, sizeof elapsed));
    show_measured(row, &measured);
}

static int print_analysis(const struct occ_config_row *row, struct occ_error *err)
{
    struct occ_measurement measured;
    const struct analysis a = show_analysis(row, &measured);
    int status = analysis_print(&a, err);
    if (status != 0)
        return status;
    show_measured(row, &measured);
    status = analysis_print_waterfall(&a, err);
    if (status == 0) {
        analysis_print_bound(&a);
        analysis_print_advice(&a, row->total_ns);
    }
    return status;
}

/* Notes another model: the answer is the one of the program that recorded the launches. */
static void print_model_version(const struct occ_config_row *row)
{
    if (row->model_version != OCC_MODEL_VERSION)
        cli_print(
            "    analysed by version %u of the model, which is %u in this program: expected occupancies and "
            "causes can differ\n",
            row->model_version, (unsigned)OCC_MODEL_VERSION);
}

static int print_config(const struct show_group *group, size_t i, struct occ_error *err)
{
    const struct occ_config_row *row = &group->configs[i];
    int status = 0;
    print_configuration(row);
    print_model_version(row);
    print_times(row);
    if (row->analysed)
        status = print_analysis(row, err);
    else
        print_refused(row);
    print_reported(row);
    show_ncu(row);
    show_nearest(group, i);
    print_missing(row);
    return status;
}

void show_ncu_pages(const struct show_group *group)
{
    for (size_t i = 0; i < group->shown; i++) {
        print_configuration(&group->configs[i]);
        show_ncu(&group->configs[i]);
        show_nearest(group, i);
    }
}

int show_pages(const struct show_group *group, struct occ_error *err)
{
    int status = 0;
    print_waste(group);
    show_ranges(group);
    for (size_t i = 0; i < group->shown && status == 0; i++)
        status = print_config(group, i, err);
    return status;
}
