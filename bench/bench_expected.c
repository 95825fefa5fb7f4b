/*
 * Compares the model with launches that a cycle-level simulator executed: the tables of docs/decisions/0024.
 *
 *   bench_expected [CYCLE_SIM.csv ...]        (default tests/data/occupancy/cycle_sim.csv)
 *
 * Percent and percentage points (pp) of the maximum warps. bench/expected_range.py compares real GPUs.
 */
#include "simulated_launches.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 0.02

static const char *const classes[] = {"grid <= SMs", "< 1 wave",  "whole waves",
                                      "1-2 waves",   "2-4 waves", "> 4 waves"};
enum { CLASSES = sizeof classes / sizeof *classes };

static size_t class_of(const struct simulated_launch *l)
{
    const struct occ_result *r = &l->result;
    return r->grid_blocks <= l->device.sm_count ? 0
           : r->full_waves == 0                 ? 1
           : r->partial_blocks == 0             ? 2
           : r->waves < 2                       ? 3
           : r->waves < 4                       ? 4
                                                : 5;
}

static bool is_plain(const struct simulated_launch *l)
{
    return l->injected_cycles <= 0;
}

/* ---- the range ---- */

struct outside {
    size_t n;
    double max; /* largest distance; negative: all launches are inside */
};

static void add_outside(struct outside *o, double distance)
{
    o->max = fmax(o->max, distance);
    o->n += distance > TOLERANCE;
}

static void print_range(const struct simulated_launch *list, size_t n)
{
    puts("Plain launches outside of the range by more than 2 pp (the largest distance)\n");
    puts("| waves | n | achieved > high | achieved < low | elapsed > high | elapsed < low | mean width of "
         "elapsed |");
    puts("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (size_t c = 0; c < CLASSES; c++) {
        struct outside o[4] = {{0, -1}, {0, -1}, {0, -1}, {0, -1}};
        size_t found = 0;
        double width = 0;
        for (const struct simulated_launch *l = list; l < list + n; l++) {
            const struct occ_result *r = &l->result;
            if (!is_plain(l) || class_of(l) != c)
                continue;
            add_outside(&o[0], l->achieved - r->expected_achieved_high);
            add_outside(&o[1], r->expected_achieved_low - l->achieved);
            add_outside(&o[2], l->elapsed - r->expected_elapsed_high);
            add_outside(&o[3], r->expected_elapsed_low - l->elapsed);
            width += r->expected_elapsed_high - r->expected_elapsed_low;
            found++;
        }
        if (found == 0)
            continue;
        printf("| %s | %zu |", classes[c], found);
        for (size_t i = 0; i < 4; i++)
            printf(" %zu (%+.1f) |", o[i].n, 100 * o[i].max);
        printf(" %.1f |\n", 100 * width / (double)found);
    }
    puts("");
}

/* ---- single partial waves ---- */

static void print_only_waves(const struct simulated_launch *list, size_t n)
{
    puts("Only waves with more blocks than SMs\n");
    puts("| launch | achieved (expected) | elapsed (expected) | least / most active SM |");
    puts("| --- | ---: | ---: | ---: |");
    for (const struct simulated_launch *l = list; l < list + n; l++) {
        const struct occ_result *r = &l->result;
        if (is_plain(l) && class_of(l) == 1)
            printf("| %s %s %u x %u, %u SMs x %u | %.1f (%.1f to %.1f) | %.1f (%.1f to %.1f) | %.2f |\n",
                   l->kernel, l->dist, l->launch.grid[0], l->launch.block[0], l->device.sm_count,
                   r->blocks_per_sm, 100 * l->achieved, 100 * r->expected_achieved_low,
                   100 * r->expected_achieved_high, 100 * l->elapsed, 100 * r->expected_elapsed_low,
                   100 * r->expected_elapsed_high, l->sm_active_min_ratio);
    }
    puts("");
}

/* ---- parts ---- */

static double known(double value)
{
    return isnan(value) ? 0 : 100 * value;
}

static void print_tails(const struct simulated_launch *list, size_t n)
{
    size_t tails = 0, far = 0;
    double sum = 0;
    puts("Partial last waves of equal blocks, from achieved, elapsed, SM activity and resident blocks\n");
    puts("| launch | true tail | TAIL | IDLE | ACROSS | WITHIN |");
    puts("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (const struct simulated_launch *l = list; l < list + n; l++) {
        if (!is_plain(l) || strcmp(l->dist, "equal") != 0 || class_of(l) < 3)
            continue;
        struct occ_measurement m = simulated_measurement(l, SIMULATED_NO_IMBALANCE);
        struct occ_waterfall w;
        occ_explain(&l->result, &m, &w);
        double error = fabs(w.part[OCC_CAUSE_TAIL] - simulated_tail(l));
        printf("| %s %u x %u, %u SMs x %u | %.1f | %.1f | %.1f | %.1f | %.1f |\n", l->kernel,
               l->launch.grid[0], l->launch.block[0], l->device.sm_count, l->result.blocks_per_sm,
               100 * simulated_tail(l), known(w.part[OCC_CAUSE_TAIL]), known(w.part[OCC_PART_IDLE]),
               known(w.part[OCC_PART_IMBALANCE_ACROSS_BLOCKS]),
               known(w.part[OCC_PART_IMBALANCE_WITHIN_BLOCK]));
        sum += error;
        far += error > 0.05;
        tails++;
    }
    printf("\n%zu launches: mean error of TAIL %.2f pp, above 5 pp: %zu\n\n", tails,
           tails ? 100 * sum / (double)tails : 0, far);
}

static void print_signs(const struct simulated_launch *list, size_t n)
{
    static const char *const counters[] = {"all", "without the least active SM",
                                           "achieved, elapsed, activity",
                                           "the same with the least active SM"};
    puts("Launches with a negative part beside a positive one, both above 2 pp\n");
    puts("| counters | launches |");
    puts("| --- | ---: |");
    for (int c = SIMULATED_ALL; c <= SIMULATED_NCU; c++) {
        size_t opposite = 0;
        for (const struct simulated_launch *l = list; l < list + n; l++) {
            struct occ_measurement m = simulated_measurement(l, (enum simulated_counters)c);
            struct occ_waterfall w;
            occ_explain(&l->result, &m, &w);
            opposite += simulated_has_opposite_parts(&w, TOLERANCE);
        }
        printf("| %s | %zu of %zu |\n", counters[c], opposite, n);
    }
    puts("");
}

/* Prints the causes of launches more than 2 pp below the expected elapsed occupancy. */
static void print_causes(const struct simulated_launch *list, size_t n)
{
    puts("Named causes of launches that lose 2 pp and more to idle SMs or fewer blocks, from all counters\n");
    puts("| launch | refill injected, us | refill | least / most active SM | IDLE | ACROSS | BLOCK_START | "
         "UNEQUAL |");
    puts("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (const struct simulated_launch *l = list; l < list + n; l++) {
        struct occ_measurement m = simulated_measurement(l, SIMULATED_ALL);
        struct occ_waterfall w;
        occ_explain(&l->result, &m, &w);
        double parts[] = {w.part[OCC_PART_IDLE], w.part[OCC_PART_IMBALANCE_ACROSS_BLOCKS],
                          w.part[OCC_PART_BLOCK_START], w.part[OCC_PART_UNEQUAL_BLOCKS]};
        double sum = 0;
        for (size_t i = 0; i < 4; i++)
            sum += known(parts[i]);
        if (sum < 100 * TOLERANCE)
            continue;
        printf("| %s %s %u x %u, %u SMs x %u | %.2f | %.1f | %.2f |", l->kernel, l->dist, l->launch.grid[0],
               l->launch.block[0], l->device.sm_count, l->result.blocks_per_sm, l->injected_cycles / 1132,
               100 * l->refill, l->sm_active_min_ratio);
        for (size_t i = 0; i < 4; i++)
            printf(isnan(parts[i]) ? " - |" : " %.1f |", 100 * parts[i]);
        puts("");
    }
    puts("");
}

int main(int argc, char **argv)
{
    static char *default_files[] = {OCC_SIMULATED_LAUNCHES};
    char **files = argc > 1 ? argv + 1 : default_files;
    int n_files = argc > 1 ? argc - 1 : 1;
    for (int i = 0; i < n_files; i++) {
        struct simulated_launch *list = NULL;
        size_t n = simulated_read(files[i], &list);
        if (n == 0) {
            (void)fprintf(stderr, "%s: no launches\n", files[i]);
            return 1;
        }
        print_range(list, n);
        print_only_waves(list, n);
        print_tails(list, n);
        print_causes(list, n);
        print_signs(list, n);
        free(list);
    }
    return 0;
}
