/* `occq calc --json`: the content of the pages as raw values. One thread (stdio). */
#include <math.h>
#include <stdio.h>

#include "calc.h"
#include "cli/analysis/calc_device.h"
#include "support/cleanup.h"

static void put_device(struct occ_json *json, const struct calc_target *target)
{
    struct calc_device_row row = {.gpu = target->name, .name = target->title};
    uint32_t steps[OCC_MAX_CARVEOUTS];
    size_t n = occ_carveout_steps(&target->device, steps, OCC_MAX_CARVEOUTS);
    calc_device_fill(&row, &target->device);
    occ_json_object(json, "device", false);
    cli_json_row(json, calc_device_columns, &row);
    occ_json_array(json, "carveout_bytes", true);
    for (size_t i = 0; i < n && i < OCC_MAX_CARVEOUTS; i++)
        occ_json_unsigned(json, NULL, steps[i]);
    occ_json_close(json);
    occ_json_close(json);
}

static void put_kernel(struct occ_json *json, const struct calc_kernel *kernel)
{
    if (!kernel->name)
        return;
    occ_json_object(json, "kernel", false);
    occ_json_string(json, "name", kernel->name);
    occ_json_unsigned(json, "sm", kernel->sm);
    analysis_json_known(json, "max_threads_per_block", kernel->max_threads, 0);
    occ_json_unsigned(json, "local_bytes_per_thread", kernel->local_bytes);
    occ_json_close(json);
}

static void put_launch(struct occ_json *json, const struct calc_case *c)
{
    const struct occ_launch *l = &c->launch;
    analysis_json_configuration(json, l, c->has_grid);
    occ_json_real(json, "carveout_percent",
                  l->carveout_percent >= 0 ? (double)l->carveout_percent : (double)NAN);
    analysis_json_known(json, "barriers", l->barriers, 0);
    analysis_json_known(json, "max_active_clusters", l->max_active_clusters, 0);
    occ_json_close(json);
}

static void put_allocated(struct occ_json *json, const struct occ_result *r)
{
    occ_json_object(json, "allocated_per_block", false);
    occ_json_unsigned(json, "warps", r->warps_per_block);
    occ_json_unsigned(json, "registers_per_warp", r->registers_per_warp);
    occ_json_unsigned(json, "registers", r->registers_per_block);
    occ_json_unsigned(json, "shared_bytes", r->smem_per_block_bytes);
    occ_json_close(json);
    occ_json_unsigned(json, "used_shared_config_bytes", r->smem_config_bytes);
}

static void put_curve(struct occ_json *json, const struct calc_curve *curve)
{
    occ_json_object(json, occ_axis_word(curve->axis), false);
    occ_json_unsigned(json, "present", curve->present);
    occ_json_array(json, "points", false);
    for (size_t i = 0; i < curve->n; i++) {
        const struct occ_point *p = &curve->points[i];
        occ_json_array(json, NULL, true);
        occ_json_unsigned(json, NULL, p->value);
        occ_json_real(json, NULL, p->status == OCC_OK ? p->full_wave : NAN);
        occ_json_close(json);
    }
    occ_json_close(json);
    occ_json_close(json);
}

static int put_curves(struct occ_json *json, const struct calc_case *c, struct occ_error *err)
{
    _cleanup_(calc_curves_release) struct calc_curves curves = {.n = 0};
    int status = calc_curves_new(&c->target->device, &c->launch, &curves, err);
    if (status != 0)
        return status;
    occ_json_object(json, "curves", false);
    for (size_t i = 0; i < curves.n; i++)
        put_curve(json, &curves.list[i]);
    occ_json_close(json);
    return 0;
}

/* Prints a case. Curves are a hundred times larger than the rest, so only a single kernel has them, as on the
 * screen. */
static int put_case(struct occ_json *json, const struct calc_case *c, bool has_curves, struct occ_error *err)
{
    const struct analysis analysis = calc_analysis(c);
    int status = 0;
    occ_json_object(json, NULL, false);
    put_kernel(json, c->kernel);
    put_launch(json, c);
    put_allocated(json, &c->result);
    analysis_json(json, &analysis);
    analysis_json_latency(json, &analysis);
    analysis_json_advice(json, &analysis, 0);
    if (has_curves)
        status = put_curves(json, c, err);
    else
        occ_json_null(json, "curves");
    occ_json_close(json);
    return status;
}

int calc_json(const struct calc_case *cases, size_t n, struct occ_error *err)
{
    struct occ_json json;
    int status = 0;
    cli_json_begin(&json, stdout);
    put_device(&json, cases[0].target);
    occ_json_array(&json, "launches", false);
    for (size_t i = 0; i < n && status == 0; i++)
        status = put_case(&json, &cases[i], n == 1, err);
    occ_json_close(&json);
    cli_json_end(&json);
    return status;
}
