/* The tool "kernel": one launch configuration of a kernel, or the kernels that match. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/history/names.h"
#include "cli/kernels/show_answers.h"
#include "question.h"

#define DEFINITIONS                                                                                          \
    "theoretical: warps that resources allow / maximum; achieved, elapsed: measured warps of active, "       \
    "of all SMs; expected: the model's range; used + lost = 1: elapsed, else expected; "                     \
    "finding: why, change, saved part of GPU time, predicted time after / before; "                          \
    "advice: change, time, 80 % interval"

static const double lost_min = 0.005; /* a smaller part is not worth its bytes */

/* ---- several kernels ---- */

static int put_group(struct agent_document *document, const struct show_group *group, struct occ_error *err)
{
    const struct occ_row_kernel *kernel = &group->configs[0].kernel;
    struct agent_row row;
    if (agent_row_open(&row, err) != 0)
        return err->code;
    occ_json_integer(&row.json, NULL, kernel->id);
    occ_json_integer(&row.json, NULL, kernel->device);
    agent_quote(&row.json, NULL, kernel->short_name);
    occ_json_unsigned(&row.json, NULL, group->launches);
    occ_json_unsigned(&row.json, NULL, group->total_ns);
    return agent_row_close(&row, document, err);
}

static int put_groups(const struct agent_question *question, struct agent_document *document,
                      const struct show_group *groups, size_t n, struct occ_error *err)
{
    static const char *const columns[] = {"kernel_id", "device_id",         "quoted_kernel",
                                          "launches",  "total_duration_ns", NULL};
    size_t offset = (size_t)question->args->offset, shown = 0;
    int status = 1;
    occ_json_string(
        &document->json, "answer",
        "several kernels match, or one on several devices: ask with a kernel_id, and with a device");
    agent_list_open(document, columns);
    for (size_t i = offset; i < n && status == 1; i++) {
        status = put_group(document, &groups[i], err);
        shown += status == 1;
    }
    occ_json_close(&document->json);
    agent_more(document, offset, shown, n);
    return status < 0 ? status : 0;
}

/* ---- one launch configuration ---- */

static void put_launch(struct occ_json *json, const struct occ_config_row *row)
{
    const struct occ_launch *launch = &row->launch;
    char dimensions[40];
    occ_json_object(json, "config", true);
    occ_json_integer(json, "config_id", row->id);
    occ_json_unsigned(json, "launches", row->launches);
    occ_json_unsigned(json, "total_duration_ns", row->total_ns);
    occ_json_string(json, "grid", analysis_dimensions(launch->grid, dimensions, sizeof dimensions));
    occ_json_string(json, "block", analysis_dimensions(launch->block, dimensions, sizeof dimensions));
    occ_json_unsigned(json, "registers_per_thread", launch->registers_per_thread);
    occ_json_unsigned(json, "static_shared_bytes", launch->static_smem_bytes);
    occ_json_unsigned(json, "dynamic_shared_bytes", launch->dynamic_smem_bytes);
    occ_json_close(json);
}

static void put_model(struct occ_json *json, const struct occ_result *result)
{
    char limiters[64];
    agent_known(json, "theoretical", result->theoretical);
    occ_json_string(json, "limiters", occ_limiters_text(result->limiters, limiters, sizeof limiters));
    occ_json_unsigned(json, "blocks_per_sm", result->blocks_per_sm);
    agent_known(json, "waves", result->waves);
    agent_known(json, "expected_achieved_low", result->expected_achieved_low);
    agent_known(json, "expected_achieved_high", result->expected_achieved_high);
}

/* Writes measured values, and separately an occupancy that the recording reports, which is an estimate. */
static void put_measured(struct occ_json *json, const struct occ_config_row *row,
                         const struct occ_measurement *means)
{
    agent_measured(json, "achieved", means->achieved);
    agent_measured(json, "elapsed", means->elapsed);
    if (!isnan(means->achieved) && !isnan(means->achieved_error))
        agent_measured(json, "achieved_ci95", OCC_ERRORS_OF_95_PERCENT * means->achieved_error);
    agent_known(json, "measured_ratio", occ_measured_ratio(&row->measured, row->measurable_ns));
    if (means->withheld != OCC_WITHHELD_NOT)
        occ_json_string(json, "withheld", occ_withheld_text(means->withheld));
    if (row->reported.launches > 0)
        agent_known(json, "estimate_of_recording", row->reported.mean);
}

static void put_lost(struct occ_json *json, const struct analysis *a)
{
    struct analysis_waterfall w;
    analysis_explain(a, &w);
    agent_known(json, "used", w.used);
    occ_json_object(json, "lost", true);
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        if (fabs(w.parts[i].ratio) >= lost_min)
            agent_known(json, occ_part_word(i), w.parts[i].ratio);
    occ_json_close(json);
}

static int put_change(struct agent_document *document, const struct analysis_advice *advice,
                      struct occ_error *err)
{
    const struct occ_prediction *p = &advice->prediction;
    struct agent_row row;
    char text[96];
    if (agent_row_open(&row, err) != 0)
        return err->code;
    occ_json_string(&row.json, NULL, analysis_advice_change(&advice->change, text, sizeof text));
    agent_known(&row.json, NULL, p->ratio);
    agent_known(&row.json, NULL, p->low);
    agent_known(&row.json, NULL, p->high);
    return agent_row_close(&row, document, err);
}

/* Writes the changes that fit, the best first. */
static int put_advice(struct agent_document *document, const struct analysis *a, struct occ_error *err)
{
    struct analysis_advice list[OCC_ADVICE_MAX];
    size_t n = analysis_needs_no_advice(a) ? 0 : analysis_advise(a, list), shown = 0;
    int status = 1;
    occ_json_array(&document->json, "advice", true);
    for (size_t i = 0; i < n && status == 1; i++) {
        status = put_change(document, &list[i], err);
        shown += status == 1;
    }
    occ_json_close(&document->json);
    if (shown < n)
        occ_json_unsigned(&document->json, "advice_not_shown", n - shown);
    return status < 0 ? status : 0;
}

/* ---- the finding ---- */

/* Writes the finding about all launch configurations, if the document has room. */
static int put_answer(struct agent_document *document, const struct show_group *group, struct occ_error *err)
{
    const struct occ_kernel_answer *answer = group->answer;
    const struct occ_finding *f = &answer->finding;
    struct analysis_advice item;
    struct agent_row row;
    char why[OCC_WHY_BYTES], change[96];
    if (agent_row_open(&row, err) != 0)
        return err->code;
    occ_json_string(&row.json, NULL,
                    answer->is_known ? occ_why_text(&answer->why, why, sizeof why) : "unknown");
    occ_json_string(&row.json, NULL,
                    show_find_change(group, &item)
                        ? analysis_advice_change(&item.change, change, sizeof change)
                        : occ_change_text(f->change));
    agent_known(&row.json, NULL, f->forecast.is_promised ? f->saves.median : (double)NAN);
    agent_known(&row.json, NULL, f->forecast.ratio);
    int status = agent_member_close(&row, "finding", document, err);
    if (status == 0)
        occ_json_string(&document->json, "finding", "a larger max_bytes shows it");
    return status < 0 ? status : 0;
}

static int put_finding(const struct agent_question *question, struct agent_document *document,
                       struct show_group *group, struct occ_error *err)
{
    struct show_answers answers;
    const struct show_question asked = {question->store, &question->filter, true, NULL};
    int status = show_find_answers(&asked, group, 1, &answers, err);
    if (status == 0 && group->answer && group->answer->is_of_gpu_time)
        status = put_answer(document, group, err);
    show_answers_free(&answers);
    group->answer = NULL;
    return status;
}

/* ---- the kernel ---- */

static void put_kernel(struct occ_json *json, const struct show_group *group)
{
    const struct occ_row_kernel *kernel = &group->configs[0].kernel;
    occ_json_integer(json, "kernel_id", kernel->id);
    agent_quote(json, "quoted_kernel", kernel->short_name);
    occ_json_integer(json, "device_id", kernel->device);
    agent_quote(json, "quoted_device", kernel->device_name);
    if (kernel->simulated)
        occ_json_bool(json, "simulated", true);
    occ_json_unsigned(json, "launches", group->launches);
    occ_json_unsigned(json, "total_duration_ns", group->total_ns);
}

static void put_config(struct agent_document *document, const struct occ_config_row *row,
                       const struct analysis *a, const struct occ_measurement *means)
{
    struct occ_json *json = &document->json;
    put_launch(json, row);
    if (row->analysed)
        put_model(json, &row->result);
    else
        occ_json_string(json, "not_analysed", row->refused);
    put_measured(json, row, means);
    if (row->analysed) {
        put_lost(json, a);
        occ_json_string(json, "bound", occ_bound_text(analysis_bound(a)));
    }
    occ_json_string(json, "definitions", DEFINITIONS);
}

static int put_group_page(const struct agent_question *question, struct agent_document *document,
                          struct show_group *group, struct occ_error *err)
{
    size_t at = (size_t)question->args->offset;
    if (at >= group->n)
        return occ_fail(err, OCC_E_NOT_FOUND, "the kernel has %zu launch configuration%s", group->n,
                        group->n == 1 ? "" : "s");
    const struct occ_config_row *row = &group->configs[at];
    struct occ_measurement means;
    const struct analysis a = show_analysis(row, &means);
    put_kernel(&document->json, group);
    put_config(document, row, &a, &means);
    int status = at == 0 ? put_finding(question, document, group, err) : 0;
    if (status == 0 && row->analysed)
        status = put_advice(document, &a, err);
    agent_more(document, at, 1, group->n);
    return status;
}

/* ---- the tool ---- */

int agent_kernel(const struct agent_question *question, struct agent_document *document,
                 struct occ_error *err)
{
    _cleanup_(kernel_names_freep) struct kernel_names *names = NULL;
    _cleanup_(occ_config_rows_free) struct occ_config_rows rows = {0};
    _cleanup_(show_groups_free) struct show_group *groups = NULL;
    size_t n = 0;
    if (kernel_names_load(question->store, NULL, &names, err) != 0 ||
        occ_store_configs(question->store, &question->filter, &rows, err) != 0)
        return err->code;
    for (size_t i = 0; i < rows.n; i++)
        kernel_names_apply(names, &rows.rows[i].kernel);
    if (rows.n == 0)
        return agent_no_launches(question, err);
    if (show_groups_make(&rows, SIZE_MAX, &groups, &n, err) != 0)
        return err->code;
    return n == 1 ? put_group_page(question, document, groups, err)
                  : put_groups(question, document, groups, n, err);
}
