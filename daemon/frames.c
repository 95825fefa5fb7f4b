/*
 * Takes the frames of a ring's log (format: ring/ring_abi.h) into the store, in their order. The ring's consumer has
 * checked each frame's size and that ids count up; what else could be wrong is checked here or by the store. Texts
 * are cut to a limit and control characters replaced before anything keeps them.
 *
 * A frame that the store does not take (disk full, locked) is kept: the pointer that the consumer gave stays good
 * until the next one is asked for.
 *
 * No global state; one thread.
 */
#include "frames.h"

#include <stdlib.h>
#include <string.h>

#include "producers.h"
#include "support/cleanup.h"
#include "support/text.h"

/* X(key of a PROCESS frame and member of struct occ_run, most bytes kept) */
#define PROCESS_TEXTS(X)                                                                                     \
    X(exe, 4096)                                                                                             \
    X(cmdline, 4096)                                                                                         \
    X(cwd, 4096)                                                                                             \
    X(label, 256)                                                                                            \
    X(session, 32)                                                                                           \
    X(slurm_job, 128)                                                                                        \
    X(slurm_step, 128)                                                                                       \
    X(k8s_pod, 256)                                                                                          \
    X(k8s_namespace, 256)                                                                                    \
    X(hostname, 256)

static const struct {
    const char *key;
    size_t offset; /* of a const char * in struct occ_run */
    size_t most_bytes;
} process_texts[] = {
#define X(key, most) {#key, offsetof(struct occ_run, key), most},
    PROCESS_TEXTS(X)
#undef X
};

#define SIMULATED_SUFFIX "(simulated)"

static const char *const level_words[] = {
#define X(name, word, text) word,
    OCC_LEVELS(X)
#undef X
};

void occ_frames_free_texts(struct occ_run *row)
{
#define X(key, most) free((void *)(uintptr_t)row->key);
    PROCESS_TEXTS(X)
#undef X
    free((void *)(uintptr_t)row->user);
    free((void *)(uintptr_t)row->container);
}

/* Room for one more entry in a table of ids. */
static int grow(void *table, size_t entry_bytes, size_t n, size_t *allocated, struct occ_error *err)
{
    if (n < *allocated)
        return 0;
    size_t wanted = *allocated ? *allocated * 2 : 16;
    void *old;
    memcpy(&old, table, sizeof old);
    void *grown = realloc(old, wanted * entry_bytes);
    if (!grown)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    memcpy(table, &grown, sizeof grown);
    *allocated = wanted;
    return 0;
}

static int set_text(struct occ_run *row, const char *key, const char *value, struct occ_error *err)
{
    uint8_t session[16];
    char lower_case[33];
    for (size_t i = 0; i < sizeof process_texts / sizeof *process_texts; i++) {
        if (strcmp(process_texts[i].key, key) != 0)
            continue;
        if (strcmp(key, "session") == 0) {
            if (!occ_hex_decode(value, session, sizeof session))
                return 0;
            occ_hex_encode(session, sizeof session, lower_case);
            value = lower_case;
        }
        char *copy = strndup(value, process_texts[i].most_bytes);
        if (!copy)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        occ_text_sanitise(copy);
        const char **member = (const char **)(void *)((char *)row + process_texts[i].offset);
        free((void *)(uintptr_t)*member);
        *member = copy;
        return 0;
    }
    return 0; /* a key of a newer minor version */
}

static int take_process(struct occ_producer *p, const struct occ_log_record *frame, struct occ_store *store,
                        struct occ_error *err)
{
    (void)store;
    const struct occ_record_process *process = (const void *)frame;
    const char *text = (const char *)(process + 1);
    const char *end = text + process->text_bytes;
    for (uint32_t i = 0; i < process->count && text < end; i++) {
        const char *value = text + strnlen(text, (size_t)(end - text)) + 1;
        if (value >= end)
            break;
        p->is_exact = p->is_exact || (strcmp(text, "exact") == 0 && strcmp(value, "1") == 0);
        int status = set_text(&p->row, text, value, err);
        if (status != 0)
            return status;
        text = value + strnlen(value, (size_t)(end - value)) + 1;
    }
    p->row_changed = true;
    return 0;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

static int take_device(struct occ_producer *p, const struct occ_log_record *frame, struct occ_store *store,
                       struct occ_error *err)
{
    const struct occ_record_device *d = (const void *)frame;
    char name[sizeof d->name];
    memcpy(name, d->name, sizeof name);
    name[sizeof name - 1] = '\0';
    occ_text_sanitise(name);
    if (d->cc_major > 99 || d->cc_minor > 9)
        return occ_fail(err, OCC_E_INVALID, "device frame: compute capability");
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
        .simulated = ends_with(name, SIMULATED_SUFFIX),
    };
    memcpy(device.uuid, d->uuid, sizeof device.uuid);
    int status = grow(&p->devices, sizeof *p->devices, p->n_devices, &p->devices_allocated, err);
    if (status != 0)
        return status;
    struct occ_producer_device entry = {0};
    memcpy(entry.uuid, d->uuid, sizeof entry.uuid);
    entry.sm_count = d->sm_count;
    entry.warps_per_sm = d->warp_size ? d->max_threads_per_sm / d->warp_size : 0;
    status = occ_store_put_device(store, &device, &entry.id, err);
    if (status != 0)
        return status;
    p->devices[p->n_devices++] = entry;
    if (device.simulated && !p->row.simulated) {
        p->row.simulated = true;
        p->row_changed = true;
    }
    return 0;
}

static int take_kernel(struct occ_producer *p, const struct occ_log_record *frame, struct occ_store *store,
                       struct occ_error *err)
{
    const struct occ_record_kernel *k = (const void *)frame;
    int status = grow(&p->kernels, sizeof *p->kernels, p->n_kernels, &p->kernels_allocated, err);
    if (status != 0)
        return status;
    _cleanup_(occ_freep) char *name = strndup((const char *)(k + 1), k->name_bytes);
    if (!name)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    occ_text_sanitise(name);
    int64_t id = 0;
    status = occ_store_put_kernel(store, name, k->name_hash, &id, err);
    if (status == 0)
        p->kernels[p->n_kernels++] = id;
    return status;
}

static int take_shape(struct occ_producer *p, const struct occ_log_record *frame, struct occ_store *store,
                      struct occ_error *err)
{
    const struct occ_record_shape *s = (const void *)frame;
    if (s->kernel >= p->n_kernels || s->device >= p->n_devices)
        return occ_fail(err, OCC_E_INVALID, "shape frame: unknown kernel or device");
    struct occ_store_shape shape = {
        .kernel = p->kernels[s->kernel],
        .device = p->devices[s->device].id,
        .launch = {.registers_per_thread = s->registers_per_thread,
                   .static_smem_bytes = s->static_smem_bytes,
                   .dynamic_smem_bytes = s->dynamic_smem_bytes,
                   .smem_config_bytes = s->smem_executed_bytes,
                   .carveout_percent = s->carveout_percent,
                   .max_active_clusters = s->max_active_clusters,
                   /* "not raised" is no reason to doubt a launch that ran */
                   .smem_optin_known = s->smem_optin != 0,
                   .smem_optin = s->smem_optin != 0},
        .local_bytes_per_thread = s->local_bytes_per_thread,
        .max_cluster_size = s->max_cluster_size,
        .launch_type = s->launch_type,
        .cache_config = s->cache_config,
        .device_launched = s->device_launched,
    };
    memcpy(shape.launch.grid, s->grid, sizeof shape.launch.grid);
    memcpy(shape.launch.block, s->block, sizeof shape.launch.block);
    memcpy(shape.launch.cluster, s->cluster, sizeof shape.launch.cluster);
    int64_t id = 0;
    int status = grow(&p->shapes, sizeof *p->shapes, p->n_shapes, &p->shapes_allocated, err);
    if (status == 0)
        status = occ_store_put_shape(store, &shape, &id, err);
    if (status != 0)
        return status;
    if (id <= 0 || id > UINT32_MAX)
        return occ_fail(err, OCC_E_FULL, "the history holds too many shapes");
    p->shapes[p->n_shapes++] =
        (struct occ_producer_shape){.id = (uint32_t)id, .context = s->context, .device = s->device};
    return 0;
}

static int take_state(struct occ_producer *p, const struct occ_log_record *frame, struct occ_store *store,
                      struct occ_error *err)
{
    (void)store;
    (void)err;
    const struct occ_record_state *s = (const void *)frame;
    if (s->level >= OCC_LEVEL_COUNT)
        return occ_fail(err, OCC_E_INVALID, "state frame: unknown level");
    p->row.level = level_words[s->level];
    p->row.cupti_version = s->cupti_version;
    size_t n = strnlen(s->reason, sizeof s->reason);
    memcpy(p->reason, s->reason, n);
    p->reason[n] = '\0';
    occ_text_sanitise(p->reason);
    p->row_changed = true;
    return 0;
}

static int take_closed(struct occ_producer *p, const struct occ_log_record *frame, struct occ_store *store,
                       struct occ_error *err)
{
    (void)store;
    (void)err;
    p->closed_ns = ((const struct occ_record_closed *)(const void *)frame)->time_ns;
    return 0;
}

/* Counters may read a little more than there is; much more is no measurement. */
#define MOST_SHARE 1.05

static bool set_share(struct occ_measured_sums *sums, enum occ_measured_value which, double share_ns,
                      double ns)
{
    if (!(share_ns <= MOST_SHARE * ns))
        return false;
    sums->sum[which] = share_ns < ns ? share_ns : ns;
    sums->ns[which] = ns;
    return true;
}

/* Kept until the launches it was counted of have been read. What a GPU of these limits cannot do is not taken. */
static int take_measured(struct occ_producer *p, const struct occ_log_record *frame, struct occ_store *store,
                         struct occ_error *err)
{
    (void)store;
    const struct occ_record_measured *m = (const void *)frame;
    if (m->shape >= p->n_shapes)
        return occ_fail(err, OCC_E_INVALID, "measured frame: unknown shape");
    const struct occ_producer_shape *shape = &p->shapes[m->shape];
    const struct occ_producer_device *device = &p->devices[shape->device];
    double warps = device->warps_per_sm, sms = device->sm_count;
    int status = grow(&p->measured, sizeof *p->measured, p->n_measured, &p->measured_allocated, err);
    if (status != 0)
        return status;
    uint64_t number = p->measured_read++;
    if (number < p->measured_done || warps == 0 || sms == 0)
        return 0;
    struct occ_producer_measured entry = {
        .head = m->head, .number = number, .minute = (int64_t)m->minute, .shape = shape->id};
    entry.sums.exact = m->launches;
    if (!set_share(&entry.sums, OCC_MEASURED_achieved, m->warps_active_ns / warps, m->ns) ||
        !set_share(&entry.sums, OCC_MEASURED_elapsed, m->warps_ns / (warps * sms), m->ns) ||
        !set_share(&entry.sums, OCC_MEASURED_sm_active, m->sms_active_ns / sms, m->ns))
        return 0;
    if (!(m->blocks_active_ns <= MOST_SHARE * warps * m->ns)) /* a block is at least a warp */
        return 0;
    entry.sums.sum[OCC_MEASURED_resident_blocks] = m->blocks_active_ns;
    entry.sums.ns[OCC_MEASURED_resident_blocks] = m->ns;
    p->measured[p->n_measured++] = entry;
    return 0;
}

static int take_frame(struct occ_producer *p, const struct occ_log_record *frame, struct occ_store *store,
                      struct occ_error *err)
{
    static int (*const takers[])(struct occ_producer *, const struct occ_log_record *, struct occ_store *,
                                 struct occ_error *) = {
        [OCC_RECORD_PROCESS] = take_process,   [OCC_RECORD_DEVICE] = take_device,
        [OCC_RECORD_KERNEL] = take_kernel,     [OCC_RECORD_SHAPE] = take_shape,
        [OCC_RECORD_STATE] = take_state,       [OCC_RECORD_CLOSED] = take_closed,
        [OCC_RECORD_MEASURED] = take_measured,
    };
    if (frame->type >= sizeof takers / sizeof *takers || !takers[frame->type])
        return 0; /* of a newer minor version */
    int status = takers[frame->type](p, frame, store, err);
    /* What the store finds invalid will never be valid: the program's fault, not the store's. */
    return status == OCC_E_INVALID ? OCC_PRODUCER_BROKEN : status;
}

static int broken(const struct occ_producer *p, struct occ_error *err)
{
    const char *why = occ_ring_broken_reason(p->consumer);
    (void)occ_fail(err, OCC_E_CORRUPT, "%s", why ? why : "the log makes no sense");
    return OCC_PRODUCER_BROKEN;
}

int occ_producer_take_frames(struct occ_producer *producer, struct occ_store *store, size_t *budget,
                             struct occ_error *err)
{
    for (; *budget > 0; --*budget) {
        if (!producer->waiting_frame) {
            enum occ_ring_status ring =
                occ_ring_next_log_record(producer->consumer, &producer->waiting_frame);
            if (ring == OCC_RING_BROKEN)
                return broken(producer, err);
            if (ring == OCC_RING_EMPTY)
                break;
        }
        int status = take_frame(producer, producer->waiting_frame, store, err);
        if (status != 0)
            return status;
        producer->waiting_frame = NULL;
    }
    return producer->row_changed ? occ_producer_put_row(producer, store, err) : 0;
}
