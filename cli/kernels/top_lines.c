/* Rows of `occq top`: their order and the values of each line; see top.h. One thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "top.h"

/* ---- order ---- */

unsigned top_part_of(const char *label)
{
    unsigned part = 0;
    while (part < OCC_PART_COUNT && (!label || strcmp(occ_part_word(part), label) != 0))
        part++;
    return part;
}

/* The sort key, largest first: a cause's part, or another number. */
struct order {
    unsigned part; /* OCC_PART_COUNT: `number` is the key */
    double (*number)(const struct occ_top_row *row);
};

static double waste_of(const struct occ_top_row *row)
{
    return row->waste_warp_seconds;
}

static double time_of(const struct occ_top_row *row)
{
    return (double)row->total_ns;
}

static double launches_of(const struct occ_top_row *row)
{
    return (double)row->launches;
}

static double missing_occupancy_of(const struct occ_top_row *row)
{
    return isnan(row->achieved) ? -row->expected_achieved_low : -row->achieved;
}

static struct order order_of(const char *label)
{
    static const struct {
        const char *label;
        double (*number)(const struct occ_top_row *row);
    } numbers[] = {{"waste", waste_of}, {"time", time_of}, {"launches", launches_of}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(label, numbers[i].label) == 0)
            return (struct order){OCC_PART_COUNT, numbers[i].number};
    return (struct order){top_part_of(label), missing_occupancy_of};
}

static double key_of(const struct occ_top_row *row, const struct order *order)
{
    return order->part < OCC_PART_COUNT ? row->part[order->part] : order->number(row);
}

/* NaN is last; ids and devices break ties; rows of streams, causes and layers may still tie. */
static int compare(const void *left, const void *right, void *order)
{
    const struct occ_top_row *a = left, *b = right;
    double key_a = key_of(a, order), key_b = key_of(b, order);
    if (isnan(key_a) != isnan(key_b))
        return isnan(key_a) - isnan(key_b);
    if (key_a < key_b || key_a > key_b)
        return key_a < key_b ? 1 : -1;
    return a->kernel.id != b->kernel.id
               ? (a->kernel.id > b->kernel.id) - (a->kernel.id < b->kernel.id)
               : (a->kernel.device > b->kernel.device) - (a->kernel.device < b->kernel.device);
}

void top_sort(struct occ_top *top, const char *by)
{
    struct order order = order_of(by);
    if (top->n > 1)
        qsort_r(top->rows, top->n, sizeof *top->rows, compare, &order);
}

/* ---- rows ---- */

/* Compares the labels that rows show beside their device: kernels by number, other rows by text. */
static int compare_labels(const struct occ_top_row *a, const struct occ_top_row *b, enum occ_top_by by)
{
    const char *x = a->kernel.short_name ? a->kernel.short_name : "",
               *y = b->kernel.short_name ? b->kernel.short_name : "";
    return by == OCC_TOP_BY_KERNEL ? (a->kernel.id > b->kernel.id) - (a->kernel.id < b->kernel.id)
                                   : strcmp(x, y);
}

static int by_label(const void *left, const void *right, void *by)
{
    const struct occ_top_row *const *a = left, *const *b = right;
    return compare_labels(*a, *b, *(const enum occ_top_by *)by);
}

bool top_needs_device(const struct occ_top *top, size_t n, enum occ_top_by by)
{
    _cleanup_(occ_freep) const struct occ_top_row **rows = calloc(n + 1, sizeof *rows);
    bool is_needed = false;
    if (!rows || (by != OCC_TOP_BY_KERNEL && by != OCC_TOP_BY_CONFIG && by != OCC_TOP_BY_STREAM))
        return false;
    for (size_t i = 0; i < n; i++)
        rows[i] = &top->rows[i];
    qsort_r(rows, n, sizeof *rows, by_label, &by);
    for (size_t i = 1; i < n && !is_needed; i++)
        is_needed = compare_labels(rows[i - 1], rows[i], by) == 0 &&
                    rows[i - 1]->kernel.device != rows[i]->kernel.device;
    return is_needed;
}

double top_waste_of(const struct occ_top_row *row)
{
    return isnan(row->used) ? 0 : row->waste_warp_seconds;
}

static void set_why(const struct occ_top_row *row, const struct occ_kernel_owner *owner,
                    char why[OCC_WHY_BYTES])
{
    const struct occ_why cause =
        occ_why_of(&row->dominant, row->main_cause ? top_part_of(row->main_cause) : OCC_PART_COUNT,
                   owner->owner == OCC_OWNER_COMMUNICATION);
    (void)occ_why_text(&cause, why, OCC_WHY_BYTES);
}

/* Sets the share of the GPU time, and the words for people: cause and owner. */
static void set_share_and_words(const struct occ_top_row *row, const struct occ_overview *overview,
                                struct top_line *line)
{
    struct occ_kernel_owner owner = {.owner = OCC_OWNER_UNKNOWN};
    enum occ_share_of of = OCC_SHARE_OF_ALL; /* a row of several kernels */
    if (row->kernel.demangled) {
        occ_kernel_owner(row->kernel.demangled, &owner);
        line->whose = occ_owner_text(owner.owner);
        of = owner.owner == OCC_OWNER_COMMUNICATION ? OCC_SHARE_OF_COMMUNICATION : OCC_SHARE_OF_OTHERS;
        set_why(row, &owner, line->why);
    } else if (row->main_cause) {
        (void)occ_why_text(&(struct occ_why){.cause = top_part_of(row->main_cause)}, line->why,
                           sizeof line->why);
    }
    line->gpu_share =
        overview ? occ_overview_share(overview, of, row->kernel.device, (double)row->total_ns) : (double)NAN;
}

void top_make_line(const struct occ_top_row *row, const struct top_sums *all, double running,
                   struct top_line *ret_line)
{
    bool is_analysed = !isnan(row->theoretical), has_waste = !isnan(row->used);
    double launches = (double)row->launches, total_ns = (double)row->total_ns;
    *ret_line = (struct top_line){
        .row = *row,
        .share = total_ns / all->ns, /* NaN for 0 / 0 */
        .mean_duration_ns = total_ns / launches,
        .achieved_ci95 = row->achieved_error * OCC_ERRORS_OF_95_PERCENT,
        .elapsed_ci95 = row->elapsed_error * OCC_ERRORS_OF_95_PERCENT,
        .waves = is_analysed ? row->dominant.waves : (double)NAN,
        .full_waves = is_analysed ? (double)row->dominant.full_waves : (double)NAN,
        .partial_blocks = is_analysed ? (double)row->dominant.partial_blocks : (double)NAN,
        .main_cause_ratio = row->main_cause ? row->main_cause_ratio : (double)NAN,
        .tail_low = row->part[OCC_CAUSE_TAIL] - row->tail_spread,
        .small_grid_low = row->part[OCC_CAUSE_SMALL_GRID] - row->small_grid_spread,
        .waste_warp_seconds = has_waste ? row->waste_warp_seconds : (double)NAN,
        .waste_ratio = has_waste ? row->waste_warp_seconds / all->waste : (double)NAN,
        .running_waste_ratio = running / all->waste,
        .advice_saves_ns = NAN,
        .advice_config = NAN,
        .bound = "",
    };
    set_share_and_words(row, all->overview, ret_line);
    (void)occ_limiters_text(row->dominant.limiters, ret_line->limiters, sizeof ret_line->limiters);
    if (is_analysed)
        (void)cli_range_cell(row->expected_achieved_low, row->expected_achieved_high, ret_line->expected,
                             sizeof ret_line->expected);
    uint32_t marks =
        cli_marks(row->kernel.simulated, is_analysed ? row->dominant.by_design : 0, row->kernel.demangled);
    (void)cli_marks_text(marks, false, ret_line->by_design);
    marks |= row->kernel.estimated ? CLI_MARK_ESTIMATED : 0;
    bool is_measured = !isnan(row->achieved) || !isnan(row->elapsed);
    marks |= is_measured && row->measured_ratio < 1 - OCC_MEASURED_MINORITY ? CLI_MARK_PARTLY : 0;
    (void)cli_marks_letters(marks, ret_line->letters);
}

struct top_sums top_sum(const struct occ_top *top)
{
    struct top_sums all = {0};
    for (size_t i = 0; i < top->n; i++) {
        all.ns += (double)top->rows[i].total_ns;
        all.waste += top_waste_of(&top->rows[i]);
        all.launches += top->rows[i].launches;
    }
    return all;
}

struct top_line *top_make_lines(const struct occ_top *top, size_t n, const struct occ_overview *overview,
                                struct top_sums *ret_all)
{
    struct top_line *lines = calloc(n + 1, sizeof *lines);
    double running = 0;
    *ret_all = top_sum(top);
    ret_all->overview = overview;
    for (size_t i = 0; lines && i < n; i++) {
        running += top_waste_of(&top->rows[i]);
        top_make_line(&top->rows[i], ret_all, running, &lines[i]);
    }
    return lines;
}

double top_covered_ratio(const struct occ_top *top)
{
    double all = 0, covered = 0;
    for (size_t i = 0; i < top->n; i++) {
        all += (double)top->rows[i].total_ns;
        covered += top->rows[i].kernel.short_name ? (double)top->rows[i].total_ns : 0;
    }
    return covered / all;
}

bool top_any_measured(const struct occ_top *top)
{
    for (size_t i = 0; i < top->n; i++)
        if (!isnan(top->rows[i].achieved) || top->rows[i].measured_ratio > 0)
            return true;
    return false;
}
