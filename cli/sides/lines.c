/* Rows of the answer: the changes in numbers and words; see report.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "support/text.h"
#include "verdicts.h"

#define SHOWN_POINTS 0.005 /* smaller changes of occupancies are not described */
#define LOST_MAX     0.01

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct diff_line, member, help)
#define BOTH(key, unit, member, help)                                                                        \
    FIELD(key "_a", key "_a", unit, 0, member[DIFF_A], help ", of A"),                                       \
        FIELD(key "_b", key "_b", unit, 0, member[DIFF_B], help ", of B")
#define VALUE(name)                                                                                          \
    BOTH(#name, CLI_RATIO, value[DIFF_VALUE_##name], "its occupancy, mean over its time: " #name),

/* The index of the column is the side. */
static struct cli_value config_of(const struct cli_column *column, const void *row)
{
    int64_t config = ((const struct diff_line *)row)->config[column->index];
    return config ? cli_integer(config) : (struct cli_value){.type = CLI_NONE};
}

const struct cli_column diff_columns[] = {
    FIELD("verdict", "verdict", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, verdict,
          "of the time of a launch, or for the same work (basis): worse, better, same, undecided; new, gone: "
          "on one side only"),
    FIELD("verdict_waste", "verdict_waste", CLI_PLAIN, CLI_LEFT, verdict_by[DIFF_METRIC_WASTE],
          "the same of its waste"),
    FIELD("verdict_achieved", "verdict_achieved", CLI_PLAIN, CLI_LEFT, verdict_by[DIFF_METRIC_ACHIEVED],
          "the same of its achieved occupancy"),
    FIELD("match", "match", CLI_PLAIN, CLI_LEFT, match, "how A's kernel was found in B"),
    FIELD("kernel", "kernel", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, kernel, "short name"),
    FIELD("mangled_a", "kernel_mangled_a", CLI_PLAIN, CLI_LEFT, mangled[DIFF_A], "name in the driver, of A"),
    FIELD("mangled_b", "kernel_mangled_b", CLI_PLAIN, CLI_LEFT, mangled[DIFF_B], "name in the driver, of B"),
    {.name = "config_a",
     .key = "config_id_a",
     .get = config_of,
     .index = DIFF_A,
     .help = "number of its launch configuration, of A; no value: several, or none"},
    {.name = "config_b",
     .key = "config_id_b",
     .get = config_of,
     .index = DIFF_B,
     .help = "number of its launch configuration, of B; no value: several, or none"},
    FIELD("range", "range", CLI_PLAIN, CLI_LEFT | CLI_CUTS, range,
          "where its launches were made, as in occq top --by range"),
    FIELD("share", "time_ratio", CLI_RATIO, CLI_DEFAULT, share,
          "the larger of its shares of A's and of B's time"),
    FIELD("change", "mean_duration_change_ratio", CLI_RATIO, CLI_DEFAULT, change,
          "B / A - 1 of the time of a launch, or for the same work (basis), as the verdict has it (without "
          "warm-up)"),
    FIELD("basis", "basis", CLI_PLAIN, CLI_LEFT, basis,
          "of change and verdict: launch, the time of a launch; work, the time for the same work, since "
          "other numbers of launches do other work each; no value: neither is comparable"),
    FIELD("reason", "reason", CLI_PLAIN, CLI_LEFT | CLI_CUTS, reason,
          "why the verdict differs from the one on its kernel, or is missing, for people"),
    FIELD("low", "change_low_ci95_ratio", CLI_RATIO, CLI_DEFAULT, low,
          "lower end of its 95 % confidence interval"),
    FIELD("high", "change_high_ci95_ratio", CLI_RATIO, CLI_DEFAULT, high, "upper end of the 95 % interval"),
    FIELD("q", "false_discovery_rate", CLI_RATIO, 0, q, "at which the change of time is accepted"),
    BOTH("launches", CLI_PLAIN, launches, "launches"),
    BOTH("total_duration_ns", CLI_DURATION, total_ns, "sum of their durations"),
    BOTH("mean_duration_ns", CLI_DURATION, mean_ns, "mean duration"),
    BOTH("waste_warp_seconds", CLI_AMOUNT, waste, "wasted warp-seconds"),
    DIFF_VALUES(VALUE) /* */
    FIELD("advised_saves", "advised_saves_max_ratio", CLI_RATIO, 0, advised_saves,
          "upper bound, no prediction, of the part of a launch's time that A's advice saves, where B follows "
          "it"),
    FIELD("advice", "advice", CLI_PLAIN, CLI_LEFT, advice,
          "the advice for A that B follows, with its predicted and its measured effect, for people"),
    FIELD("changes", "changes", CLI_PLAIN, CLI_LEFT, changes, "other changes, for people"),
    CLI_COLUMN_END,
};

/* ---- words ---- */

static const char basis_work[] = "work";

struct text {
    char *buffer;
    size_t size;
};

#define ADD(text, separator, ...) occ_text_append((text)->buffer, (text)->size, separator, __VA_ARGS__)

static bool is_replaced(const struct diff_pair *pair)
{
    return pair->level != DIFF_ONE_SIDE && pair->kernels[DIFF_A] != pair->kernels[DIFF_B];
}

/* Returns the range of all items of a side; NULL: not known, or several. */
static const char *range_of(const struct diff *diff, const struct diff_pair *pair, uint32_t side)
{
    uint32_t index = (uint32_t)(pair - diff->pairs);
    const char *range = pair->main_item[side] ? pair->main_item[side]->range : NULL;
    for (uint32_t i = 0; i < diff->n_items && range && pair->n[side] > 1; i++) {
        const struct diff_item *item = &diff->items[i];
        bool is_other = !item->range || strcmp(item->range, range) != 0;
        if (item->pair == index && item->side == side && is_other)
            return NULL;
    }
    return range;
}

static void write_range(const struct diff *diff, const struct diff_pair *pair, struct text *text)
{
    if (!is_replaced(pair) && (pair->n[DIFF_A] > 1 || pair->n[DIFF_B] > 1))
        return;
    const char *a = range_of(diff, pair, DIFF_A), *b = range_of(diff, pair, DIFF_B);
    ADD(text, "", "%.250s", a ? a : "");
    if (b && (!a || strcmp(a, b) != 0))
        ADD(text, " -> ", "%.250s", b);
    occ_text_sanitise(text->buffer);
}

static void add_number(struct text *text, const char *word, double a, double b)
{
    if (a < b || a > b)
        ADD(text, ", ", "%s %.0f -> %.0f", word, a, b);
}

static void add_range(struct text *text, const char *word, const double a[2], const double b[2])
{
    char from[24], to[24];
    if (fabs(b[0] - a[0]) >= SHOWN_POINTS || fabs(b[1] - a[1]) >= SHOWN_POINTS)
        ADD(text, ", ", "%s %s -> %s", word, cli_range_text(a[0], a[1], from, sizeof from),
            cli_range_text(b[0], b[1], to, sizeof to));
}

static void add_ratio(struct text *text, const char *word, double a, double b)
{
    add_range(text, word, (double[]){a, a}, (double[]){b, b});
}

static void add_expected(struct text *text, const struct diff_sums *a, const struct diff_sums *b)
{
    const enum diff_value low = DIFF_VALUE_expected_elapsed_low, high = DIFF_VALUE_expected_elapsed_high;
    add_range(text, "expected elapsed", (double[]){diff_mean(a, low), diff_mean(a, high)},
              (double[]){diff_mean(b, low), diff_mean(b, high)});
}

static void add_fields(struct text *text, const struct diff_pair *pair)
{
#define ADD_NUMBER(key, word, expression)                                                                    \
    {                                                                                                        \
        const struct occ_config_row *row = diff_config_row(pair->main_item[DIFF_A]);                         \
        double a = (double)(expression);                                                                     \
        row = diff_config_row(pair->main_item[DIFF_B]);                                                      \
        add_number(text, word, a, (double)(expression));                                                     \
    }
    DIFF_FIELDS(ADD_NUMBER)
    if (pair->configs[DIFF_A] > 1 || pair->configs[DIFF_B] > 1)
        ADD(text, ", of ", "%u launch configurations -> %u", pair->configs[DIFF_A], pair->configs[DIFF_B]);
}

static void add_launches(struct text *text, const struct diff *diff, const struct diff_pair *pair)
{
    uint32_t a = diff_per_runs(diff, DIFF_A), b = diff_per_runs(diff, DIFF_B);
    add_number(text, a == b ? "launches" : "launches a run", (double)pair->sums[DIFF_A].launches / a,
               (double)pair->sums[DIFF_B].launches / b);
}

static void write_changes(const struct diff *diff, const struct diff_pair *pair, struct text *text)
{
    const struct diff_sums *a = &pair->sums[DIFF_A], *b = &pair->sums[DIFF_B];
    if (pair->level == DIFF_ONE_SIDE)
        return;
    add_fields(text, pair);
    add_launches(text, diff, pair);
    add_ratio(text, "theoretical", diff_mean(a, DIFF_VALUE_theoretical),
              diff_mean(b, DIFF_VALUE_theoretical));
    add_expected(text, a, b);
    add_ratio(text, "achieved", diff_mean(a, DIFF_VALUE_achieved), diff_mean(b, DIFF_VALUE_achieved));
    add_ratio(text, "elapsed", diff_mean(a, DIFF_VALUE_elapsed), diff_mean(b, DIFF_VALUE_elapsed));
    if (!isnan(diff_mean(a, DIFF_VALUE_elapsed)) && !isnan(diff_mean(b, DIFF_VALUE_elapsed)))
        add_ratio(text, "measured part of the time", diff_mean(a, DIFF_VALUE_measured_ratio),
                  diff_mean(b, DIFF_VALUE_measured_ratio));
    for (unsigned i = 0; i < OCC_PART_COUNT; i++) {
        char word[64];
        (void)snprintf(word, sizeof word, "lost to %s", occ_part_word(i));
        add_ratio(text, word, diff_part(pair, DIFF_A, i), diff_part(pair, DIFF_B, i));
    }
    if (is_replaced(pair))
        ADD(text, ", ", "kernels %u -> %u", pair->kernels[DIFF_A], pair->kernels[DIFF_B]);
}

const char *diff_work_words(const struct diff_line *line)
{
    return line->basis == basis_work ? " for the same work" : "";
}

/* ---- lines ---- */

static const char *verdict_of(const struct diff_report *r, const struct diff_pair *pair,
                              enum diff_metric metric)
{
    return diff_verdict_word(diff_verdict_of(r->diff, pair, metric, r->floor, r->min_share));
}

static void fill_line(const struct diff_report *r, const struct diff_pair *pair, struct diff_line *line)
{
    static const char *const levels[] = {DIFF_LEVELS(OCC_WORD)};
    const struct diff_ratio *ratio = &pair->ratio[DIFF_METRIC_TIME];
    const struct diff_item *a = pair->main_item[DIFF_A], *b = pair->main_item[DIFF_B];
    *line = (struct diff_line){
        .pair = pair,
        .verdict = verdict_of(r, pair, DIFF_METRIC_TIME),
        .verdict_by = {[DIFF_METRIC_TIME] = verdict_of(r, pair, DIFF_METRIC_TIME),
                       [DIFF_METRIC_WASTE] = verdict_of(r, pair, DIFF_METRIC_WASTE),
                       [DIFF_METRIC_ACHIEVED] = verdict_of(r, pair, DIFF_METRIC_ACHIEVED)},
        .match = levels[pair->level],
        .mangled = {a ? a->row->mangled : NULL, b ? b->row->mangled : NULL},
        .time_verdict = diff_verdict_of(r->diff, pair, DIFF_METRIC_TIME, r->floor, r->min_share),
        .matters = diff_row_matters(r, pair),
        .share = diff_share(r->diff, pair),
        .low = ratio->low - 1,
        .high = ratio->high - 1,
        .q = pair->q[DIFF_METRIC_TIME]};
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        const struct diff_sums *sums = &pair->sums[side];
        line->launches[side] = sums->launches;
        line->total_ns[side] = sums->total_ns;
        line->mean_ns[side] = (double)sums->total_ns / (double)sums->launches; /* NaN for 0 / 0 */
        line->waste[side] = diff_waste(pair, side);
        for (enum diff_value i = 0; i < DIFF_VALUE_COUNT; i++)
            line->value[i][side] = diff_mean(sums, i);
    }
    double of_means = line->mean_ns[DIFF_B] / line->mean_ns[DIFF_A] * pair->work_factor;
    line->change = (isnan(ratio->ratio) ? of_means : ratio->ratio) - 1;
    line->basis = pair->level == DIFF_ONE_SIDE || isnan(pair->work_factor) ? NULL
                  : fabs(pair->work_factor - 1) > 0                        ? basis_work
                                                                           : "launch";
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        line->config[side] = pair->configs[side] == 1 ? pair->main_item[side]->row->id : 0;
    (void)diff_row_reason(r, pair, line->reason);
    diff_name_kernels(r->diff, pair, false, line->kernel, sizeof line->kernel);
    write_range(r->diff, pair, &(struct text){line->range, sizeof line->range});
    write_changes(r->diff, pair, &(struct text){line->changes, sizeof line->changes});
}

/* The change of the total time; with different numbers of runs, of the time of a run. */
static double moved_ns(const struct diff *diff, const struct diff_line *line)
{
    return fabs((double)line->total_ns[DIFF_B] / diff_per_runs(diff, DIFF_B) -
                (double)line->total_ns[DIFF_A] / diff_per_runs(diff, DIFF_A));
}

static int by_change(const void *left, const void *right, void *diff)
{
    const struct diff_line *a = left, *b = right;
    double x = moved_ns(diff, a), y = moved_ns(diff, b);
    if (x < y || x > y)
        return x < y ? 1 : -1;
    return a->total_ns[DIFF_A] != b->total_ns[DIFF_A]
               ? (a->total_ns[DIFF_A] < b->total_ns[DIFF_A]) - (a->total_ns[DIFF_A] > b->total_ns[DIFF_A])
               : (a->pair > b->pair) - (a->pair < b->pair);
}

struct diff_line *diff_make_lines(const struct diff_report *r)
{
    struct diff_line *lines = calloc(r->diff->n_pairs + 1, sizeof *lines);
    for (uint32_t i = 0; lines && i < r->diff->n_pairs; i++)
        fill_line(r, &r->diff->pairs[i], &lines[i]);
    if (lines)
        qsort_r(lines, r->diff->n_pairs, sizeof *lines, by_change, (void *)r->diff);
    return lines;
}

/* ---- sides ---- */

static bool has_losses(const struct diff_facts *side)
{
    return (double)side->lost > LOST_MAX * (double)(side->launches + side->lost);
}

const char *diff_incomparable(const struct diff_facts *a, const struct diff_facts *b)
{
    return strcmp(a->device, b->device) != 0 ? "the sides ran on different GPU models"
           : a->sm_count != b->sm_count      ? "the sides ran on different slices of a GPU"
           : a->simulated != b->simulated    ? "one side ran on a simulated device"
           : a->serialised != b->serialised  ? "kernels of one side ran one after the other (--exact, or ncu)"
           : has_losses(a) || has_losses(b)  ? "more than 1 % of a side's launches could not be recorded"
                                             : NULL;
}
