/* Writes an analysis as JSON; see analysis.h. */
#include <math.h>

#include "analysis.h"
#include "cli/marks.h"
#include "cli/command.h"

static void put_dimensions(struct occ_json *json, const char *key, const uint32_t dimensions[3])
{
    occ_json_array(json, key, true);
    for (size_t i = 0; i < 3; i++)
        occ_json_unsigned(json, NULL, dimensions[i]);
    occ_json_close(json);
}

void analysis_json_known(struct occ_json *json, const char *key, uint64_t number, uint64_t unknown)
{
    if (number != unknown)
        occ_json_unsigned(json, key, number);
    else
        occ_json_null(json, key);
}

void analysis_json_configuration(struct occ_json *json, const struct occ_launch *launch, bool has_grid)
{
    occ_json_object(json, "configuration", false);
    if (has_grid)
        put_dimensions(json, "grid", launch->grid);
    else
        occ_json_null(json, "grid");
    put_dimensions(json, "block", launch->block);
    put_dimensions(json, "cluster", launch->cluster);
    occ_json_unsigned(json, "registers_per_thread", launch->registers_per_thread);
    occ_json_unsigned(json, "static_shared_bytes", launch->static_smem_bytes);
    occ_json_unsigned(json, "dynamic_shared_bytes", launch->dynamic_smem_bytes);
    analysis_json_known(json, "shared_config_bytes", launch->smem_config_bytes, 0);
}

static void put_limits(struct occ_json *json, const struct occ_result *r)
{
    occ_json_object(json, "limits", false);
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        analysis_json_known(json, occ_limit_word((enum occ_limit)limit), r->limit[limit], OCC_NO_LIMIT);
    occ_json_close(json);
    occ_json_array(json, "limiters", true);
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        if (r->limiters & (1U << limit))
            occ_json_string(json, NULL, occ_limit_word((enum occ_limit)limit));
    occ_json_close(json);
    occ_json_unsigned(json, "blocks_per_sm", r->blocks_per_sm);
    occ_json_unsigned(json, "blocks_per_sm_largest_carveout", r->blocks_per_sm_largest_carveout);
    occ_json_unsigned(json, "warps_per_sm", r->warps_per_sm);
    occ_json_unsigned(json, "max_warps_per_sm", r->max_warps_per_sm);
}

static void put_waves(struct occ_json *json, const struct occ_result *r, bool has_grid)
{
    occ_json_unsigned(json, "wave_blocks", r->wave_blocks);
    if (!has_grid)
        return;
    occ_json_unsigned(json, "grid_blocks", r->grid_blocks);
    occ_json_real(json, "waves", r->waves);
    occ_json_unsigned(json, "full_waves", r->full_waves);
    occ_json_unsigned(json, "partial_blocks", r->partial_blocks);
}

static void put_occupancies(struct occ_json *json, const struct analysis *a)
{
    occ_json_object(json, "occupancy", false);
    occ_json_real(json, "theoretical", a->result->theoretical);
    occ_json_real(json, "expected_achieved_low", a->has_grid ? a->result->expected_achieved_low : NAN);
    occ_json_real(json, "expected_achieved_high", a->has_grid ? a->result->expected_achieved_high : NAN);
    occ_json_real(json, "expected_elapsed_low", a->has_grid ? a->result->expected_elapsed_low : NAN);
    occ_json_real(json, "expected_elapsed_high", a->has_grid ? a->result->expected_elapsed_high : NAN);
    occ_json_real(json, "block_start_loss",
                  a->has_grid ? occ_block_start_loss(a->result, a->duration_ns) : NAN);
    occ_json_real(json, "achieved", a->measured ? a->measured->achieved : NAN);
    occ_json_real(json, "elapsed", a->measured ? a->measured->elapsed : NAN);
    occ_json_close(json);
}

static void put_causes(struct occ_json *json, const struct occ_result *r)
{
    occ_json_object(json, "causes", false);
    for (unsigned cause = 0; cause < OCC_CAUSE_COUNT; cause++)
        if (cause != OCC_CAUSE_PARTIAL_WARP)
            occ_json_real(json, occ_cause_word((enum occ_cause)cause), r->cause[cause]);
    double spread = r->expected_elapsed_high - r->expected_elapsed_low;
    occ_json_real(json, "tail_low", r->cause[OCC_CAUSE_TAIL] - (r->full_waves ? spread : 0));
    occ_json_real(json, "small_grid_low", r->cause[OCC_CAUSE_SMALL_GRID] - occ_uneven_grid(r));
    occ_json_close(json);
    occ_json_real(json, "partial_warp_ratio", r->cause[OCC_CAUSE_PARTIAL_WARP]);
}

void analysis_json(struct occ_json *json, const struct analysis *a)
{
    char by_design[CLI_MARKS_BYTES];
    put_limits(json, a->result);
    put_waves(json, a->result, a->has_grid);
    put_occupancies(json, a);
    put_causes(json, a->result);
    (void)cli_marks_text(a->result->by_design & ~(a->has_grid ? 0 : (uint32_t)OCC_BY_DESIGN_PERSISTENT),
                         false, by_design);
    occ_json_string(json, "by_design", by_design);
}

void analysis_json_stalls(struct occ_json *json, const struct occ_measurement *measured)
{
    enum occ_limit stalled = occ_most_stalled(measured);
    occ_json_object(json, "launch_stall_ratios", true);
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        if (limit != OCC_LIMIT_CLUSTER)
            occ_json_real(json, occ_limit_word((enum occ_limit)limit), measured->stall[limit]);
    occ_json_close(json);
    occ_json_string(json, "max_stall", stalled < OCC_LIMIT_COUNT ? occ_limit_word(stalled) : NULL);
}

void analysis_json_waterfall(struct occ_json *json, const struct analysis *a)
{
    struct analysis_waterfall w;
    analysis_explain(a, &w);
    occ_json_real(json, "uneven_grid_ratio", w.uneven_grid);
    occ_json_string(json, "waterfall_cycles", w.is_of_active_cycles ? "active" : "elapsed");
    occ_json_array(json, "waterfall", false);
    for (unsigned part = 0; part < OCC_PART_COUNT; part++) {
        const struct analysis_part *p = &w.parts[part];
        if (part == OCC_CAUSE_PARTIAL_WARP)
            continue;
        occ_json_object(json, NULL, true);
        occ_json_string(json, "cause", occ_part_word(part));
        occ_json_real(json, "ratio", p->ratio);
        occ_json_string(json, "source", occ_value_source_word(p->source));
        occ_json_bool(json, "within_error", p->is_within_error);
        occ_json_string(json, "advice", p->help[0] ? p->help : NULL);
        occ_json_close(json);
    }
    occ_json_close(json);
}
