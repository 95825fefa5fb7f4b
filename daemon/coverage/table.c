/* See table.h. */
#include "table.h"

#include <math.h>
#include <string.h>

const struct occ_coverage_row *occ_coverage_table_find(const struct occ_coverage_table *table, int32_t pid,
                                                       int64_t start_boot_ns)
{
    for (size_t i = 0; i < table->n; i++)
        if (table->rows[i].pid == pid && table->rows[i].start_boot_ns == start_boot_ns)
            return &table->rows[i];
    return NULL;
}

/* The time of the same process on the same GPU, since it has had its reason. */
static double time_of(const struct occ_coverage_table *table, const struct occ_coverage_row *row)
{
    for (size_t i = 0; i < table->n; i++)
        if (table->rows[i].pid == row->pid && table->rows[i].start_boot_ns == row->start_boot_ns &&
            table->rows[i].reason == row->reason && strcmp(table->rows[i].gpu, row->gpu) == 0)
            return table->rows[i].held_s;
    return 0;
}

/* Number of rows from `first` on with the same GPU: rows of a GPU follow each other. */
static size_t count_of_gpu(const struct occ_coverage_table *table, size_t first)
{
    size_t n = 1;
    while (first + n < table->n && strcmp(table->rows[first].gpu, table->rows[first + n].gpu) == 0)
        n++;
    return n;
}

void occ_coverage_table_advance(struct occ_coverage_table *next, const struct occ_coverage_table *previous,
                                int64_t now_ns)
{
    int64_t interval_ns = now_ns - previous->scanned_ns;
    bool is_counted = previous->scanned_ns && interval_ns > 0 && interval_ns <= OCC_COVERAGE_GAP_NS;
    double interval_s = is_counted ? (double)interval_ns / 1e9 : 0;
    next->scanned_ns = now_ns;
    memcpy(next->held_s, previous->held_s, sizeof next->held_s);
    for (size_t first = 0, n; first < next->n; first += n) {
        n = count_of_gpu(next, first);
        for (size_t i = first; i < first + n; i++) {
            struct occ_coverage_row *row = &next->rows[i];
            double share_s = interval_s / (double)n;
            if (!row->gpu[0]) {
                row->held_s = NAN;
                continue;
            }
            row->held_s = time_of(previous, row) + share_s;
            next->held_s[row->reason] += share_s;
        }
    }
}
