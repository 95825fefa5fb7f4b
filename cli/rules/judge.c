/* Rules applied to a comparison; see judge.h. One thread. */
#include "judge_measured.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sides/diff_rows.h"
#include "support/text.h"

OCC_WORDS(rule_state_word, enum rule_state, RULE_STATES)

/* ---- config ---- */

/* Formats a number like the condition: "0.25", or "25%" if the condition has a percent sign. */
static const char *number_text(const struct rule_condition *condition, double number, char text[24])
{
    bool is_percent = strchr(condition->text, '%') != NULL;
    (void)snprintf(text, 24, is_percent ? "%.4g%%" : "%.4g", is_percent ? 100 * number : number);
    return text;
}

static int judge_condition(const struct judge_terms *terms, struct rule_result *result,
                           const struct diff_item *item, const struct rule_condition *condition, double share,
                           struct occ_error *err)
{
    const struct diff_item *before = terms->diff->pairs[item->pair].main_item[DIFF_A];
    const struct occ_config_row *row = diff_config_row(item);
    double number = rule_number_of(condition->number, row);
    double old = before ? rule_number_of(condition->number, diff_config_row(before)) : (double)NAN;
    char text[192], found[24], baseline[48] = "";
    if (condition->of_baseline && !before) {
        result->without_baseline++;
        return 0;
    }
    if (isnan(number) || (condition->of_baseline && isnan(old))) {
        result->undecided++;
        return 0;
    }
    result->judged++;
    if (rule_condition_holds(condition, number, old))
        return 0;
    if (condition->of_baseline)
        (void)snprintf(baseline, sizeof baseline, "baseline %s, ", number_text(condition, old, found));
    (void)snprintf(text, sizeof text, "%s %s is not %s (%sgrid %.0f, block %.0f)",
                   rule_number_word(condition->number), number_text(condition, number, found),
                   condition->text, baseline, diff_product(row->launch.grid),
                   diff_product(row->launch.block));
    return judge_add_kernel(terms, result, row, share, text, err);
}

static bool needs_baseline(const struct rule *rule)
{
    for (size_t i = 0; i < rule->n_conditions; i++)
        if (rule->conditions[i].of_baseline)
            return true;
    return rule->class == RULE_MEASURED;
}

/* Returns the end of the kernel's items, which follow each other from `first` on. *ret_ns: time of the items
 * of side B, the side that is checked. */
static uint32_t end_of_kernel(const struct diff *diff, uint32_t first, uint64_t *ret_ns)
{
    const char *name = diff->items[first].row->mangled;
    uint32_t end = first;
    *ret_ns = 0;
    for (; end < diff->n_items && strcmp(diff->items[end].row->mangled, name) == 0; end++)
        *ret_ns += diff->items[end].side == DIFF_B ? diff->items[end].sums.total_ns : 0;
    return end;
}

/* Judges a rule of class `config`. *ret_matched: number of launch configurations or pairs that the rule
 * covers. */
static int judge_config(const struct judge_terms *terms, struct rule_result *result, size_t *ret_matched,
                        struct occ_error *err)
{
    const struct diff *diff = terms->diff;
    const struct rule *rule = result->rule;
    int status = 0;
    for (uint32_t first = 0, end; first < diff->n_items && status == 0; first = end) {
        uint64_t ns;
        end = end_of_kernel(diff, first, &ns);
        double share = diff->total_ns[DIFF_B] ? (double)ns / (double)diff->total_ns[DIFF_B] : 0;
        if (share < rule->min_time)
            continue;
        for (const struct diff_item *item = &diff->items[first]; item < &diff->items[end] && status == 0;
             item++) {
            bool is_meant = item->side == DIFF_B && rule_matches(rule, diff_config_row(item)->kernel.id);
            *ret_matched += is_meant;
            for (size_t k = 0; k < rule->n_conditions && status == 0 && is_meant; k++)
                status = judge_condition(terms, result, item, &rule->conditions[k], share, err);
        }
    }
    return status;
}

/* ---- rules ---- */

static void conclude(struct rule_result *result, size_t matched, bool one_run)
{
    if (result->n_findings > 1)
        qsort(result->findings, result->n_findings, sizeof *result->findings, finding_by_share);
    result->state = result->n_findings > 0                   ? RULE_FAILS
                    : matched == 0 && result->rule->optional ? RULE_SKIPPED
                    : matched == 0                           ? RULE_FAILS
                    : result->undecided > 0                  ? RULE_UNDECIDED
                    : result->judged > 0                     ? RULE_HOLDS
                                                             : RULE_NOT_JUDGED;
    const char *why = matched == 0 ? "no kernel matches"
                      : result->state == RULE_UNDECIDED && one_run && isnan(result->rule->floor) &&
                              result->rule->class == RULE_MEASURED
                          ? "fewer than three runs on a side: the rule needs a floor"
                      : result->state == RULE_UNDECIDED && result->of_other_work == result->undecided
                          ? "another number of launches, each with other work"
                      : result->state == RULE_UNDECIDED ? "too few launches, or too much spread"
                      : result->without_baseline > 0    ? "new kernels have no baseline"
                                                        : "";
    (void)snprintf(result->reason, sizeof result->reason, "%s", why);
}

static int judge_rule(const struct judge_terms *terms, struct rule_result *result, struct occ_error *err)
{
    size_t matched = 0;
    if (terms->no_baseline && needs_baseline(result->rule)) {
        result->state = RULE_NOT_JUDGED;
        (void)snprintf(result->reason, sizeof result->reason, "%s", terms->no_baseline);
        return 0;
    }
    if (result->rule->class == RULE_MEASURED && result->rule->metric == RULE_METRIC_GPU_TIME)
        return judge_gpu_time(terms, result, err);
    int status = result->rule->class == RULE_CONFIG ? judge_config(terms, result, &matched, err)
                                                    : judge_measured(terms, result, &matched, err);
    conclude(result, matched, terms->one_run);
    return status;
}

int judge(const struct judge_terms *terms, struct judgement *j, struct occ_error *err)
{
    int status = 0;
    j->results = calloc(terms->rules->n + 1, sizeof *j->results);
    if (!j->results)
        return occ_no_memory(err);
    for (size_t i = 0; i < terms->rules->n && status == 0; i++) {
        if (terms->rules->all[i].class == RULE_ALLOW)
            continue;
        struct rule_result *result = &j->results[j->n++];
        result->rule = &terms->rules->all[i];
        status = judge_rule(terms, result, err);
        j->count[result->state]++;
        j->has_new |= result->without_baseline > 0;
    }
    return status;
}

void judgement_free(struct judgement *j)
{
    for (size_t i = 0; i < j->n; i++)
        free(j->results[i].findings);
    free(j->results);
}
