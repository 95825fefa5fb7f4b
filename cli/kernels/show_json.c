/* `occq show --json`: the values of the pages, not rounded. One thread (stdio). */
#include <stdio.h>

#include "cli/command.h"
#include "show.h"

static void put_times(struct occ_json *json, const struct occ_config_row *row)
{
    occ_json_unsigned(json, "launches", row->launches);
    occ_json_unsigned(json, "total_duration_ns", row->total_ns);
    occ_json_unsigned(json, "min_duration_ns", row->min_ns);
    occ_json_unsigned(json, "p50_duration_ns", row->p50_ns);
    occ_json_unsigned(json, "p95_duration_ns", row->p95_ns);
    occ_json_unsigned(json, "p99_duration_ns", row->p99_ns);
    occ_json_unsigned(json, "max_duration_ns", row->max_ns);
    /* pairs: the smallest duration of a bin, number of launches in the bin */
    occ_json_array(json, "duration_histogram", true);
    for (const struct occ_duration_bin *bin = row->durations.list;
         bin < row->durations.list + row->durations.n; bin++) {
        occ_json_array(json, NULL, true);
        occ_json_unsigned(json, NULL, bin->from_ns);
        occ_json_unsigned(json, NULL, bin->launches);
        occ_json_close(json);
    }
    occ_json_close(json);
    occ_json_integer(json, "first_start_ns", row->first_ns);
    occ_json_integer(json, "last_start_ns", row->last_ns);
    occ_json_real(json, "waste_warp_seconds", row->waste.warp_seconds);
    occ_json_real(json, "measured_ratio", occ_measured_ratio(&row->measured, row->measurable_ns));
}

/* Writes null if no recording has an occupancy. */
static void put_reported(struct occ_json *json, const struct occ_config_row *row)
{
    if (row->reported.launches == 0) {
        occ_json_null(json, "reported");
        return;
    }
    occ_json_object(json, "reported", false);
    occ_json_string(json, "source", row->source);
    occ_json_unsigned(json, "launches", row->reported.launches);
    occ_json_real(json, "achieved_mean", row->reported.mean);
    occ_json_real(json, "achieved_min", row->reported.min);
    occ_json_real(json, "achieved_max", row->reported.max);
    occ_json_real(json, "expected", reported_expected(row));
    occ_json_string(json, "difference", reported_difference(row));
    occ_json_close(json);
}

static void put_config(struct occ_json *json, const struct show_group *group, size_t i)
{
    const struct occ_config_row *row = &group->configs[i];
    struct occ_measurement measured;
    const struct analysis a = show_analysis(row, &measured);
    occ_json_object(json, NULL, false);
    occ_json_integer(json, "config_id", row->id);
    analysis_json_configuration(json, &row->launch, true);
    occ_json_unsigned(json, "local_bytes_per_thread", row->local_bytes_per_thread);
    occ_json_close(json);
    put_times(json, row);
    occ_json_unsigned(json, "model_version", row->model_version);
    occ_json_string(json, "refused", row->analysed ? NULL : row->refused);
    if (row->analysed) {
        analysis_json(json, &a);
        analysis_json_bound(json, &a);
        analysis_json_latency(json, &a);
        analysis_json_advice(json, &a, row->total_ns);
    }
    show_json_measured(json, row, &measured);
    put_reported(json, row);
    show_json_ncu(json, row);
    occ_json_string(json, "ncu_nearest", group->nearest ? group->nearest[i] : NULL);
    occ_json_string(json, "missing_fields", row->missing_fields);
    occ_json_close(json);
}

enum { CAPABILITY = 24 };

/* Formats "9.0"; NULL: unknown. */
static const char *capability_text(uint32_t cc, char buffer[CAPABILITY])
{
    (void)snprintf(buffer, CAPABILITY, "%u.%u", cc / 10, cc % 10);
    return cc ? buffer : NULL;
}

static void put_group(struct occ_json *json, const struct show_group *group)
{
    const struct occ_config_row *first = group->configs;
    uint32_t rules = occ_device_rules_of(first->limits.cc);
    char cc[CAPABILITY], by[CAPABILITY];
    occ_json_object(json, NULL, false);
    occ_json_integer(json, "kernel_id", first->kernel.id);
    occ_json_string(json, "kernel", first->kernel.short_name);
    occ_json_string(json, "kernel_demangled", first->kernel.demangled);
    occ_json_string(json, "kernel_mangled", first->kernel.mangled);
    cli_json_value(json, "device_id",
                   first->kernel.device > 0 ? cli_integer(first->kernel.device) : cli_string(NULL));
    occ_json_string(json, "device", first->kernel.device_name);
    occ_json_string(json, "compute_capability", capability_text(first->limits.cc, cc));
    occ_json_string(json, "limits_by_rules_of",
                    rules != first->limits.cc ? capability_text(rules, by) : NULL);
    occ_json_unsigned(json, "sm_count", first->limits.sm_count);
    occ_json_bool(json, "simulated", first->kernel.simulated);
    occ_json_unsigned(json, "configs", group->n);
    if (group->answer)
        occ_kernel_answer_json(json, "finding", group->answer);
    show_json_ranges(json, group);
    occ_json_array(json, "launch_configs", false);
    for (size_t i = 0; i < group->shown; i++)
        put_config(json, group, i);
    occ_json_close(json);
    occ_json_close(json);
}

void show_json(struct occ_json *json, const struct show_group *groups, size_t n)
{
    occ_json_array(json, "kernels", false);
    for (size_t i = 0; i < n; i++)
        put_group(json, &groups[i]);
    occ_json_close(json);
}
