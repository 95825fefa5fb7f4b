/* An analysis for people; see analysis.h. Tables through libsmartcols, the rest is lines. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis.h"
#include "cli/command.h"
#include "cli/page.h"

const char *analysis_dimensions(const uint32_t dimensions[3], char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%ux%ux%u", dimensions[0], dimensions[1], dimensions[2]);
    return buffer;
}

/* ---- limits ---- */

/* What a block takes of a resource and what the SM has; "" where there is nothing to report. */
static void describe_limit(const struct analysis *a, enum occ_limit limit, char *needs, char *has,
                           size_t size)
{
    const struct occ_result *r = a->result;
    needs[0] = has[0] = '\0';
    switch (limit) {
    case OCC_LIMIT_WARPS:
        (void)snprintf(needs, size, "%u warps", r->warps_per_block);
        (void)snprintf(has, size, "%u warps", r->max_warps_per_sm);
        break;
    case OCC_LIMIT_REGISTERS:
        (void)snprintf(needs, size, "%u registers", r->registers_per_block);
        (void)snprintf(has, size, "%u registers", a->device->registers_per_sm);
        break;
    case OCC_LIMIT_SMEM:
        (void)snprintf(needs, size, "%u B", r->smem_per_block_bytes);
        (void)snprintf(has, size, "%u B%s", r->smem_config_bytes,
                       r->smem_config_from_driver ? " (chosen by the driver)" : "");
        break;
    case OCC_LIMIT_BLOCKS:
        (void)snprintf(needs, size, "1 block");
        (void)snprintf(has, size, "%u blocks", a->device->max_blocks_per_sm);
        break;
    case OCC_LIMIT_BARRIERS:
        if (a->launch->barriers)
            (void)snprintf(needs, size, "%u barriers", a->launch->barriers);
        if (a->device->max_barriers_per_sm != OCC_NO_LIMIT)
            (void)snprintf(has, size, "%u barriers", a->device->max_barriers_per_sm);
        break;
    default:
        break;
    }
}

static bool has_stalls(const struct occ_measurement *measured)
{
    for (unsigned limit = 0; measured && limit < OCC_LIMIT_COUNT; limit++)
        if (!isnan(measured->stall[limit]))
            return true;
    return false;
}

static void add_limit(struct cli_page *page, const struct analysis *a, enum occ_limit limit)
{
    const struct occ_result *r = a->result;
    char needs[48], has[48], stalled[16];
    struct libscols_line *line = cli_page_line(page);
    describe_limit(a, limit, needs, has, sizeof needs);
    cli_page_cell(page, line, 0, "%s %s", r->limiters & (1U << limit) ? "  *" : "   ", occ_limit_text(limit));
    if (r->limit[limit] == OCC_NO_LIMIT)
        cli_page_cell(page, line, 1, "-");
    else
        cli_page_cell(page, line, 1, "%u", r->limit[limit]);
    cli_page_cell(page, line, 2, "%s", needs);
    cli_page_cell(page, line, 3, "%s", has);
    cli_page_cell(
        page, line, 4, "%s",
        cli_percent_text(a->measured ? a->measured->stall[limit] : (double)NAN, stalled, sizeof stalled));
}

static void print_stall_reason(const struct analysis *a)
{
    char limiters[64];
    enum occ_limit stalled = a->measured ? occ_most_stalled(a->measured) : OCC_LIMIT_COUNT;
    if (a->measured && analysis_stall_disagrees(a->result, a->measured, stalled))
        (void)printf(
            "    the hardware disagrees: the launch of warps stalled most for %s (%.1f%% of the cycles), "
            "not for %s\n",
            occ_limit_word(stalled), a->measured->stall[stalled] * 100,
            occ_limiters_text(a->result->limiters, limiters, sizeof limiters));
}

static int print_limits(const struct analysis *a, struct occ_error *err)
{
    static const char *const headings[] = {"    LIMIT", "BLOCKS/SM", "A BLOCK TAKES", "AN SM HAS",
                                           "LAUNCH STALLED"};
    const int flags[] = {0, CLI_PAGE_RIGHT, CLI_PAGE_RIGHT, 0,
                         has_stalls(a->measured) ? CLI_PAGE_RIGHT : CLI_PAGE_HIDDEN};
    const struct occ_result *r = a->result;
    char limiters[64];
    struct cli_page page;
    (void)putchar('\n');
    cli_page_begin(&page, headings, flags, 5);
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        add_limit(&page, a, (enum occ_limit)limit);
    if (cli_page_end(&page, err) != 0)
        return OCC_E_NO_MEMORY;
    (void)printf("    * limits: %s -> %u block%s, %u of %u warps per SM\n",
                 occ_limiters_text(r->limiters, limiters, sizeof limiters), r->blocks_per_sm,
                 r->blocks_per_sm == 1 ? "" : "s", r->warps_per_sm, r->max_warps_per_sm);
    if (r->blocks_per_sm_largest_carveout > r->blocks_per_sm)
        (void)printf("    with the largest shared-memory carve-out: %u blocks per SM\n",
                     r->blocks_per_sm_largest_carveout);
    print_stall_reason(a);
    return 0;
}

/* ---- waves and occupancies ---- */

static void print_waves(const struct occ_result *r)
{
    double part = r->wave_blocks ? 100.0 * (double)r->partial_blocks / (double)r->wave_blocks : 0;
    const char *blocks = r->partial_blocks == 1 ? "block" : "blocks", *waves = r->full_waves == 1 ? "" : "s";
    (void)printf("\n    waves: %.2f = %" PRIu64 " blocks / %" PRIu64 " in a wave; ", r->waves, r->grid_blocks,
                 r->wave_blocks);
    if (r->full_waves == 0)
        (void)printf("no full wave: %" PRIu64 " %s fill%s %.1f%% of one\n", r->partial_blocks, blocks,
                     r->partial_blocks == 1 ? "s" : "", part);
    else if (r->partial_blocks)
        (void)printf("%" PRIu64 " full wave%s + a partial wave of %" PRIu64 " %s (%.1f%%)\n", r->full_waves,
                     waves, r->partial_blocks, blocks, part);
    else
        (void)printf("%" PRIu64 " full wave%s\n", r->full_waves, waves);
}

struct occupancy {
    const char *name;
    double ratio, error; /* standard error */
    const char *definition;
};

static void add_occupancy(struct cli_page *page, const struct occupancy *o, bool is_measured)
{
    char ratio[16], error[16];
    struct libscols_line *line = cli_page_line(page);
    cli_page_cell(page, line, 0, "    %s", o->name);
    cli_page_cell(page, line, 1, "%s", cli_percent_text(o->ratio, ratio, sizeof ratio));
    cli_page_cell(page, line, 2, "%s",
                  is_measured ? cli_percent_text(o->error * OCC_ERRORS_OF_95_PERCENT, error, sizeof error)
                              : "");
    cli_page_cell(page, line, 3, "%s%s", o->definition,
                  is_measured && isnan(o->ratio) ? "; not measured" : "");
}

static int print_occupancies(const struct analysis *a, struct occ_error *err)
{
    static const char *const headings[] = {"    OCCUPANCY", "", "+-", "DEFINITION"};
    static const struct occ_measurement none = {.achieved = NAN, .elapsed = NAN};
    const struct occ_measurement *m = a->measured ? a->measured : &none;
    const struct occ_result *r = a->result;
    const struct occupancy rows[] = {
        {"theoretical", r->theoretical, NAN,
         "active warps per SM that the launch's resources allow / maximum warps per SM"},
        {"expected achieved", r->expected_achieved, NAN,
         "as achieved, for a perfectly balanced grid (model)"},
        {"expected elapsed", r->expected_elapsed, NAN, "as elapsed, for a perfectly balanced grid (model)"},
        {"achieved", m->achieved, m->achieved_error,
         "warp-cycles / (SM-active cycles x maximum warps per SM)"},
        {"elapsed", m->elapsed, m->elapsed_error, "warp-cycles / (SM-elapsed cycles x maximum warps per SM)"},
    };
    const int flags[] = {0, CLI_PAGE_RIGHT, m->source == OCC_FROM_MODEL ? CLI_PAGE_HIDDEN : CLI_PAGE_RIGHT,
                         0};
    struct cli_page page;
    size_t n = !a->has_grid ? 1 : a->measured ? 5 : 3;
    (void)putchar('\n');
    cli_page_begin(&page, headings, flags, 4);
    for (size_t i = 0; i < n; i++)
        add_occupancy(&page, &rows[i], i >= 3);
    return cli_page_end(&page, err);
}

int analysis_print(const struct analysis *a, struct occ_error *err)
{
    char notes[CLI_NOTES_BYTES];
    uint32_t by_design = a->result->by_design & ~(a->has_grid ? 0 : (uint32_t)OCC_BY_DESIGN_PERSISTENT);
    if (by_design)
        (void)printf("    may be low by design: %s\n", cli_notes_text(false, by_design, notes));
    int status = print_limits(a, err);
    if (status == 0 && a->has_grid)
        print_waves(a->result);
    return status == 0 ? print_occupancies(a, err) : status;
}

/* ---- the waterfall ---- */

struct waterfall_line {
    const char *text, *source, *note, *help;
    double ratio;
};

static void add_line(struct cli_page *page, const struct waterfall_line *l)
{
    char percent[16], bar[CLI_BAR_BYTES];
    struct libscols_line *line = cli_page_line(page);
    cli_page_cell(page, line, 0, "    %s", l->text);
    cli_page_cell(page, line, 1, "%s",
                  isnan(l->ratio) ? "unknown" : cli_percent_text(l->ratio, percent, sizeof percent));
    cli_page_cell(page, line, 2, "%s", cli_bar(l->ratio, bar));
    cli_page_cell(page, line, 3, "%s%s", l->source, l->note);
    cli_page_cell(page, line, 4, "%s", l->help);
}

static double add_parts(struct cli_page *page, const struct analysis_waterfall *w)
{
    double sum = 0;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++) {
        const struct analysis_part *p = &w->parts[i];
        if (!p->is_shown)
            continue;
        sum += isnan(p->ratio) ? 0 : p->ratio;
        add_line(page,
                 &(struct waterfall_line){.text = occ_part_text(i, p->ratio),
                                          .ratio = p->ratio,
                                          .source = isnan(p->ratio) ? "" : occ_value_source_word(p->source),
                                          .note = p->is_within_error ? ", within the error" : "",
                                          .help = p->help});
    }
    return sum;
}

int analysis_print_waterfall(const struct analysis *a, struct occ_error *err)
{
    static const char *const headings[] = {"    WHERE OCCUPANCY GOES", "", "", "SOURCE", "WHAT MAY HELP"};
    const int more = a->measured ? 0 : CLI_PAGE_HIDDEN, flags[] = {0, CLI_PAGE_RIGHT, 0, more, more};
    const struct occ_result *r = a->result;
    struct analysis_waterfall w;
    struct cli_page page;
    analysis_explain(a, &w);
    (void)putchar('\n');
    cli_page_begin(&page, headings, flags, 5);
    add_line(&page, &(struct waterfall_line){w.source != OCC_FROM_MODEL ? "achieved over elapsed cycles"
                                             : a->has_grid              ? "expected over elapsed cycles"
                                                                        : "active in a full wave",
                                             occ_value_source_word(w.source), "", "", w.used});
    double sum = w.used + add_parts(&page, &w);
    add_line(&page, &(struct waterfall_line){"all", "", "", "", sum});
    if (cli_page_end(&page, err) != 0)
        return OCC_E_NO_MEMORY;
    if (r->cause[OCC_CAUSE_PARTIAL_WARP] > 0)
        (void)printf("    also: %s, %.1f%% of all threads\n", occ_cause_text(OCC_CAUSE_PARTIAL_WARP),
                     r->cause[OCC_CAUSE_PARTIAL_WARP] * 100);
    return 0;
}
