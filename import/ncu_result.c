/* A result of Nsight Compute becomes a launch with measured values: see ncu.h. One thread. */
#include "ncu.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/text.h"

#define SECOND_NS INT64_C(1000000000)

static const struct {
    const char *metric, *label, *unit;
} rows[] = {
#define METRIC_ROW(name, metric, label, unit) {metric, label, unit},
    OCC_NCU_METRICS(METRIC_ROW)};

enum occ_ncu_metric_row occ_ncu_find(const char *name, bool is_label)
{
    int i = 0;
    while (i < OCC_NCU_COUNT && !(is_label && rows[i].label && strcmp(name, rows[i].label) == 0) &&
           fnmatch(rows[i].metric, name, 0) != 0)
        i++;
    return (enum occ_ncu_metric_row)i;
}

/* Labels in versions from 2020 to 2022, in addition to the table's labels. */
static const struct {
    const char *label;
    enum occ_ncu_metric_row row;
} old_labels[] = {{"SM [%]", OCC_NCU_COMPUTE},
                  {"Compute (SM) [%]", OCC_NCU_COMPUTE},
                  {"Memory [%]", OCC_NCU_MEMORY},
                  {"SOL FB", OCC_NCU_DRAM}};

/* True if the line begins with this label, which is longer than *length, and a blank. */
static bool is_longer_label(const char *line, const char *label, size_t *length)
{
    size_t n = label ? strlen(label) : 0;
    if (n <= *length || strncmp(line, label, n) != 0 || !strchr(" \t", line[n]) || !line[n])
        return false;
    *length = n;
    return true;
}

enum occ_ncu_metric_row occ_ncu_find_label(const char *line, size_t *ret_bytes)
{
    enum occ_ncu_metric_row found = OCC_NCU_COUNT;
    *ret_bytes = 0;
    for (int i = 0; i < OCC_NCU_COUNT; i++)
        if (is_longer_label(line, rows[i].label, ret_bytes))
            found = (enum occ_ncu_metric_row)i;
    for (size_t i = 0; i < sizeof old_labels / sizeof *old_labels; i++)
        if (is_longer_label(line, old_labels[i].label, ret_bytes))
            found = old_labels[i].row;
    return found;
}

const char *occ_ncu_unit(enum occ_ncu_metric_row row)
{
    return row < OCC_NCU_COUNT ? rows[row].unit : NULL;
}

/* ---- the result at hand ---- */

void occ_ncu_drop_result(struct occ_ncu *n)
{
    for (int i = 0; i < OCC_NCU_COUNT; i++)
        n->value[i] = NAN;
    n->measured.n_metrics = 0;
    n->gpu[0] = '\0';
    n->created_s = 0;
    n->name_bytes = 0;
}

void occ_ncu_begin(struct occ_ncu *n, struct occ_import_sink *sink, struct occ_error *err)
{
    n->sink = sink;
    n->err = err;
    n->recording.rank = -1;
    n->end_ns = 1; /* the smallest start that the history accepts */
    n->lacks_achieved = true;
    occ_ncu_drop_result(n);
}

int occ_ncu_set(struct occ_ncu *n, enum occ_ncu_metric_row row, const char *name, double value)
{
    struct occ_import_measured *m = &n->measured;
    if (row >= OCC_NCU_COUNT || !isfinite(value))
        return 0;
    n->value[row] = value;
    if (!rows[row].unit)
        return 0;
    name = name ? name : rows[row].metric;
    for (uint32_t i = 0; i < m->n_metrics; i++)
        if (strcmp(m->metrics[i].name, name) == 0)
            return 0; /* the page "details" repeats some metrics */
    if (m->n_metrics == OCC_IMPORT_METRICS_MAX || strlen(name) >= OCC_IMPORT_METRIC_NAME)
        return occ_fail(n->err, OCC_E_FULL,
                        "result %u has more than %u values about occupancy, or longer names", n->results + 1,
                        OCC_IMPORT_METRICS_MAX);
    struct occ_import_metric *metric = &m->metrics[m->n_metrics++];
    *metric = (struct occ_import_metric){.value = value};
    (void)snprintf(metric->name, sizeof metric->name, "%s", name);
    (void)snprintf(metric->unit, sizeof metric->unit, "%s", rows[row].unit);
    return 0;
}

void occ_ncu_set_name(struct occ_ncu *n, const void *name, size_t size)
{
    n->name_bytes = size < sizeof n->name ? size : sizeof n->name;
    if (n->name_bytes > 0)
        memcpy(n->name, name, n->name_bytes);
}

/* A value as uint32_t; 0: not collected, or out of range. */
static uint32_t number(const struct occ_ncu *n, enum occ_ncu_metric_row which)
{
    double value = n->value[which];
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* ---- its device ---- */

static struct occ_store_device describe_device(const struct occ_ncu *n)
{
    double memory = n->value[OCC_NCU_DEV_MEMORY];
    uint32_t major = number(n, OCC_NCU_DEV_MAJOR), minor = number(n, OCC_NCU_DEV_MINOR);
    return (struct occ_store_device){
        .name = n->gpu[0] ? n->gpu : "unknown GPU",
        .clock_khz = number(n, OCC_NCU_DEV_CLOCK_KHZ),
        .memory_bytes = memory > 0 && memory < 0x1p60 ? (uint64_t)memory : 0,
        .limits = {.cc = major < 100 && minor < 10 ? major * 10 + minor : 0,
                   .sm_count = number(n, OCC_NCU_DEV_SMS),
                   .warp_size = number(n, OCC_NCU_DEV_WARP),
                   .max_threads_per_block = number(n, OCC_NCU_DEV_BLOCK_THREADS),
                   .max_threads_per_sm = number(n, OCC_NCU_DEV_SM_THREADS),
                   .max_blocks_per_sm = number(n, OCC_NCU_DEV_SM_BLOCKS),
                   .registers_per_block = number(n, OCC_NCU_DEV_BLOCK_REGISTERS),
                   .registers_per_sm = number(n, OCC_NCU_DEV_SM_REGISTERS),
                   .smem_per_block_bytes = number(n, OCC_NCU_DEV_BLOCK_SMEM),
                   .smem_per_block_optin_bytes = number(n, OCC_NCU_DEV_BLOCK_SMEM_OPTIN),
                   .smem_per_sm_bytes = number(n, OCC_NCU_DEV_SM_SMEM),
                   .smem_reserved_per_block_bytes = number(n, OCC_NCU_DEV_SMEM_RESERVED)}};
}

/* Checks the result against the GPU that the user named: a different compute capability, or a different known
 * number of SMs, means another GPU. */
static int check_named(struct occ_ncu *n, const struct occ_store_device *named)
{
    const struct occ_device limits = describe_device(n).limits;
    if (limits.cc != 0 && limits.cc != named->limits.cc)
        return occ_fail(n->err, OCC_E_INVALID, "its GPU has compute capability %u.%u, and --gpu %s has %u.%u",
                        limits.cc / 10, limits.cc % 10, named->name, named->limits.cc / 10,
                        named->limits.cc % 10);
    if (n->computes_sms && limits.sm_count != 0 && limits.sm_count != named->limits.sm_count)
        return occ_fail(n->err, OCC_E_INVALID, "its GPU has %u SMs by its waves, and --gpu %s has %u",
                        limits.sm_count, named->name, named->limits.sm_count);
    return 0;
}

/* Adds the result's device. Reports contain device attributes; printed output contains only the compute
 * capability and, except in green contexts, the number of SMs. If they are missing, the GPU that the user
 * named is used. */
static int put_device(struct occ_ncu *n, uint32_t index)
{
    const struct occ_store_device *named = occ_import_sink_named_gpu(n->sink);
    if (occ_import_sink_has_device(n->sink, index))
        return 0;
    if (named && (isnan(n->value[OCC_NCU_DEV_SMS]) || n->computes_sms))
        return check_named(n, named) == 0 ? occ_import_sink_device(n->sink, index, named, n->err)
                                          : OCC_E_INVALID;
    if (isnan(n->value[OCC_NCU_DEV_SMS]))
        n->value[OCC_NCU_DEV_SMS] = n->value[OCC_NCU_SMS];
    const struct occ_store_device device = describe_device(n);
    bool known = device.limits.cc != 0 && device.limits.sm_count != 0 &&
                 (device.limits.warp_size == 0 || device.limits.warp_size == 32);
    return known ? occ_import_sink_device(n->sink, index, &device, n->err) : 0;
}

/* ---- its launch ---- */

/* Sets the dimensions, or else their product: the page "details" of old versions has only the product. */
static void fill_size(const struct occ_ncu *n, enum occ_ncu_metric_row x, enum occ_ncu_metric_row product,
                      uint32_t size[3])
{
    bool known = number(n, x) != 0;
    size[0] = known ? number(n, x) : number(n, product);
    size[1] = known ? number(n, x + 1) : 1;
    size[2] = known ? number(n, x + 2) : 1;
}

static void fill_config(const struct occ_ncu *n, struct occ_launch *l)
{
    fill_size(n, OCC_NCU_GRID_X, OCC_NCU_GRID_SIZE, l->grid);
    fill_size(n, OCC_NCU_BLOCK_X, OCC_NCU_BLOCK_SIZE, l->block);
    l->cluster[0] = number(n, OCC_NCU_CLUSTER_X);
    l->cluster[1] = number(n, OCC_NCU_CLUSTER_Y);
    l->cluster[2] = number(n, OCC_NCU_CLUSTER_Z);
    l->max_active_clusters = l->cluster[0] != 0 ? number(n, OCC_NCU_CLUSTERS) : 0;
    l->registers_per_thread = number(n, OCC_NCU_REGISTERS);
    l->static_smem_bytes = number(n, OCC_NCU_STATIC_SMEM);
    l->dynamic_smem_bytes = number(n, OCC_NCU_DYNAMIC_SMEM);
    l->smem_config_bytes = number(n, OCC_NCU_SMEM_CONFIG);
    l->barriers = number(n, OCC_NCU_BARRIERS);
    l->carveout_percent = -1;
}

/* Sets the measured ratios. Counts from different passes can differ slightly: more active than elapsed cycles
 * become all cycles; more than all warps become not measured. */
static void fill_measured(struct occ_ncu *n)
{
    struct occ_import_measured *m = &n->measured;
    double elapsed =
        isnan(n->value[OCC_NCU_SM_ELAPSED]) ? n->value[OCC_NCU_GPC_ELAPSED] : n->value[OCC_NCU_SM_ELAPSED];
    double least = n->value[OCC_NCU_SM_ACTIVE_MIN], most = n->value[OCC_NCU_SM_ACTIVE_MAX];
    double achieved = n->value[OCC_NCU_ACHIEVED] / 100, active = n->value[OCC_NCU_SM_ACTIVE] / elapsed;
    m->achieved = achieved >= 0 && achieved <= 1 ? achieved : NAN;
    m->sm_active = active >= 0 && elapsed > 0 ? fmin(active, 1) : NAN;
    m->imbalance = least >= 0 && most > 0 && least <= most ? 1 - least / most : NAN;
    n->lacks_achieved &= isnan(m->achieved);
}

/* Sets the times. ncu has the second in which it made the result, or no time: launches follow one another in
 * the report's order, each not before its second. */
static void fill_times(struct occ_ncu *n, struct occ_import_launch *launch)
{
    double duration = n->value[OCC_NCU_DURATION];
    bool known = duration >= 0 && duration < 0x1p62;
    int64_t created_ns = 0;
    n->lacks_times |= n->created_s == 0;
    n->lacks_durations |= !known;
    if (__builtin_mul_overflow(n->created_s, SECOND_NS, &created_ns))
        created_ns = -1; /* an end before the start makes the sink skip the launch */
    launch->start_ns = created_ns > n->end_ns || created_ns < 0 ? created_ns : n->end_ns;
    if (__builtin_add_overflow(launch->start_ns, known ? (int64_t)duration : 0, &launch->end_ns))
        launch->end_ns = -1;
    if (launch->end_ns >= launch->start_ns && launch->start_ns > 0)
        n->end_ns = launch->end_ns;
}

int occ_ncu_end_result(struct occ_ncu *n)
{
    struct occ_import_launch launch;
    n->results++;
    memset(&launch, 0, sizeof launch);
    launch.name = n->name;
    launch.name_bytes = n->name_bytes;
    launch.device = number(n, OCC_NCU_DEVICE);
    launch.stream = number(n, OCC_NCU_STREAM);
    launch.context = number(n, OCC_NCU_CONTEXT);
    launch.correlation = n->results;
    launch.reported_achieved = NAN;
    launch.measured = &n->measured;
    fill_config(n, &launch.config.launch);
    fill_measured(n);
    fill_times(n, &launch);
    int status = put_device(n, (uint32_t)launch.device);
    if (status == 0)
        status = occ_import_sink_launch(n->sink, &launch, n->err);
    occ_ncu_drop_result(n);
    return status;
}

void occ_ncu_end(struct occ_ncu *n)
{
    const struct {
        bool lacks;
        const char *what;
    } facts[] = {
        {n->lacks_times, "start times (its launches follow one another)"},
        {!n->lacks_times, "start times within a second (launches of one second follow one another)"},
        {n->lacks_durations, "durations of some launches (0)"},
        {n->lacks_achieved, "achieved occupancy"},
        {true, "local memory, launch type"},
        {n->computes_sms, "the number of SMs (computed from the waves)"},
        {n->rounds_sizes, "exact sizes of shared memory (the roundest number that prints like that)"},
    };
    struct occ_import_recording *r = &n->recording;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (facts[i].lacks)
            occ_text_append(r->missing_fields, sizeof r->missing_fields, ", ", "%s", facts[i].what);
    r->time_base_unknown = n->lacks_times;
    occ_import_sink_recording(n->sink, r);
}
