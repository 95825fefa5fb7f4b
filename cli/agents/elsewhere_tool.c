/* The tool "what_if": the recorded launches on another GPU. One thread. */
#include <math.h>
#include <stdlib.h>

#include "cli/analysis/calc_target.h"
#include "cli/history/names.h"
#include "cli/kernels/elsewhere.h"
#include "question.h"

#define DEFINITIONS                                                                                          \
    "_then: on the other GPU; expected_low, expected_high: the model's range of achieved occupancy for a "   \
    "balanced grid; registers and durations as recorded: times there are not measured and not predicted; "   \
    "refused: launch configurations that cannot run there"

static int put_kernel(struct agent_document *document, const struct elsewhere_row *kernel,
                      struct occ_error *err)
{
    struct agent_row row;
    if (agent_row_open(&row, err) != 0)
        return err->code;
    occ_json_integer(&row.json, NULL, kernel->kernel_id);
    agent_quote(&row.json, NULL, kernel->kernel);
    occ_json_unsigned(&row.json, NULL, kernel->total_ns);
    agent_known(&row.json, NULL, kernel->here.theoretical);
    agent_known(&row.json, NULL, kernel->there.theoretical);
    agent_known(&row.json, NULL, kernel->there.expected_achieved_low);
    agent_known(&row.json, NULL, kernel->there.expected_achieved_high);
    agent_known(&row.json, NULL, kernel->here.waves);
    agent_known(&row.json, NULL, kernel->there.waves);
    occ_json_string(&row.json, NULL, kernel->there.limiters);
    occ_json_unsigned(&row.json, NULL, kernel->refused);
    return agent_row_close(&row, document, err);
}

static int put_kernels(const struct agent_question *question, struct agent_document *document,
                       const struct calc_target *target, const struct elsewhere_row *rows, size_t n,
                       struct occ_error *err)
{
    static const char *const columns[] = {"kernel_id",
                                          "quoted_kernel",
                                          "total_duration_ns",
                                          "theoretical",
                                          "theoretical_then",
                                          "expected_low_then",
                                          "expected_high_then",
                                          "waves",
                                          "waves_then",
                                          "limiters_then",
                                          "refused",
                                          NULL};
    struct occ_json *json = &document->json;
    size_t offset = (size_t)question->args->offset, shown = 0;
    int status = 1;
    occ_json_string(json, "gpu_then", target->title);
    occ_json_unsigned(json, "sm_count_then", target->device.sm_count);
    occ_json_string(json, "definitions", DEFINITIONS);
    agent_list_open(document, columns);
    for (size_t i = offset; i < n && status == 1; i++) {
        status = put_kernel(document, &rows[i], err);
        shown += status == 1;
    }
    occ_json_close(json);
    agent_more(document, offset, shown, n);
    return status < 0 ? status : 0;
}

int agent_elsewhere(const struct agent_question *question, struct agent_document *document,
                    struct occ_error *err)
{
    struct calc_target target;
    _cleanup_(kernel_names_freep) struct kernel_names *names = NULL;
    _cleanup_(occ_config_rows_free) struct occ_config_rows configs = {0};
    _cleanup_(occ_freep) struct elsewhere_row *rows = NULL;
    if (calc_target_named(question->args->gpu, &target, err) != 0)
        return occ_error_prefix(err, "gpu");
    if (kernel_names_load(question->store, NULL, &names, err) != 0 ||
        occ_store_configs(question->store, &question->filter, &configs, err) != 0)
        return err->code;
    for (size_t i = 0; i < configs.n; i++)
        kernel_names_apply(names, &configs.rows[i].kernel);
    if (configs.n == 0)
        return agent_no_launches(question, err);
    if (!(rows = calloc(configs.n, sizeof *rows)))
        return occ_no_memory(err);
    size_t n = elsewhere_rows(&configs, &target.device, rows);
    return put_kernels(question, document, &target, rows, n, err);
}
