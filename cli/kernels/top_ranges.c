/* See top_ranges.h. Any thread. */
#include "top_ranges.h"

#include "names/owners.h"

/* Returns the kernel's words, else its family, else its name: words and names ask for the kernel. */
static const char *kernel_text(const struct occ_row_kernel *kernel, struct occ_arena *texts)
{
    char label[OCC_KERNEL_LABEL_BYTES];
    struct occ_kernel_owner owner;
    if (kernel->words)
        return kernel->words;
    occ_kernel_owner(kernel->demangled ? kernel->demangled : "", &owner);
    return owner.library[0] || !kernel->short_name ? occ_arena_copy(texts, occ_kernel_label(&owner, label))
                                                   : kernel->short_name;
}

struct occ_range_totals *top_range_totals(const struct occ_top *top, struct occ_arena *texts)
{
    struct occ_range_totals *totals = occ_arena_get(texts, top->n + 1, sizeof *totals);
    for (size_t i = 0; totals && i < top->n; i++) {
        const struct occ_top_row *row = &top->rows[i];
        totals[i] = (struct occ_range_totals){.path = row->kernel.range,
                                              .is_backward = row->kernel.is_backward,
                                              .kernel = kernel_text(&row->kernel, texts),
                                              .kernel_id = row->kernel.id,
                                              .launches = row->launches,
                                              .time_s = (double)row->total_ns * 1e-9,
                                              .used = row->used};
    }
    return texts->failed ? NULL : totals;
}
