/* The answer of `occq show` for people; see show_text.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kernels/show_answers.h"
#include "cli/screen.h"
#include "cli/table.h"
#include "cli/values.h"
#include "show_text.h"
#include "support/cleanup.h"
#include "support/text.h"

enum { LINE = 160, PARAGRAPH = 512 };

/* ---- head ---- */

void show_name(const char *indent, const char *name)
{
    _cleanup_(occ_freep) char *clean = strdup(name ? name : "-");
    if (!clean) {
        cli_screen_lose_text();
        return;
    }
    occ_text_sanitise(clean);
    cli_print("%s%s\n", indent, clean);
}

/* Prints the full name if it has more than the short one: at most one line of it, since a name of a template
 * can fill a screen. */
static void print_full_name(const struct occ_row_kernel *kernel)
{
    char line[LINE];
    const char *name = kernel->demangled;
    size_t width = cli_screen_width(), most = width > 24 && width < LINE ? width - 4 : LINE - 8;
    if (!name || (!kernel->words && kernel->short_name && strcmp(name, kernel->short_name) == 0))
        return;
    (void)snprintf(line, sizeof line, "%.*s%s", (int)most, name,
                   strlen(name) > most ? cli_screen_ellipsis() : "");
    show_name("  ", line);
}

/* True if a simulated device needs a mark: its name does not contain "simulated". */
static bool needs_mark(const struct occ_config_row *row)
{
    return row->kernel.simulated &&
           !(row->kernel.device_name && strstr(row->kernel.device_name, "simulated"));
}

static void print_device(const struct occ_config_row *first)
{
    char where[LINE], gpu[32] = "";
    if (first->kernel.device > 0)
        (void)snprintf(gpu, sizeof gpu, "GPU %" PRId64 ": ", first->kernel.device);
    (void)snprintf(where, sizeof where, "on %s%s (compute capability %u.%u, %u SMs)%s", gpu,
                   first->kernel.device_name ? first->kernel.device_name : "-", first->limits.cc / 10,
                   first->limits.cc % 10, first->limits.sm_count, needs_mark(first) ? " - simulated" : "");
    show_name("  ", where);
    uint32_t rules = occ_device_rules_of(first->limits.cc);
    if (rules != first->limits.cc && rules != 0)
        cli_print(
            "  compute capability %u.%u is not known here: limits are estimated by the rules of %u.%u\n",
            first->limits.cc / 10, first->limits.cc % 10, rules / 10, rules % 10);
}

/* The share of the group's GPU time; NaN: not known. */
static double gpu_share(const struct show_group *group)
{
    return group->answer && group->answer->is_of_gpu_time ? group->answer->gpu_share : (double)NAN;
}

static void print_head(const struct show_group *group)
{
    const struct occ_config_row *first = group->configs;
    char duration[32], share[16], of_time[48] = "";
    if (!isnan(gpu_share(group)))
        (void)snprintf(of_time, sizeof of_time, ", %s of the GPU time",
                       cli_percent_text(gpu_share(group), share, sizeof share));
    show_name("", first->kernel.words ? first->kernel.words : first->kernel.short_name);
    print_full_name(&first->kernel);
    print_device(first);
    cli_print("  kernel %" PRId64 "%s%s: %zu configuration%s, %" PRIu64 " launch%s, %s%s\n", first->kernel.id,
              group->answer ? ", " : "", group->answer ? occ_owner_text(group->answer->owner.owner) : "",
              group->n, group->n == 1 ? "" : "s", group->launches, group->launches == 1 ? "" : "es",
              occ_format_duration((int64_t)group->total_ns, duration, sizeof duration), of_time);
}

/* ---- the four lines ---- */

static void why_text(const struct show_group *group, char *text, size_t size)
{
    const struct occ_kernel_answer *answer = group->answer;
    const struct occ_finding *f = &answer->finding;
    char why[OCC_WHY_BYTES], percent[16];
    const char *reason = occ_low_reason_text(f->low_reasons);
    text[0] = '\0';
    if (!answer->is_known) {
        (void)snprintf(text, size, "not known: %s",
                       group->configs->refused ? group->configs->refused : "the launch is not analysed");
        return;
    }
    occ_text_append(text, size, "; ", "%s", occ_why_text(&answer->why, why, sizeof why));
    occ_text_append(text, size, "; ", "%s of the warp slots are used",
                    cli_percent_text(answer->used, percent, sizeof percent));
    if (f->cause < OCC_PART_COUNT && answer->cause_ratio > 0) {
        const char *part = occ_part_text(f->cause, answer->cause_ratio);
        bool is_said = strcmp(part, why) == 0;
        occ_text_append(text, size, ", ", "%s lost%s%s",
                        cli_percent_text(answer->cause_ratio, percent, sizeof percent), is_said ? "" : ": ",
                        is_said ? "" : part);
    }
    if (reason[0])
        occ_text_append(text, size, "; ", "%s", reason);
}

static void confidence_text(const struct occ_kernel_answer *answer, char *text, size_t size)
{
    static const char *const more[OCC_CONFIDENCE_COUNT] = {
        [OCC_CONFIDENCE_MEASURED] = "",
        [OCC_CONFIDENCE_MODELLED] = ", not measured: no counters, no report of Nsight Compute",
        [OCC_CONFIDENCE_SIMULATED] = ": no real GPU ran this"};
    const struct occ_finding *f = &answer->finding;
    bool has_rest = f->confidence == OCC_CONFIDENCE_MEASURED && f->measured_ratio < 0.995;
    if (!answer->is_known) {
        (void)snprintf(text, size, "no model of this launch");
        return;
    }
    (void)occ_confidence_text(f, text, size);
    occ_text_append(text, size, "", "%s%s", more[f->confidence], has_rest ? ", else modelled" : "");
}

static void print_answer(const struct show_group *group)
{
    struct occ_measurement means;
    const struct analysis a = show_analysis(group->configs, &means);
    char text[PARAGRAPH], gap[32];
    if (!group->answer)
        return;
    why_text(group, text, sizeof text);
    cli_print("\n  WHY         %s\n", text);
    cli_print("  DO          %s\n", show_change_text(group, text, sizeof text));
    if (!isnan(a.launch_gap_ns))
        cli_print("              also CUDA graphs: the GPU waits for the CPU, %s before a launch\n",
                  occ_format_duration((int64_t)a.launch_gap_ns, gap, sizeof gap));
    cli_print("  SAVES       %s\n", occ_saving_text(group->answer, text, sizeof text));
    confidence_text(group->answer, text, sizeof text);
    cli_print("  CONFIDENCE  %s\n", text);
}

/* ---- launch configurations ---- */

struct config_line {
    int64_t id;
    char grid[48], block[48], expected[24], why[OCC_WHY_BYTES];
    uint64_t launches, total_ns;
    double share, theoretical, achieved;
};

#define FIELD(name, unit, flags, member)                                                                     \
    CLI_FIELD(name, name, unit, CLI_VERBATIM | (flags), struct config_line, member, "")

static const struct cli_column columns[] = {
    FIELD("CONFIG", CLI_PLAIN, CLI_SPARE(3), id),
    FIELD("GRID", CLI_PLAIN, CLI_LEFT, grid),
    FIELD("BLOCK", CLI_PLAIN, CLI_LEFT, block),
    FIELD("LAUNCHES", CLI_PLAIN, CLI_SPARE(4), launches),
    FIELD("TIME", CLI_DURATION, 0, total_ns),
    FIELD("SHARE", CLI_RATIO, CLI_RARE | CLI_SPARE(2), share),
    FIELD("THEOR", CLI_RATIO, CLI_SPARE(1), theoretical),
    FIELD("EXPECTED", CLI_PLAIN, 0, expected),
    FIELD("ACHIEVED", CLI_RATIO, CLI_RARE, achieved),
    FIELD("WHY", CLI_PLAIN, CLI_LEFT | CLI_CUTS, why),
    CLI_COLUMN_END,
};

/* Formats "520", or "8x4x1" for a grid or block with more than one dimension. */
static void size_text(const uint32_t size[3], char *text, size_t bytes)
{
    if (size[1] <= 1 && size[2] <= 1)
        (void)snprintf(text, bytes, "%u", size[0]);
    else
        (void)analysis_dimensions(size, text, bytes);
}

static void fill_line(const struct show_group *group, const struct occ_config_row *row,
                      struct config_line *line)
{
    struct occ_measurement means;
    struct occ_waterfall w;
    const struct occ_result *r = &row->result;
    occ_measured_means(&row->measured, row->measurable_ns, &means);
    *line = (struct config_line){.id = row->id,
                                 .launches = row->launches,
                                 .total_ns = row->total_ns,
                                 .share = gpu_share(group) * (double)row->total_ns / (double)group->total_ns,
                                 .theoretical = row->analysed ? r->theoretical : (double)NAN,
                                 .achieved = means.achieved};
    size_text(row->launch.grid, line->grid, sizeof line->grid);
    size_text(row->launch.block, line->block, sizeof line->block);
    if (!row->analysed) {
        (void)snprintf(line->why, sizeof line->why, "not analysed");
        return;
    }
    occ_explain(r, &means, &w);
    (void)cli_range_cell(r->expected_achieved_low, r->expected_achieved_high, line->expected,
                         sizeof line->expected);
    (void)occ_why_text(
        &(struct occ_why){
            .cause = occ_largest_part(w.part, OCC_PART_COUNT),
            .is_communication = group->answer && group->answer->owner.owner == OCC_OWNER_COMMUNICATION,
            .grid_blocks = r->grid_blocks,
            .wave_blocks = r->wave_blocks,
            .blocks_per_sm = r->blocks_per_sm,
            .sm_count = row->limits.sm_count,
            .registers_per_thread = row->launch.registers_per_thread,
            .block_threads = row->launch.block[0] * row->launch.block[1] * row->launch.block[2]},
        line->why, sizeof line->why);
}

static int print_configs(const struct show_group *group, struct occ_error *err)
{
    struct cli_selection selection = {.format = CLI_FORMAT_TEXT};
    _cleanup_(occ_freep) struct config_line *lines = calloc(group->shown + 1, sizeof *lines);
    if (!lines)
        return occ_no_memory(err);
    for (size_t i = 0; i < group->shown; i++)
        fill_line(group, &group->configs[i], &lines[i]);
    cli_select(columns, 0, 0, &selection);
    cli_print("\n");
    int status = cli_table_print("", &selection, lines, group->shown, sizeof *lines, err);
    if (status == 0 && group->shown < group->n)
        cli_print("and %zu more launch configuration%s: -n, --all\n", group->n - group->shown,
                  group->n - group->shown == 1 ? "" : "s");
    return status;
}

/* Prints the limit of the configuration with most time. */
static void print_limit(const struct occ_config_row *row)
{
    const struct occ_result *r = &row->result;
    char limiters[64];
    if (!row->analysed)
        return;
    (void)occ_limiters_text(r->limiters, limiters, sizeof limiters);
    if (r->full_waves == 0)
        cli_print("grid: %" PRIu64 " block%s, a full wave has %" PRIu64
                  "; only a larger grid would meet the limit of %s (%u block%s per SM)\n",
                  r->grid_blocks, r->grid_blocks == 1 ? "" : "s", r->wave_blocks, limiters, r->blocks_per_sm,
                  r->blocks_per_sm == 1 ? "" : "s");
    else
        cli_print("limit: %s -> %u block%s, %u of %u warps per SM; %.2f waves\n", limiters, r->blocks_per_sm,
                  r->blocks_per_sm == 1 ? "" : "s", r->warps_per_sm, r->max_warps_per_sm, r->waves);
}

static void print_latency(const struct occ_config_row *row)
{
    struct occ_measurement measured;
    const struct analysis a = show_analysis(row, &measured);
    if (row->analysed)
        analysis_print_latency(&a, "");
}

int show_answer(const struct show_group *group, struct occ_error *err)
{
    print_head(group);
    print_answer(group);
    int status = print_configs(group, err);
    if (status == 0) {
        print_limit(group->configs);
        print_latency(group->configs);
    }
    return status;
}

/* ---- definitions ---- */

void show_definitions(void)
{
    static const char *const terms[][2] = {
        {"WHY", "the largest part of the unused warp slots, over all launch configurations"},
        {"used", "elapsed occupancy: measured, else the low end of the expected range"},
        {"DO", "the change that saves most in the launch configuration with most time; of about equal "
               "changes the one with the least effort for the "
               "kernel's owner"},
        {"SAVES", "predicted from published changes, for that configuration alone; a prediction is "
                  "no measurement. \"measure it\": the sign of the effect is not known"},
        {"GPU time", "recorded time of all GPUs, with the time in which no kernel ran"},
        {"THEOR", "active warps per SM that the launch's resources allow / maximum warps per SM"},
        {"EXPECTED", "range of ACHIEVED for a balanced grid, by the model"},
        {"ACHIEVED", "measured: warp-cycles / (SM-active cycles x maximum warps per SM)"},
        {"elapsed", "measured: warp-cycles / (SM-elapsed cycles x maximum warps per SM)"},
        {"wave", "blocks that all SMs hold at once"},
        {"latency",
         "warps needed to issue an instruction in every cycle: schedulers x cycles of latency / independent "
         "instructions per warp. Measured cycles: resident warps per scheduler / instructions issued in a "
         "cycle. Assumed cycles: of dependent arithmetic, as NVIDIA documents; memory needs more. No "
         "prediction of time: a busy unit's latency grows with the warps"},
    };
    cli_print("\n");
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        cli_print("  %-11s %s\n", terms[i][0], terms[i][1]);
}
