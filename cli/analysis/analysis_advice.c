/* Advice: possible changes of a launch and their predicted gain; see analysis.h. One thread (stdio). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "cli/marks.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "explain/verdict.h"
#include "support/text.h"

/* ---- the gain ---- */

static uint32_t threads_of(const struct occ_launch *l)
{
    return l->block[0] * l->block[1] * l->block[2];
}

static double saved(double now, double then)
{
    return then > now && now > 0 ? 1 - now / then : 0;
}

/* Returns the part of the changed launch's threads that have work. */
static double working_ratio(const struct occ_advice *c)
{
    double threads =
        (double)c->launch.grid[0] * c->launch.grid[1] * c->launch.grid[2] * threads_of(&c->launch);
    return c->kind == OCC_ADVICE_BLOCK_SIZE ? 1 - (double)c->cost_amount / threads : 1;
}

/* Replaces the model's present range with the measured value. The changed launch keeps its position in its
 * range, and its other losses (imbalance) stay in proportion. */
static void use_measured(const struct occ_waterfall *w, struct occ_advice *c)
{
    double low = c->elapsed_low_then, high = c->elapsed_high_then;
    double width = c->elapsed_high_now - c->elapsed_low_now, scale = w->used / w->expected;
    if (w->source == OCC_FROM_MODEL || w->is_of_active_cycles)
        return;
    if (width > 0)
        low = high = low + (high - low) * (w->expected - c->elapsed_low_now) / width;
    c->elapsed_low_then = fmin(low * scale, c->theoretical_then);
    c->elapsed_high_then = fmin(high * scale, c->theoretical_then);
    c->elapsed_low_now = c->elapsed_high_now = w->used;
}

/* Returns the maximum saving, as a part of the launch's time. A kernel that already uses a part of the
 * device's throughput gains at most the rest. */
static double most_saved(const struct analysis *a, const struct occ_advice *c)
{
    double works = working_ratio(c), low = saved(c->elapsed_low_now, c->elapsed_low_then * works);
    double most = fmax(low, saved(c->elapsed_high_now, c->elapsed_high_then * works));
    double busy = analysis_throughput(a);
    return isnan(busy) ? most : fmin(most, fmax(1 - busy, 0));
}

/* Returns the sum of losses without a known cause. */
static double unknown_loss(const struct occ_waterfall *w)
{
    static const enum occ_part parts[] = {OCC_PART_IDLE, OCC_PART_IMBALANCE_ACROSS_BLOCKS, OCC_PART_NOT_SPLIT,
                                          OCC_PART_UNEXPLAINED};
    double sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sum += w->part[parts[i]] > 0 ? w->part[parts[i]] : 0;
    return sum;
}

double analysis_unknown_saves(const struct analysis *a, double *ret_lost)
{
    struct occ_waterfall w;
    occ_explain(a->result, a->measured, &w);
    *ret_lost = unknown_loss(&w);
    return saved(w.used, w.used + *ret_lost + (w.error > 0 ? w.error : 0));
}

bool analysis_begins_below_unknown(const struct analysis_advice *advice, size_t i)
{
    return advice[i].is_below_unknown && (i == 0 || !advice[i - 1].is_below_unknown);
}

const char *analysis_unknown_text(const struct analysis *a, char *text, size_t size)
{
    double lost, saves = analysis_unknown_saves(a, &lost);
    if (lost < OCC_ADVICE_MIN_GAIN)
        (void)snprintf(text, size, "within the error of the measurement (%.1f%% of its time)", saves * 100);
    else
        (void)snprintf(
            text, size,
            "first find the cause of the %.1f%% that no counter explains (up to %.1f%% of its time); "
            "these changes save less",
            lost * 100, saves * 100);
    return text;
}

static struct occ_suggest_input input_of(const struct analysis *a, const struct occ_kernel_owner *owner)
{
    const struct occ_hw_utilization *utilization = a->measured ? &a->measured->utilization : NULL;
    return (struct occ_suggest_input){
        .device = a->device,
        .launch = a->launch,
        .result = a->result,
        .bound = occ_work_bound_of(utilization, analysis_bound(a)),
        .owner = owner->owner,
        .traits = occ_likely_traits(owner->traits, utilization),
        .spill_bytes = a->spill_bytes,
        .local_bytes = a->local_bytes,
        .duration_ns = a->duration_ns > 0 ? a->duration_ns : 0,
        .has_grid = a->has_grid,
    };
}

bool analysis_predict(const struct analysis *a, const struct occ_launch *after,
                      struct occ_prediction *ret_prediction)
{
    const struct occ_kernel_owner owner = analysis_owner(a);
    const struct occ_suggest_input input = input_of(a, &owner);
    return occ_predict(a->device,
                       &(struct occ_launch_change){.before = a->launch,
                                                   .after = after,
                                                   .result = a->result,
                                                   .spill_before = a->spill_bytes,
                                                   .spill_after = -1,
                                                   .bound = input.bound,
                                                   .owner = input.owner,
                                                   .has_grid = a->has_grid},
                       ret_prediction);
}

/* A change that is not the kernel's own: its prediction, of the same kernel, does not hold for it. */
static bool is_indirect(enum occ_owner_change change)
{
    return change == OCC_CHANGE_ALGORITHM || change == OCC_CHANGE_FUSE;
}

/* True if the owner cannot make the change, or has it in the list already. */
static bool is_superfluous(enum occ_owner owner, const struct occ_suggestion *list, size_t i)
{
    enum occ_owner_change change = occ_change_for(owner, list[i].advice.kind);
    bool is_known = false;
    for (size_t k = 0; k < i && is_indirect(change) && !list[i].prediction.is_promised; k++)
        is_known |= occ_change_for(owner, list[k].advice.kind) == change;
    return change == OCC_CHANGE_NONE || is_known;
}

/* Moves changes that save less than the unknown loss to the end; the order is otherwise stable. */
static void move_below_unknown(struct analysis_advice *advice, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct analysis_advice moved = advice[i];
        size_t at = i;
        for (; at > 0 && !moved.is_below_unknown && advice[at - 1].is_below_unknown; at--)
            advice[at] = advice[at - 1];
        advice[at] = moved;
    }
}

size_t analysis_advise(const struct analysis *a, struct analysis_advice ret_advice[OCC_ADVICE_MAX])
{
    struct occ_suggestion list[OCC_ADVICE_MAX];
    const struct occ_kernel_owner owner = analysis_owner(a);
    const struct occ_suggest_input input = input_of(a, &owner);
    size_t n = 0, found = analysis_needs_no_advice(a) ? 0 : occ_suggest(&input, list);
    struct occ_waterfall w;
    double lost, unknown = analysis_unknown_saves(a, &lost);
    occ_explain(a->result, a->measured, &w);
    for (size_t i = 0; i < found; i++) {
        struct occ_advice *c = &list[i].advice;
        bool is_of_occupancy = c->kind < OCC_ADVICE_OF_OCCUPANCY;
        use_measured(&w, c);
        double saves = a->has_grid && is_of_occupancy ? most_saved(a, c) : NAN;
        if (saves < OCC_ADVICE_MIN_GAIN || is_superfluous(owner.owner, list, i))
            continue;
        ret_advice[n] = (struct analysis_advice){
            .change = *c,
            .source = w.is_of_active_cycles ? OCC_FROM_MODEL : w.source,
            .saves_most = saves,
            .prediction = list[i].prediction,
            .is_unlikely = list[i].is_unlikely,
            .is_below_unknown = saves < unknown,
            .is_indirect =
                is_indirect(occ_change_for(owner.owner, c->kind)) && !list[i].prediction.is_promised,
        };
        analysis_knob(a, owner.owner, c, ret_advice[n].knob, sizeof ret_advice[n].knob);
        n++;
    }
    move_below_unknown(ret_advice, n);
    return n;
}

const char *analysis_advice_change(const struct occ_advice *c, char *text, size_t size)
{
    int n = snprintf(text, size, "%s: %" PRIu64 " -> %" PRIu64, occ_advice_text(c->kind), c->now, c->needed);
    if ((c->also_now || c->also_needed) && n > 0 && (size_t)n < size)
        (void)snprintf(text + n, size - (size_t)n, ", %" PRIu64 " -> %" PRIu64, c->also_now, c->also_needed);
    return text;
}

/* ---- kernels that may not need more occupancy ---- */

const char *analysis_advice_note(const struct analysis *a, char *text, size_t size)
{
    const struct occ_kernel_owner owner = analysis_owner(a);
    const struct occ_suggest_input input = input_of(a, &owner);
    uint32_t marks = cli_marks(false, a->has_grid ? a->result->by_design : 0, a->name);
    char words[CLI_MARKS_BYTES];
    bool may_help = owner.owner != OCC_OWNER_COMMUNICATION && !occ_few_warps_by_design(&input);
    text[0] = '\0';
    if (analysis_bound(a) == OCC_BOUND_THROUGHPUT)
        (void)snprintf(text, size, "%.0f%% of the peak throughput was measured: more warps do not help",
                       analysis_throughput(a) * 100);
    else if (may_help)
        return text;
    else if (marks)
        (void)snprintf(text, size, "%s: more warps may not help", cli_marks_text(marks, true, words));
    else
        (void)snprintf(text, size, "maybe a %s kernel, by its name: few warps can be enough",
                       input.traits & OCC_TRAIT_PERSISTENT ? "persistent" : "tensor-core");
    return text;
}

/* ---- text ---- */

enum { SHOWN_MAX = 4 };

static void print_graphs(const struct analysis *a)
{
    char gap[32];
    cli_print("    CUDA graphs, or fewer and larger kernels: the GPU waits for the CPU, %s before a launch\n"
              "      cudaStreamBeginCapture(), cudaGraphLaunch(); 'occq top --gaps' shows all of the run\n",
              occ_format_duration((int64_t)a->launch_gap_ns, gap, sizeof gap));
}

const char *analysis_prediction_text(const struct occ_prediction *p, char *text, size_t size)
{
    return occ_predicted_text(p->ratio, p->low, p->high, text, size);
}

/* True for a change without a prediction: it only makes room, or is not the kernel's. */
static bool is_unpredicted(const struct analysis_advice *item)
{
    enum occ_advice_kind kind = item->change.kind;
    bool is_room = kind == OCC_ADVICE_FREE_REGISTERS || kind == OCC_ADVICE_FREE_SMEM;
    return item->is_indirect || (is_room && !item->prediction.is_promised);
}

const char *analysis_expectation_text(const struct analysis_advice *item, char *text, size_t size)
{
    const struct occ_prediction *p = &item->prediction;
    char time[96];
    bool has_no_case = p->published.cases == 0 && p->term != OCC_TERM_NONE;
    if (is_unpredicted(item))
        (void)snprintf(text, size, "measure it");
    else
        (void)snprintf(text, size, "%s%s%s%s", p->is_promised ? "" : "measure it: ",
                       item->is_unlikely ? "unlikely to help, the SM has enough warps; " : "",
                       analysis_prediction_text(p, time, sizeof time),
                       has_no_case ? "; no published case" : "");
    return text;
}

/* Two digits of a predicted duration are more than its interval knows. */
static double round_to_two_digits(double value)
{
    double unit = value > 0 ? pow(10, floor(log10(value)) - 1) : 1;
    return round(value / unit) * unit;
}

static void print_prediction(const struct analysis_advice *item, uint64_t total_ns)
{
    const struct occ_prediction *p = &item->prediction;
    char text[192], time[32];
    cli_print("%s", analysis_expectation_text(item, text, sizeof text));
    if (!p->is_promised)
        return;
    if (total_ns > 0)
        cli_print(", saves about %s",
                  occ_format_duration((int64_t)round_to_two_digits((1 - p->ratio) * (double)total_ns), time,
                                      sizeof time));
    cli_print("; %u published cases: %u faster, %u slower", p->published.cases, p->published.faster,
              p->published.slower);
}

/* Formats "88 fewer blocks for the same work"; the noun of one is singular. */
static const char *cost_text(const struct occ_advice *c, char *text, size_t size)
{
    const char *unit = occ_advice_cost(c->kind), *noun = strstr(unit, "s ");
    bool is_one = c->cost_amount == 1 && noun;
    (void)snprintf(text, size, "%" PRIu64 " %.*s%s", c->cost_amount,
                   is_one ? (int)(noun - unit) : (int)strlen(unit), unit, is_one ? noun + 1 : "");
    return text;
}

static void print_item(const struct analysis *a, const struct analysis_advice *item, uint64_t total_ns)
{
    const struct occ_advice *c = &item->change;
    bool is_model = item->source == OCC_FROM_MODEL;
    char change[96], now[24], then[24];
    cli_print("    %s\n      ", analysis_advice_change(c, change, sizeof change));
    if (is_unpredicted(item)) {
        cli_print("measure it: %s\n", item->knob);
        return;
    }
    print_prediction(item, total_ns);
    cli_print("\n      ");
    if (a->has_grid)
        cli_print("%s %s%s -> %s, ", is_model ? "expected elapsed" : "elapsed",
                  cli_range_text(c->elapsed_low_now, c->elapsed_high_now, now, sizeof now),
                  is_model ? "" : " (measured)",
                  cli_range_text(c->elapsed_low_then, c->elapsed_high_then, then, sizeof then));
    cli_print("theoretical %s -> %s", cli_percent_text(c->theoretical_now, now, sizeof now),
              cli_percent_text(c->theoretical_then, then, sizeof then));
    if (c->blocks_now != c->blocks_then)
        cli_print(", %u -> %u blocks per SM", c->blocks_now, c->blocks_then);
    cli_print("\n      %s", item->knob);
    if (c->cost_amount)
        cli_print("; trade-off: %s", cost_text(c, change, sizeof change));
    cli_print("\n");
}

void analysis_print_advice(const struct analysis *a, uint64_t total_ns)
{
    struct analysis_advice advice[OCC_ADVICE_MAX];
    char note[256];
    size_t n = analysis_advise(a, advice);
    (void)analysis_advice_note(a, note, sizeof note);
    cli_print("\n    ADVICE%s\n", n > 1 ? " (each alone)" : "");
    if (note[0])
        cli_print("    %s\n", note);
    for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
        if (analysis_begins_below_unknown(advice, i))
            cli_print("    %s\n", analysis_unknown_text(a, note, sizeof note));
        print_item(a, &advice[i], total_ns);
    }
    if (n > SHOWN_MAX)
        cli_print("    and %zu more with --json\n", n - SHOWN_MAX);
    if (!isnan(a->launch_gap_ns))
        print_graphs(a);
    if (n == 0 && !note[0] && isnan(a->launch_gap_ns))
        cli_print("    none: no single change is predicted to help\n");
}

/* ---- JSON ---- */

static void put_item(struct occ_json *json, const struct analysis *a, const struct analysis_advice *item,
                     uint64_t total_ns)
{
    const struct occ_advice *c = &item->change;
    occ_json_object(json, NULL, true);
    occ_json_string(json, "what", occ_advice_word(c->kind));
    occ_json_unsigned(json, "now", c->now);
    occ_json_unsigned(json, "needed", c->needed);
    if (c->also_now || c->also_needed) {
        occ_json_unsigned(json, "also_now", c->also_now);
        occ_json_unsigned(json, "also_needed", c->also_needed);
    }
    occ_json_unsigned(json, "blocks_per_sm_now", c->blocks_now);
    occ_json_unsigned(json, "blocks_per_sm_then", c->blocks_then);
    occ_json_real(json, "theoretical_now", c->theoretical_now);
    occ_json_real(json, "theoretical_then", c->theoretical_then);
    occ_json_real(json, "expected_elapsed_low_now", a->has_grid ? c->elapsed_low_now : NAN);
    occ_json_real(json, "expected_elapsed_high_now", a->has_grid ? c->elapsed_high_now : NAN);
    occ_json_real(json, "expected_elapsed_low_then", a->has_grid ? c->elapsed_low_then : NAN);
    occ_json_real(json, "expected_elapsed_high_then", a->has_grid ? c->elapsed_high_then : NAN);
    occ_json_string(json, "elapsed_source", a->has_grid ? occ_value_source_word(item->source) : NULL);
    occ_json_real(json, "saves_max_ratio", item->saves_most);
    occ_json_real(json, "predicted_ratio", item->prediction.ratio);
    occ_json_real(json, "predicted_low", item->prediction.low);
    occ_json_real(json, "predicted_high", item->prediction.high);
    occ_json_bool(json, "promised", item->prediction.is_promised);
    occ_json_unsigned(json, "cases", item->prediction.published.cases);
    occ_json_unsigned(json, "cases_faster", item->prediction.published.faster);
    occ_json_unsigned(json, "cases_slower", item->prediction.published.slower);
    occ_json_bool(json, "below_unknown", item->is_below_unknown);
    occ_json_real(json, "saves_max_ns", total_ns ? item->saves_most * (double)total_ns : NAN);
    occ_json_string(json, "knob", item->knob);
    occ_json_unsigned(json, "cost", c->cost_amount);
    occ_json_string(json, "cost_unit", occ_advice_cost(c->kind));
    occ_json_close(json);
}

void analysis_json_advice(struct occ_json *json, const struct analysis *a, uint64_t total_ns)
{
    struct analysis_advice advice[OCC_ADVICE_MAX];
    char note[256];
    double lost, unknown = analysis_unknown_saves(a, &lost);
    size_t n = analysis_advise(a, advice);
    occ_json_array(json, "advice", false);
    for (size_t i = 0; i < n; i++)
        put_item(json, a, &advice[i], total_ns);
    occ_json_close(json);
    (void)analysis_advice_note(a, note, sizeof note);
    occ_json_real(json, "unknown_saves_max_ratio",
                  a->measured && a->measured->source != OCC_FROM_MODEL ? unknown : NAN);
    occ_json_string(json, "advice_note", note[0] ? note : NULL);
    occ_json_real(json, "alone_ratio", a->alone_ratio);
    occ_json_real(json, "launch_gap_mean_ns", a->launch_gap_ns);
}
