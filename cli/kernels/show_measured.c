/* `occq show`: values of hardware counters, in text and JSON; see show.h. One thread. */
#include <inttypes.h>
#include <math.h>

#include "answer/answer.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "occupancy/waterfall.h"
#include "show.h"

enum { SOURCES = 5 };

/* A few short waits of a program that is launch-bound elsewhere are no reason for CUDA graphs. */
static bool waits_for_launches(const struct occ_config_use *use)
{
    double waits_ns = (double)use->launch_ns;
    return use->launch_bound && use->launch_ns &&
           waits_ns >= OCC_GAP_ADVICE_RATIO * (waits_ns + (double)use->total_ns);
}

struct analysis show_analysis(const struct occ_config_row *row, struct occ_measurement *ret_means)
{
    const struct occ_config_use *use = &row->use;
    occ_measured_means(&row->measured, row->measurable_ns, ret_means);
    if (occ_busiest_unit(&ret_means->utilization) == OCC_HW_COUNT)
        ret_means->utilization = occ_ncu_utilization(&row->ncu);
    return (struct analysis){
        .device = &row->limits,
        .launch = &row->launch,
        .result = &row->result,
        .measured = ret_means,
        .has_grid = true,
        .name = row->kernel.demangled,
        .duration_ns = row->launches ? (double)row->total_ns / (double)row->launches : NAN,
        .spill_bytes = -1,
        .local_bytes = row->local_bytes_per_thread,
        .alone_ratio = use->total_ns ? (double)use->alone_ns / (double)use->total_ns : NAN,
        .launch_gap_ns = waits_for_launches(use) ? (double)use->launch_ns / (double)use->launches : NAN};
}

struct source_count {
    enum occ_value_source source;
    uint64_t launches;
};

static void count_sources(const struct occ_measured_sums *sums, struct source_count counts[SOURCES])
{
    counts[0] = (struct source_count){OCC_FROM_DIRECT, sums->direct};
    counts[1] = (struct source_count){OCC_FROM_REGRESSED, sums->regression};
    counts[2] = (struct source_count){OCC_FROM_GROUPED, sums->grouped};
    counts[3] = (struct source_count){OCC_FROM_EXACT, sums->exact};
    counts[4] = (struct source_count){OCC_FROM_NCU, sums->ncu};
}

/* ---- text ---- */

/* Prints the part of the time with values, and the reason if values are withheld. */
static void print_coverage(const struct occ_measured_sums *sums, const struct occ_measurement *measured)
{
    char mean[16];
    double elapsed = occ_measured_mean(sums, OCC_MEASURED_elapsed);
    cli_print("    these launches are %.1f%% of the time", measured->measured_ratio * 100);
    if (measured->withheld != OCC_WITHHELD_NOT)
        cli_print("; values are withheld: %s", occ_withheld_text(measured->withheld));
    else if (measured->measured_ratio < 1 - OCC_MEASURED_MINORITY)
        cli_print("; the errors cover the other launches, too");
    if (measured->withheld > OCC_WITHHELD_GROUP && !isnan(elapsed))
        cli_print(" (elapsed of the measured launches alone: %s)",
                  cli_percent_text(elapsed, mean, sizeof mean));
    cli_print("\n");
}

static void print_launches(const struct occ_measured_sums *sums, const struct occ_measurement *measured)
{
    struct source_count counts[SOURCES];
    const char *separator = ": ";
    count_sources(sums, counts);
    uint64_t launches = occ_measured_launches(sums);
    cli_print("    measured in %" PRIu64 " launch%s", launches, launches == 1 ? "" : "es");
    for (size_t i = 0; i < SOURCES; i++) {
        if (counts[i].launches == 0)
            continue;
        cli_print("%s%s %" PRIu64 " (%s)", separator, occ_value_source_word(counts[i].source),
                  counts[i].launches, occ_value_source_text(counts[i].source));
        separator = ", ";
    }
    if (!isnan(measured->variance_inflation))
        cli_print("; variance inflation %.2f", measured->variance_inflation);
    cli_print("\n");
    print_coverage(sums, measured);
    if (sums->overlapped)
        cli_print("    %.1f%% of them overlapped other kernels\n",
                  100.0 * (double)sums->overlapped / (double)occ_measured_launches(sums));
}

/* Prints the group's means: kernels that always run together have no values of their own. */
static void print_group(const struct occ_measured_sums *sums)
{
    double elapsed = occ_measured_mean(sums, OCC_MEASURED_group_elapsed);
    double achieved = occ_measured_mean(sums, OCC_MEASURED_group_achieved);
    double error = occ_measured_mean(sums, OCC_MEASURED_group_elapsed_error);
    if (isnan(elapsed))
        return;
    cli_print("    means of its group: elapsed %.1f%%", elapsed * 100);
    if (!isnan(error))
        cli_print(" +- %.1f%%", OCC_ERRORS_OF_95_PERCENT * error * 100);
    if (!isnan(achieved))
        cli_print(", achieved %.1f%%", achieved * 100);
    cli_print("; not this kernel's own\n");
}

static void print_expected_blocks(const struct occ_result *r)
{
    double all = (double)r->max_warps_per_sm / r->warps_per_block;
    cli_print(" (expected: %.2f", r->expected_achieved_low * all);
    if (r->expected_achieved_high > r->expected_achieved_low)
        cli_print(" to %.2f", r->expected_achieved_high * all);
    cli_print(")");
}

static void print_sms(const struct occ_config_row *row, const struct occ_measurement *m)
{
    const char *separator = "    SMs: ";
    if (!isnan(m->sm_active)) {
        cli_print("%sactive %.1f%% of the time", separator, m->sm_active * 100);
        separator = "; ";
    }
    if (!isnan(m->resident_blocks)) {
        cli_print("%s%.2f blocks per active SM", separator, m->resident_blocks);
        if (row->analysed)
            print_expected_blocks(&row->result);
        separator = "; ";
    }
    if (!isnan(m->imbalance)) {
        cli_print("%sthe minimum SM activity is %.1f%% below the maximum", separator, m->imbalance * 100);
        separator = "; ";
    }
    if (separator[0] == ';')
        cli_print("\n");
}

void show_measured(const struct occ_config_row *row, const struct occ_measurement *measured)
{
    if (measured->source == OCC_FROM_MODEL)
        return;
    print_launches(&row->measured, measured);
    print_group(&row->measured);
    print_sms(row, measured);
}

/* ---- JSON ---- */

static void put_ci95(struct occ_json *json, const char *key, double standard_error)
{
    occ_json_real(json, key, standard_error * OCC_ERRORS_OF_95_PERCENT);
}

static void put_sources(struct occ_json *json, const struct occ_measured_sums *sums)
{
    struct source_count counts[SOURCES];
    count_sources(sums, counts);
    occ_json_object(json, "launches_by_source", true);
    for (size_t i = 0; i < SOURCES; i++)
        occ_json_unsigned(json, occ_value_source_word(counts[i].source), counts[i].launches);
    occ_json_close(json);
}

static void put_waterfall(struct occ_json *json, const struct occ_config_row *row,
                          const struct occ_measurement *measured)
{
    struct occ_measurement means;
    const struct analysis a = show_analysis(row, &means);
    bool disagrees =
        row->analysed && analysis_stall_disagrees(&row->result, measured, occ_most_stalled(measured));
    analysis_json_stalls(json, measured);
    occ_json_bool(json, "stall_disagrees", disagrees);
    if (row->analysed && !(isnan(measured->elapsed) && isnan(measured->achieved)))
        analysis_json_waterfall(json, &a);
    else
        occ_json_null(json, "waterfall");
}

void show_json_measured(struct occ_json *json, const struct occ_config_row *row,
                        const struct occ_measurement *measured)
{
    const struct occ_measured_sums *sums = &row->measured;
    if (measured->source == OCC_FROM_MODEL) {
        occ_json_null(json, "measured");
        return;
    }
    occ_json_object(json, "measured", false);
    occ_json_string(json, "measured_source", occ_value_source_word(measured->source));
    occ_json_unsigned(json, "launches", occ_measured_launches(sums));
    put_sources(json, sums);
    occ_json_unsigned(json, "overlapped_launches", sums->overlapped);
    occ_json_real(json, "measured_ratio", measured->measured_ratio);
    occ_json_string(json, "withheld", measured->withheld ? occ_withheld_word(measured->withheld) : NULL);
    occ_json_real(json, "achieved", measured->achieved);
    put_ci95(json, "achieved_ci95", measured->achieved_error);
    occ_json_real(json, "elapsed", measured->elapsed);
    put_ci95(json, "elapsed_ci95", measured->elapsed_error);
    occ_json_real(json, "variance_inflation", measured->variance_inflation);
    occ_json_real(json, "group_achieved", occ_measured_mean(sums, OCC_MEASURED_group_achieved));
    occ_json_real(json, "group_elapsed", occ_measured_mean(sums, OCC_MEASURED_group_elapsed));
    put_ci95(json, "group_elapsed_ci95", occ_measured_mean(sums, OCC_MEASURED_group_elapsed_error));
    occ_json_real(json, "sm_active", measured->sm_active);
    occ_json_real(json, "resident_blocks", measured->resident_blocks);
    occ_json_real(json, "sm_imbalance", measured->imbalance);
    put_waterfall(json, row, measured);
    occ_json_close(json);
}
