/* `occq show`: what hardware counters said, in text and JSON; see show.h. One thread. */
#include "show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "occupancy/advice.h"
#include "occupancy/waterfall.h"
#include "cli/page.h"
#include "cli/values.h"

#define STALLED_OFTEN 0.1 /* of the cycles: what is worth a word */
#define STALLED_MORE  1.5

enum { TEXT_BYTES = 128, SOURCES = 4 };

/* ---- launches and SMs ---- */

struct source_count {
    enum occ_value_source source;
    uint64_t launches;
};

static void count_sources(const struct occ_measured_sums *sums, struct source_count counts[SOURCES])
{
    counts[0] = (struct source_count){OCC_FROM_DIRECT, sums->direct};
    counts[1] = (struct source_count){OCC_FROM_REGRESSED, sums->regressed};
    counts[2] = (struct source_count){OCC_FROM_GROUPED, sums->grouped};
    counts[3] = (struct source_count){OCC_FROM_EXACT, sums->exact};
}

static void print_launches(const struct occ_measured_sums *sums, const struct occ_measurement *measured)
{
    struct source_count counts[SOURCES];
    const char *separator = ": ";
    count_sources(sums, counts);
    (void)printf("    measured in %" PRIu64 " launches", occ_measured_launches(sums));
    for (size_t i = 0; i < SOURCES; i++) {
        if (counts[i].launches == 0)
            continue;
        (void)printf("%s%" PRIu64 " %s (%s)", separator, counts[i].launches,
                     occ_value_source_word(counts[i].source), occ_value_source_text(counts[i].source));
        separator = ", ";
    }
    if (!isnan(measured->variance_inflation))
        (void)printf("; variance inflation %.2f", measured->variance_inflation);
    (void)putchar('\n');
    if (sums->overlapped)
        (void)printf("    %.1f%% of them ran beside other kernels\n",
                     100.0 * (double)sums->overlapped / (double)occ_measured_launches(sums));
}

/* What is known of kernels that always run together is known of the group. */
static void print_group(const struct occ_measured_sums *sums)
{
    double own_ns = sums->ns[OCC_MEASURED_elapsed], others_ns = sums->ns[OCC_MEASURED_group_elapsed];
    double elapsed = occ_measured_mean(sums, OCC_MEASURED_group_elapsed);
    double achieved = occ_measured_mean(sums, OCC_MEASURED_group_achieved);
    double error = occ_measured_mean(sums, OCC_MEASURED_group_elapsed_error);
    if (isnan(elapsed))
        return;
    (void)printf("    its group's means: elapsed %.1f%%", elapsed * 100);
    if (!isnan(error))
        (void)printf(" +- %.1f%%", OCC_ERRORS_OF_95_PERCENT * error * 100);
    if (!isnan(achieved))
        (void)printf(", achieved %.1f%%", achieved * 100);
    (void)printf("; not this kernel's own\n");
    if (!occ_measured_stand_for_all(sums))
        (void)printf("    launches with a value of their own make %.1f%% of the time and last otherwise than "
                     "the rest: "
                     "no mean is said\n",
                     100 * own_ns / (own_ns + others_ns));
}

static double expected_blocks(const struct occ_result *r)
{
    return r->warps_per_block ? r->expected_achieved * r->max_warps_per_sm / r->warps_per_block : NAN;
}

static void print_sms(const struct occ_shape_row *row, const struct occ_measurement *m)
{
    const char *separator = "    SMs: ";
    if (!isnan(m->sm_active)) {
        (void)printf("%sactive %.1f%% of the time", separator, m->sm_active * 100);
        separator = "; ";
    }
    if (!isnan(m->resident_blocks)) {
        (void)printf("%s%.2f blocks on an active one", separator, m->resident_blocks);
        if (row->analysed)
            (void)printf(" (expected: %.2f)", expected_blocks(&row->result));
        separator = "; ";
    }
    if (!isnan(m->imbalance)) {
        (void)printf("%sthe least active one %.1f%% below the most active", separator, m->imbalance * 100);
        separator = "; ";
    }
    if (separator[0] == ';')
        (void)putchar('\n');
}

void show_measured(const struct occ_shape_row *row, const struct occ_measurement *measured)
{
    if (measured->source == OCC_FROM_MODEL)
        return;
    print_launches(&row->measured, measured);
    print_group(&row->measured);
    print_sms(row, measured);
}

/* ---- what the hardware waited for ---- */

bool show_has_stalls(const struct occ_measurement *measured)
{
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        if (!isnan(measured->stall[limit]))
            return true;
    return false;
}

/* Clearly: another resource than the formula's limiters was waited for, often, and much more than for these. */
static bool disagrees(const struct occ_result *result, const struct occ_measurement *measured,
                      enum occ_limit stalled)
{
    double agreed = 0;
    if (stalled >= OCC_LIMIT_COUNT || result->limiters & 1u << stalled)
        return false;
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        if (result->limiters & 1u << limit && measured->stall[limit] > agreed)
            agreed = measured->stall[limit];
    return measured->stall[stalled] > STALLED_OFTEN && measured->stall[stalled] > STALLED_MORE * agreed;
}

void show_stall_reason(const struct occ_result *result, const struct occ_measurement *measured)
{
    char limiters[64];
    enum occ_limit stalled = occ_most_stalled(measured);
    if (disagrees(result, measured, stalled))
        (void)printf(
            "    the hardware disagrees: the launch of warps waited most for %s (%.1f%% of the cycles), "
            "not for %s\n",
            occ_limit_word(stalled), measured->stall[stalled] * 100,
            occ_limiters_text(result->limiters, limiters, sizeof limiters));
}

/* ---- the waterfall ---- */

bool show_has_waterfall(const struct occ_shape_row *row, const struct occ_measurement *measured)
{
    struct occ_waterfall waterfall;
    if (!row->analysed)
        return false;
    occ_explain(&row->result, measured, &waterfall);
    return waterfall.source != OCC_FROM_MODEL;
}

static enum occ_value_source source_of(const struct occ_waterfall *waterfall, unsigned part)
{
    return part < OCC_CAUSE_COUNT ? OCC_FROM_MODEL : waterfall->source;
}

static bool is_within_error(const struct occ_waterfall *waterfall, unsigned part)
{
    return part >= OCC_CAUSE_COUNT && fabs(waterfall->part[part]) <= waterfall->error;
}

/* Parts of the model that are 0 say nothing. Of the imbalance there is either the whole or its two parts. */
static bool is_shown(const struct occ_waterfall *waterfall, unsigned part)
{
    bool is_whole = !isnan(waterfall->part[OCC_PART_IMBALANCE]);
    if (part < OCC_CAUSE_COUNT)
        return waterfall->part[part] > 0;
    if (part == OCC_PART_IMBALANCE)
        return is_whole;
    return !is_whole || (part != OCC_PART_IMBALANCE_ACROSS_BLOCKS && part != OCC_PART_IMBALANCE_WITHIN_BLOCK);
}

/* What may help against a part that is lost: with its figures where the model has any, and for the model's own parts
 * only then. "" where the kernel is meant to be as it is. */
static const char *help_of(const struct occ_shape_row *row, const struct occ_waterfall *waterfall,
                           unsigned part, const struct occ_advice *advice, size_t n, char buffer[TEXT_BYTES])
{
    enum occ_advice_kind kind = occ_part_advice(part);
    buffer[0] = '\0';
    if (kind == OCC_ADVICE_COUNT || row->result.by_design || !(waterfall->part[part] > 0) ||
        is_within_error(waterfall, part))
        return buffer;
    for (size_t i = 0; i < n && !buffer[0]; i++)
        if (advice[i].kind == kind)
            (void)snprintf(buffer, TEXT_BYTES, "%s: %" PRIu64 " -> %" PRIu64, occ_advice_text(kind),
                           advice[i].now, advice[i].needed);
    if (!buffer[0] && part >= OCC_CAUSE_COUNT)
        (void)snprintf(buffer, TEXT_BYTES, "%s", occ_advice_text(kind));
    return buffer;
}

static void add_part(struct cli_page *page, const struct occ_waterfall *waterfall, unsigned part,
                     const char *help)
{
    char percent[16], bar[CLI_BAR_BYTES];
    double ratio = waterfall->part[part];
    struct libscols_line *line = cli_page_line(page);
    cli_page_cell(page, line, 0, "    %s", occ_part_text(part, ratio));
    cli_page_cell(page, line, 1, "%s",
                  isnan(ratio) ? "unknown" : cli_percent_text(ratio, percent, sizeof percent));
    cli_page_cell(page, line, 2, "%s", cli_bar(ratio, bar));
    cli_page_cell(page, line, 3, "%s%s",
                  isnan(ratio) ? "" : occ_value_source_word(source_of(waterfall, part)),
                  is_within_error(waterfall, part) ? ", within the error" : "");
    cli_page_cell(page, line, 4, "%s", help);
}

static void add_end(struct cli_page *page, const char *text, double ratio, const char *source)
{
    char percent[16], bar[CLI_BAR_BYTES];
    struct libscols_line *line = cli_page_line(page);
    cli_page_cell(page, line, 0, "    %s", text);
    cli_page_cell(page, line, 1, "%s", cli_percent_text(ratio, percent, sizeof percent));
    cli_page_cell(page, line, 2, "%s", cli_bar(ratio, bar));
    cli_page_cell(page, line, 3, "%s", source);
    cli_page_cell(page, line, 4, "%s", "");
}

static size_t advise(const struct occ_shape_row *row, struct occ_advice advice[OCC_ADVICE_MAX])
{
    size_t n = occ_advise(&row->limits, &row->launch, &row->result, advice, OCC_ADVICE_MAX);
    return n < OCC_ADVICE_MAX ? n : OCC_ADVICE_MAX;
}

int show_waterfall(const struct occ_shape_row *row, const struct occ_measurement *measured,
                   struct occ_error *err)
{
    static const char *const headings[] = {"    WHERE OCCUPANCY GOES", "", "", "SOURCE", "WHAT MAY HELP"};
    static const int flags[] = {0, CLI_PAGE_RIGHT, 0, 0, 0};
    struct occ_advice advice[OCC_ADVICE_MAX];
    struct occ_waterfall waterfall;
    struct cli_page page;
    size_t n = advise(row, advice);
    occ_explain(&row->result, measured, &waterfall);
    double sum = waterfall.used;
    (void)putchar('\n');
    cli_page_begin(&page, headings, flags, 5);
    add_end(&page, "used (elapsed)", waterfall.used, occ_value_source_word(waterfall.source));
    for (unsigned part = 0; part < OCC_PART_COUNT; part++) {
        char help[TEXT_BYTES];
        if (!is_shown(&waterfall, part))
            continue;
        sum += isnan(waterfall.part[part]) ? 0 : waterfall.part[part];
        add_part(&page, &waterfall, part, help_of(row, &waterfall, part, advice, n, help));
    }
    add_end(&page, "all", sum, "");
    return cli_page_end(&page, err);
}

/* ---- JSON ---- */

static void write_waterfall(struct cli_json *json, const struct occ_shape_row *row,
                            const struct occ_measurement *measured)
{
    struct occ_advice advice[OCC_ADVICE_MAX];
    struct occ_waterfall waterfall;
    size_t n = advise(row, advice);
    occ_explain(&row->result, measured, &waterfall);
    cli_json_array(json, "waterfall", false);
    for (unsigned part = 0; part < OCC_PART_COUNT; part++) {
        char help[TEXT_BYTES];
        if (part == OCC_CAUSE_PARTIAL_WARP)
            continue;
        (void)help_of(row, &waterfall, part, advice, n, help);
        cli_json_object(json, NULL, true);
        cli_json_string(json, "cause", occ_part_word(part));
        cli_json_real(json, "ratio", waterfall.part[part]);
        cli_json_string(json, "source", occ_value_source_word(source_of(&waterfall, part)));
        cli_json_bool(json, "within_error", is_within_error(&waterfall, part));
        cli_json_string(json, "advice", help[0] ? help : NULL);
        cli_json_close(json);
    }
    cli_json_close(json);
}

static void write_stalls(struct cli_json *json, const struct occ_shape_row *row,
                         const struct occ_measurement *m)
{
    enum occ_limit stalled = occ_most_stalled(m);
    cli_json_object(json, "launch_stall_ratios", true);
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        if (limit != OCC_LIMIT_CLUSTER)
            cli_json_real(json, occ_limit_word((enum occ_limit)limit), m->stall[limit]);
    cli_json_close(json);
    cli_json_string(json, "most_stalled_by", stalled < OCC_LIMIT_COUNT ? occ_limit_word(stalled) : NULL);
    cli_json_bool(json, "stall_disagrees", row->analysed && disagrees(&row->result, m, stalled));
}

void show_json_measured(struct cli_json *json, const struct occ_shape_row *row,
                        const struct occ_measurement *measured)
{
    struct source_count counts[SOURCES];
    if (measured->source == OCC_FROM_MODEL) {
        cli_json_null(json, "measured");
        return;
    }
    count_sources(&row->measured, counts);
    cli_json_object(json, "measured", false);
    cli_json_string(json, "source", occ_value_source_word(measured->source));
    cli_json_unsigned(json, "launches", occ_measured_launches(&row->measured));
    cli_json_object(json, "launches_by_source", true);
    for (size_t i = 0; i < SOURCES; i++)
        cli_json_unsigned(json, occ_value_source_word(counts[i].source), counts[i].launches);
    cli_json_close(json);
    cli_json_unsigned(json, "overlapped_launches", row->measured.overlapped);
    cli_json_real(json, "achieved", measured->achieved);
    cli_json_real(json, "achieved_standard_error", measured->achieved_error);
    cli_json_real(json, "elapsed", measured->elapsed);
    cli_json_real(json, "elapsed_standard_error", measured->elapsed_error);
    cli_json_real(json, "variance_inflation", measured->variance_inflation);
    cli_json_real(json, "group_achieved", occ_measured_mean(&row->measured, OCC_MEASURED_group_achieved));
    cli_json_real(json, "group_elapsed", occ_measured_mean(&row->measured, OCC_MEASURED_group_elapsed));
    cli_json_real(json, "group_elapsed_standard_error",
                  occ_measured_mean(&row->measured, OCC_MEASURED_group_elapsed_error));
    cli_json_real(json, "sm_active", measured->sm_active);
    cli_json_real(json, "resident_blocks", measured->resident_blocks);
    cli_json_real(json, "sm_imbalance", measured->imbalance);
    write_stalls(json, row, measured);
    if (show_has_waterfall(row, measured))
        write_waterfall(json, row, measured);
    else
        cli_json_null(json, "waterfall");
    cli_json_close(json);
}
