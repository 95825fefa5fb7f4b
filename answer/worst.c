/* The kernels that lose most; see answer.h. Pure apart from malloc. */
#include <stdlib.h>

#include "gpu_totals.h"
#include "support/cleanup.h"

/* Sums of a kernel's rows. */
struct sums {
    size_t row; /* row with the largest loss */
    double share, time_s, used_s;
};

static int by_kernel(const void *left, const void *right, void *kernels)
{
    const struct occ_kernel_totals *rows = kernels;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    return rows[a].kernel != rows[b].kernel
               ? (rows[a].kernel > rows[b].kernel) - (rows[a].kernel < rows[b].kernel)
               : (a > b) - (a < b);
}

/* The lost share of the GPU time; durations of a GPU on which kernels overlap count less. */
static double lost_share(const struct sums *sums)
{
    return sums->time_s > 0 ? sums->share * (1 - sums->used_s / sums->time_s) : 0;
}

static int most_loss_first(const void *left, const void *right)
{
    const struct sums *a = left, *b = right;
    double x = lost_share(a), y = lost_share(b);
    return x != y ? (x < y) - (x > y) : (a->row > b->row) - (a->row < b->row);
}

/* Returns the indices of the rows with a name and a known occupancy, ordered by kernel; the caller frees
 * them. NULL: no memory. */
static size_t *known_rows(const struct occ_overview *o, size_t *ret_n)
{
    size_t *rows = calloc(o->totals.n_kernels + 1, sizeof *rows), n = 0;
    for (size_t i = 0; rows && i < o->totals.n_kernels; i++)
        if (o->kernels[i].name && isfinite(o->totals.kernels[i].used))
            rows[n++] = i;
    if (n > 1)
        qsort_r(rows, n, sizeof *rows, by_kernel, (void *)(uintptr_t)o->totals.kernels);
    *ret_n = n;
    return rows;
}

static size_t add_up(const struct occ_overview *o, const size_t *rows, size_t n, struct sums *sums)
{
    const struct occ_kernel_totals *kernels = o->totals.kernels;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const struct occ_kernel_totals *kernel = &kernels[rows[i]];
        const struct occ_answer_kernel *text = &o->kernels[rows[i]];
        if (i == 0 || kernel->kernel != kernels[rows[i - 1]].kernel)
            sums[used++] = (struct sums){.row = rows[i]};
        struct sums *sum = &sums[used - 1];
        if (occ_lost_s(kernel) > occ_lost_s(&kernels[sum->row]))
            sum->row = rows[i];
        sum->share +=
            occ_overview_share(o, occ_overview_share_of(o, rows[i]), text->device, (double)text->total_ns);
        sum->time_s += kernel->time_s;
        sum->used_s += kernel->time_s * kernel->used;
    }
    return used;
}

int occ_overview_worst(const struct occ_overview *o, size_t max, struct occ_worst_kernel *ret_worst,
                       size_t *ret_n)
{
    size_t n = 0;
    _cleanup_(occ_freep) size_t *rows = known_rows(o, &n);
    _cleanup_(occ_freep) struct sums *sums = calloc(n + 1, sizeof *sums);
    *ret_n = 0;
    if (!rows || !sums)
        return OCC_E_NO_MEMORY;
    n = add_up(o, rows, n, sums);
    if (n > 1)
        qsort(sums, n, sizeof *sums, most_loss_first);
    for (size_t i = 0; i < n && *ret_n < max; i++) {
        double used = sums[i].used_s / sums[i].time_s; /* NaN: durations are 0 */
        if (sums[i].share * (1 - used) >= OCC_FINDING_MIN)
            ret_worst[(*ret_n)++] = (struct occ_worst_kernel){sums[i].row, sums[i].share, used};
    }
    return 0;
}

struct occ_why occ_why_of(const struct occ_dominant_config *config, unsigned cause, bool is_communication)
{
    return (struct occ_why){.cause = cause,
                            .is_communication = is_communication,
                            .grid_blocks = config->grid_blocks,
                            .wave_blocks = config->wave_blocks,
                            .blocks_per_sm = config->blocks_per_sm,
                            .sm_count = config->sm_count,
                            .registers_per_thread = config->registers_per_thread,
                            .block_threads = config->block_threads};
}

const char *occ_overview_why(const struct occ_overview *o, size_t kernel, char text[OCC_WHY_BYTES])
{
    const struct occ_kernel_totals *totals = &o->totals.kernels[kernel];
    const struct occ_why why =
        occ_why_of(&o->kernels[kernel].config, occ_largest_part(totals->part, OCC_PART_COUNT),
                   occ_is_communication(totals));
    return occ_why_text(&why, text, OCC_WHY_BYTES);
}
