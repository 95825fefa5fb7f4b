/*
 * The sink: checks what a reader gives, numbers devices, kernels and shapes, stages everything (stage.h), and pours it
 * into the history when the reader is done.
 *
 * Memory: the tables that tell whether a kernel or shape was seen hold 128-bit hashes of them, never names; their limits
 * (KERNELS_MOST, SHAPES_MOST) keep the whole process below 64 MB. One thread.
 */
#include "sink_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "stage.h"
#include "support/map.h"
#include "support/cleanup.h"

#define DEVICES_MOST    1024u
#define KERNELS_MOST    (1u << 16)
#define SHAPES_MOST     (1u << 16) /* the history holds some 300 bytes of each until the end of the pouring */
#define NAME_KEPT_BYTES 16384u     /* as much as the history keeps; all of it is hashed */
#define TEXT_BYTES      1024u
#define SMEM_MOST_BYTES (1u << 24)
#define BATCH_LAUNCHES  4096u
#define COMMIT_LAUNCHES 49152u /* the history holds 700 bytes of a launch that is alone in its minute */

/* What is known of things that are told apart by a hash: number by low half, high half by number. */
struct seen {
    struct occ_map index;
    uint64_t *high;
    uint32_t n, allocated, most;
};

struct claim {
    double sum, min, max;
    uint64_t n;
};

struct occ_import_sink {
    struct occ_import_options options;
    uint64_t seed; /* of the hashes: a file cannot choose names that all fall into one place of the tables */
    struct occ_stage *stage;
    struct occ_import_recording recording;
    char texts[7][TEXT_BYTES]; /* of the recording */
    struct occ_store_device devices[DEVICES_MOST];
    char device_names[DEVICES_MOST][256];
    uint64_t device_numbers[DEVICES_MOST];
    uint32_t n_devices;
    struct seen kernels, shapes;
    struct claim *claims; /* of each shape; NULL: none was made */
    uint32_t claims_allocated;
    uint64_t launches, skipped[OCC_IMPORT_SKIP_COUNT];
    int64_t first_ns, last_ns; /* start of the first launch, end of the last */
};

/* A shape on the stage; `kernel` is its number. */
struct staged_shape {
    uint32_t kernel, device;
    struct occ_store_shape shape;
};

struct staged_launch {
    uint32_t shape, stream, context, correlation;
    int64_t start_ns;
    uint64_t duration_ns, graph_node;
};

/* ---- begin and end ---- */

int occ_import_sink_new(const struct occ_import_options *options, struct occ_import_sink **ret_sink,
                        struct occ_error *err)
{
    struct occ_import_sink *sink = calloc(1, sizeof *sink);
    if (!sink)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    sink->options = *options;
    sink->kernels.most = KERNELS_MOST;
    sink->shapes.most = SHAPES_MOST;
    sink->recording.rank = -1;
    sink->first_ns = INT64_MAX;
    int status = getrandom(&sink->seed, sizeof sink->seed, 0) == (ssize_t)sizeof sink->seed
                     ? occ_stage_new(&sink->stage, err)
                     : occ_fail(err, OCC_E_IO, "no random numbers");
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
    struct seen *const tables[] = {&sink->kernels, &sink->shapes};
    for (size_t i = 0; i < 2; i++) {
        occ_map_free(&tables[i]->index);
        free(tables[i]->high);
    }
    free(sink->claims);
    free(sink);
}

/* ---- the recording and its devices ---- */

static const char *keep(struct occ_import_sink *sink, size_t slot, const char *text)
{
    if (!text)
        return NULL;
    size_t n = strnlen(text, TEXT_BYTES - 1);
    memmove(sink->texts[slot], text, n);
    sink->texts[slot][n] = '\0';
    return sink->texts[slot];
}

int occ_import_sink_recording(struct occ_import_sink *sink, const struct occ_import_recording *recording,
                              struct occ_error *err)
{
    (void)err;
    struct occ_import_recording *r = &sink->recording;
    *r = *recording;
    const char **const texts[] = {&r->tool,    &r->tool_version, &r->hostname, &r->exe,
                                  &r->cmdline, &r->user,         &r->lacks};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = keep(sink, i, *texts[i]);
    return 0;
}

static uint32_t find_device(const struct occ_import_sink *sink, uint64_t number)
{
    uint32_t i = 0;
    while (i < sink->n_devices && sink->device_numbers[i] != number)
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
    if (i == DEVICES_MOST)
        return occ_fail(err, OCC_E_FULL, "more than %u devices", DEVICES_MOST);
    sink->devices[i] = *device;
    sink->device_numbers[i] = number;
    size_t n = device->name ? strnlen(device->name, sizeof *sink->device_names - 1) : 0;
    memcpy(sink->device_names[i], device->name ? device->name : "", n);
    sink->device_names[i][n] = '\0';
    sink->devices[i].name = device->name ? sink->device_names[i] : NULL;
    if (i == sink->n_devices)
        sink->n_devices++;
    return 0;
}

/* ---- kernels and shapes ---- */

static bool remember(struct seen *seen, uint64_t high)
{
    if (seen->n == seen->allocated) {
        uint32_t more = seen->allocated ? seen->allocated * 2 : 1024;
        uint64_t *moved = realloc(seen->high, more * sizeof *moved);
        if (!moved)
            return false;
        seen->high = moved;
        seen->allocated = more;
    }
    seen->high[seen->n] = high;
    return true;
}

/* The number of what has this hash. *ret_new: it was not seen before. */
static int number_of(struct seen *seen, XXH128_hash_t hash, const char *what, uint32_t *ret_number,
                     bool *ret_new, struct occ_error *err)
{
    uint64_t key = hash.low64;
    uint32_t at;
    while ((at = occ_map_get(&seen->index, key)) != OCC_MAP_NONE && seen->high[at] != hash.high64)
        key++; /* another one with the same low half */
    *ret_new = at == OCC_MAP_NONE;
    *ret_number = *ret_new ? seen->n : at;
    if (!*ret_new)
        return 0;
    if (seen->n >= seen->most)
        return occ_fail(err, OCC_E_FULL, "more than %u different %s", seen->most, what);
    if (!remember(seen, hash.high64) || occ_map_put(&seen->index, key, seen->n) == OCC_MAP_NONE)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    seen->n++;
    return 0;
}

static uint64_t fnv1a64(const char *text, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The history's hash of the whole name, then as much of the name as it keeps. */
static int stage_kernel(struct occ_import_sink *sink, const char *name, size_t n, struct occ_error *err)
{
    char record[sizeof(uint64_t) + NAME_KEPT_BYTES];
    uint64_t hash = fnv1a64(name, n);
    size_t kept = n < NAME_KEPT_BYTES ? n : NAME_KEPT_BYTES;
    memcpy(record, &hash, sizeof hash);
    memcpy(record + sizeof hash, name, kept);
    return occ_stage_put(sink->stage, OCC_STAGE_KERNEL, record, sizeof hash + kept, err);
}

static int kernel_number(struct occ_import_sink *sink, const struct occ_import_launch *launch,
                         uint32_t *ret_number, struct occ_error *err)
{
    bool is_new = false;
    XXH128_hash_t hash = XXH3_128bits_withSeed(launch->name, launch->name_bytes, sink->seed);
    int status = number_of(&sink->kernels, hash, "kernels", ret_number, &is_new, err);
    if (status == 0 && is_new)
        status = stage_kernel(sink, launch->name, launch->name_bytes, err);
    return status;
}

/* Bytes between fields must not tell shapes apart: every field is copied into zeroed memory. */
static void copy_shape(struct staged_shape *to, const struct occ_store_shape *from)
{
    const struct occ_launch *l = &from->launch;
    struct occ_launch *t = &to->shape.launch;
    memcpy(t->grid, l->grid, sizeof t->grid);
    memcpy(t->block, l->block, sizeof t->block);
    memcpy(t->cluster, l->cluster, sizeof t->cluster);
    t->registers_per_thread = l->registers_per_thread;
    t->static_smem_bytes = l->static_smem_bytes;
    t->dynamic_smem_bytes = l->dynamic_smem_bytes;
    t->smem_config_bytes = l->smem_config_bytes;
    t->carveout_percent = l->carveout_percent;
    t->barriers = l->barriers;
    t->max_active_clusters = l->max_active_clusters;
    t->smem_optin_known = l->smem_optin_known;
    t->smem_optin = l->smem_optin;
    to->shape.local_bytes_per_thread = from->local_bytes_per_thread;
    to->shape.max_cluster_size = from->max_cluster_size;
    to->shape.launch_type = from->launch_type;
    to->shape.cache_config = from->cache_config;
    to->shape.device_launched = from->device_launched;
}

static int shape_number(struct occ_import_sink *sink, const struct occ_import_launch *launch, uint32_t device,
                        uint32_t *ret_number, struct occ_error *err)
{
    struct staged_shape staged;
    bool is_new = false;
    memset(&staged, 0, sizeof staged);
    staged.device = device;
    copy_shape(&staged, &launch->shape);
    int status = kernel_number(sink, launch, &staged.kernel, err);
    if (status == 0)
        status = number_of(&sink->shapes, XXH3_128bits_withSeed(&staged, sizeof staged, sink->seed),
                           "launch configurations", ret_number, &is_new, err);
    if (status == 0 && is_new)
        status = occ_stage_put(sink->stage, OCC_STAGE_SHAPE, &staged, sizeof staged, err);
    return status;
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

/* What no GPU has had or will have soon; the same bounds as for launches that are traced (ring/ring_abi.h). What is within
 * them and yet impossible on its device is for the model to say. */
static bool is_plausible(const struct occ_launch *l)
{
    return is_within(l->grid, INT32_MAX, 65535) && is_within(l->block, 1024, 1024) &&
           l->block[0] * l->block[1] * l->block[2] <= 1024 && is_within(l->cluster, 1024, 1024) &&
           l->registers_per_thread <= 1024 && l->static_smem_bytes <= SMEM_MOST_BYTES &&
           l->dynamic_smem_bytes <= SMEM_MOST_BYTES && l->smem_config_bytes <= SMEM_MOST_BYTES;
}

/* The first thing that keeps a launch out of the history; COUNT: nothing. */
static enum occ_import_skip objection(const struct occ_import_launch *l)
{
    const struct occ_launch *shape = &l->shape.launch;
    int64_t duration_ns = 0; /* what the start counts from may not be known yet: pour_launch() looks at it */
    if (l->end_ns < l->start_ns || __builtin_sub_overflow(l->end_ns, l->start_ns, &duration_ns))
        return OCC_IMPORT_SKIP_BAD_TIMES;
    if (l->name_bytes == 0)
        return OCC_IMPORT_SKIP_NO_NAME;
    if (is_zero(shape->grid) || is_zero(shape->block) || shape->registers_per_thread == 0)
        return OCC_IMPORT_SKIP_NO_CONFIGURATION;
    return is_plausible(shape) ? OCC_IMPORT_SKIP_COUNT : OCC_IMPORT_SKIP_BAD_VALUE;
}

static int add_claim(struct occ_import_sink *sink, uint32_t shape, double claimed, struct occ_error *err)
{
    if (!(claimed >= 0 && claimed <= 1)) /* NaN: none */
        return 0;
    if (shape >= sink->claims_allocated) {
        uint32_t more = sink->claims_allocated ? sink->claims_allocated : 256;
        while (more <= shape)
            more *= 2;
        struct claim *moved = realloc(sink->claims, more * sizeof *moved);
        if (!moved)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        memset(moved + sink->claims_allocated, 0, (more - sink->claims_allocated) * sizeof *moved);
        sink->claims = moved;
        sink->claims_allocated = more;
    }
    struct claim *claim = &sink->claims[shape];
    claim->min = claim->n == 0 ? claimed : fmin(claim->min, claimed);
    claim->max = claim->n == 0 ? claimed : fmax(claim->max, claimed);
    claim->sum += claimed;
    claim->n++;
    return 0;
}

int occ_import_sink_launch(struct occ_import_sink *sink, const struct occ_import_launch *launch,
                           struct occ_error *err)
{
    enum occ_import_skip why = objection(launch);
    uint32_t device = find_device(sink, launch->device), shape = 0;
    if (why == OCC_IMPORT_SKIP_COUNT && device == sink->n_devices)
        why = OCC_IMPORT_SKIP_NO_DEVICE;
    if (why != OCC_IMPORT_SKIP_COUNT) {
        sink->skipped[why]++;
        return 0;
    }
    int status = shape_number(sink, launch, device, &shape, err);
    if (status == 0)
        status = add_claim(sink, shape, launch->claimed_achieved, err);
    if (status != 0)
        return status;
    const struct staged_launch staged = {.shape = shape,
                                         .stream = launch->stream,
                                         .context = launch->context,
                                         .correlation = launch->correlation,
                                         .start_ns = launch->start_ns,
                                         .duration_ns = (uint64_t)(launch->end_ns - launch->start_ns),
                                         .graph_node = launch->graph_node};
    return occ_stage_put(sink->stage, OCC_STAGE_LAUNCH, &staged, sizeof staged, err);
}

void occ_import_sink_skip(struct occ_import_sink *sink, enum occ_import_skip why)
{
    sink->skipped[why]++;
}

void occ_import_sink_progress(struct occ_import_sink *sink, uint64_t done, uint64_t total)
{
    if (sink->options.progress)
        sink->options.progress(sink->options.context, done, total);
}

/* ---- into the history ---- */

struct pouring {
    struct occ_import_sink *sink;
    struct occ_store *store;
    struct occ_run row;
    char rank[16];
    int64_t run;
    int64_t *kernels; /* ids by number */
    struct {
        uint32_t id, device;
    } * shapes; /* by number */
    uint32_t n_kernels, n_shapes;
    int64_t devices[DEVICES_MOST];
    bool device_used[DEVICES_MOST];
    struct occ_store_launch batch[BATCH_LAUNCHES]; /* of one device */
    uint32_t n_batch, batch_device;
    uint64_t since_commit;
    bool known; /* the history has the file already */
};

static int flush(struct pouring *p, struct occ_error *err)
{
    if (p->n_batch == 0)
        return 0;
    int status = occ_store_append(p->store, p->run, p->devices[p->batch_device], p->batch, p->n_batch, err);
    p->since_commit += p->n_batch;
    p->n_batch = 0;
    if (status != 0 || p->since_commit < COMMIT_LAUNCHES)
        return status;
    p->since_commit = 0;
    return occ_store_commit(p->store, err);
}

static int pour_kernel(struct pouring *p, const void *data, size_t size, struct occ_error *err)
{
    char name[NAME_KEPT_BYTES + 1];
    uint64_t hash;
    memcpy(&hash, data, sizeof hash);
    memcpy(name, (const char *)data + sizeof hash, size - sizeof hash);
    name[size - sizeof hash] = '\0';
    return occ_store_put_kernel(p->store, name, hash, &p->kernels[p->n_kernels++], err);
}

static int device_id(struct pouring *p, uint32_t device, struct occ_error *err)
{
    if (p->device_used[device])
        return 0;
    p->device_used[device] = true;
    return occ_store_put_device(p->store, &p->sink->devices[device], &p->devices[device], err);
}

static int pour_shape(struct pouring *p, const void *data, struct occ_error *err)
{
    struct staged_shape staged;
    int64_t id = 0;
    memcpy(&staged, data, sizeof staged);
    int status = device_id(p, staged.device, err);
    if (status != 0)
        return status;
    staged.shape.kernel = p->kernels[staged.kernel];
    staged.shape.device = p->devices[staged.device];
    status = occ_store_put_shape(p->store, &staged.shape, &id, err);
    if (status != 0)
        return status;
    p->shapes[p->n_shapes].id = (uint32_t)id;
    p->shapes[p->n_shapes++].device = staged.device;
    return 0;
}

static int pour_launch(struct pouring *p, const void *data, struct occ_error *err)
{
    struct staged_launch l;
    int64_t start_ns = 0;
    int status = 0;
    memcpy(&l, data, sizeof l);
    bool far = __builtin_add_overflow(l.start_ns, p->sink->recording.shift_ns, &start_ns);
    if (far || !occ_store_times_are_valid(start_ns, l.duration_ns)) {
        p->sink->skipped[OCC_IMPORT_SKIP_BAD_TIMES]++;
        return 0;
    }
    if (p->n_batch == BATCH_LAUNCHES || (p->n_batch > 0 && p->batch_device != p->shapes[l.shape].device))
        status = flush(p, err);
    p->batch_device = p->shapes[l.shape].device;
    p->batch[p->n_batch++] = (struct occ_store_launch){.start_ns = start_ns,
                                                       .duration_ns = l.duration_ns,
                                                       .graph_node = l.graph_node,
                                                       .shape = p->shapes[l.shape].id,
                                                       .stream = l.stream,
                                                       .correlation = l.correlation,
                                                       .context = l.context};
    p->sink->launches++;
    int64_t end_ns = start_ns + (int64_t)l.duration_ns;
    p->sink->first_ns = start_ns < p->sink->first_ns ? start_ns : p->sink->first_ns;
    p->sink->last_ns = end_ns > p->sink->last_ns ? end_ns : p->sink->last_ns;
    return status;
}

static int pour_records(struct pouring *p, struct occ_error *err)
{
    int status = occ_stage_rewind(p->sink->stage, err);
    while (status == 0) {
        enum occ_stage_kind kind;
        const void *data;
        size_t size;
        status = occ_stage_next(p->sink->stage, &kind, &data, &size, err);
        if (status != 0 || size == SIZE_MAX)
            break;
        status = kind == OCC_STAGE_KERNEL  ? pour_kernel(p, data, size, err)
                 : kind == OCC_STAGE_SHAPE ? pour_shape(p, data, err)
                                           : pour_launch(p, data, err);
    }
    return status == 0 ? flush(p, err) : status;
}

static int pour_claims(struct pouring *p, struct occ_error *err)
{
    int status = 0;
    for (uint32_t i = 0; i < p->sink->claims_allocated && i < p->n_shapes && status == 0; i++) {
        const struct claim *c = &p->sink->claims[i];
        if (c->n == 0)
            continue;
        const struct occ_claim claim = {
            .launches = c->n, .mean = c->sum / (double)c->n, .min = c->min, .max = c->max};
        status = occ_store_put_claim(p->store, p->run, p->shapes[i].id, &claim, err);
    }
    return status;
}

/* The file's own name: where it lay says nothing later. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int pour_run(struct pouring *p, const char *path, const char *hash, struct occ_error *err)
{
    const struct occ_import_recording *r = &p->sink->recording;
    (void)snprintf(p->rank, sizeof p->rank, "%d", r->rank);
    p->row = (struct occ_run){.pid = r->pid,
                              .uid_unknown = true,
                              .start_ns = 1, /* until its launches have said it */
                              .hostname = r->hostname,
                              .exe = r->exe,
                              .cmdline = r->cmdline,
                              .user = r->user,
                              .label = p->sink->options.label,
                              .source = r->tool,
                              .source_version = r->tool_version,
                              .source_file = base_name(path),
                              .source_hash = hash,
                              .time_base = r->time_base == OCC_IMPORT_TIME_UNKNOWN ? "unknown" : "epoch",
                              .rank = r->rank >= 0 ? p->rank : NULL,
                              .lacks = r->lacks,
                              .level = "trace"};
    if (getrandom(p->row.uuid, sizeof p->row.uuid, 0) != (ssize_t)sizeof p->row.uuid)
        return occ_fail(err, OCC_E_IO, "no random numbers");
    return occ_store_put_run(p->store, &p->row, &p->run, err);
}

/* Its first start and last end are the run's. */
static int finish_run(struct pouring *p, struct occ_error *err)
{
    if (p->sink->launches == 0)
        return occ_fail(err, OCC_E_INVALID, "no kernel launch in it that could be imported");
    p->row.start_ns = p->sink->first_ns;
    p->row.end_ns = p->sink->last_ns;
    return occ_store_put_run(p->store, &p->row, &p->run, err);
}

/* Somebody else may have imported the same file while this one was read. *ret_known: then there is nothing to do. */
static int look_again(struct pouring *p, const char *hash, bool *ret_known, struct occ_error *err)
{
    *ret_known = false;
    if (p->sink->options.again)
        return 0;
    struct occ_error none = OCC_ERROR_INIT;
    int status = occ_store_find_import(p->store, hash, &p->run, &none);
    *ret_known = status == 0;
    return status == 0 || status == OCC_E_NOT_FOUND ? 0 : occ_fail(err, status, "%s", none.message);
}

static int pour_all(struct pouring *p, const char *path, const char *hash, struct occ_error *err)
{
    int status = occ_store_begin_bulk(p->store, err);
    if (status == 0)
        status = look_again(p, hash, &p->known, err);
    if (status == 0 && p->known)
        return occ_store_end_bulk(p->store, err);
    if (status == 0)
        status = pour_run(p, path, hash, err);
    if (status == 0)
        status = pour_records(p, err);
    if (status == 0)
        status = pour_claims(p, err);
    if (status == 0)
        status = finish_run(p, err);
    if (status == 0)
        status = occ_store_end_run(p->store, p->run, err);
    if (status == 0)
        status = occ_store_commit(p->store, err);
    return status == 0 ? occ_store_end_bulk(p->store, err) : status;
}

static void fill_result(const struct pouring *p, struct occ_import_result *result)
{
    const struct occ_import_sink *sink = p->sink;
    if (p->known) {
        *result = (struct occ_import_result){.run = p->run, .known = true};
        return;
    }
    *result = (struct occ_import_result){.run = p->run,
                                         .timeless = sink->recording.time_base == OCC_IMPORT_TIME_UNKNOWN,
                                         .launches = sink->launches,
                                         .kernels = sink->kernels.n,
                                         .shapes = sink->shapes.n};
    for (uint32_t i = 0; i < sink->n_devices; i++)
        result->devices += p->device_used[i];
    memcpy(result->skipped, sink->skipped, sizeof result->skipped);
}

int occ_import_sink_pour(struct occ_import_sink *sink, struct occ_store *store, const char *path,
                         const char *hash, struct occ_import_result *ret_result, struct occ_error *err)
{
    struct pouring *p = calloc(1, sizeof *p);
    int status = OCC_E_NO_MEMORY;
    if (p) {
        p->sink = sink;
        p->store = store;
        p->kernels = calloc(sink->kernels.n + 1, sizeof *p->kernels);
        p->shapes = calloc(sink->shapes.n + 1, sizeof *p->shapes);
    }
    if (p && p->kernels && p->shapes)
        status = pour_all(p, path, hash, err);
    else
        (void)occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    if (status == 0)
        fill_result(p, ret_result);
    if (p) {
        free(p->kernels);
        free(p->shapes);
    }
    free(p);
    return status;
}
