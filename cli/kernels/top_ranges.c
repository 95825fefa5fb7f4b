/* See top_ranges.h. Any thread. */
#include "top_ranges.h"

#include "names/owners.h"

struct occ_range_totals *top_range_totals(const struct occ_top *top, struct occ_arena *texts)
{
    struct occ_range_totals *totals = occ_arena_get(texts, top->n + 1, sizeof *totals);
    for (size_t i = 0; totals && i < top->n; i++) {
        const struct occ_top_row *row = &top->rows[i];
        char label[OCC_KERNEL_LABEL_BYTES];
        struct occ_kernel_owner owner;
        occ_kernel_owner(row->kernel.demangled ? row->kernel.demangled : "", &owner);
        totals[i] =
            (struct occ_range_totals){.path = row->kernel.range,
                                      .is_backward = row->kernel.is_backward,
                                      .kernel = occ_arena_copy(texts, occ_kernel_label(&owner, label)),
                                      .launches = row->launches,
                                      .time_s = (double)row->total_ns * 1e-9,
                                      .used = row->used};
    }
    return texts->failed ? NULL : totals;
}
