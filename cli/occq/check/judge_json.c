/* `occq check --json`; see judge_print.h. One thread (stdio). */
#include "cli/json.h"
#include "judge_print.h"

static void put_finding(struct occ_json *json, const struct finding *finding)
{
    bool is_kernel = finding->kernel_id != 0;
    occ_json_object(json, NULL, false);
    if (is_kernel)
        occ_json_integer(json, "kernel_id", finding->kernel_id);
    else
        occ_json_null(json, "kernel_id");
    occ_json_string(json, "kernel", is_kernel ? finding->kernel : NULL);
    occ_json_real(json, "time_ratio", finding->share);
    occ_json_string(json, "text", finding->text);
    occ_json_close(json);
}

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
    for (size_t i = 0; i < r->n_findings; i++)
        put_finding(json, &r->findings[i]);
    occ_json_close(json);
    occ_json_array(json, "undecided_changes", false);
    for (size_t i = 0; i < r->n_open && r->state == RULE_UNDECIDED; i++) {
        occ_json_object(json, NULL, false);
        occ_json_real(json, "time_ratio", r->open[i].share);
        occ_json_string(json, "text", r->open[i].text);
        occ_json_close(json);
    }
    occ_json_close(json);
    occ_json_close(json);
}

void judgement_print_json(FILE *out, const struct judgement *j, const struct sides_gpu_time *time,
                          double floor)
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
    occ_overview_json(&json, &time->overview[DIFF_B], FINDINGS_MAX);
    sides_gpu_time_json(&json, "gpu_time_change", time, floor);
    cli_json_end(&json);
}
