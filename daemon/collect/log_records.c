/* See log_records.h. The ring's consumer has checked each record's size and that ids count up; this file and
 * the store check all other values. Texts are cut to a limit and control characters replaced before they are
 * stored. */
#include "log_records.h"

#include <stdio.h>
#include <string.h>

#include "elsewhere.h"
#include "periods.h"
#include "run_texts.h"
#include "store/names.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/text.h"

#define INVERSE_SHARE 3 /* with the charge for the poll, reading a log may use a quarter of the time */
/* surcharge for each byte of a record: the store writes the byte several times */
#define BYTE_COST_NS INT64_C(500)
/* records in a transaction; with names of maximum length they fit into the store's reserve */
#define RECORDS_AT_ONCE 128u
/* samples may exceed the maximum by rounding; values above this are no measurement */
#define SHARE_MAX 1.05

static const char *const level_words[] = {OCC_LEVELS(OCC_WORD)};

/* Grows an array so that item n fits. */
static int grow(void *items, size_t *allocated, size_t n, size_t size, struct occ_error *err)
{
    return occ_grow(items, allocated, n, UINT32_MAX, size) ? 0 : occ_no_memory(err);
}

static int take_process(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                        struct occ_error *err)
{
    (void)store;
    const struct occ_record_process *process = (const void *)record;
    const char *text = (const char *)(process + 1), *end = text + process->text_bytes;
    int status = 0;
    for (uint32_t i = 0; i < process->count && text < end && status == 0; i++) {
        const char *value = text + strnlen(text, (size_t)(end - text)) + 1;
        if (value >= end)
            break;
        p->run.is_exact |= strcmp(text, "exact") == 0 && strcmp(value, "1") == 0;
        if (strcmp(text, "cmdline") != 0 || p->run.command_lines != OCC_COMMAND_LINES_NONE)
            status = occ_run_texts_set(&p->run.row, text, value, err);
        text = value + strnlen(value, (size_t)(end - value)) + 1;
    }
    if (p->run.row.cmdline && p->run.command_lines == OCC_COMMAND_LINES_PROGRAM)
        occ_run_texts_cut(&p->run.row.cmdline, " ");
    occ_run_texts_trust(&p->run.row.job, &p->identity);
    p->run.row_changed = true;
    return status;
}

static int take_device(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                       struct occ_error *err)
{
    const struct occ_record_device *d = (const void *)record;
    struct occ_producer_tables *t = &p->tables;
    char name[sizeof d->name];
    memcpy(name, d->name, sizeof name);
    name[sizeof name - 1] = '\0';
    occ_text_sanitise(name);
    if (d->cc_major > 99 || d->cc_minor > 9)
        return occ_fail(err, OCC_E_INVALID, "device record: compute capability");
    struct occ_store_device device = {
        .name = name,
        .limits = {.cc = d->cc_major * 10 + d->cc_minor,
                   .sm_count = d->sm_count,
                   .warp_size = d->warp_size,
                   .max_threads_per_block = d->max_threads_per_block,
                   .max_threads_per_sm = d->max_threads_per_sm,
                   .max_blocks_per_sm = d->max_blocks_per_sm,
                   .registers_per_block = d->registers_per_block,
                   .registers_per_sm = d->registers_per_sm,
                   .smem_per_block_bytes = d->smem_per_block_bytes,
                   .smem_per_block_optin_bytes = d->smem_per_block_optin_bytes,
                   .smem_per_sm_bytes = d->smem_per_sm_bytes,
                   .smem_reserved_per_block_bytes = d->smem_reserved_per_block_bytes},
        .clock_khz = d->clock_khz,
        .memory_bytes = d->memory_bytes & INT64_MAX,
        .driver_version = d->driver_version,
        .simulated = occ_ring_name_is_simulated(name),
    };
    memcpy(device.uuid, d->uuid, sizeof device.uuid);
    struct occ_producer_device entry = {
        .sm_count = d->sm_count, .warps_per_sm = d->warp_size ? d->max_threads_per_sm / d->warp_size : 0};
    memcpy(entry.uuid, d->uuid, sizeof entry.uuid);
    int status = grow(&t->devices, &t->devices_allocated, t->n_devices, sizeof *t->devices, err);
    if (status == 0)
        status = occ_store_put_device(store, &device, &entry.id, err);
    if (status != 0)
        return status;
    t->devices[t->n_devices++] = entry;
    p->run.row_changed |= device.simulated && !p->run.row.simulated;
    p->run.row.simulated |= device.simulated;
    return 0;
}

/* true while a program's names use less than a quarter of the share of the history for names, so that no
 * program uses all of it. Refused names have the id 0. */
static bool may_name(struct occ_producer *p, const struct occ_store *store, uint64_t bytes)
{
    p->name_bytes += bytes;
    return p->name_bytes <= occ_store_names_share(store) / 4;
}

static int take_kernel(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                       struct occ_error *err)
{
    const struct occ_record_kernel *k = (const void *)record;
    struct occ_producer_tables *t = &p->tables;
    int status = grow(&t->kernels, &t->kernels_allocated, t->n_kernels, sizeof *t->kernels, err);
    if (status != 0)
        return status;
    if (k->flags & (OCC_KERNEL_FILL | OCC_KERNEL_COPY)) {
        t->kernels[t->n_kernels++] = -(int64_t)(k->flags & (OCC_KERNEL_FILL | OCC_KERNEL_COPY));
        return 0;
    }
    _cleanup_(occ_freep) char *name = strndup((const char *)(k + 1), k->name_bytes);
    if (!name)
        return occ_no_memory(err);
    occ_text_sanitise(name);
    int64_t id = 0;
    if (may_name(p, store, 4 * (uint64_t)record->bytes))
        status = occ_store_put_kernel(store, name, k->name_hash, &id, err);
    if (status == 0 || status == OCC_E_DENIED)
        t->kernels[t->n_kernels++] = id;
    return status == OCC_E_DENIED ? 0 : status;
}

static int take_range(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                      struct occ_error *err)
{
    const struct occ_record_range *r = (const void *)record;
    struct occ_producer_tables *t = &p->tables;
    uint32_t range = 0;
    int status = grow(&t->ranges, &t->ranges_allocated, t->n_ranges, sizeof *t->ranges, err);
    if (status != 0)
        return status;
    _cleanup_(occ_freep) char *path = strndup((const char *)(r + 1), r->path_bytes);
    if (!path)
        return occ_no_memory(err);
    occ_text_sanitise(path);
    status = occ_producer_put_row(p, store, err); /* the range refers to the run's id */
    if (status == 0)
        status = occ_store_put_range(store, p->run.id, path, NULL, &range, err);
    if (status == 0)
        t->ranges[t->n_ranges++] = range;
    return status;
}

static int take_config(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                       struct occ_error *err)
{
    const struct occ_record_config *s = (const void *)record;
    struct occ_producer_tables *t = &p->tables;
    if (s->kernel >= t->n_kernels || s->device >= t->n_devices || s->range > t->n_ranges)
        return occ_fail(err, OCC_E_INVALID, "launch configuration record: unknown kernel, device or range");
    struct occ_launch_config config = {
        .kernel = t->kernels[s->kernel],
        .device = t->devices[s->device].id,
        .launch = {.registers_per_thread = s->registers_per_thread,
                   .static_smem_bytes = s->static_smem_bytes,
                   .dynamic_smem_bytes = s->dynamic_smem_bytes,
                   .smem_config_bytes = s->smem_executed_bytes,
                   .carveout_percent = s->carveout_percent,
                   .max_active_clusters = s->max_active_clusters,
                   /* A launch that ran is valid even if its opt-in to more shared memory was not seen. */
                   .smem_optin_known = s->smem_optin != 0,
                   .smem_optin = s->smem_optin != 0},
        .local_bytes_per_thread = s->local_bytes_per_thread,
        .max_cluster_size = s->max_cluster_size,
        .launch_type = s->launch_type,
        .cache_config = s->cache_config,
        .device_launched = s->device_launched,
    };
    memcpy(config.launch.grid, s->grid, sizeof config.launch.grid);
    memcpy(config.launch.block, s->block, sizeof config.launch.block);
    memcpy(config.launch.cluster, s->cluster, sizeof config.launch.cluster);
    int64_t id = 0;
    int status = grow(&t->configs, &t->configs_allocated, t->n_configs, sizeof *t->configs, err);
    if (status == 0 && config.kernel > 0 && may_name(p, store, 8 * (uint64_t)record->bytes))
        status = occ_store_put_config(store, &config, &id, err);
    if (status != 0 && status != OCC_E_DENIED)
        return status;
    if (id < 0 || id > UINT32_MAX)
        return occ_fail(err, OCC_E_FULL, "the history holds too many launch configurations");
    t->configs[t->n_configs++] = (struct occ_producer_config){
        .id = (uint32_t)id,
        .context = s->context,
        .device = s->device,
        .range = s->range ? t->ranges[s->range - 1] : 0,
        .memory = config.kernel < 0 ? occ_producer_memory((uint32_t)-config.kernel, s->grid[0] - 1) : 0};
    return 0;
}

/* "Nothing" is the level of a whole run only if the run began with it. */
static int take_state(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                      struct occ_error *err)
{
    const struct occ_record_state *s = (const void *)record;
    struct occ_producer_run *run = &p->run;
    if (s->level >= OCC_LEVEL_COUNT)
        return occ_fail(err, OCC_E_INVALID, "state record: unknown level");
    /* first report, or a more precise reason for recording nothing */
    bool is_first = run->row.level == NULL ||
                    (s->level == OCC_LEVEL_NOTHING && run->row.level == level_words[OCC_LEVEL_NOTHING]);
    char reason[sizeof run->reason] = "";
    size_t n = strnlen(s->reason, sizeof s->reason);
    memcpy(reason, s->reason, n);
    occ_text_sanitise(reason);
    run->is_without_counters = (record->flags & OCC_STATE_UNMEASURED) != 0;
    /* a guest that allows the daemon's counters again has given up exact values */
    run->is_exact &= run->is_without_counters;
    if (is_first || s->level != OCC_LEVEL_NOTHING) {
        run->row.level = level_words[s->level];
        memcpy(run->reason, reason, sizeof reason);
    }
    run->row.cupti.version = s->cupti_version;
    run->row_changed = true;
    return is_first ? 0
                    : occ_periods_change(p, (enum occ_level)s->level,
                                         occ_elsewhere_moment(p, occ_producer_past_ns(s->time_ns)), reason,
                                         store, err);
}

static int take_closed(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                       struct occ_error *err)
{
    (void)store;
    (void)err;
    p->run.closed_ns = ((const struct occ_record_closed *)(const void *)record)->time_ns;
    return 0;
}

static bool set_share(struct occ_measured_sums *sums, enum occ_measured_value which, double share_ns,
                      double ns)
{
    if (!(share_ns <= SHARE_MAX * ns))
        return false;
    sums->sum[which] = share_ns < ns ? share_ns : ns;
    sums->ns[which] = ns;
    return true;
}

/* Keeps exact values until their launches have been read. Values above the GPU's maximum are ignored. */
static int take_measured(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                         struct occ_error *err)
{
    (void)store;
    const struct occ_record_measured *m = (const void *)record;
    struct occ_producer_measurements *to = &p->measured;
    if (m->config >= p->tables.n_configs)
        return occ_fail(err, OCC_E_INVALID, "measured record: unknown launch configuration");
    const struct occ_producer_config *config = &p->tables.configs[m->config];
    const struct occ_producer_device *device = &p->tables.devices[config->device];
    double warps = device->warps_per_sm, sms = device->sm_count;
    int status = grow(&to->rows, &to->allocated, to->n, sizeof *to->rows, err);
    if (status != 0)
        return status;
    uint64_t number = to->read++;
    if (number < to->done || warps == 0 || sms == 0 || config->id == 0)
        return 0;
    struct occ_producer_measured row = {
        .head = m->head, .number = number, .minute = (int64_t)m->minute, .config = config->id};
    if (occ_elsewhere_has(p, m->head)) {
        row.config = 0;
        to->rows[to->n++] = row;
        return 0;
    }
    row.sums.exact = m->launches;
    row.sums.sum[OCC_MEASURED_resident_blocks] = m->blocks_active_ns;
    row.sums.ns[OCC_MEASURED_resident_blocks] = m->ns;
    if (set_share(&row.sums, OCC_MEASURED_achieved, m->warps_active_ns / warps, m->ns) &&
        set_share(&row.sums, OCC_MEASURED_elapsed, m->warps_ns / (warps * sms), m->ns) &&
        set_share(&row.sums, OCC_MEASURED_sm_active, m->sms_active_ns / sms, m->ns) &&
        m->blocks_active_ns <= SHARE_MAX * warps * m->ns) /* a block has at least one warp */
        to->rows[to->n++] = row;
    return 0;
}

static int take(struct occ_producer *p, const struct occ_log_record *record, struct occ_store *store,
                struct occ_error *err)
{
    static int (*const takers[])(struct occ_producer *, const struct occ_log_record *, struct occ_store *,
                                 struct occ_error *) = {
        [OCC_RECORD_PROCESS] = take_process,   [OCC_RECORD_DEVICE] = take_device,
        [OCC_RECORD_KERNEL] = take_kernel,     [OCC_RECORD_CONFIG] = take_config,
        [OCC_RECORD_STATE] = take_state,       [OCC_RECORD_CLOSED] = take_closed,
        [OCC_RECORD_MEASURED] = take_measured, [OCC_RECORD_RANGE] = take_range,
    };
    if (record->type >= sizeof takers / sizeof *takers || !takers[record->type])
        return 0; /* record type of a newer minor version */
    int status = takers[record->type](p, record, store, err);
    /* A value that the store finds invalid stays invalid: the program is at fault, not the store. */
    return status == OCC_E_INVALID ? OCC_LOG_RECORDS_BROKEN : status;
}

static int take_all(struct occ_producer *p, struct occ_store *store, size_t *budget, int64_t until_ns,
                    struct occ_error *err)
{
    for (; *budget > 0; --*budget) {
        if (occ_monotonic_ns() >= until_ns) {
            *budget = 0;
            break;
        }
        enum occ_ring_status ring =
            p->waiting_record ? OCC_RING_OK : occ_ring_next_log_record(p->consumer, &p->waiting_record);
        if (ring == OCC_RING_EMPTY)
            break;
        if (ring == OCC_RING_BROKEN) {
            const char *why = occ_ring_broken_reason(p->consumer);
            (void)occ_fail(err, OCC_E_CORRUPT, "%s", why ? why : "the log is not valid");
            return OCC_LOG_RECORDS_BROKEN;
        }
        int status = take(p, p->waiting_record, store, err);
        if (status != 0)
            return status;
        p->log_cost_ns += p->waiting_record->bytes * BYTE_COST_NS;
        p->waiting_record = NULL;
    }
    return 0;
}

/* Takes at most `max` records, in one transaction if the file has room for all. */
static int take_some(struct occ_producer *p, struct occ_store *store, size_t *max, int64_t until_ns,
                     struct occ_error *err)
{
    bool together = occ_store_has_room(store);
    int status = together ? occ_store_begin_bulk(store, err) : 0;
    if (status != 0)
        return status;
    status = take_all(p, store, max, until_ns, err);
    int ended = together ? occ_store_end_bulk(store, err) : 0;
    return ended != 0 ? ended : status;
}

int occ_log_records_take(struct occ_producer *p, struct occ_store *store, size_t *budget, int64_t until_ns,
                         struct occ_error *err)
{
    size_t left = 0; /* records not taken in the last transaction; > 0: the log is empty for now */
    int64_t began_ns = occ_monotonic_ns();
    int status = 0;
    while (*budget > 0 && left == 0 && status == 0 && (p->waiting_record || occ_ring_has_log(p->consumer))) {
        size_t n = *budget < RECORDS_AT_ONCE ? *budget : RECORDS_AT_ONCE;
        left = n;
        status = take_some(p, store, &left, until_ns, err);
        *budget = occ_monotonic_ns() < until_ns ? *budget - (n - left) : 0;
    }
    p->log_cost_ns += (INVERSE_SHARE - 1) * (occ_monotonic_ns() - began_ns);
    return status;
}
