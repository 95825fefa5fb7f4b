/* See use.h. */
#include "use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/history/sql_table.h"
#include "cli/kernels/top_ranges.h"
#include "support/text.h"

/* ---- GPUs ---- */

/* Takes the use of rows chosen by kernel, range or stream. Their overlap is not known: `busy` is the sum of
 * the durations. */
static void take_sums(struct live_sample *sample)
{
    for (size_t i = 0; i < sample->gpus.n; i++) {
        const struct occ_top_row *row = &sample->gpus.rows[i];
        double busy = (double)row->total_ns / (double)sample->window_ns;
        sample->uses[i] = (struct live_use){.device = row->kernel.id,
                                            .busy = busy,
                                            .used = busy * row->used,
                                            .alone = 1,
                                            .is_least = sample->lost > 0};
    }
}

/* Takes the use of each GPU from the overview. Its shares are of the recorded time, and become shares of the
 * window. */
static int take_overview(const struct occ_overview *o, struct live_sample *sample)
{
    _cleanup_(occ_freep) struct occ_gpu_time *times = NULL;
    size_t n = 0;
    if (occ_gpu_times(&o->totals, OCC_TIME_BY_GPU, &times, &n) != 0)
        return OCC_E_NO_MEMORY;
    for (size_t i = 0; i < n && i < sample->gpus.n; i++) {
        double part = times[i].window_s * 1e9 / (double)sample->window_ns;
        sample->uses[i] = (struct live_use){.device = times[i].key,
                                            .busy = part * (times[i].communication + times[i].kernels),
                                            .used = part * times[i].used,
                                            .is_least = o->lost > 0};
        for (size_t k = 0; k < o->totals.n_gpus; k++)
            if (o->totals.gpus[k].gpu == times[i].key)
                sample->uses[i].alone = o->totals.gpus[k].busy_s / o->duration_s[k];
    }
    return 0;
}

static int ask_gpus(struct occ_store *store, const struct occ_filter *filter, struct live_sample *sample,
                    struct occ_error *err)
{
    _cleanup_(occ_overview_free) struct occ_overview overview = {0};
    sample->uses = calloc(sample->gpus.n + 1, sizeof *sample->uses);
    if (!sample->uses)
        return occ_no_memory(err);
    if (occ_overview_is_partial(filter)) {
        take_sums(sample);
        return 0;
    }
    int rc = occ_overview_make_times(store, filter, &sample->kernels, &overview, err);
    return rc == 0 && take_overview(&overview, sample) != 0 ? occ_no_memory(err) : rc;
}

/* ---- layers ---- */

#define LAYER_MIN 0.01 /* smaller layers are left out */

static int ask_layers(struct occ_store *store, const struct occ_filter *filter, struct live_sample *sample,
                      struct occ_error *err)
{
    struct live_layers *layers = &sample->layers;
    if (sql_number(occ_store_sqlite(store), "SELECT EXISTS(SELECT 1 FROM range)") == 0)
        return 0;
    int rc = occ_store_top(store, filter, OCC_TOP_BY_LAYER, &layers->rows, err);
    const struct occ_range_totals *totals = rc == 0 ? top_range_totals(&layers->rows, &layers->texts) : NULL;
    if (rc != 0)
        return rc;
    return totals && occ_layers_make(totals, layers->rows.n,
                                     &(struct occ_layer_options){.min_share = LAYER_MIN}, &layers->tree) == 0
               ? 0
               : occ_no_memory(err);
}

int live_ask_use(struct occ_store *store, const struct occ_filter *filter, struct live_sample *sample,
                 struct occ_error *err)
{
    int rc = ask_gpus(store, filter, sample, err);
    return rc == 0 ? ask_layers(store, filter, sample, err) : rc;
}
