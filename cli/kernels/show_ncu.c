/* `occq show`: Nsight Compute's values of a launch configuration beside ours, with the cause of each
 * difference: other conditions, or another definition; see show.h. One thread (stdio). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "show.h"
#include "support/text.h"

/* ---- values of both, and ncu's values that explain them; percent and numbers as printed by ncu ---- */

/* X(NAME, text, ncu's metric, digits after the point, unit); limits in the order of enum occ_limit */
#define SHOWN(X)                                                                                             \
    X(THEORETICAL, "Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct", 1, "%")                \
    X(LIMIT_WARPS, "Block Limit Warps", "launch__occupancy_limit_warps", 0, "")                              \
    X(LIMIT_REGISTERS, "Block Limit Registers", "launch__occupancy_limit_registers", 0, "")                  \
    X(LIMIT_SMEM, "Block Limit Shared Mem", "launch__occupancy_limit_shared_mem", 0, "")                     \
    X(LIMIT_BLOCKS, "Block Limit SM", "launch__occupancy_limit_blocks", 0, "")                               \
    X(LIMIT_BARRIERS, "Block Limit Barriers", "launch__occupancy_limit_barriers", 0, "")                     \
    X(WAVES, "Waves Per SM", "launch__waves_per_multiprocessor", 2, "")                                      \
    X(ACHIEVED, "Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", 1, "%")           \
    X(DURATION, "Duration", "gpu__time_duration.sum", 0, "ns")                                               \
    X(COMPUTE, "compute throughput", OCC_NCU_COMPUTE, 1, "%")                                                \
    X(MEMORY, "memory throughput", OCC_NCU_MEMORY, 1, "%")                                                   \
    X(DRAM, "DRAM throughput", OCC_NCU_DRAM, 1, "%")                                                         \
    X(ISSUE, "issue active", OCC_NCU_ISSUE, 1, "%")                                                          \
    X(NO_ELIGIBLE, "no eligible warp", "smsp__issue_inst0.avg.pct_of_peak_sustained_active", 1, "%")         \
    X(ELIGIBLE, "eligible warps per scheduler", "smsp__warps_eligible.avg.per_cycle_active", 2, "")          \
    X(TENSOR, "tensor pipe active", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 1,    \
      "%")                                                                                                   \
    X(ACTIVE_MIN, "SM active cycles (min)", "sm__cycles_active.min", 0, "")                                  \
    X(ACTIVE_MEAN, "SM active cycles (mean)", "sm__cycles_active.avg", 0, "")                                \
    X(ACTIVE_MAX, "SM active cycles (max)", "sm__cycles_active.max", 0, "")                                  \
    X(PASSES, "replay passes", "profiler__replayer_passes", 0, "")
#define ENUMERATOR(name, text, metric, digits, unit) name,
enum shown_row { SHOWN(ENUMERATOR) SHOWN_COUNT };

static const struct {
    const char *text, *metric;
    int digits;
    const char *unit;
} shown[] = {
#define SHOWN_ROW(name, text, metric, digits, unit) {text, metric, digits, unit},
    SHOWN(SHOWN_ROW)};

static double mean_of(const struct occ_config_row *row, const char *metric)
{
    for (const struct occ_ncu_value *v = row->ncu.first; v; v = v->next)
        if (strcmp(v->metric, metric) == 0)
            return v->mean;
    return NAN;
}

static double theirs(const struct occ_config_row *row, enum shown_row which)
{
    return mean_of(row, shown[which].metric);
}

/* Returns our value; NaN: none, or its source is ncu. */
static double ours(const struct occ_config_row *row, enum shown_row which)
{
    struct occ_measurement measured;
    occ_measured_means(&row->measured, row->measurable_ns, &measured);
    bool by_ncu = row->measured.ncu > 0 || (row->source && strcmp(row->source, "ncu") == 0);
    if (which == DURATION)
        return by_ncu || row->launches == 0 ? (double)NAN : (double)row->total_ns / (double)row->launches;
    if (which == ACHIEVED)
        return by_ncu ? (double)NAN : measured.achieved * 100;
    if (!row->analysed)
        return NAN;
    if (which >= LIMIT_WARPS && which <= LIMIT_BARRIERS) {
        uint32_t limit = row->result.limit[OCC_LIMIT_WARPS + (which - LIMIT_WARPS)];
        return limit == OCC_NO_LIMIT ? (double)NAN : limit;
    }
    return which == WAVES         ? row->result.waves
           : which == THEORETICAL ? row->result.theoretical * 100
                                  : (double)NAN;
}

static const char *limit_difference(const struct occ_config_row *row, enum shown_row which, double value)
{
    if (isnan(ours(row, which)) && value == theirs(row, LIMIT_BLOCKS))
        return "it does not limit, and ncu repeats Block Limit SM";
    if (which == LIMIT_SMEM && row->result.smem_per_block_bytes > 0 &&
        value == row->limits.smem_per_sm_bytes / row->result.smem_per_block_bytes)
        return "ncu of 2022 and before divides the largest carve-out, not the chosen one";
    return "not explained";
}

/* Returns the reason for a difference beyond rounding; NULL: no difference, or a value is missing. */
static const char *difference(const struct occ_config_row *row, enum shown_row which)
{
    double value = theirs(row, which), own = ours(row, which), sms = mean_of(row, "launch__sm_count");
    bool is_limit = which >= LIMIT_WARPS && which <= LIMIT_BARRIERS;
    if (which == ACHIEVED && value > theirs(row, THEORETICAL) + 0.5)
        return "above theoretical: ncu counts warps and cycles in different replay passes";
    if (isnan(value) || (isnan(own) && !(is_limit && row->analysed)) ||
        fabs(value - own) <= fmax(0.0051, 1e-4 * fabs(own)))
        return NULL;
    if (which == ACHIEVED || which == DURATION)
        return "for ncu the kernel runs alone and is replayed, caches flushed, clocks locked";
    if (is_limit)
        return limit_difference(row, which, value);
    return which == WAVES && !isnan(sms) && sms != row->limits.sm_count
               ? "ncu counts the SMs of a green context"
               : "not explained";
}

/* ---- text and JSON ---- */

#define STALL_PREFIX "smsp__average_warps_issue_stalled_"
#define STALLS_SHOWN 3

/* Returns the largest stall reason after `last`; equal reasons are in the order of the list. */
static const struct occ_ncu_value *next_stall(const struct occ_config_row *row,
                                              const struct occ_ncu_value *last)
{
    const struct occ_ncu_value *best = NULL;
    bool is_past_last = !last;
    for (const struct occ_ncu_value *v = row->ncu.first; v; v = v->next) {
        bool is_after = !last || v->mean < last->mean || (is_past_last && v->mean == last->mean);
        is_past_last = is_past_last || v == last;
        if (strncmp(v->metric, STALL_PREFIX, strlen(STALL_PREFIX)) == 0 && v->mean > 0 &&
            !strstr(v->metric, "stalled_selected") && is_after && (!best || v->mean > best->mean))
            best = v;
    }
    return best;
}

static void print_stalls(const struct occ_config_row *row)
{
    const char *separator = "    cycles per issued instruction stalled for: ";
    const struct occ_ncu_value *stall = NULL;
    for (int i = 0; i < STALLS_SHOWN && (stall = next_stall(row, stall)); i++) {
        const char *reason = stall->metric + strlen(STALL_PREFIX);
        int n = (int)strlen(reason) - (int)strlen("_per_issue_active.ratio");
        cli_print("%s%.*s %.2f", separator, n > 0 ? n : 0, reason, stall->mean);
        separator = ", ";
    }
    cli_print("%s", separator[0] == ',' ? "\n" : "");
}

static const char *format(double value, enum shown_row which, char text[32])
{
    if (isnan(value))
        return "-";
    if (which == DURATION)
        return occ_format_duration((int64_t)value, text, 32);
    (void)snprintf(text, 32, "%.*f%s", shown[which].digits, value, shown[which].unit);
    return text;
}

void show_ncu(const struct occ_config_row *row)
{
    char heading[48], value[32], own[32];
    if (row->ncu.launches == 0)
        return;
    (void)snprintf(heading, sizeof heading, "NSIGHT COMPUTE (run %" PRId64 ")", row->ncu.run);
    cli_print("\n    %-28s%10s %10s\n", heading, "ncu", "here");
    for (enum shown_row i = 0; i < SHOWN_COUNT; i++) {
        const char *why = difference(row, i);
        if (!isnan(theirs(row, i)))
            cli_print("    %-28s%10s %10s%s%s\n", shown[i].text, format(theirs(row, i), i, value),
                      format(ours(row, i), i, own), why ? "  " : "", why ? why : "");
    }
    print_stalls(row);
}

void show_json_ncu(struct occ_json *json, const struct occ_config_row *row)
{
    if (row->ncu.launches == 0) {
        occ_json_null(json, "ncu");
        return;
    }
    occ_json_object(json, "ncu", false);
    occ_json_integer(json, "run_id", row->ncu.run);
    occ_json_unsigned(json, "launches", row->ncu.launches);
    occ_json_array(json, "values", false);
    for (enum shown_row i = 0; i < SHOWN_COUNT; i++) {
        if (isnan(theirs(row, i)))
            continue;
        occ_json_object(json, NULL, true);
        occ_json_string(json, "metric", shown[i].metric);
        occ_json_real(json, "ncu", theirs(row, i));
        occ_json_real(json, "here", ours(row, i));
        occ_json_string(json, "difference", difference(row, i));
        occ_json_close(json);
    }
    occ_json_close(json);
    occ_json_close(json);
}
