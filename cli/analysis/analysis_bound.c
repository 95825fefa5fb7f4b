/* Reports if more warps would help, in text and JSON; see analysis.h. One thread (stdio). */
#include <math.h>

#include "analysis.h"
#include "cli/screen.h"
#include "cli/values.h"

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
