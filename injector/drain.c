/* See drain.h. */
#include "drain.h"

#include <string.h>

#include "activity.h"

int occ_drain_init(struct occ_drain *drain, struct occ_ring_producer *ring, const struct occ_tracing *tracing,
                   struct occ_pool *pool, const struct occ_exact_client *exact)
{
    memset(drain, 0, sizeof *drain);
    drain->ring = ring;
    drain->tracing = tracing;
    drain->pool = pool;
    drain->exact = exact;
    return occ_intern_init(&drain->intern, ring);
}

/* The id of the launch configuration, or OCC_INTERN_FULL or _UNREADABLE. */
static uint32_t config_of(struct occ_drain *drain, struct occ_activity *r)
{
    struct occ_record_config *config = &r->config;
    /* A configuration has an id per range; half of the table is reserved for launches without a range. */
    if (drain->ranges.calls && drain->intern.config_count < OCC_INTERN_CONFIGS / 2)
        config->range = occ_ranges_of(&drain->ranges, r->launch.correlation);
    config->device = occ_devices_id(&drain->devices, drain->ring, r->ordinal);
    if (config->device == OCC_DEVICES_FULL)
        return OCC_INTERN_FULL;
    config->kernel = occ_intern_kernel(&drain->intern, r->name);
    if (config->kernel == OCC_INTERN_FULL || config->kernel == OCC_INTERN_UNREADABLE)
        return config->kernel;
    return occ_intern_config(&drain->intern, config);
}

/* false: --exact does not take the launch. */
static bool add_exact(struct occ_drain *drain, const struct occ_activity *r, enum occ_loss_cause cause)
{
    if (!drain->exact->run)
        return false;
    const struct occ_exact_launch launch = {
        .launch = r->launch, .is_timed = r->times_are_valid, .cause = cause};
    return drain->exact->call->add_launch(drain->exact->run, &launch);
}

static void push(struct occ_drain *drain, struct occ_activity *r)
{
    if (!occ_ring_push(drain->ring, &r->launch)) /* counts its own loss */
        r->launch.config = OCC_EXACT_NO_CONFIG;
    (void)add_exact(drain, r, OCC_LOSS_BAD_TIMES);
}

static void lose_or_wait(struct occ_drain *drain, const struct occ_activity *r)
{
    enum occ_loss_cause cause = drain->by_force && r->has_no_end ? OCC_LOSS_EXIT : OCC_LOSS_BAD_TIMES;
    if (add_exact(drain, r, cause))
        return;
    drain->bad_times += !drain->exact->run; /* else it is the range profiler that takes the times */
    occ_ring_count_loss(drain->ring, cause, 1);
}

/* ---- pauses ---- */

bool occ_drain_pause(struct occ_drain *drain, uint64_t now_ns)
{
    struct occ_pause *last = &drain->pauses[drain->pause];
    if (last->until_ns == UINT64_MAX) {
        if (last->since_ns > now_ns)
            last->since_ns = now_ns;
        return false;
    }
    drain->pause = (drain->pause + 1) % OCC_DRAIN_PAUSES;
    drain->pauses[drain->pause] = (struct occ_pause){.since_ns = now_ns, .until_ns = UINT64_MAX};
    return true;
}

void occ_drain_resume(struct occ_drain *drain, uint64_t now_ns)
{
    for (uint32_t i = 0; i < OCC_DRAIN_PAUSES; i++)
        if (drain->pauses[i].until_ns > now_ns)
            drain->pauses[i].until_ns = now_ns;
}

static bool is_in_pause(const struct occ_drain *drain, uint64_t start_ns)
{
    for (uint32_t i = 0; i < OCC_DRAIN_PAUSES; i++)
        if (start_ns >= drain->pauses[i].since_ns && start_ns < drain->pauses[i].until_ns)
            return true;
    return false;
}

/* ---- records ---- */

bool occ_drain_found(struct occ_drain *drain, struct occ_ring_launch *launch)
{
    return !is_in_pause(drain, launch->start_ns) && occ_ring_push(drain->ring, launch);
}

/* true if the launch is not recorded: it started in a pause, or $OCCTRACE_LAUNCHES is reached. Records come
 * in any order of time. */
static bool is_beyond(struct occ_drain *drain, const struct occ_activity *r)
{
    if (is_in_pause(drain, r->launch.start_ns))
        return true;
    if (drain->max_launches == 0 || drain->ring->head - drain->memory < drain->max_launches)
        return false;
    if (r->times_are_valid && (drain->beyond_ns == 0 || r->launch.start_ns < drain->beyond_ns))
        drain->beyond_ns = r->launch.start_ns;
    return true;
}

static bool is_one(const uint32_t extent[3])
{
    return extent[0] == 1 && extent[1] == 1 && extent[2] == 1;
}

/* --exact: the range profiler runs a kernel of its own before each range, which has a record and no
 * range. A program's own kernel of the same name and size is skipped too. */
static bool is_replay_wait(struct occ_drain *drain, const struct occ_activity *r)
{
    static const char name[] = "WaitNs";
    return drain->exact->call && r->launch.graph_node == 0 && is_one(r->config.grid) &&
           is_one(r->config.block) &&
           occ_readable_length(&drain->intern.readable, r->name, sizeof name) == sizeof name - 1 &&
           memcmp(r->name, name, sizeof name - 1) == 0;
}

void occ_drain_record(struct occ_drain *drain, const struct occ_cupti_kernel *record)
{
    struct occ_activity r;
    occ_activity_parse(record, drain->tracing->cupti.version, &r);
    drain->records++;
    if (is_beyond(drain, &r) || is_replay_wait(drain, &r))
        return;
    uint32_t config = config_of(drain, &r); /* also without valid times: the configuration was launched */
    bool is_known = config != OCC_INTERN_FULL && config != OCC_INTERN_UNREADABLE;
    enum occ_loss_cause unknown = config != OCC_INTERN_FULL            ? OCC_LOSS_BAD_RECORD
                                  : occ_ring_lacks_memory(drain->ring) ? OCC_LOSS_NO_MEMORY
                                                                       : OCC_LOSS_LOG_FULL;
    r.launch.config = config;
    if (!is_known)
        occ_ring_count_loss(drain->ring, unknown, 1);
    else if (r.times_are_valid)
        push(drain, &r);
    else
        lose_or_wait(drain, &r);
}

/* The size in quarters of an octave: operations of one class occupy the GPU alike. */
static uint32_t size_class(uint64_t bytes)
{
    uint32_t octave = bytes < 4 ? 0 : 63u - (uint32_t)__builtin_clzll(bytes);
    return bytes < 4 ? (uint32_t)bytes : 4 * octave + (uint32_t)(bytes >> (octave - 2) & 3);
}

/* The launch configuration of memory operations on a device, or OCC_INTERN_FULL or _UNREADABLE. */
static uint32_t memory_config_of(struct occ_drain *drain, const struct occ_cupti_memory_record *record)
{
    struct occ_record_config config = {.grid = {1 + size_class(record->bytes), 1, 1},
                                       .block = {1, 1, 1},
                                       .cluster = {1, 1, 1},
                                       .carveout_percent = -1};
    config.kernel = occ_intern_memory(
        &drain->intern, record->kind == OCC_CUPTI_KIND_MEMSET ? OCC_KERNEL_FILL : OCC_KERNEL_COPY);
    config.device = occ_devices_id(&drain->devices, drain->ring, record->device);
    if (config.kernel == OCC_INTERN_FULL || config.device == OCC_DEVICES_FULL)
        return OCC_INTERN_FULL;
    return occ_intern_config(&drain->intern, &config);
}

/* Passes on a fill or copy that ran on SMs, if the daemon measures this program. */
static void drain_memory(struct occ_drain *drain, const struct occ_cupti_memory_record *record)
{
    const struct occ_cupti_memory_record *r = record;
    if (r->channel_type != OCC_CUPTI_CHANNEL_COMPUTE || r->end_ns <= r->start_ns ||
        !occ_ring_times_are_valid(r->start_ns, r->end_ns - r->start_ns) || drain->exact->run ||
        !occ_ring_wants_memory(drain->ring) || is_in_pause(drain, r->start_ns) || drain->beyond_ns > 0)
        return;
    const struct occ_ring_launch operation = {.start_ns = r->start_ns,
                                              .duration_ns = r->end_ns - r->start_ns,
                                              .config = memory_config_of(drain, r),
                                              .stream = r->stream,
                                              .correlation = r->correlation};
    if (operation.config != OCC_INTERN_FULL && operation.config != OCC_INTERN_UNREADABLE)
        drain->memory += occ_ring_push_memory(drain->ring, &operation);
}

/* true if the record lies within the valid bytes, complete and aligned. */
static bool is_within(const uint8_t *buffer, size_t valid_bytes, const void *record, size_t record_bytes)
{
    uintptr_t offset = (uintptr_t)record - (uintptr_t)buffer;
    return offset % 8 == 0 && offset <= valid_bytes && valid_bytes - offset >= record_bytes;
}

/* CUPTI stopped in the middle of a buffer: counts the records that fit after `done_bytes`, at least one. */
static void lose_rest(struct occ_drain *drain, size_t valid_bytes, size_t done_bytes)
{
    size_t record_bytes = occ_cupti_kernel_bytes(drain->tracing->cupti.version);
    size_t rest = done_bytes < valid_bytes ? (valid_bytes - done_bytes) / record_bytes : 0;
    if (valid_bytes > 0)
        occ_ring_count_loss(drain->ring, OCC_LOSS_BAD_RECORD, rest > 0 ? rest : 1);
}

/* Limits for reusing names: reading 125 names again costs as much as 150 records. */
#define REREAD_RECORDS 16384u
#define REREAD_NS      UINT64_C(250000000)

static void begin_buffer(struct occ_drain *drain, uint64_t delivered_ns)
{
    bool reread = drain->records - drain->reread_records >= REREAD_RECORDS ||
                  delivered_ns - drain->reread_ns >= REREAD_NS;
    if (reread) {
        drain->reread_records = drain->records;
        drain->reread_ns = delivered_ns;
    }
    occ_intern_next_buffer(&drain->intern, reread);
}

/* Other kinds are enabled by another client, or against a leak (tracing.c). */
static void drain_any(struct occ_drain *drain, const uint8_t *buffer, size_t valid_bytes, const void *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    bool is_memory = kind == OCC_CUPTI_KIND_MEMCPY || kind == OCC_CUPTI_KIND_MEMSET;
    bool is_kernel = kind == OCC_CUPTI_KIND_CONCURRENT_KERNEL;
    size_t bytes = is_memory ? sizeof(struct occ_cupti_memory_record)
                             : occ_cupti_kernel_bytes(drain->tracing->cupti.version);
    bool is_whole = is_within(buffer, valid_bytes, record, bytes);
    if (is_memory && is_whole)
        drain_memory(drain, record);
    else if (is_kernel && is_whole)
        occ_drain_record(drain, record);
    else if (is_kernel)
        occ_ring_count_loss(drain->ring, OCC_LOSS_BAD_RECORD, 1);
}

static void drain_buffer(struct occ_drain *drain, uint8_t *buffer, size_t valid_bytes)
{
    size_t record_bytes = occ_cupti_kernel_bytes(drain->tracing->cupti.version);
    size_t max = valid_bytes / sizeof(uint64_t); /* bounds the loop if the library never ends */
    size_t done_bytes = 0;
    uint32_t result = OCC_CUPTI_ERROR_MAX_LIMIT_REACHED; /* the end */
    void *record = NULL;
    occ_ring_expect(drain->ring, valid_bytes / record_bytes + 1);
    while (max-- > 0 && !occ_drain_is_stopped(drain) &&
           (result = drain->tracing->call.get_next_record(buffer, valid_bytes, &record)) ==
               OCC_CUPTI_SUCCESS) {
        if (!is_within(buffer, valid_bytes, record, sizeof(uint64_t)))
            break;
        done_bytes = (size_t)((uint8_t *)record - buffer) + record_bytes;
        drain_any(drain, buffer, valid_bytes, record);
    }
    if (result != OCC_CUPTI_ERROR_MAX_LIMIT_REACHED && !occ_drain_is_stopped(drain))
        lose_rest(drain, valid_bytes, done_bytes);
}

static void read_ranges(struct occ_drain *drain, uint8_t *buffer, size_t valid_bytes)
{
    size_t max = valid_bytes / sizeof(uint64_t);
    void *record = NULL;
    while (max-- > 0 && !occ_drain_is_stopped(drain) &&
           drain->tracing->call.get_next_record(buffer, valid_bytes, &record) == OCC_CUPTI_SUCCESS &&
           is_within(buffer, valid_bytes, record, sizeof(uint64_t))) {
        struct occ_cupti_external_record external;
        uint32_t kind;
        memcpy(&kind, record, sizeof kind);
        if (kind != OCC_CUPTI_KIND_EXTERNAL || !is_within(buffer, valid_bytes, record, sizeof external))
            continue;
        memcpy(&external, record, sizeof external);
        occ_ranges_add(&drain->ranges, &external);
    }
}

/* Buffers arrive in any order: the ranges in all delivered buffers are read before the first kernel. */
static void read_ahead(struct occ_drain *drain)
{
    struct occ_drain_ahead *a = drain->ahead;
    drain->n_ahead = drain->at_ahead = 0;
    while (drain->n_ahead < drain->pool->count &&
           (a->index = occ_pool_next(drain->pool, &a->buffer, &a->valid_bytes)) >= 0) {
        read_ranges(drain, a->buffer, a->valid_bytes);
        drain->n_ahead++;
        a++;
    }
}

static int next_buffer(struct occ_drain *drain, uint8_t **ret_buffer, size_t *ret_valid_bytes)
{
    if (!drain->ranges.calls)
        return occ_pool_next(drain->pool, ret_buffer, ret_valid_bytes);
    if (drain->at_ahead == drain->n_ahead)
        read_ahead(drain);
    if (drain->at_ahead == drain->n_ahead)
        return -1;
    const struct occ_drain_ahead *a = &drain->ahead[drain->at_ahead++];
    *ret_buffer = a->buffer;
    *ret_valid_bytes = a->valid_bytes;
    return a->index;
}

static void count_discarded(struct occ_drain *drain)
{
    uint64_t bytes = atomic_load_explicit(&drain->pool->discarded_bytes, memory_order_relaxed);
    uint64_t records = bytes / occ_cupti_kernel_bytes(drain->tracing->cupti.version);
    if (records > drain->no_buffer)
        occ_ring_count_loss(drain->ring, OCC_LOSS_NO_BUFFER, records - drain->no_buffer);
    drain->no_buffer = records;
}

void occ_drain_all(struct occ_drain *drain)
{
    uint8_t *buffer;
    size_t valid_bytes;
    int index;
    /* Bounded: a program may fill buffers as fast as they are drained, and the helper has other work. */
    uint32_t max = drain->pool->count;
    while (max-- > 0 && (index = next_buffer(drain, &buffer, &valid_bytes)) >= 0) {
        begin_buffer(drain, drain->pool->use[index].delivered_ns);
        drain_buffer(drain, buffer, valid_bytes);
        occ_drain_step(drain);
        occ_pool_recycle(drain->pool, index);
        drain->buffers++;
    }
    count_discarded(drain);
}
