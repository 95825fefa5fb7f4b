/* Loads the staged recording into the history, in one transaction. One thread. */
#include "sink_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "store/measured.h"
#include "support/cleanup.h"

#define MINUTE_NS       INT64_C(60000000000)
#define HOUR_NS         (60 * MINUTE_NS)
#define BATCH_LAUNCHES  4096u
#define COMMIT_LAUNCHES 49152u /* a launch that is alone in its minute takes 700 bytes before a commit */

struct load {
    struct occ_import_sink *sink;
    struct occ_store *store;
    struct occ_run row;
    char rank[16];
    int64_t run;
    uint32_t n_kernels, n_configs;                 /* loaded, in the order of their numbers */
    uint32_t ranges[OCC_RANGES_PLACES_MAX];        /* ids of ranges by place; 0: not loaded yet */
    int64_t devices[DEVICES_MAX];                  /* ids of devices; 0: no launches yet */
    struct occ_store_launch batch[BATCH_LAUNCHES]; /* launches of one device */
    uint32_t n_batch, batch_device;
    bool skips_measured; /* the last launch was skipped, and so are its measured values */
    uint64_t launches, since_commit;
    int64_t first_ns, last_ns; /* start of the first launch, end of the last */
};

static int flush(struct load *l, struct occ_error *err)
{
    if (l->n_batch == 0)
        return 0;
    int status = occ_store_append(l->store, l->run, l->devices[l->batch_device], l->batch, l->n_batch, err);
    l->since_commit += l->n_batch;
    l->n_batch = 0;
    if (status != 0 || l->since_commit < COMMIT_LAUNCHES)
        return status;
    l->since_commit = 0;
    return occ_store_commit(l->store, err);
}

static int load_kernel(struct load *l, const void *data, size_t size, struct occ_error *err)
{
    char name[NAME_KEPT_BYTES + 1];
    uint64_t hash;
    memcpy(&hash, data, sizeof hash);
    memcpy(name, (const char *)data + sizeof hash, size - sizeof hash);
    name[size - sizeof hash] = '\0';
    int64_t id = 0;
    int status = occ_store_put_kernel(l->store, name, hash, &id, err);
    return status == 0 ? occ_catalog_set(l->sink->kernels, l->n_kernels++, &id, err) : status;
}

static int put_device(struct load *l, uint32_t index, struct occ_error *err)
{
    struct occ_store_device described = l->sink->devices[index].device;
    described.number = l->sink->devices[index].number;
    return l->devices[index] != 0 ? 0 : occ_store_put_device(l->store, &described, &l->devices[index], err);
}

static int load_config(struct load *l, const void *data, struct occ_error *err)
{
    struct staged_config staged;
    struct config_record record;
    int64_t id = 0;
    memcpy(&staged, data, sizeof staged);
    int status = put_device(l, staged.device, err);
    if (status == 0)
        status = occ_catalog_get(l->sink->kernels, staged.kernel, &staged.config.kernel, err);
    staged.config.device = l->devices[staged.device];
    if (status == 0)
        status = occ_store_put_config(l->store, &staged.config, &id, err);
    if (status == 0)
        status = occ_catalog_get(l->sink->configs, l->n_configs, &record, err);
    if (status != 0)
        return status;
    record.id = (uint32_t)id;
    record.device = staged.device;
    return occ_catalog_set(l->sink->configs, l->n_configs++, &record, err);
}

/* Reads the place of the next launch and gives the history's id of its range. */
static int load_range(struct load *l, uint32_t *ret_range, struct occ_error *err)
{
    char path[OCC_STORE_RANGE_BYTES + 1];
    const char *phase = NULL;
    uint32_t place = 0;
    int status = occ_ranges_next(l->sink->ranges, &place, err);
    *ret_range = 0;
    if (status != 0 || place == 0)
        return status;
    if (l->ranges[place] == 0) {
        const char *text = occ_ranges_path(l->sink->ranges, place, path, &phase);
        status = occ_store_put_range(l->store, l->run, text, phase, &l->ranges[place], err);
    }
    *ret_range = l->ranges[place];
    return status;
}

static int load_launch(struct load *l, const void *data, struct occ_error *err)
{
    struct staged_launch staged;
    struct config_record config;
    int64_t start_ns = 0;
    uint32_t range = 0;
    memcpy(&staged, data, sizeof staged);
    int status = load_range(l, &range, err);
    if (status == 0)
        status = occ_catalog_get(l->sink->configs, staged.config, &config, err);
    if (status != 0)
        return status;
    l->skips_measured = true;
    if (__builtin_add_overflow(staged.start_ns, l->sink->recording.shift_ns, &start_ns) ||
        !occ_store_times_are_valid(start_ns, staged.duration_ns)) {
        l->sink->skipped[OCC_IMPORT_SKIP_BAD_TIMES]++;
        return 0;
    }
    if (l->n_batch == BATCH_LAUNCHES || (l->n_batch > 0 && l->batch_device != config.device))
        status = flush(l, err);
    l->batch_device = config.device;
    l->batch[l->n_batch++] = (struct occ_store_launch){.start_ns = start_ns,
                                                       .duration_ns = staged.duration_ns,
                                                       .graph_node = staged.graph_node,
                                                       .config = config.id,
                                                       .stream = staged.stream,
                                                       .correlation = staged.correlation,
                                                       .context = staged.context,
                                                       .range = range};
    l->skips_measured = false;
    l->launches++;
    int64_t end_ns = start_ns + (int64_t)staged.duration_ns;
    l->first_ns = start_ns < l->first_ns ? start_ns : l->first_ns;
    l->last_ns = end_ns > l->last_ns ? end_ns : l->last_ns;
    return status;
}

static void add_mean(struct occ_measured_sums *sums, enum occ_measured_value which, double value,
                     double weight)
{
    sums->sum[which] = isnan(value) ? 0 : value * weight;
    sums->ns[which] = isnan(value) ? 0 : weight;
}

/* Adds the measured occupancy of the last launch: as its own value and to the means of its configuration. */
static int add_occupancy(struct load *l, const struct occ_store_launch *launch,
                         const struct occ_import_measured *m, struct occ_error *err)
{
    double elapsed = m->achieved * m->sm_active,
           weight = launch->duration_ns ? (double)launch->duration_ns : 1;
    const struct occ_launch_value value = {.start_ns = launch->start_ns,
                                           .correlation = launch->correlation,
                                           .config = launch->config,
                                           .achieved = m->achieved,
                                           .achieved_error = NAN,
                                           .elapsed = elapsed,
                                           .elapsed_error = NAN};
    struct occ_measured_sums sums = {.ncu = 1};
    if (isnan(m->achieved))
        return 0;
    add_mean(&sums, OCC_MEASURED_achieved, m->achieved, weight);
    add_mean(&sums, OCC_MEASURED_elapsed, elapsed, weight);
    add_mean(&sums, OCC_MEASURED_sm_active, m->sm_active, weight);
    add_mean(&sums, OCC_MEASURED_imbalance, m->imbalance, weight);
    int status = occ_store_add_launch_values(l->store, l->run, l->devices[l->batch_device], &value, 1, err);
    return status == 0 ? occ_store_add_measured(l->store, launch->start_ns / MINUTE_NS, l->run,
                                                launch->config, &sums, err)
                       : status;
}

static int load_measured(struct load *l, const void *data, struct occ_error *err)
{
    const struct occ_import_measured *m = data;
    if (l->skips_measured)
        return 0;
    const struct occ_store_launch *launch = &l->batch[l->n_batch - 1];
    int status = add_occupancy(l, launch, m, err);
    for (uint32_t i = 0; i < m->n_metrics && status == 0; i++) {
        const struct occ_ncu_metric metric = {.run = l->run,
                                              .config = launch->config,
                                              .hour = launch->start_ns / HOUR_NS,
                                              .correlation = launch->correlation,
                                              .name = m->metrics[i].name,
                                              .unit = m->metrics[i].unit,
                                              .value = m->metrics[i].value};
        status = occ_store_add_ncu_metric(l->store, &metric, err);
    }
    return status;
}

static int load_records(struct load *l, struct occ_error *err)
{
    enum occ_stage_kind kind;
    const void *data;
    size_t size;
    int status = occ_stage_rewind(l->sink->stage, err);
    while (status == 0 && (status = occ_stage_next(l->sink->stage, &kind, &data, &size, err)) == 0 &&
           size != SIZE_MAX)
        status = kind == OCC_STAGE_KERNEL   ? load_kernel(l, data, size, err)
                 : kind == OCC_STAGE_CONFIG ? load_config(l, data, err)
                 : kind == OCC_STAGE_LAUNCH ? load_launch(l, data, err)
                                            : load_measured(l, data, err);
    return status == 0 ? flush(l, err) : status;
}

static int load_reported(struct load *l, struct occ_error *err)
{
    int status = 0;
    for (uint32_t i = 0; i < l->n_configs && status == 0; i++) {
        struct config_record record;
        status = occ_catalog_get(l->sink->configs, i, &record, err);
        if (status != 0 || record.reported.launches == 0)
            continue;
        record.reported.mean /= (double)record.reported.launches;
        status = occ_store_put_reported(l->store, l->run, record.id, &record.reported, err);
    }
    return status;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *known(const char *text)
{
    return text[0] ? text : NULL;
}

static int load_run(struct load *l, const struct occ_import_source *source, struct occ_error *err)
{
    const struct occ_import_recording *r = &l->sink->recording;
    (void)snprintf(l->rank, sizeof l->rank, "%d", r->rank);
    l->row = (struct occ_run){.pid = r->pid,
                              .uid_unknown = true,
                              .start_ns = 1, /* set by finish_run() */
                              .hostname = known(r->hostname),
                              .exe = known(r->exe),
                              .label = l->sink->options.label,
                              .source.tool = source->tool,
                              .source.version = known(r->tool_version),
                              .source.file = base_name(source->path),
                              .source.hash = source->hash,
                              .source.time_base = r->time_base_unknown ? "unknown" : "epoch",
                              .rank = r->rank >= 0 ? l->rank : NULL,
                              .source.missing_fields = known(r->missing_fields),
                              .level = "trace"};
    if (getrandom(l->row.uuid, sizeof l->row.uuid, 0) != (ssize_t)sizeof l->row.uuid)
        return occ_fail(err, OCC_E_IO, "no random numbers");
    return occ_store_put_run(l->store, &l->row, &l->run, err);
}

static int fail_without_launches(const struct occ_import_sink *sink, struct occ_error *err)
{
    char causes[OCC_IMPORT_SKIPS_BYTES];
    const char *text = occ_import_skips_text(sink->skipped, causes);
    return occ_fail(err, OCC_E_INVALID, "no kernel launch in it that could be imported%s%s",
                    text[0] ? ": " : "", text);
}

int occ_import_check_launches(const struct occ_import_sink *sink, struct occ_error *err)
{
    return occ_import_sink_is_empty(sink) ? fail_without_launches(sink, err) : 0;
}

static int finish_run(struct load *l, struct occ_error *err)
{
    if (l->launches == 0)
        return fail_without_launches(l->sink, err);
    l->row.start_ns = l->first_ns;
    l->row.end_ns = l->last_ns;
    int status = occ_store_put_run(l->store, &l->row, &l->run, err);
    if (status == 0)
        status = occ_store_end_run(l->store, l->run, err);
    return status == 0 ? occ_store_commit(l->store, err) : status;
}

/* Checks if another process imported the same file while this process read it. */
static int is_known(struct load *l, const char *hash, bool *ret_known, struct occ_error *err)
{
    struct occ_error why = OCC_ERROR_INIT;
    *ret_known = false;
    if (l->sink->options.again)
        return 0;
    int status = occ_store_find_import(l->store, hash, &l->run, &why);
    *ret_known = status == 0;
    return status == 0 || status == OCC_E_NOT_FOUND ? 0 : occ_fail(err, status, "%s", why.message);
}

static int load_all(struct load *l, const struct occ_import_source *source, bool *ret_known,
                    struct occ_error *err)
{
    int status = occ_store_begin_bulk(l->store, err);
    if (status == 0)
        status = is_known(l, source->hash, ret_known, err);
    if (status == 0 && *ret_known)
        return occ_store_end_bulk(l->store, err);
    if (status == 0)
        status = load_run(l, source, err);
    if (status == 0)
        status = load_records(l, err);
    if (status == 0)
        status = load_reported(l, err);
    if (status == 0)
        status = finish_run(l, err);
    return status == 0 ? occ_store_end_bulk(l->store, err) : status;
}

static void fill_result(const struct load *l, struct occ_import_result *result)
{
    const struct occ_import_sink *sink = l->sink;
    result->time_base_unknown = sink->recording.time_base_unknown;
    result->launches = l->launches;
    result->kernels = occ_catalog_count(sink->kernels);
    result->configs = occ_catalog_count(sink->configs);
    for (uint32_t i = 0; i < sink->n_devices; i++)
        result->devices += l->devices[i] != 0;
    memcpy(result->skipped, sink->skipped, sizeof result->skipped);
}

int occ_import_load(struct occ_import_sink *sink, struct occ_store *store,
                    const struct occ_import_source *source, struct occ_import_result *ret_result,
                    struct occ_error *err)
{
    struct occ_import_result result = {.source = source->tool};
    _cleanup_(occ_freep) struct load *l = calloc(1, sizeof *l);
    if (!l)
        return occ_no_memory(err);
    l->sink = sink;
    l->store = store;
    l->first_ns = INT64_MAX;
    int status = load_all(l, source, &result.known, err);
    result.run = l->run;
    if (status == 0 && !result.known)
        fill_result(l, &result);
    if (status == 0)
        *ret_result = result;
    return status;
}
