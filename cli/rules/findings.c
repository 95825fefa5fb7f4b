/* Findings of rules, and undecided changes; see judge.h and judge_measured.h. One thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge_measured.h"
#include "support/array.h"
#include "support/text.h"

bool judge_allows(const struct judge_terms *terms, const struct rule *rule, int64_t kernel)
{
    for (size_t i = 0; i < terms->rules->n; i++) {
        const struct rule *allow = &terms->rules->all[i];
        if (allow->class == RULE_ALLOW && allow->until_ns > terms->now_ns &&
            strcmp(allow->name, rule->name) == 0 && rule_matches(allow, kernel))
            return true;
    }
    return false;
}

void judgement_set_text(struct finding *finding, const char *short_name, const char *text)
{
    (void)snprintf(finding->text, sizeof finding->text, "%.150s: %s", short_name, text);
    occ_text_sanitise(finding->text);
    for (char *at = finding->text; (at = strstr(at, "##[")); at++) /* GitHub runs it anywhere in a line */
        at[2] = '(';
}

int judgement_add_finding(struct rule_result *result, const struct finding *finding, const char *short_name,
                          const char *text, struct occ_error *err)
{
    if (!occ_grow((void **)&result->findings, &result->allocated, result->n_findings, SIZE_MAX,
                  sizeof *result->findings))
        return occ_no_memory(err);
    struct finding *added = &result->findings[result->n_findings++];
    *added = *finding;
    judgement_set_text(added, short_name, text);
    return 0;
}

int judge_add_kernel(const struct judge_terms *terms, struct rule_result *result,
                     const struct occ_config_row *row, double share, const char *text, struct occ_error *err)
{
    const struct finding finding = {
        .share = share, .kernel = row->kernel.demangled, .kernel_id = row->kernel.id};
    if (judge_allows(terms, result->rule, row->kernel.id)) {
        result->allowed++;
        return 0;
    }
    return judgement_add_finding(result, &finding, row->kernel.short_name, text, err);
}

int judge_add_group(const struct judge_terms *terms, struct rule_result *result, const char *name,
                    double share, const char *text, struct occ_error *err)
{
    const struct finding finding = {.share = share, .kernel = name};
    if (judge_allows(terms, result->rule, 0)) {
        result->allowed++;
        return 0;
    }
    return judgement_add_finding(result, &finding, name, text, err);
}

void judge_keep_open(struct rule_result *result, const char *name, double share, double change,
                     const char *text)
{
    double moved = isnan(change) ? share : fabs(change) * share;
    size_t at = UNDECIDED_SHOWN - 1;
    if (result->n_open < UNDECIDED_SHOWN)
        at = result->n_open++;
    else if (result->moved[at] >= moved)
        return;
    for (; at > 0 && result->moved[at - 1] < moved; at--) {
        result->open[at] = result->open[at - 1];
        result->moved[at] = result->moved[at - 1];
    }
    result->open[at] = (struct finding){.share = share};
    result->moved[at] = moved;
    judgement_set_text(&result->open[at], name, text);
}

int finding_by_share(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    return a->share < b->share || a->share > b->share ? (a->share < b->share) - (a->share > b->share)
                                                      : strcmp(a->text, b->text);
}
