/* `occq calc` for people: the device's limits, a block's share of them, the analysis, advice, curves. One
 * thread (stdio). */
#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc.h"
#include "cli/analysis/calc_device.h"
#include "cli/screen.h"
#include "cli/table.h"
#include "support/cleanup.h"
#include "support/text.h"

/* ---- head ---- */

static void print_carveouts(const struct occ_device *device)
{
    uint32_t steps[OCC_MAX_CARVEOUTS];
    size_t n = occ_carveout_steps(device, steps, OCC_MAX_CARVEOUTS);
    (void)printf("    %-42s", "carve-outs for shared memory, KiB");
    for (size_t i = 0; i < n && i < OCC_MAX_CARVEOUTS; i++)
        (void)printf("%s %g", i ? "," : "", steps[i] / 1024.0);
    (void)putchar('\n');
}

static void print_device(const struct calc_target *target)
{
    struct calc_device_row row = {.gpu = target->name};
    calc_device_fill(&row, &target->device);
    (void)printf("  PHYSICAL LIMITS of %s (compute capability %s)\n", target->title, row.compute_capability);
    for (const struct cli_column *c = calc_device_columns; c->name; c++) {
        char text[32];
        struct cli_value value = c->get(c, &row);
        if (!(c->flags & CLI_LEFT))
            (void)printf("    %-42s %s\n", c->help, cli_value_text(&value, c->unit, text, sizeof text));
    }
    print_carveouts(&target->device);
}

static void print_kernel(const struct calc_kernel *kernel)
{
    if (!kernel->name)
        return;
    const char suffix[] = {kernel->suffix, '\0'};
    (void)printf("%s\n  compiled for sm_%u%s", kernel->name, kernel->sm, suffix);
    if (kernel->max_threads)
        (void)printf(", at most %u threads", kernel->max_threads);
    if (kernel->local_bytes)
        (void)printf(", %u B stack per thread", kernel->local_bytes);
    if (kernel->spill_bytes)
        (void)printf(", %u B spilled per thread", kernel->spill_bytes);
    (void)putchar('\n');
}

static void print_launch(const struct calc_case *c, const struct calc_target *target)
{
    const struct occ_launch *l = &c->launch;
    char size[48];
    (void)printf("  LAUNCH on %s: block %s, ", target->title,
                 analysis_dimensions(l->block, size, sizeof size));
    if (c->has_grid)
        (void)printf("grid %s, ", analysis_dimensions(l->grid, size, sizeof size));
    if (calc_cluster_blocks(l) > 1)
        (void)printf("cluster %s, ", analysis_dimensions(l->cluster, size, sizeof size));
    (void)printf("%u registers per thread,\n    shared memory %u B static + %u B dynamic",
                 l->registers_per_thread, l->static_smem_bytes, l->dynamic_smem_bytes);
    if (l->barriers)
        (void)printf(", %u barrier%s", l->barriers, l->barriers == 1 ? "" : "s");
    (void)putchar('\n');
}

/* ---- the answer ---- */

/* Limits in words: "warps, shared memory". */
static const char *limits_text(uint32_t limiters, char *text, size_t size)
{
    text[0] = '\0';
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        if (limiters & (1U << limit))
            occ_text_append(text, size, ", ", "%s", occ_limit_text((enum occ_limit)limit));
    return text;
}

static void print_occupancy(const struct calc_case *c)
{
    const struct occ_result *r = &c->result;
    char ratio[16], range[32], limits[128];
    cli_print("  OCCUPANCY  %s: %u block%s, %u of %u warps per SM; limit: %s\n",
              cli_percent_text(r->theoretical, ratio, sizeof ratio), r->blocks_per_sm,
              r->blocks_per_sm == 1 ? "" : "s", r->warps_per_sm, r->max_warps_per_sm,
              r->warps_per_sm == r->max_warps_per_sm ? "none, the SM is full"
                                                     : limits_text(r->limiters, limits, sizeof limits));
    if (c->has_grid)
        cli_print("  EXPECTED   %s over the whole launch, if balanced; %.2f waves\n",
                  cli_range_text(r->expected_elapsed_low, r->expected_elapsed_high, range, sizeof range),
                  r->waves);
}

static void print_change(const struct analysis *a)
{
    struct analysis_advice advice[OCC_ADVICE_MAX];
    char change[128], expectation[192], note[160];
    size_t n = analysis_advise(a, advice);
    if (n > 0)
        cli_print("  DO         %s; %s\n", analysis_advice_change(&advice[0].change, change, sizeof change),
                  analysis_expectation_text(&advice[0], expectation, sizeof expectation));
    else
        cli_print("  DO         %s\n", analysis_advice_note(a, note, sizeof note)[0] ? note
                                       : a->has_grid
                                           ? "nothing: no single change of the launch promises more occupancy"
                                           : "give --grid: most changes depend on the number of blocks");
}

static void print_allocated(const struct occ_result *r)
{
    char bytes[32];
    (void)printf(
        "\n  ALLOCATED for a block: %u warp%s; %u registers (%u per warp); %s of shared memory, of %u KiB "
        "per SM\n",
        r->warps_per_block, r->warps_per_block == 1 ? "" : "s", r->registers_per_block, r->registers_per_warp,
        occ_format_bytes(r->smem_per_block_bytes, bytes, sizeof bytes), r->smem_config_bytes / 1024);
}

/* ---- curves ---- */

enum { PLOT_INDENT = 10 };

static void print_curve(const struct calc_curve *curve, bool ascii)
{
    struct calc_plot plot;
    char ratio[16], value[24];
    const struct occ_point *present = calc_curve_at(curve, curve->present);
    calc_plot(curve, draw_canvas_columns(cli_screen_width(), PLOT_INDENT), ascii, &plot);
    (void)printf("\n  OCCUPANCY of a full wave over %s", calc_axis_title(curve->axis));
    if (curve->present >= curve->points[0].value && present->status == OCC_OK)
        (void)printf("; %s %s: %s", ascii ? "O" : "\xe2\x97\x8f",
                     calc_axis_value(curve->axis, curve->present, value, sizeof value),
                     cli_percent_text(present->full_wave, ratio, sizeof ratio));
    (void)putchar('\n');
    for (int row = 0; row < CALC_PLOT_ROWS; row++) {
        const char *label = row == 0 ? "100%" : row == CALC_PLOT_ROWS - 1 ? "0%" : "";
        char dots[DRAW_CANVAS_ROW_BYTES];
        draw_canvas_row(&plot.canvas, row, dots);
        (void)printf("    %4s %s%s\n", label, ascii ? "|" : "\xe2\x94\x82", dots);
    }
    (void)printf("%*s%s\n", PLOT_INDENT, "", plot.ticks);
}

static bool is_flat(const struct calc_curve *curve)
{
    size_t i = 1;
    while (i < curve->n && curve->points[i].status == curve->points[0].status &&
           curve->points[i].full_wave == curve->points[0].full_wave)
        i++;
    return i >= curve->n;
}

/* Prints the curves, and the names of flat curves. */
static int print_curves(const struct calc_case *c, struct occ_error *err)
{
    _cleanup_(calc_curves_release) struct calc_curves curves = {.n = 0};
    char flat[160] = "";
    bool ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    int status = calc_curves_new(&c->target->device, &c->launch, &curves, err);
    for (size_t i = 0; i < curves.n && status == 0; i++)
        if (is_flat(&curves.list[i]))
            occ_text_append(flat, sizeof flat, ", ", "%s", calc_axis_title(curves.list[i].axis));
        else
            print_curve(&curves.list[i], ascii);
    if (flat[0])
        (void)printf("\n  the same OCCUPANCY over %s\n", flat);
    return status;
}

int calc_text(const struct calc_case *c, struct occ_error *err)
{
    const struct analysis analysis = calc_analysis(c);
    print_kernel(c->kernel);
    print_launch(c, c->target);
    cli_print("\n");
    print_occupancy(c);
    print_change(&analysis);
    print_allocated(&c->result);
    int status = analysis_print(&analysis, err);
    if (status == 0)
        status = analysis_print_waterfall(&analysis, err);
    if (status != 0)
        return status;
    analysis_print_latency(&analysis, "\n    ");
    analysis_print_advice(&analysis, 0);
    status = print_curves(c, err);
    (void)putchar('\n');
    print_device(c->target);
    return status;
}

/* ---- many kernels ---- */

struct list_row {
    const char *kernel;
    char limiters[64];
    uint32_t sm, threads, registers, shared_bytes, barriers, blocks, warps;
    double theoretical, waves, expected_elapsed_low, expected_elapsed_high;
};

#define FIELD(name, unit, flags, member) CLI_FIELD(name, name, unit, flags, struct list_row, member, "")

static const struct cli_column columns[] = {
    FIELD("kernel", CLI_PLAIN, CLI_LEFT | CLI_CUTS, kernel),
    FIELD("sm", CLI_PLAIN, 0, sm),
    FIELD("threads", CLI_PLAIN, 0, threads),
    FIELD("regs", CLI_PLAIN, 0, registers),
    FIELD("shared", CLI_PLAIN, 0, shared_bytes),
    FIELD("barriers", CLI_PLAIN, CLI_SPARE(1), barriers),
    FIELD("blocks/SM", CLI_PLAIN, CLI_VERBATIM, blocks),
    FIELD("warps/SM", CLI_PLAIN, CLI_VERBATIM, warps),
    FIELD("theor", CLI_RATIO, 0, theoretical),
    FIELD("limiters", CLI_PLAIN, CLI_LEFT, limiters),
    FIELD("waves", CLI_FACTOR, 0, waves),
    FIELD("expect_elapsed_low", CLI_RATIO, 0, expected_elapsed_low),
    FIELD("expect_elapsed_high", CLI_RATIO, 0, expected_elapsed_high),
    CLI_COLUMN_END,
};

static void fill_row(const struct calc_case *c, struct list_row *row)
{
    const struct occ_launch *l = &c->launch;
    *row = (struct list_row){.kernel = c->kernel->name,
                             .sm = c->kernel->sm,
                             .threads = l->block[0] * l->block[1] * l->block[2],
                             .registers = l->registers_per_thread,
                             .shared_bytes = l->static_smem_bytes + l->dynamic_smem_bytes,
                             .barriers = l->barriers,
                             .blocks = c->result.blocks_per_sm,
                             .warps = c->result.warps_per_sm,
                             .theoretical = c->result.theoretical,
                             .waves = c->has_grid ? c->result.waves : (double)NAN,
                             .expected_elapsed_low = c->has_grid ? c->result.expected_elapsed_low : NAN,
                             .expected_elapsed_high = c->has_grid ? c->result.expected_elapsed_high : NAN};
    (void)occ_limiters_text(c->result.limiters, row->limiters, sizeof row->limiters);
}

int calc_text_list(const struct calc_case *cases, size_t n, struct occ_error *err)
{
    _cleanup_(occ_freep) struct list_row *rows = calloc(n, sizeof *rows);
    struct cli_selection selection = {.format = CLI_FORMAT_TEXT};
    if (!rows)
        return occ_no_memory(err);
    for (size_t i = 0; i < n; i++)
        fill_row(&cases[i], &rows[i]);
    cli_select(columns, 0, 0, &selection);
    return cli_table_print("kernels", &selection, rows, n, sizeof *rows, err);
}
