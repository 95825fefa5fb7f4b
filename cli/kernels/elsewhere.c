/* See elsewhere.h. Pure. */
#include "elsewhere.h"

#include <math.h>
#include <stdlib.h>

#include "cli/values.h"

/* Sums over configurations on one device, weighted by their time, and the configuration with the most time.
 */
struct device_sums {
    double ns, theoretical, achieved_low, achieved_high, elapsed_low, elapsed_high, waste;
    uint64_t dominant_ns;
    struct occ_result dominant;
};

static void add(struct device_sums *sums, const struct occ_config_row *row, const struct occ_device *device,
                const struct occ_result *r)
{
    double ns = (double)row->total_ns;
    double warps = (double)device->sm_count * r->max_warps_per_sm;
    sums->ns += ns;
    sums->theoretical += ns * r->theoretical;
    sums->achieved_low += ns * r->expected_achieved_low;
    sums->achieved_high += ns * r->expected_achieved_high;
    sums->elapsed_low += ns * r->expected_elapsed_low;
    sums->elapsed_high += ns * r->expected_elapsed_high;
    sums->waste += ns * 1e-9 * warps * (1 - r->expected_elapsed_low);
    if (row->total_ns >= sums->dominant_ns) {
        sums->dominant_ns = row->total_ns;
        sums->dominant = *r;
    }
}

static void finish(const struct device_sums *sums, struct elsewhere_figures *figures)
{
    *figures = (struct elsewhere_figures){.theoretical = sums->theoretical / sums->ns, /* NaN for 0 / 0 */
                                          .expected_achieved_low = sums->achieved_low / sums->ns,
                                          .expected_achieved_high = sums->achieved_high / sums->ns,
                                          .expected_elapsed_low = sums->elapsed_low / sums->ns,
                                          .expected_elapsed_high = sums->elapsed_high / sums->ns,
                                          .waves = sums->ns > 0 ? sums->dominant.waves : (double)NAN,
                                          .waste = sums->ns > 0 ? sums->waste : (double)NAN};
    if (sums->ns <= 0)
        return;
    (void)occ_limiters_text(sums->dominant.limiters, figures->limiters, sizeof figures->limiters);
    (void)cli_range_cell(figures->expected_achieved_low, figures->expected_achieved_high, figures->expected,
                         sizeof figures->expected);
}

/* Returns the launch on the other device. A device with the same compute capability would choose the same
 * carve-out. */
static struct occ_launch launch_elsewhere(const struct occ_config_row *row, const struct occ_device *device)
{
    struct occ_launch launch = row->launch;
    if (device->cc != row->limits.cc)
        launch.smem_config_bytes = 0;
    launch.max_active_clusters = 0;
    launch.smem_optin_known = false;
    if (launch.carveout_percent < -1 || launch.carveout_percent > 100)
        launch.carveout_percent = -1;
    return launch;
}

/* Sums for one row. `alone`: configurations that cannot run on the other device. */
struct both {
    struct device_sums here, there, alone;
};

static void add_config(struct elsewhere_row *out, struct both *both, const struct occ_config_row *row,
                       const struct occ_device *device)
{
    struct occ_launch launch = launch_elsewhere(row, device);
    struct occ_result result;
    enum occ_status status = occ_analyse(device, &launch, &result);
    out->configs++;
    out->launches += row->launches;
    out->total_ns += row->total_ns;
    out->not_analysed += !row->analysed;
    if (status != OCC_OK && out->refused++ == 0)
        out->refused_because = occ_status_text(status);
    if (status == OCC_OK)
        add(&both->there, row, device, &result);
    if (row->analysed)
        add(status == OCC_OK ? &both->here : &both->alone, row, &row->limits, &row->result);
}

static int by_time(const void *left, const void *right)
{
    const struct elsewhere_row *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns);
    if (a->kernel_id != b->kernel_id)
        return (a->kernel_id > b->kernel_id) - (a->kernel_id < b->kernel_id);
    return (a->device_id > b->device_id) - (a->device_id < b->device_id);
}

/* Evaluates the configurations of one kernel and device from `row` on. Returns the next configuration. */
static const struct occ_config_row *evaluate(const struct occ_config_row *row,
                                             const struct occ_config_row *end,
                                             const struct occ_device *device, struct elsewhere_row *ret_row)
{
    const struct occ_config_row *first = row;
    struct both both = {.here = {.ns = 0}};
    *ret_row = (struct elsewhere_row){.kernel_id = first->kernel.id,
                                      .device_id = first->kernel.device,
                                      .device_number = first->kernel.device > 0 ? (double)first->kernel.device
                                                                                : (double)NAN,
                                      .kernel = first->kernel.short_name,
                                      .words = first->kernel.words,
                                      .demangled = first->kernel.demangled,
                                      .device = first->kernel.device_name,
                                      .simulated = first->kernel.simulated};
    for (; row < end && row->kernel.id == first->kernel.id && row->kernel.device == first->kernel.device;
         row++)
        add_config(ret_row, &both, row, device);
    finish(both.there.ns > 0 ? &both.here : &both.alone, &ret_row->here);
    finish(&both.there, &ret_row->there);
    ret_row->compared_ns = both.here.ns > 0 ? both.there.ns : 0;
    return row;
}

size_t elsewhere_rows(const struct occ_config_rows *configs, const struct occ_device *device,
                      struct elsewhere_row *rows)
{
    const struct occ_config_row *row = configs->rows, *end = row + configs->n;
    size_t n = 0;
    while (row < end)
        row = evaluate(row, end, device, &rows[n++]);
    qsort(rows, n, sizeof *rows, by_time);
    return n;
}
