/* Rules about the GPU time; see judge_measured.h. */
#include <math.h>

#include "cli/sides/report.h"
#include "judge_measured.h"

#define NAME "GPU time"

static const char *reason_of(const struct sides_gpu_time *time, bool needs_floor)
{
    return needs_floor                  ? "fewer than three runs on a side: the rule needs a floor"
           : isnan(time->change.change) ? "the work of the sides is not known"
           : time->change.df > 0        ? "too much spread"
                                        : "too few launches";
}

int judge_gpu_time(const struct judge_terms *terms, struct rule_result *result, struct occ_error *err)
{
    const struct rule *rule = result->rule;
    const struct sides_gpu_time *time = terms->gpu_time;
    bool needs_floor = isnan(rule->floor) && terms->one_run;
    double floor = isnan(rule->floor) ? DIFF_FLOOR : rule->floor;
    char text[SIDES_GPU_TIME_BYTES];
    int status = 0;
    if (!time || !time->is_known) {
        result->state = rule->optional ? RULE_SKIPPED : RULE_NOT_JUDGED;
        (void)snprintf(result->reason, sizeof result->reason, "the GPU time of a side is not known");
        return 0;
    }
    enum diff_verdict verdict =
        needs_floor ? DIFF_UNDECIDED : diff_judge_gpu_time(&time->change, floor).verdict;
    (void)sides_gpu_time_text(time, floor, text);
    if (verdict == DIFF_UNDECIDED) {
        result->undecided = 1;
        judge_keep_open(result, NAME, 1, expm1(time->change.change), text);
        (void)snprintf(result->reason, sizeof result->reason, "%s", reason_of(time, needs_floor));
    } else {
        result->judged = 1;
    }
    if (verdict == DIFF_WORSE)
        status = judge_add_group(terms, result, NAME, 1, text, err);
    result->state = result->n_findings > 0      ? RULE_FAILS
                    : verdict == DIFF_UNDECIDED ? RULE_UNDECIDED
                                                : RULE_HOLDS;
    return status;
}
