/* `occq check --json`; see judge_print.h. One thread (stdio). */
#include "cli/json.h"
#include "judge_print.h"

static void put_result(struct occ_json *json, const struct rule_result *r)
{
    occ_json_object(json, NULL, false);
    occ_json_string(json, "rule", r->rule->name);
    occ_json_unsigned(json, "line", r->rule->line);
    occ_json_string(json, "state", rule_state_word(r->state));
    occ_json_unsigned(json, "judged", r->judged);
    occ_json_unsigned(json, "undecided", r->undecided);
    occ_json_unsigned(json, "new", r->without_baseline);
    occ_json_unsigned(json, "allowed", r->allowed);
    occ_json_string(json, "reason", r->reason[0] ? r->reason : NULL);
    occ_json_array(json, "broken", false);
    for (size_t i = 0; i < r->n_findings; i++) {
        occ_json_object(json, NULL, false);
        occ_json_integer(json, "kernel_id", r->findings[i].kernel_id);
        occ_json_string(json, "kernel", r->findings[i].kernel);
        occ_json_real(json, "time_ratio", r->findings[i].share);
        occ_json_string(json, "text", r->findings[i].text);
        occ_json_close(json);
    }
    occ_json_close(json);
    occ_json_close(json);
}

void judgement_print_json(FILE *out, const struct judgement *j, const struct check_verdict *verdict)
{
    enum { FINDINGS_MAX = 20 };
    struct occ_json json;
    cli_json_begin(&json, out);
    occ_json_string(&json, "verdict",
                    j->count[RULE_FAILS] > 0   ? "fails"
                    : j->count[RULE_HOLDS] > 0 ? "holds"
                                               : "nothing judged");
    occ_json_array(&json, "rules", false);
    for (size_t i = 0; i < j->n; i++)
        put_result(&json, &j->results[i]);
    occ_json_close(&json);
    occ_overview_json(&json, &verdict->overview[DIFF_B], FINDINGS_MAX);
    cli_json_end(&json);
}
