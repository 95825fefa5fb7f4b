/* Finds rows where B follows A's advice; see diff_advice.h. One thread. */
#include "diff_advice.h"

#include <math.h>
#include <stdio.h>

#include "cli/kernels/show.h"

/* The parameters of a launch that advice changes. `is_bound`: a value beyond the advised value follows the
 * advice too. X(is_bound, value of const struct occ_launch *l) */
#define PARAMETERS(X)                                                                                        \
    X(true, l->registers_per_thread)                                                                         \
    X(true, (double)l->static_smem_bytes + l->dynamic_smem_bytes)                                            \
    X(true, l->smem_config_bytes)                                                                            \
    X(true, l->barriers)                                                                                     \
    X(false, diff_product(l->cluster))                                                                       \
    X(false, diff_product(l->block))                                                                         \
    X(false, diff_product(l->grid))

#define COUNT_ONE(is_bound, value) +1
enum { PARAMETER_COUNT = 0 PARAMETERS(COUNT_ONE) };

static double parameter(size_t i, const struct occ_launch *l)
{
#define VALUE(is_bound, value) (double)(value),
    const double values[] = {PARAMETERS(VALUE)};
    return values[i];
}

static bool is_same(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* True if every parameter that the advice changes has the advised value, or is beyond it (`is_bound`). */
static bool follows(const struct occ_launch *now, const struct occ_launch *advised,
                    const struct occ_launch *then)
{
#define IS_BOUND(is_bound, value) is_bound,
    static const bool bounds[] = {PARAMETERS(IS_BOUND)};
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        double from = parameter(i, now), to = parameter(i, advised), is = parameter(i, then);
        bool beyond = bounds[i] && (to < from ? is < to : is > to);
        if (!is_same(from, to) && !is_same(is, to) && !beyond)
            return false;
    }
    return true;
}

/* True if parameters differ that the advice does not change. */
static bool changes_more(const struct occ_launch *now, const struct occ_launch *advised,
                         const struct occ_launch *then)
{
    for (size_t i = 0; i < PARAMETER_COUNT; i++)
        if (is_same(parameter(i, now), parameter(i, advised)) &&
            !is_same(parameter(i, now), parameter(i, then)))
            return true;
    return false;
}

static void describe(struct diff_line *line, const struct analysis_advice *advice,
                     const struct occ_config_row *now, const struct occ_config_row *then)
{
    const struct occ_advice *c = &advice->change;
    char change[96], predicted[16], reached[16], time[96];
    (void)snprintf(line->advice, sizeof line->advice,
                   "as advised for A, %s%s; theoretical %s, %s; "
                   "reached: theoretical %s, time %+.1f%% (%s)",
                   analysis_advice_change(c, change, sizeof change),
                   changes_more(&now->launch, &c->launch, &then->launch) ? " (and more changed)" : "",
                   cli_percent_text(c->theoretical_then, predicted, sizeof predicted),
                   analysis_prediction_text(&advice->prediction, time, sizeof time),
                   cli_percent_text(then->result.theoretical, reached, sizeof reached), 100 * line->change,
                   line->verdict);
    line->advised_saves = advice->saves_most;
}

/* True if every parameter that the advice changes has changed in the same direction. */
static bool has_direction(const struct occ_launch *now, const struct occ_launch *advised,
                          const struct occ_launch *then)
{
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        double from = parameter(i, now), to = parameter(i, advised), is = parameter(i, then);
        if (!is_same(from, to) && (to < from ? is >= from : is <= from))
            return false;
    }
    return true;
}

/* True if the row has a verdict on the time of a launch, with an interval, and one launch configuration on
 * each side. */
static bool is_certain(const struct diff_line *line)
{
    const struct diff_pair *pair = line->pair;
    bool is_judged = line->time_verdict == DIFF_WORSE || line->time_verdict == DIFF_BETTER ||
                     line->time_verdict == DIFF_SAME;
    bool is_launch = !(fabs(pair->work_factor - 1) > 0);
    return is_judged && is_launch && isfinite(line->low) && isfinite(line->high) &&
           pair->configs[DIFF_A] == 1 && pair->configs[DIFF_B] == 1 && pair->kernels[DIFF_A] == 1 &&
           pair->kernels[DIFF_B] == 1;
}

/* Sets the outcome: the first advice of A whose parameters all changed in the advised direction, while no
 * other parameter changed. */
static void set_outcome(struct diff_line *line, const struct analysis *a,
                        const struct analysis_advice *advice, size_t n)
{
    const struct occ_config_row *then = diff_config_row(line->pair->main_item[DIFF_B]);
    const struct occ_config_row *now = diff_config_row(line->pair->main_item[DIFF_A]);
    struct occ_prediction made;
    size_t i = 0;
    while (i < n && (!has_direction(&now->launch, &advice[i].change.launch, &then->launch) ||
                     changes_more(&now->launch, &advice[i].change.launch, &then->launch)))
        i++;
    if (i == n || advice[i].is_indirect || !is_certain(line) || !analysis_predict(a, &then->launch, &made))
        return;
    line->outcome = (struct occ_advice_outcome){.config_before = now->id,
                                                .config_after = then->id,
                                                .is_promised = advice[i].prediction.is_promised &&
                                                               made.ratio <= OCC_PROMISED_RATIO,
                                                .predicted = made.ratio,
                                                .predicted_low = made.low,
                                                .predicted_high = made.high,
                                                .measured = 1 + line->change,
                                                .measured_low = 1 + line->low,
                                                .measured_high = 1 + line->high};
    (void)snprintf(line->outcome.change, sizeof line->outcome.change, "%s",
                   occ_advice_word(advice[i].change.kind));
}

static void add_to_line(struct diff_line *line)
{
    const struct diff_item *const *items = line->pair->main_item;
    const struct occ_config_row *now = items[DIFF_A] ? diff_config_row(items[DIFF_A]) : NULL;
    const struct occ_config_row *then = items[DIFF_B] ? diff_config_row(items[DIFF_B]) : NULL;
    struct occ_measurement means;
    struct analysis_advice advice[OCC_ADVICE_MAX];
    line->advised_saves = NAN;
    if (!now || !then || !now->analysed || !then->analysed)
        return;
    const struct analysis a = show_analysis(now, &means);
    size_t n = analysis_advise(&a, advice);
    set_outcome(line, &a, advice, n);
    for (size_t i = 0; i < n; i++)
        if (follows(&now->launch, &advice[i].change.launch, &then->launch)) {
            describe(line, &advice[i], now, then);
            return;
        }
}

int diff_answer(const struct sides *sides, bool force, struct diff_report *report,
                struct diff_line **ret_lines, struct occ_error *err)
{
    report->diff = &sides->diff;
    report->aligned = sides->aligned;
    for (int i = 0; i < DIFF_SIDES; i++) {
        report->side[i] = sides->side[i].facts;
        report->side[i].runs = sides->diff.by_minutes ? 0 : sides->diff.runs[i];
    }
    report->incomparable = diff_incomparable(&report->side[DIFF_A], &report->side[DIFF_B]);
    if (report->incomparable && !force)
        return occ_fail(err, OCC_E_INVALID, "not comparable: %s (occq diff --force compares all the same)",
                        report->incomparable);
    int status = diff_levels_make(&sides->diff, report->floor, report->min_share, &report->levels, err);
    if (status == 0)
        status = diff_layers_make(&sides->diff, report->floor, report->min_share, &report->layers, err);
    if (status == 0)
        status = sides_gpu_time_ask(sides, &report->gpu_time, err);
    if (status != 0)
        return status;
    struct diff_line *lines = diff_make_lines(report);
    if (!lines)
        return occ_no_memory(err);
    for (size_t i = 0; i < sides->diff.n_pairs; i++)
        add_to_line(&lines[i]);
    *ret_lines = lines;
    return 0;
}
