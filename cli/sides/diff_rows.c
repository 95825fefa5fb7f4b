/* Converts rows of a history for a comparison; see diff_rows.h. Pure. */
#include "diff_rows.h"

#include <assert.h>
#include <math.h>

#include "store/config_columns.h"

static_assert((int)OCC_PART_COUNT <= (int)DIFF_PARTS_MAX, "a part of the waterfall has no room");

static double product(const uint32_t size[3])
{
    return (double)((uint64_t)size[0] * size[1] * size[2]);
}

struct diff_row diff_row_of(const struct occ_config_row *row)
{
#define NUMBER(column, field) row->launch.field,
    return (struct diff_row){.of = row,
                             .id = row->id,
                             .mangled = row->kernel.mangled,
                             .demangled = row->kernel.demangled,
                             .launch = {row->local_bytes_per_thread, OCC_LAUNCH_COLUMNS(NUMBER)},
                             .threads = product(row->launch.grid) * product(row->launch.block),
                             .launches = row->launches,
                             .total_ns = row->total_ns};
}

/* ---- measured and expected values ---- */

static void add_value(struct diff_sums *sums, enum diff_value which, double value, double ns)
{
    if (isnan(value))
        return;
    sums->sum[which] += value * ns;
    sums->ns[which] += ns;
}

static void add_parts(double part_ns[DIFF_PARTS_MAX], const struct occ_waterfall *waterfall, double ns)
{
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        part_ns[i] += isnan(waterfall->part[i]) ? 0 : waterfall->part[i] * ns;
}

static void sum_row(const struct occ_config_row *row, struct diff_sums *sums)
{
    double ns = (double)row->total_ns;
    struct occ_measurement measured;
    struct occ_waterfall waterfall;
    occ_measured_means(&row->measured, row->measurable_ns, &measured);
    *sums = (struct diff_sums){.launches = row->launches, .total_ns = row->total_ns};
    add_value(sums, DIFF_VALUE_achieved, measured.achieved, ns);
    add_value(sums, DIFF_VALUE_achieved_error, measured.achieved_error, ns);
    add_value(sums, DIFF_VALUE_elapsed, measured.elapsed, ns);
    add_value(sums, DIFF_VALUE_elapsed_error, measured.elapsed_error, ns);
    add_value(sums, DIFF_VALUE_measured_ratio, measured.measured_ratio, ns);
    if (!row->analysed)
        return;
    sums->warp_ns = ns * row->limits.sm_count * row->result.max_warps_per_sm;
    add_value(sums, DIFF_VALUE_theoretical, row->result.theoretical, ns);
    add_value(sums, DIFF_VALUE_expected_elapsed_low, row->result.expected_elapsed_low, ns);
    add_value(sums, DIFF_VALUE_expected_elapsed_high, row->result.expected_elapsed_high, ns);
    occ_explain(&row->result, NULL, &waterfall);
    add_parts(sums->expected_part_ns, &waterfall, ns);
    occ_explain(&row->result, &measured, &waterfall);
    if (!isnan(measured.elapsed))
        add_parts(sums->part_ns, &waterfall, ns);
}

int diff_collect_rows(struct diff *diff, struct diff_part *parts, size_t n_parts,
                      const uint32_t runs[DIFF_SIDES], struct occ_error *err)
{
    struct diff_sums sums;
    int status = diff_collect(diff, parts, n_parts, runs, err);
    for (size_t i = 0; i < n_parts && status == 0; i++) {
        sum_row(parts[i].row->of, &sums);
        diff_add_sums(diff, &parts[i], &sums);
    }
    return status;
}
