/* The tool "check": rules of occq check. One thread. */
#include <string.h>

#include "agent_sides.h"
#include "cli/rules/judge.h"
#include "support/clock.h"
#include "question.h"

#define RULES_OF_CALL "rules"

static int load_rules(const struct agent_question *question, struct rules *rules, struct occ_error *err)
{
    const char *text = question->args->rules, *file = question->place->rules_file;
    if (text)
        return rules_parse(RULES_OF_CALL, text, strlen(text), rules, err);
    return file ? rules_load(file, rules, err)
                : occ_fail(err, OCC_E_INVALID,
                           "rules are missing: the argument \"rules\", or occq mcp --rules");
}

static int put_result(struct agent_document *document, const struct rule_result *result,
                      struct occ_error *err)
{
    struct agent_row row;
    if (agent_row_open(&row, err) != 0)
        return err->code;
    agent_quote(&row.json, NULL, result->rule->name);
    occ_json_string(&row.json, NULL, rule_state_word(result->state));
    occ_json_unsigned(&row.json, NULL, result->judged);
    occ_json_unsigned(&row.json, NULL, result->n_findings);
    agent_quote(&row.json, NULL,
                result->n_findings > 0                                  ? result->findings[0].text
                : result->state == RULE_UNDECIDED && result->n_open > 0 ? result->open[0].text
                                                                        : result->reason);
    return agent_row_close(&row, document, err);
}

/* Writes the results of rules, failed ones first. */
static int put_results(struct agent_document *document, const struct judgement *judgement,
                       struct occ_error *err)
{
    static const char *const columns[] = {"quoted_rule", "state", "judged", "broken", "quoted_worst", NULL};
    size_t shown = 0;
    int status = 1;
    agent_list_open(document, columns);
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < judgement->n && status == 1; i++) {
            if ((judgement->results[i].state == RULE_FAILS) != (pass == 0))
                continue;
            status = put_result(document, &judgement->results[i], err);
            shown += status == 1;
        }
    occ_json_close(&document->json);
    if (shown < judgement->n)
        occ_json_unsigned(&document->json, "rules_not_shown", judgement->n - shown);
    return status < 0 ? status : 0;
}

static int put(struct agent_document *document, const struct judgement *judgement, struct occ_error *err)
{
    struct occ_json *json = &document->json;
    occ_json_string(json, "verdict",
                    judgement->count[RULE_FAILS] > 0   ? "fails"
                    : judgement->count[RULE_HOLDS] > 0 ? "holds"
                                                       : "nothing judged");
    occ_json_object(json, "rules", true);
    for (unsigned i = 0; i < RULE_STATE_COUNT; i++)
        occ_json_unsigned(json, rule_state_word((enum rule_state)i), judgement->count[i]);
    occ_json_close(json);
    occ_json_string(
        json, "definitions",
        "judged: launch configurations or kernels; broken: their number that breaks the rule; "
        "quoted_worst: the one with most time, the largest undecided change, or the reason of the state");
    return put_results(document, judgement, err);
}

int agent_check(const struct agent_question *question, struct agent_document *document, struct occ_error *err)
{
    const struct agent_args *args = question->args;
    _cleanup_(sides_free) struct sides sides = {0};
    _cleanup_(rules_free) struct rules rules = {0};
    _cleanup_(judgement_free) struct judgement judgement = {.file = RULES_OF_CALL};
    _cleanup_(sides_gpu_time_free) struct sides_gpu_time gpu_time = {.is_known = false};
    if (load_rules(question, &rules, err) != 0)
        return err->code;
    int status =
        agent_sides_compare(question, args->baseline, args->side ? args->side : "run:last", &sides, err);
    if (status == 0)
        status = rules_choose_kernels(&rules, RULES_OF_CALL, sides.side[DIFF_B].store, err);
    if (status != 0)
        return status;
    status = sides_gpu_time_ask(&sides, &gpu_time, err);
    if (status != 0)
        return status;
    const struct judge_terms terms = {
        .diff = &sides.diff,
        .rules = &rules,
        .gpu_time = &gpu_time,
        .no_baseline = args->baseline
                           ? diff_incomparable(&sides.side[DIFF_A].facts, &sides.side[DIFF_B].facts)
                           : "there is no baseline",
        .one_run = !sides.diff.by_runs,
        .now_ns = occ_now_ns()};
    status = judge(&terms, &judgement, err);
    return status == 0 ? put(document, &judgement, err) : status;
}
