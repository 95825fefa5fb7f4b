/* `occq show --json`: the same as the pages, raw. One thread. */
#include "show.h"

#include <math.h>
#include <stdio.h>

#include "reported_occupancy.h"
#include "cli/json.h"
#include "cli/query.h"

void show_json_dimensions(struct cli_json *json, const char *key, const uint32_t dimensions[3])
{
    cli_json_array(json, key, true);
    for (size_t i = 0; i < 3; i++)
        cli_json_unsigned(json, NULL, dimensions[i]);
    cli_json_close(json);
}

/* 0 is "not known" for some fields. */
static void write_known(struct cli_json *json, const char *key, uint64_t number)
{
    if (number)
        cli_json_unsigned(json, key, number);
    else
        cli_json_null(json, key);
}

static void write_configuration(struct cli_json *json, const struct occ_shape_row *row)
{
    const struct occ_launch *l = &row->launch;
    cli_json_object(json, "configuration", false);
    show_json_dimensions(json, "grid", l->grid);
    show_json_dimensions(json, "block", l->block);
    show_json_dimensions(json, "cluster", l->cluster);
    cli_json_unsigned(json, "registers_per_thread", l->registers_per_thread);
    cli_json_unsigned(json, "static_smem_bytes", l->static_smem_bytes);
    cli_json_unsigned(json, "dynamic_smem_bytes", l->dynamic_smem_bytes);
    write_known(json, "smem_config_bytes", l->smem_config_bytes);
    cli_json_unsigned(json, "local_bytes_per_thread", row->local_bytes_per_thread);
    cli_json_close(json);
}

static void write_times(struct cli_json *json, const struct occ_shape_row *row)
{
    cli_json_unsigned(json, "launches", row->launches);
    cli_json_unsigned(json, "total_ns", row->total_ns);
    cli_json_unsigned(json, "min_ns", row->min_ns);
    cli_json_unsigned(json, "p50_ns", row->p50_ns);
    cli_json_unsigned(json, "p95_ns", row->p95_ns);
    cli_json_unsigned(json, "p99_ns", row->p99_ns);
    cli_json_unsigned(json, "max_ns", row->max_ns);
    cli_json_integer(json, "first_ns", row->first_ns);
    cli_json_integer(json, "last_ns", row->last_ns);
    cli_json_real(json, "waste_warp_seconds", row->waste_warp_seconds);
}

static void write_limits(struct cli_json *json, const struct occ_result *r)
{
    cli_json_object(json, "blocks_per_sm_limits", false);
    for (unsigned int limit = 0; limit < OCC_LIMIT_COUNT; limit++) {
        const char *word = occ_limit_word((enum occ_limit)limit);
        if (r->limit[limit] == OCC_NO_LIMIT)
            cli_json_null(json, word);
        else
            cli_json_unsigned(json, word, r->limit[limit]);
    }
    cli_json_close(json);
    cli_json_array(json, "limiters", true);
    for (unsigned int limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        if (r->limiters & (1U << limit))
            cli_json_string(json, NULL, occ_limit_word((enum occ_limit)limit));
    cli_json_close(json);
    cli_json_unsigned(json, "blocks_per_sm", r->blocks_per_sm);
    cli_json_unsigned(json, "blocks_per_sm_largest_carveout", r->blocks_per_sm_largest_carveout);
    cli_json_unsigned(json, "warps_per_sm", r->warps_per_sm);
    cli_json_unsigned(json, "max_warps_per_sm", r->max_warps_per_sm);
}

static void write_waves(struct cli_json *json, const struct occ_result *r, bool has_grid)
{
    if (!has_grid) {
        cli_json_unsigned(json, "wave_blocks", r->wave_blocks);
        return;
    }
    cli_json_unsigned(json, "grid_blocks", r->grid_blocks);
    cli_json_unsigned(json, "wave_blocks", r->wave_blocks);
    cli_json_real(json, "waves", r->waves);
    cli_json_unsigned(json, "full_waves", r->full_waves);
    cli_json_unsigned(json, "partial_blocks", r->partial_blocks);
}

static void write_occupancies(struct cli_json *json, const struct occ_result *r,
                              const struct occ_measurement *measured, bool has_grid)
{
    cli_json_object(json, "occupancy", false);
    cli_json_real(json, "theoretical", r->theoretical);
    cli_json_real(json, "expected_achieved", has_grid ? r->expected_achieved : NAN);
    cli_json_real(json, "expected_elapsed", has_grid ? r->expected_elapsed : NAN);
    cli_json_real(json, "achieved", measured ? measured->achieved : NAN);
    cli_json_real(json, "elapsed", measured ? measured->elapsed : NAN);
    cli_json_close(json);
}

static void write_causes(struct cli_json *json, const struct occ_result *r)
{
    cli_json_object(json, "causes", false);
    for (unsigned int cause = 0; cause < OCC_CAUSE_COUNT; cause++)
        if (cause != OCC_CAUSE_PARTIAL_WARP)
            cli_json_real(json, occ_cause_word((enum occ_cause)cause), r->cause[cause]);
    cli_json_close(json);
    cli_json_real(json, "partial_warp_ratio", r->cause[OCC_CAUSE_PARTIAL_WARP]);
}

void show_json_analysis(struct cli_json *json, const struct occ_result *result,
                        const struct occ_measurement *measured, bool has_grid)
{
    struct cli_value design = {.type = CLI_NONE};
    write_limits(json, result);
    write_waves(json, result, has_grid);
    write_occupancies(json, result, measured, has_grid);
    write_causes(json, result);
    cli_set_design(&design, result->by_design & ~(has_grid ? 0 : (uint32_t)OCC_BY_DESIGN_PERSISTENT));
    cli_json_value(json, "design", &design);
}

/* null: no recording claims anything. */
static void write_claim(struct cli_json *json, const struct occ_shape_row *row)
{
    char reason[128];
    if (row->claim.launches == 0) {
        cli_json_null(json, "claim");
        return;
    }
    cli_json_object(json, "claim", false);
    cli_json_string(json, "source", row->claim_source);
    cli_json_unsigned(json, "launches", row->claim.launches);
    cli_json_real(json, "achieved_mean", row->claim.mean);
    cli_json_real(json, "achieved_min", row->claim.min);
    cli_json_real(json, "achieved_max", row->claim.max);
    cli_json_real(json, "ours", cli_claim_ours(row));
    cli_json_string(json, "difference", cli_claim_reason(row, reason, sizeof reason));
    cli_json_close(json);
}

static void write_shape(struct cli_json *json, const struct occ_shape_row *row)
{
    struct occ_measurement measured;
    occ_measured_means(&row->measured, &measured);
    cli_json_object(json, NULL, false);
    cli_json_integer(json, "shape_id", row->id);
    write_configuration(json, row);
    write_times(json, row);
    cli_json_string(json, "refused", row->analysed ? NULL : row->refused);
    if (row->analysed)
        show_json_analysis(json, &row->result, &measured, true);
    show_json_measured(json, row, &measured);
    write_claim(json, row);
    cli_json_string(json, "source_lacks", row->lacks);
    cli_json_close(json);
}

static void write_group(struct cli_json *json, const struct show_group *group)
{
    const struct occ_shape_row *first = group->shapes[0];
    cli_json_object(json, NULL, false);
    cli_json_integer(json, "kernel_id", first->kernel);
    cli_json_string(json, "kernel", first->short_name);
    cli_json_string(json, "demangled", first->demangled);
    cli_json_string(json, "mangled", first->mangled);
    cli_json_integer(json, "device_id", first->device);
    cli_json_string(json, "device", first->device_name);
    cli_json_unsigned(json, "sm_count", first->limits.sm_count);
    cli_json_bool(json, "simulated", first->simulated);
    cli_json_unsigned(json, "shape_count", group->n);
    cli_json_array(json, "shapes", false);
    for (size_t i = 0; i < group->shown; i++)
        write_shape(json, group->shapes[i]);
    cli_json_close(json);
    cli_json_close(json);
}

void show_json(const struct show_group *groups, size_t n)
{
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_array(&json, "kernels", false);
    for (size_t i = 0; i < n; i++)
        write_group(&json, &groups[i]);
    cli_json_close(&json);
    cli_json_end(&json);
}
