/* Reports if more warps would help, in text and JSON; see analysis.h. One thread (stdio). */
#include <math.h>
#include <stdio.h>

#include "analysis.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "occupancy/latency.h"
#include "occupancy/predict.h"

static const struct occ_hw_utilization nothing = {.ratio = {NAN, NAN, NAN, NAN, NAN, NAN, NAN}};

static const struct occ_hw_utilization *utilization_of(const struct analysis *a)
{
    return a->measured ? &a->measured->utilization : &nothing;
}

enum occ_bound analysis_bound(const struct analysis *a)
{
    return occ_bound_of(utilization_of(a), a->has_grid ? a->result : NULL);
}

double analysis_throughput(const struct analysis *a)
{
    enum occ_hw_unit busiest = occ_busiest_unit(utilization_of(a));
    return busiest == OCC_HW_COUNT ? (double)NAN : utilization_of(a)->ratio[busiest];
}

struct occ_kernel_owner analysis_owner(const struct analysis *a)
{
    struct occ_kernel_owner owner = {.owner = OCC_OWNER_UNKNOWN, .library = ""};
    if (a->name)
        occ_kernel_owner(a->name, &owner);
    return owner;
}

bool analysis_needs_no_advice(const struct analysis *a)
{
    return analysis_bound(a) == OCC_BOUND_THROUGHPUT || analysis_owner(a).owner == OCC_OWNER_COMMUNICATION;
}

/* Returns the text of the verdict; another text if the SM already holds its maximum number of warps. */
static const char *text_of(const struct analysis *a)
{
    enum occ_bound bound = analysis_bound(a);
    bool is_full = a->result->theoretical > 1 - OCC_ADVICE_MIN_GAIN;
    if (is_full && bound == OCC_BOUND_LATENCY)
        return "latency-bound, with all warps that an SM can hold: more independent work in each would help";
    if (is_full && bound == OCC_BOUND_BETWEEN)
        return "between latency- and throughput-bound, with all warps that an SM can hold";
    return occ_bound_text(bound);
}

/* True for Nsight Compute's values: only they have the units COMPUTE and MEMORY. */
static bool is_of_ncu(const struct occ_hw_utilization *u)
{
    return !isnan(u->ratio[OCC_HW_COMPUTE]) || !isnan(u->ratio[OCC_HW_MEMORY]);
}

static void print_error(double error)
{
    if (error > 0)
        cli_print(" +- %.1f%%", OCC_ERRORS_OF_95_PERCENT * error * 100);
}

static const char *source_of(const struct analysis *a)
{
    const struct occ_hw_utilization *u = utilization_of(a);
    if (occ_busiest_unit(u) != OCC_HW_COUNT)
        return is_of_ncu(u) ? " (Nsight Compute)" : " (hardware counters)";
    return analysis_bound(a) == OCC_BOUND_NOT_MEASURED ? "" : " (model)";
}

/* ---- latency hiding ---- */

static struct occ_latency latency_of(const struct analysis *a)
{
    double resident = occ_side_of(a->device, a->launch, a->result, a->has_grid).warps;
    return occ_latency_of(a->device, resident, a->independent, a->measured);
}

enum { WARPS = 16 };

/* Formats "16" or "9.6". */
static const char *warps_text(double warps, char text[WARPS])
{
    (void)snprintf(text, WARPS, "%.*f", fabs(warps - round(warps)) < 0.05 ? 0 : 1, warps);
    return text;
}

/* Prints what would hide the latency: warps only if an SM can hold enough of them. */
static void print_remedy(const struct analysis *a, const struct occ_latency *latency)
{
    const char *warps = latency->needed_warps <= a->result->max_warps_per_sm ? "more warps or " : "";
    if (occ_latency_is_hidden(latency))
        cli_print(" hidden\n");
    else if (latency->source == OCC_LATENCY_MEASURED)
        cli_print(" hidden only with %s%.1f times the independent instructions\n", warps,
                  latency->independent);
    else
        cli_print(" hidden only with %s%.0f independent instructions per warp\n", warps,
                  ceil(latency->independent));
}

void analysis_print_latency(const struct analysis *a, const char *indent)
{
    struct occ_latency latency = latency_of(a);
    bool is_measured = latency.source == OCC_LATENCY_MEASURED;
    char resident[WARPS], needed[WARPS], error[WARPS];
    if (latency.source == OCC_LATENCY_UNKNOWN && a->independent > 0)
        cli_print("%slatency hiding: not known, NVIDIA documents no latency of arithmetic for compute "
                  "capability %u.%u\n",
                  indent, a->device->cc / 10, a->device->cc % 10);
    if (latency.source == OCC_LATENCY_UNKNOWN || analysis_needs_no_advice(a))
        return;
    cli_print("%slatency hiding: %s of %s", indent, warps_text(latency.resident_warps, resident),
              warps_text(latency.needed_warps, needed));
    if (latency.needed_error > 0)
        cli_print(" +- %s", warps_text(OCC_ERRORS_OF_95_PERCENT * latency.needed_error, error));
    cli_print(" needed warps per SM");
    if (!is_measured && a->independent > 1)
        cli_print(" with %u independent instructions each", a->independent);
    cli_print(is_measured ? "; %.1f cycles (measured)," : "; arithmetic, %.0f cycles (assumed),",
              latency.cycles);
    print_remedy(a, &latency);
}

void analysis_json_latency(struct occ_json *json, const struct analysis *a)
{
    struct occ_latency latency = latency_of(a);
    bool is_measured = latency.source == OCC_LATENCY_MEASURED;
    const char *of_counters = is_of_ncu(utilization_of(a)) ? "ncu" : "counters";
    occ_json_object(json, "latency_hiding", false);
    occ_json_string(json, "source",
                    is_measured                             ? of_counters
                    : latency.source == OCC_LATENCY_ASSUMED ? "assumed"
                                                            : NULL);
    occ_json_real(json, "cycles", latency.cycles);
    occ_json_real(json, "resident_warps", latency.resident_warps);
    occ_json_real(json, "needed_warps", latency.needed_warps);
    occ_json_real(json, "needed_warps_ci95", OCC_ERRORS_OF_95_PERCENT * latency.needed_error);
    occ_json_real(json, "independent_instructions",
                  !is_measured && a->independent > 0 ? (double)a->independent : (double)NAN);
    occ_json_real(json, "needed_independent_instructions", is_measured ? (double)NAN : latency.independent);
    occ_json_real(json, "needed_independent_factor", is_measured ? latency.independent : (double)NAN);
    occ_json_close(json);
}

/* ---- the verdict ---- */

static const char how_to_measure[] =
    "      to measure it: occtrace with hardware counters, for more than 5 s, or occq import of an Nsight "
    "Compute report (ncu --set full)\n";

void analysis_print_bound(const struct analysis *a)
{
    const struct occ_hw_utilization *u = utilization_of(a);
    const char *separator = "      of the peak: ";
    cli_print("\n    WOULD MORE WARPS HELP%s\n    %s\n%s", source_of(a), text_of(a),
              analysis_bound(a) == OCC_BOUND_NOT_MEASURED ? how_to_measure : "");
    if (!isnan(u->ratio[OCC_HW_ISSUE])) {
        cli_print("      no eligible warp in %.1f%% of active cycles, issue active in %.1f%%",
                  (1 - u->ratio[OCC_HW_ISSUE]) * 100, u->ratio[OCC_HW_ISSUE] * 100);
        print_error(u->issue_error);
        cli_print("\n");
    }
    for (int i = OCC_HW_DRAM; i < OCC_HW_COUNT; i++) {
        if (isnan(u->ratio[i]))
            continue;
        cli_print("%s%s %.1f%%", separator, occ_hw_unit_text((enum occ_hw_unit)i), u->ratio[i] * 100);
        separator = ", ";
    }
    if (separator[0] == ',') {
        print_error(u->throughput_error);
        cli_print("\n");
    }
    analysis_print_latency(a, "      ");
}

void analysis_json_bound(struct occ_json *json, const struct analysis *a)
{
    const struct occ_hw_utilization *u = utilization_of(a);
    bool is_measured = occ_busiest_unit(u) != OCC_HW_COUNT;
    occ_json_object(json, "bound", false);
    occ_json_string(json, "verdict", occ_bound_word(analysis_bound(a)));
    occ_json_string(json, "text", text_of(a));
    occ_json_string(json, "source", !is_measured ? NULL : is_of_ncu(u) ? "ncu" : "counters");
    for (int i = 0; i < OCC_HW_COUNT; i++)
        occ_json_real(json, occ_hw_unit_word((enum occ_hw_unit)i), u->ratio[i]);
    occ_json_real(json, "no_eligible", 1 - u->ratio[OCC_HW_ISSUE]);
    occ_json_real(json, "issue_active_ci95",
                  is_measured && !is_of_ncu(u) ? OCC_ERRORS_OF_95_PERCENT * u->issue_error : (double)NAN);
    occ_json_real(json, "throughput_ci95",
                  is_measured && !is_of_ncu(u) ? OCC_ERRORS_OF_95_PERCENT * u->throughput_error
                                               : (double)NAN);
    occ_json_close(json);
}
