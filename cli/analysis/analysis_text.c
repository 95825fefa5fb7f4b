/* Prints an analysis as text: tables, and lines between them; see analysis.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis.h"
#include "cli/marks.h"
#include "cli/screen.h"
#include "cli/table.h"

const char *analysis_dimensions(const uint32_t dimensions[3], char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%ux%ux%u", dimensions[0], dimensions[1], dimensions[2]);
    return buffer;
}

#define EMPTY " " /* an empty cell; "" would print "-" (unknown) */

/* Columns with CLI_MORE are omitted without `more`. */
#define FIELD(name, unit, flags, type, member)                                                               \
    CLI_FIELD(name, name, unit, CLI_VERBATIM | (flags), struct type, member, "")

static int print_table(const struct cli_column *columns, bool more, const void *rows, size_t n,
                       size_t row_bytes, struct occ_error *err)
{
    struct cli_selection selection = {.format = CLI_FORMAT_TEXT};
    cli_select(columns, 0, more ? 0 : CLI_MORE, &selection);
    cli_print("\n");
    return cli_table_print("", &selection, rows, n, row_bytes, err);
}

/* ---- limits ---- */

struct limit_row {
    char name[48], needs[48], has[48];
    double blocks, stalled; /* NaN: no limit; not measured */
};

static const struct cli_column limit_columns[] = {
    FIELD("    LIMIT", CLI_PLAIN, CLI_LEFT, limit_row, name),
    FIELD("BLOCKS/SM", CLI_PLAIN, 0, limit_row, blocks),
    FIELD("A BLOCK TAKES", CLI_PLAIN, 0, limit_row, needs),
    FIELD("AN SM HAS", CLI_PLAIN, CLI_LEFT | CLI_CUTS, limit_row, has),
    FIELD("LAUNCH STALLED", CLI_RATIO, CLI_MORE, limit_row, stalled),
    CLI_COLUMN_END,
};

/* Describes a resource: use by a block, and total of the SM; "" if there is nothing to report. */
static void describe_limit(const struct analysis *a, enum occ_limit limit, struct limit_row *row)
{
    const struct occ_result *r = a->result;
    char *needs = row->needs, *has = row->has;
    const size_t size = sizeof row->needs;
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

static void print_stall_reason(const struct analysis *a)
{
    char limiters[64];
    enum occ_limit stalled = a->measured ? occ_most_stalled(a->measured) : OCC_LIMIT_COUNT;
    if (a->measured && analysis_stall_disagrees(a->result, a->measured, stalled))
        cli_print("    the hardware disagrees: the launch of warps stalled most for %s (%.1f%% of the "
                  "cycles), not for %s\n",
                  occ_limit_word(stalled), a->measured->stall[stalled] * 100,
                  occ_limiters_text(a->result->limiters, limiters, sizeof limiters));
}

static int print_limits(const struct analysis *a, struct occ_error *err)
{
    const struct occ_result *r = a->result;
    struct limit_row rows[OCC_LIMIT_COUNT];
    char limiters[64];
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++) {
        struct limit_row *row = &rows[limit];
        *row = (struct limit_row){.needs = EMPTY, .has = EMPTY};
        describe_limit(a, (enum occ_limit)limit, row);
        (void)snprintf(row->name, sizeof row->name, "%s %s", r->limiters & (1U << limit) ? "  *" : "   ",
                       occ_limit_text((enum occ_limit)limit));
        row->blocks = r->limit[limit] == OCC_NO_LIMIT ? (double)NAN : r->limit[limit];
        row->stalled = a->measured ? a->measured->stall[limit] : (double)NAN;
    }
    if (print_table(limit_columns, has_stalls(a->measured), rows, OCC_LIMIT_COUNT, sizeof *rows, err) != 0)
        return OCC_E_NO_MEMORY;
    cli_print("    * limits: %s -> %u block%s, %u of %u warps per SM\n",
              occ_limiters_text(r->limiters, limiters, sizeof limiters), r->blocks_per_sm,
              r->blocks_per_sm == 1 ? "" : "s", r->warps_per_sm, r->max_warps_per_sm);
    if (r->blocks_per_sm_largest_carveout > r->blocks_per_sm)
        cli_print("    with the largest shared-memory carve-out: %u blocks per SM\n",
                  r->blocks_per_sm_largest_carveout);
    print_stall_reason(a);
    return 0;
}

/* ---- waves and occupancies ---- */

static void print_waves(const struct occ_result *r)
{
    double part = r->wave_blocks ? 100.0 * (double)r->partial_blocks / (double)r->wave_blocks : 0;
    const char *blocks = r->partial_blocks == 1 ? "block" : "blocks", *waves = r->full_waves == 1 ? "" : "s";
    cli_print("\n    waves: %.2f = %" PRIu64 " blocks / %" PRIu64 " in a wave; ", r->waves, r->grid_blocks,
              r->wave_blocks);
    if (r->full_waves == 0)
        cli_print("no full wave: %" PRIu64 " %s fill%s %.1f%% of one\n", r->partial_blocks, blocks,
                  r->partial_blocks == 1 ? "s" : "", part);
    else if (r->partial_blocks)
        cli_print("%" PRIu64 " full wave%s + a partial wave of %" PRIu64 " %s (%.1f%%)\n", r->full_waves,
                  waves, r->partial_blocks, blocks, part);
    else
        cli_print("%" PRIu64 " full wave%s\n", r->full_waves, waves);
}

struct occupancy_row {
    const char *name, *ratio;
    double ci95; /* NaN: not measured, or no error */
    const char *definition;
};

static const struct cli_column occupancy_columns[] = {
    FIELD("    OCCUPANCY", CLI_PLAIN, CLI_LEFT, occupancy_row, name),
    FIELD("", CLI_PLAIN, 0, occupancy_row, ratio),
    FIELD("+-", CLI_RATIO, CLI_MORE, occupancy_row, ci95),
    FIELD("DEFINITION", CLI_PLAIN, CLI_LEFT | CLI_CUTS, occupancy_row, definition),
    CLI_COLUMN_END,
};

#define CYCLES       " cycles x maximum warps per SM)"
#define ABSENT(text) text, text "; not measured", text "; withheld"

/* Chooses from the texts of ABSENT(): value is known, not measured, or withheld. */
static const char *definition(const struct occ_measurement *m, double value, const char *const texts[3])
{
    return texts[!isnan(value) ? 0 : m->withheld == OCC_WITHHELD_NOT ? 1 : 2];
}

static int print_occupancies(const struct analysis *a, struct occ_error *err)
{
    static const struct occ_measurement none = {.achieved = NAN, .elapsed = NAN};
    const struct occ_measurement *m = a->measured ? a->measured : &none;
    const struct occ_result *r = a->result;
    const double ends[5][2] = {{r->theoretical, r->theoretical},
                               {r->expected_achieved_low, r->expected_achieved_high},
                               {r->expected_elapsed_low, r->expected_elapsed_high},
                               {m->achieved, m->achieved},
                               {m->elapsed, m->elapsed}};
    char text[5][24];
    for (size_t i = 0; i < 5; i++)
        (void)cli_range_text(ends[i][0], ends[i][1], text[i], sizeof text[i]);
    const struct occupancy_row rows[] = {
        {"    theoretical", text[0], NAN,
         "active warps per SM that the launch's resources allow / maximum warps per SM"},
        {"    expected achieved", text[1], NAN, "as achieved, for a perfectly balanced grid (model)"},
        {"    expected elapsed", text[2], NAN, "as elapsed, for a perfectly balanced grid (model)"},
        {"    achieved", text[3], m->achieved_error * OCC_ERRORS_OF_95_PERCENT,
         definition(m, m->achieved, (const char *const[]){ABSENT("warp-cycles / (SM-active" CYCLES)})},
        {"    elapsed", text[4], m->elapsed_error * OCC_ERRORS_OF_95_PERCENT,
         definition(m, m->elapsed, (const char *const[]){ABSENT("warp-cycles / (SM-elapsed" CYCLES)})},
    };
    size_t n = !a->has_grid ? 1 : a->measured ? 5 : 3;
    return print_table(occupancy_columns, m->source != OCC_FROM_MODEL, rows, n, sizeof *rows, err);
}

#define BLOCK_START_SHOWN 0.005 /* smaller losses have no line */

static void print_block_start(const struct analysis *a)
{
    double loss = a->has_grid ? occ_block_start_loss(a->result, a->duration_ns) : (double)NAN;
    char percent[16];
    if (loss >= BLOCK_START_SHOWN)
        cli_print("    starting and ending blocks costs about %s of expected elapsed: %.2f us in a wave of "
                  "%.1f us\n",
                  cli_percent_text(loss, percent, sizeof percent), OCC_BLOCK_START_NS * 1e-3,
                  OCC_BLOCK_START_NS * 1e-3 / loss);
}

int analysis_print(const struct analysis *a, struct occ_error *err)
{
    char notes[CLI_MARKS_BYTES];
    uint32_t by_design = a->result->by_design & ~(a->has_grid ? 0 : (uint32_t)OCC_BY_DESIGN_PERSISTENT);
    if (by_design)
        cli_print("    %s\n", cli_marks_text(by_design, true, notes));
    int status = print_limits(a, err);
    if (status == 0 && a->has_grid)
        print_waves(a->result);
    if (status == 0)
        status = print_occupancies(a, err);
    if (status == 0)
        print_block_start(a);
    return status;
}

/* ---- the waterfall ---- */

#define BAR_WIDTH 40 /* characters for 100 % */

struct waterfall_row {
    char text[96], ratio[24], bar[BAR_WIDTH + 1], source[40];
    const char *help;
};

static const struct cli_column waterfall_columns[] = {
    FIELD("    WHERE OCCUPANCY GOES", CLI_PLAIN, CLI_LEFT, waterfall_row, text),
    FIELD("", CLI_PLAIN, 0, waterfall_row, ratio),
    FIELD("", CLI_PLAIN, CLI_LEFT | CLI_SPARE(1), waterfall_row, bar),
    FIELD("SOURCE", CLI_PLAIN, CLI_LEFT | CLI_MORE, waterfall_row, source),
    FIELD("WHAT MAY HELP", CLI_PLAIN, CLI_LEFT | CLI_MORE | CLI_SPARE(2), waterfall_row, help),
    CLI_COLUMN_END,
};

/* A positive `spread` prints a range from `ratio` up to `ratio` + `spread`, a negative one a range below
 * `ratio`. */
static void fill_row(struct waterfall_row *row, const char *text, double ratio, double spread,
                     const char *source)
{
    double part = !(ratio > 0) ? 0 : ratio > 1 ? 1 : ratio;
    *row = (struct waterfall_row){.bar = EMPTY, .help = EMPTY};
    (void)cli_range_text(fmin(ratio, ratio + spread), fmax(ratio, ratio + spread), row->ratio,
                         sizeof row->ratio);
    (void)snprintf(row->text, sizeof row->text, "    %s", text);
    (void)snprintf(row->source, sizeof row->source, "%s", isnan(ratio) ? EMPTY : source);
    memset(row->bar, '#', (size_t)lround(part * BAR_WIDTH));
}

/* Prints the loss of an uneven grid. The loss is a range from 0 unless SM activity was measured, because the
 * grid need not be the cause. */
static void print_uneven_grid(const struct analysis *a, const struct analysis_waterfall *w)
{
    bool is_sure = a->measured && !isnan(a->measured->imbalance) && !(w->spread > 0);
    char part[24];
    if (w->uneven_grid < OCC_ADVICE_MIN_GAIN)
        return;
    cli_print("    of too few blocks: %s because the grid does not divide over the SMs\n",
              cli_range_text(is_sure ? w->uneven_grid : 0, w->uneven_grid, part, sizeof part));
}

int analysis_print_waterfall(const struct analysis *a, struct occ_error *err)
{
    const struct occ_result *r = a->result;
    struct waterfall_row rows[OCC_PART_COUNT + 2];
    struct analysis_waterfall w;
    size_t n = 0;
    analysis_explain(a, &w);
    double sum = w.used;
    fill_row(&rows[n++], w.used_text, w.used, w.spread, occ_value_source_word(w.source));
    for (unsigned i = 0; i < OCC_PART_COUNT; i++) {
        const struct analysis_part *p = &w.parts[i];
        char source[40];
        if (!p->is_shown)
            continue;
        (void)snprintf(source, sizeof source, "%s%s", occ_value_source_word(p->source),
                       p->is_within_error ? ", within the error" : "");
        fill_row(&rows[n], occ_part_text(i, p->ratio), p->ratio, -p->spread, source);
        rows[n++].help = p->help[0] ? p->help : EMPTY;
        sum += isnan(p->ratio) ? 0 : p->ratio;
    }
    fill_row(&rows[n++], "all", sum, 0, EMPTY);
    if (print_table(waterfall_columns, a->measured != NULL, rows, n, sizeof *rows, err) != 0)
        return OCC_E_NO_MEMORY;
    print_uneven_grid(a, &w);
    if (r->cause[OCC_CAUSE_PARTIAL_WARP] > 0)
        cli_print("    also: %s, %.1f%% of all threads\n", occ_cause_text(OCC_CAUSE_PARTIAL_WARP),
                  r->cause[OCC_CAUSE_PARTIAL_WARP] * 100);
    return 0;
}
