/*
 * The sink: checks launches, numbers devices, kernels and configurations, and stages everything (stage.c).
 *
 * Kernels and configurations are known by 128-bit hashes (catalog.c); names are never held in memory. The
 * memory of the whole process stays below 64 MB, whatever their number. One thread.
 */
#include "sink_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "support/text.h"

#define SMEM_MAX_BYTES (1u << 24)

/* ---- begin and end ---- */

static int find_gpu(const char *name, struct occ_store_device *device, struct occ_error *err)
{
    device->name = name;
    if (!name || occ_device_from_name(name, &device->limits) == OCC_OK)
        return 0;
    return occ_fail(err, OCC_E_INVALID, "unknown GPU '%.64s' ('occq calc --list' names all)", name);
}

int occ_import_sink_new(const struct occ_import_options *options, struct occ_import_sink **ret_sink,
                        struct occ_error *err)
{
    struct occ_import_sink *sink = calloc(1, sizeof *sink);
    if (!sink)
        return occ_no_memory(err);
    sink->options = *options;
    sink->recording.rank = -1;
    int status = find_gpu(options->gpu, &sink->named_gpu, err);
    if (status == 0 && getrandom(&sink->seed, sizeof sink->seed, 0) != (ssize_t)sizeof sink->seed)
        status = occ_fail(err, OCC_E_IO, "no random numbers");
    if (status == 0)
        status = occ_stage_new(&sink->stage, err);
    if (status == 0)
        status = occ_ranges_new(sink->seed, &sink->ranges, err);
    if (status == 0)
        status = occ_catalog_new(sizeof(int64_t), IN_MEMORY, &sink->kernels, err);
    if (status == 0)
        status = occ_catalog_new(sizeof(struct config_record), IN_MEMORY, &sink->configs, err);
    if (status != 0)
        occ_import_sink_free(sink);
    else
        *ret_sink = sink;
    return status;
}

void occ_import_sink_free(struct occ_import_sink *sink)
{
    if (!sink)
        return;
    occ_stage_free(sink->stage);
    occ_ranges_free(sink->ranges);
    occ_catalog_free(sink->kernels);
    occ_catalog_free(sink->configs);
    free(sink);
}

/* ---- the recording and its devices ---- */

void occ_import_sink_recording(struct occ_import_sink *sink, const struct occ_import_recording *recording)
{
    sink->recording = *recording;
}

static uint32_t find_device(const struct occ_import_sink *sink, uint64_t number)
{
    uint32_t i = 0;
    while (i < sink->n_devices && sink->devices[i].number != number)
        i++;
    return i;
}

bool occ_import_sink_has_device(const struct occ_import_sink *sink, uint64_t number)
{
    return find_device(sink, number) < sink->n_devices;
}

int occ_import_sink_device(struct occ_import_sink *sink, uint64_t number,
                           const struct occ_store_device *device, struct occ_error *err)
{
    uint32_t i = find_device(sink, number);
    if (i == DEVICES_MAX)
        return occ_fail(err, OCC_E_FULL, "more than %u devices", DEVICES_MAX);
    struct device *kept = &sink->devices[i];
    *kept = (struct device){.number = number, .device = *device};
    if (device->name) {
        memcpy(kept->name, device->name, strnlen(device->name, sizeof kept->name - 1));
        kept->device.name = kept->name;
    }
    sink->n_devices += i == sink->n_devices;
    return 0;
}

const struct occ_store_device *occ_import_sink_named_gpu(const struct occ_import_sink *sink)
{
    return sink->named_gpu.name ? &sink->named_gpu : NULL;
}

/* ---- kernels and configurations ---- */

/* Returns 1 if the hash is new. */
static int number_of(struct occ_catalog *catalog, XXH128_hash_t hash, uint32_t *ret_number,
                     struct occ_error *err)
{
    const struct occ_catalog_key key = {.low = hash.low64, .high = hash.high64};
    return occ_catalog_find(catalog, key, ret_number, err);
}

static uint64_t fnv1a64(const char *text, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static int stage_kernel(struct occ_import_sink *sink, const char *name, size_t n, struct occ_error *err)
{
    char record[sizeof(uint64_t) + NAME_KEPT_BYTES];
    uint64_t hash = fnv1a64(name, n);
    size_t kept = n < NAME_KEPT_BYTES ? n : NAME_KEPT_BYTES;
    memcpy(record, &hash, sizeof hash);
    memcpy(record + sizeof hash, name, kept);
    return occ_stage_put(sink->stage, OCC_STAGE_KERNEL, record, sizeof hash + kept, err);
}

static int kernel_index(struct occ_import_sink *sink, const struct occ_import_launch *launch,
                        uint32_t *ret_index, struct occ_error *err)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(launch->name, launch->name_bytes, sink->seed);
    int status = number_of(sink->kernels, hash, ret_index, err);
    return status == 1 ? stage_kernel(sink, launch->name, launch->name_bytes, err) : status;
}

static int config_index(struct occ_import_sink *sink, const struct occ_import_launch *launch, uint32_t device,
                        uint32_t *ret_index, struct occ_error *err)
{
    struct staged_config staged;
    memset(&staged, 0, sizeof staged); /* all bytes are hashed, also padding */
    staged.device = device;
    memcpy(&staged.config, &launch->config, sizeof staged.config);
    int status = kernel_index(sink, launch, &staged.kernel, err);
    if (status != 0)
        return status;
    XXH128_hash_t hash = XXH3_128bits_withSeed(&staged, sizeof staged, sink->seed);
    status = number_of(sink->configs, hash, ret_index, err);
    return status == 1 ? occ_stage_put(sink->stage, OCC_STAGE_CONFIG, &staged, sizeof staged, err) : status;
}

/* ---- launches ---- */

static bool is_zero(const uint32_t size[3])
{
    return size[0] == 0 || size[1] == 0 || size[2] == 0;
}

static bool is_within(const uint32_t size[3], uint32_t x, uint32_t yz)
{
    return size[0] <= x && size[1] <= yz && size[2] <= yz;
}

/* True if every value is within bounds above any GPU's; the same bounds as for traced launches
 * (ring/ring_abi.h). The model refuses other configurations that are impossible on their device. */
static bool is_plausible(const struct occ_launch *l)
{
    return is_within(l->grid, INT32_MAX, 65535) && is_within(l->block, 1024, 1024) &&
           l->block[0] * l->block[1] * l->block[2] <= 1024 && is_within(l->cluster, 1024, 1024) &&
           l->registers_per_thread <= 1024 && l->static_smem_bytes <= SMEM_MAX_BYTES &&
           l->dynamic_smem_bytes <= SMEM_MAX_BYTES && l->smem_config_bytes <= SMEM_MAX_BYTES;
}

/* The first reason to skip a launch; COUNT: none. load.c checks the times again with their shift. */
static enum occ_import_skip objection(const struct occ_import_sink *sink, const struct occ_import_launch *l,
                                      uint32_t device)
{
    const struct occ_launch *config = &l->config.launch;
    int64_t duration_ns = 0;
    if (l->end_ns < l->start_ns || __builtin_sub_overflow(l->end_ns, l->start_ns, &duration_ns))
        return OCC_IMPORT_SKIP_BAD_TIMES;
    if (l->name_bytes == 0)
        return OCC_IMPORT_SKIP_NO_NAME;
    if (is_zero(config->grid) || is_zero(config->block) || config->registers_per_thread == 0)
        return OCC_IMPORT_SKIP_NO_CONFIGURATION;
    if (!is_plausible(config))
        return OCC_IMPORT_SKIP_BAD_VALUE;
    return device == sink->n_devices ? OCC_IMPORT_SKIP_NO_DEVICE : OCC_IMPORT_SKIP_COUNT;
}

static int add_reported(struct occ_import_sink *sink, uint32_t config, double achieved, struct occ_error *err)
{
    struct config_record record;
    struct occ_reported_occupancy *reported = &record.reported;
    if (!(achieved >= 0 && achieved <= 1)) /* NaN: not reported */
        return 0;
    int status = occ_catalog_get(sink->configs, config, &record, err);
    if (status != 0)
        return status;
    reported->min = reported->launches == 0 ? achieved : fmin(reported->min, achieved);
    reported->max = reported->launches == 0 ? achieved : fmax(reported->max, achieved);
    reported->mean += achieved;
    reported->launches++;
    return occ_catalog_set(sink->configs, config, &record, err);
}

static int stage_measured(struct occ_import_sink *sink, const struct occ_import_measured *measured,
                          struct occ_error *err)
{
    size_t size =
        offsetof(struct occ_import_measured, metrics) + measured->n_metrics * sizeof *measured->metrics;
    return occ_stage_put(sink->stage, OCC_STAGE_MEASURED, measured, size, err);
}

int occ_import_sink_launch(struct occ_import_sink *sink, const struct occ_import_launch *launch,
                           struct occ_error *err)
{
    uint32_t device = find_device(sink, launch->device), config = 0;
    enum occ_import_skip why = objection(sink, launch, device);
    if (why != OCC_IMPORT_SKIP_COUNT) {
        sink->skipped[why]++;
        return 0;
    }
    int status = config_index(sink, launch, device, &config, err);
    if (status == 0)
        status = add_reported(sink, config, launch->reported_achieved, err);
    if (status != 0)
        return status;
    const struct staged_launch staged = {.config = config,
                                         .stream = launch->stream,
                                         .context = launch->context,
                                         .correlation = launch->correlation,
                                         .start_ns = launch->start_ns,
                                         .duration_ns = (uint64_t)(launch->end_ns - launch->start_ns),
                                         .graph_node = launch->graph_node};
    status = occ_stage_put(sink->stage, OCC_STAGE_LAUNCH, &staged, sizeof staged, err);
    if (status == 0)
        status = occ_ranges_add_launch(sink->ranges, &launch->origin, err);
    return status == 0 && launch->measured ? stage_measured(sink, launch->measured, err) : status;
}

bool occ_import_sink_is_empty(const struct occ_import_sink *sink)
{
    return occ_catalog_count(sink->configs) == 0;
}

/* ---- ranges ---- */

int occ_import_sink_range(struct occ_import_sink *sink, const struct occ_import_range *range,
                          struct occ_error *err)
{
    return occ_ranges_add(sink->ranges, range, err);
}

int occ_import_sink_call(struct occ_import_sink *sink, const struct occ_import_call *call,
                         struct occ_error *err)
{
    return occ_ranges_add_call(sink->ranges, call, err);
}

int occ_import_sink_restart_ranges(struct occ_import_sink *sink, struct occ_error *err)
{
    occ_ranges_free(sink->ranges);
    sink->ranges = NULL;
    return occ_ranges_new(sink->seed, &sink->ranges, err);
}

void occ_import_sink_skip(struct occ_import_sink *sink, enum occ_import_skip why)
{
    sink->skipped[why]++;
}

uint64_t occ_import_sink_skipped(const struct occ_import_sink *sink, enum occ_import_skip why)
{
    return sink->skipped[why];
}

void occ_import_sink_progress(struct occ_import_sink *sink, uint64_t done, uint64_t total)
{
    if (sink->options.progress)
        sink->options.progress(sink->options.context, done, total);
}

OCC_WORDS(occ_import_skip_word, enum occ_import_skip, OCC_IMPORT_SKIPS)

const char *occ_import_skips_text(const uint64_t skipped[OCC_IMPORT_SKIP_COUNT],
                                  char text[OCC_IMPORT_SKIPS_BYTES])
{
    text[0] = '\0';
    for (int i = 0; i < OCC_IMPORT_SKIP_COUNT; i++)
        if (skipped[i])
            occ_text_append(text, OCC_IMPORT_SKIPS_BYTES, ", ", "%s %" PRIu64,
                            occ_import_skip_word((enum occ_import_skip)i), skipped[i]);
    return text;
}
