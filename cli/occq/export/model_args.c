/* See model_args.h. */
#include "model_args.h"

#include <math.h>

#include "cli/analysis/analysis.h"
#include "support/cleanup.h"

static void find_change(const struct occ_config_row *row, struct export_model *model)
{
    struct analysis_advice advice[OCC_ADVICE_MAX];
    const struct analysis a = {.device = &row->limits,
                               .launch = &row->launch,
                               .result = &row->result,
                               .has_grid = true,
                               .name = row->kernel.demangled,
                               .duration_ns = NAN,
                               .alone_ratio = NAN,
                               .launch_gap_ns = NAN};
    if (analysis_advise(&a, advice) == 0 || !advice[0].prediction.is_promised)
        return;
    (void)analysis_advice_change(&advice[0].change, model->change, sizeof model->change);
    model->saving = 1 - advice[0].prediction.ratio;
    model->low = 1 - advice[0].prediction.high;
    model->high = 1 - advice[0].prediction.low;
}

int export_model_read(struct occ_store *store, int64_t config, struct export_model *ret_model,
                      struct occ_error *err)
{
    _cleanup_(occ_config_rows_free) struct occ_config_rows rows = {0};
    *ret_model = (struct export_model){.change = ""};
    int status = occ_store_read_config(store, config, &rows, err);
    if (status != 0 || rows.n == 0)
        return status;
    ret_model->barriers = rows.rows[0].launch.barriers;
    if (rows.rows[0].analysed)
        find_change(&rows.rows[0], ret_model);
    return 0;
}

static double rounded(double ratio)
{
    return round(ratio * 1e5) / 1e5;
}

size_t export_model_args(const struct export_model *model, struct export_arg args[EXPORT_MODEL_ARGS])
{
    size_t n = 0;
    if (model->barriers)
        args[n++] = (struct export_arg){"barriers_per_block", cli_integer(model->barriers), EXPORT_OF_LAUNCH};
    if (!model->change[0])
        return n;
    args[n++] = (struct export_arg){"first_change", cli_string(model->change), EXPORT_OF_KERNEL};
    args[n++] =
        (struct export_arg){"predicted_saving_ratio", cli_real(rounded(model->saving)), EXPORT_OF_KERNEL};
    args[n++] =
        (struct export_arg){"predicted_saving_low_ratio", cli_real(rounded(model->low)), EXPORT_OF_KERNEL};
    args[n++] =
        (struct export_arg){"predicted_saving_high_ratio", cli_real(rounded(model->high)), EXPORT_OF_KERNEL};
    return n;
}
