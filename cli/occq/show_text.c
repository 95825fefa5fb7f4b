/*
 * `occq show` for people: a kernel on a device, then every shape with its configuration, limits, waves,
 * occupancies and causes. Small tables go through libsmartcols, the rest is lines. One thread.
 */
#include "show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reported_occupancy.h"
#include "cli/page.h"
#include "cli/query.h"
#include "support/cleanup.h"
#include "support/text.h"

enum { LINE = 160 };

const char *show_dimensions(const uint32_t dimensions[3], char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%ux%ux%u", dimensions[0], dimensions[1], dimensions[2]);
    return buffer;
}

/* ---- head ---- */

static void print_name(const char *indent, const char *name)
{
    _cleanup_(occ_freep) char *clean = strdup(name ? name : "-");
    if (!clean)
        return;
    occ_text_sanitise(clean);
    (void)printf("%s%s\n", indent, clean);
}

/* The names of simulated devices say it themselves; where one does not, we do. */
static bool needs_mark(const struct occ_shape_row *row)
{
    return row->simulated && !(row->device_name && strstr(row->device_name, "simulated"));
}

static const char *waste_source(const struct show_group *group)
{
    size_t measured = 0;
    for (size_t i = 0; i < group->n; i++) {
        struct occ_measurement means;
        occ_measured_means(&group->shapes[i]->measured, &means);
        measured += show_has_waterfall(group->shapes[i], &means);
    }
    return measured == 0 ? "model" : measured == group->n ? "measured" : "measured, else model";
}

static void print_head(const struct show_group *group)
{
    const struct occ_shape_row *first = group->shapes[0];
    uint64_t launches = 0, total_ns = 0;
    double waste = 0;
    char duration[32], amount[32];
    for (size_t i = 0; i < group->n; i++) {
        launches += group->shapes[i]->launches;
        total_ns += group->shapes[i]->total_ns;
        waste += isfinite(group->shapes[i]->waste_warp_seconds) ? group->shapes[i]->waste_warp_seconds : 0;
    }
    print_name("", first->short_name);
    print_name("  ", first->demangled);
    char where[LINE];
    (void)snprintf(where, sizeof where, "on %s (compute capability %u.%u, %u SMs)%s",
                   first->device_name ? first->device_name : "-", first->limits.cc / 10,
                   first->limits.cc % 10, first->limits.sm_count, needs_mark(first) ? " - simulated" : "");
    print_name("  ", where);
    (void)printf("  kernel %" PRId64 ": %zu shape%s, %" PRIu64 " launches, %s, %s warp-seconds wasted (%s)\n",
                 first->kernel, group->n, group->n == 1 ? "" : "s", launches,
                 occ_format_duration((int64_t)total_ns, duration, sizeof duration),
                 cli_amount_text(waste, amount, sizeof amount), waste_source(group));
}

/* ---- one shape ---- */

static bool has_cluster(const struct occ_launch *launch)
{
    return (uint64_t)launch->cluster[0] * launch->cluster[1] * launch->cluster[2] > 1;
}

static void print_configuration(const struct occ_shape_row *row)
{
    const struct occ_launch *l = &row->launch;
    char grid[48], block[48], cluster[48], fixed[32], dynamic[32];
    (void)printf("\n  shape %" PRId64 ": grid %s, block %s", row->id,
                 show_dimensions(l->grid, grid, sizeof grid), show_dimensions(l->block, block, sizeof block));
    if (has_cluster(l))
        (void)printf(", cluster %s", show_dimensions(l->cluster, cluster, sizeof cluster));
    (void)printf(
        "\n    %u registers per thread, shared memory %s static + %s dynamic, local memory %u B per thread\n",
        l->registers_per_thread, occ_format_bytes(l->static_smem_bytes, fixed, sizeof fixed),
        occ_format_bytes(l->dynamic_smem_bytes, dynamic, sizeof dynamic), row->local_bytes_per_thread);
}

static void print_times(const struct occ_shape_row *row)
{
    char text[6][32], since[32], until[32];
    const uint64_t times[6] = {row->total_ns, row->min_ns, row->p50_ns,
                               row->p95_ns,   row->p99_ns, row->max_ns};
    for (size_t i = 0; i < 6; i++)
        (void)occ_format_duration((int64_t)times[i], text[i], sizeof text[i]);
    (void)printf("    %" PRIu64 " launches, %s in all; min %s, p50 %s, p95 %s, p99 %s, max %s\n",
                 row->launches, text[0], text[1], text[2], text[3], text[4], text[5]);
    (void)printf("    from %s to %s\n", cli_time_text(row->first_ns, since, sizeof since),
                 cli_time_text(row->last_ns, until, sizeof until));
}

/* What a block takes of a resource and what the SM has, in the resource's own words; "" where there is nothing to
 * say. */
static void describe_limit(const struct occ_shape_row *row, enum occ_limit limit, char *needs, char *has,
                           size_t size)
{
    const struct occ_result *r = &row->result;
    needs[0] = has[0] = '\0';
    switch (limit) {
    case OCC_LIMIT_WARPS:
        (void)snprintf(needs, size, "%u warps", r->warps_per_block);
        (void)snprintf(has, size, "%u warps", r->max_warps_per_sm);
        break;
    case OCC_LIMIT_REGISTERS:
        (void)snprintf(needs, size, "%u registers", r->registers_per_block);
        (void)snprintf(has, size, "%u registers", row->limits.registers_per_sm);
        break;
    case OCC_LIMIT_SMEM:
        (void)snprintf(needs, size, "%u B", r->smem_per_block_bytes);
        (void)snprintf(has, size, "%u B%s", r->smem_config_bytes,
                       r->smem_config_from_driver ? " (chosen by the driver)" : "");
        break;
    case OCC_LIMIT_BLOCKS:
        (void)snprintf(needs, size, "1 block");
        (void)snprintf(has, size, "%u blocks", row->limits.max_blocks_per_sm);
        break;
    case OCC_LIMIT_BARRIERS:
        if (row->launch.barriers)
            (void)snprintf(needs, size, "%u barriers", row->launch.barriers);
        if (row->limits.max_barriers_per_sm != OCC_NO_LIMIT)
            (void)snprintf(has, size, "%u barriers", row->limits.max_barriers_per_sm);
        break;
    default:
        break;
    }
}

static const char *limit_title(enum occ_limit limit)
{
    static const char *const titles[] = {
#define X(name, word, text) [OCC_LIMIT_##name] = text,
        OCC_LIMITS(X)
#undef X
    };
    return titles[limit];
}

static int print_limits(const struct occ_shape_row *row, const struct occ_measurement *measured,
                        struct occ_error *err)
{
    static const char *const headings[] = {"    LIMIT", "BLOCKS/SM", "A BLOCK TAKES", "AN SM HAS",
                                           "LAUNCH WAITED"};
    static const int flags[] = {0, CLI_PAGE_RIGHT, CLI_PAGE_RIGHT, 0, CLI_PAGE_RIGHT};
    const struct occ_result *r = &row->result;
    bool has_stalls = show_has_stalls(measured);
    struct cli_page page;
    (void)putchar('\n');
    cli_page_begin(&page, headings, flags, has_stalls ? 5 : 4);
    for (unsigned int limit = 0; limit < OCC_LIMIT_COUNT; limit++) {
        char needs[48], has[48], waited[16];
        struct libscols_line *line = cli_page_line(&page);
        describe_limit(row, (enum occ_limit)limit, needs, has, sizeof needs);
        cli_page_cell(&page, line, 0, "%s %s", r->limiters & (1U << limit) ? "  *" : "   ",
                      limit_title((enum occ_limit)limit));
        if (r->limit[limit] == OCC_NO_LIMIT)
            cli_page_cell(&page, line, 1, "-");
        else
            cli_page_cell(&page, line, 1, "%u", r->limit[limit]);
        cli_page_cell(&page, line, 2, "%s", needs);
        cli_page_cell(&page, line, 3, "%s", has);
        if (has_stalls)
            cli_page_cell(&page, line, 4, "%s",
                          cli_percent_text(measured->stall[limit], waited, sizeof waited));
    }
    if (cli_page_end(&page, err) != 0)
        return OCC_E_NO_MEMORY;
    char limiters[64];
    (void)printf("    * limits: %s -> %u block%s, %u of %u warps per SM\n",
                 occ_limiters_text(r->limiters, limiters, sizeof limiters), r->blocks_per_sm,
                 r->blocks_per_sm == 1 ? "" : "s", r->warps_per_sm, r->max_warps_per_sm);
    if (r->blocks_per_sm_largest_carveout > r->blocks_per_sm)
        (void)printf("    with the largest shared-memory carve-out: %u blocks per SM\n",
                     r->blocks_per_sm_largest_carveout);
    show_stall_reason(r, measured);
    return 0;
}

static void print_waves(const struct occ_result *r)
{
    double part = r->wave_blocks ? 100.0 * (double)r->partial_blocks / (double)r->wave_blocks : 0;
    (void)printf("\n    waves: %.2f = %" PRIu64 " blocks / %" PRIu64 " in a wave; ", r->waves, r->grid_blocks,
                 r->wave_blocks);
    if (r->full_waves == 0)
        (void)printf("none is full: %" PRIu64 " block%s %.1f%% of a wave\n", r->partial_blocks,
                     r->partial_blocks == 1 ? " is" : "s are", part);
    else if (r->partial_blocks)
        (void)printf("%" PRIu64 " full, and %" PRIu64 " block%s in a last one (%.1f%% of a wave)\n",
                     r->full_waves, r->partial_blocks, r->partial_blocks == 1 ? "" : "s", part);
    else
        (void)printf("%" PRIu64 " full\n", r->full_waves);
}

/* The measured ones are named where there were launches that could have been measured. */
static int print_occupancies(const struct occ_shape_row *row, const struct occ_measurement *measured,
                             bool has_grid, struct occ_error *err)
{
    static const char *const headings[] = {"    OCCUPANCY", "", "+-", "DEFINITION"};
    static const char *const plain[] = {"    OCCUPANCY", "", "DEFINITION"};
    static const int flags[] = {0, CLI_PAGE_RIGHT, CLI_PAGE_RIGHT, 0}, plain_flags[] = {0, CLI_PAGE_RIGHT, 0};
    const struct occ_result *r = &row->result;
    size_t n = !has_grid ? 1 : row->launches == 0 ? 3 : 5;
    bool is_measured = measured->source != OCC_FROM_MODEL;
    const struct {
        const char *name;
        double ratio, error;
        const char *definition;
    } rows[] = {
        {"theoretical", r->theoretical, NAN,
         "resident warps that the launch's resources allow / most warps of an SM"},
        {"expected achieved", r->expected_achieved, NAN,
         "as achieved, for a perfectly balanced grid (model)"},
        {"expected elapsed", r->expected_elapsed, NAN, "as elapsed, for a perfectly balanced grid (model)"},
        {"achieved", measured->achieved, measured->achieved_error,
         "warp-cycles / (SM-active cycles x most warps)"},
        {"elapsed", measured->elapsed, measured->elapsed_error,
         "warp-cycles / (SM-elapsed cycles x most warps)"},
    };
    struct cli_page page;
    (void)putchar('\n');
    cli_page_begin(&page, is_measured ? headings : plain, is_measured ? flags : plain_flags,
                   is_measured ? 4 : 3);
    for (size_t i = 0; i < n; i++) {
        char percent[16];
        bool lacks = i >= 3 && isnan(rows[i].ratio);
        struct libscols_line *line = cli_page_line(&page);
        cli_page_cell(&page, line, 0, "    %s", rows[i].name);
        cli_page_cell(&page, line, 1, "%s", cli_percent_text(rows[i].ratio, percent, sizeof percent));
        if (is_measured)
            cli_page_cell(
                &page, line, 2, "%s",
                i < 3 ? ""
                      : cli_percent_text(rows[i].error * OCC_ERRORS_OF_95_PERCENT, percent, sizeof percent));
        cli_page_cell(&page, line, is_measured ? 3 : 2, "%s%s", rows[i].definition,
                      lacks ? "; not measured" : "");
    }
    return cli_page_end(&page, err);
}

static void waterfall_line(struct cli_page *page, const char *text, double ratio)
{
    char percent[16], bar[CLI_BAR_BYTES];
    struct libscols_line *line = cli_page_line(page);
    cli_page_cell(page, line, 0, "    %s", text);
    cli_page_cell(page, line, 1, "%s", cli_percent_text(ratio, percent, sizeof percent));
    cli_page_cell(page, line, 2, "%s", cli_bar(ratio, bar));
}

static int print_causes(const struct occ_result *r, bool has_grid, struct occ_error *err)
{
    static const char *const headings[] = {"    WHERE OCCUPANCY GOES", "", ""};
    static const int flags[] = {0, CLI_PAGE_RIGHT, 0};
    struct cli_page page;
    double sum = r->expected_elapsed;
    (void)putchar('\n');
    cli_page_begin(&page, headings, flags, 3);
    waterfall_line(&page, has_grid ? "used (expected elapsed)" : "used (in a full wave)",
                   r->expected_elapsed);
    for (unsigned int cause = 0; cause < OCC_CAUSE_COUNT; cause++) {
        if (cause == OCC_CAUSE_PARTIAL_WARP || r->cause[cause] <= 0)
            continue;
        sum += r->cause[cause];
        waterfall_line(&page, occ_cause_text((enum occ_cause)cause), r->cause[cause]);
    }
    waterfall_line(&page, "all", sum);
    if (cli_page_end(&page, err) != 0)
        return OCC_E_NO_MEMORY;
    return 0;
}

static void print_partial_warp(const struct occ_result *r)
{
    if (r->cause[OCC_CAUSE_PARTIAL_WARP] > 0)
        (void)printf("    beside that, %.1f%% of the resident threads do not exist: %s\n",
                     r->cause[OCC_CAUSE_PARTIAL_WARP] * 100, occ_cause_text(OCC_CAUSE_PARTIAL_WARP));
}

static void print_marks(const struct occ_shape_row *row, bool has_grid)
{
    struct cli_value notes = {.type = CLI_NONE};
    cli_set_notes(&notes, false,
                  row->result.by_design & ~(has_grid ? 0 : (uint32_t)OCC_BY_DESIGN_PERSISTENT));
    if (notes.scratch[0])
        (void)printf("    low by design: %s\n", notes.scratch);
}

int show_analysis(const struct occ_shape_row *row, bool has_grid, struct occ_error *err)
{
    struct occ_measurement measured;
    occ_measured_means(&row->measured, &measured);
    print_marks(row, has_grid);
    int status = print_limits(row, &measured, err);
    if (status == 0 && has_grid)
        print_waves(&row->result);
    if (status == 0)
        status = print_occupancies(row, &measured, has_grid, err);
    if (status == 0)
        show_measured(row, &measured);
    if (status == 0)
        status = show_has_waterfall(row, &measured) ? show_waterfall(row, &measured, err)
                                                    : print_causes(&row->result, has_grid, err);
    if (status == 0)
        print_partial_warp(&row->result);
    return status;
}

/* Theirs beside ours, under its own name. */
static void print_claim(const struct occ_shape_row *row)
{
    char reason[128], claimed[16], ours[16];
    if (row->claim.launches == 0)
        return;
    (void)printf("\n    %s claims an achieved occupancy of %s (an estimate of its own, nothing measured); "
                 "expected here: "
                 "%s\n",
                 row->claim_source ? row->claim_source : "the recording",
                 cli_percent_text(row->claim.mean, claimed, sizeof claimed),
                 cli_percent_text(cli_claim_ours(row), ours, sizeof ours));
    if (cli_claim_reason(row, reason, sizeof reason)[0])
        (void)printf("    why they differ: %s %s\n", row->claim_source ? row->claim_source : "it", reason);
}

/* A source that gives only the sum of shared memory has it as dynamic; this says so. */
static void print_lacks(const struct occ_shape_row *row)
{
    if (!row->lacks)
        return;
    (void)printf("\n    %s never says", row->claim_source ? row->claim_source : "the recording");
    print_name(": ", row->lacks);
}

/* Counters need no model. */
static void print_refused(const struct occ_shape_row *row)
{
    struct occ_measurement measured;
    char achieved[16], elapsed[16];
    print_name("    not analysed: ", row->refused);
    occ_measured_means(&row->measured, &measured);
    if (measured.source == OCC_FROM_MODEL)
        return;
    (void)printf("    achieved %s, elapsed %s\n",
                 cli_percent_text(measured.achieved, achieved, sizeof achieved),
                 cli_percent_text(measured.elapsed, elapsed, sizeof elapsed));
    show_measured(row, &measured);
}

static int print_shape(const struct occ_shape_row *row, struct occ_error *err)
{
    print_configuration(row);
    print_times(row);
    int status = 0;
    if (row->analysed)
        status = show_analysis(row, true, err);
    else
        print_refused(row);
    if (status == 0) {
        print_claim(row);
        print_lacks(row);
    }
    return status;
}

int show_text(const struct show_group *group, struct occ_error *err)
{
    int status = 0;
    print_head(group);
    for (size_t i = 0; i < group->shown && status == 0; i++)
        status = print_shape(group->shapes[i], err);
    if (status == 0 && group->shown < group->n)
        (void)printf("\n  and %zu more shape%s\n", group->n - group->shown,
                     group->n - group->shown == 1 ? "" : "s");
    return status;
}
