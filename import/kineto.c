/*
 * Chrome-trace JSON as the PyTorch profiler (Kineto) writes it: {"traceEvents": [...], "deviceProperties": [...], ...} in
 * any order, or the bare array of events. Streamed through yajl; of millions of events only kernels are kept, one at a
 * time. Memory is bounded: nesting, the length of one text, and what an event holds have limits.
 *
 * Times are microseconds with a decimal fraction, and count from baseTimeNanoseconds where the file has it (it may come
 * after the events: the sink adds it at the end). A file whose devices come after its kernels is read twice.
 *
 * One thread.
 */
#include "readers.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <yajl/yajl_parse.h>
#include <zlib.h>

#include "decimal.h"
#include "kineto.h"

#define DEPTH_MOST  256
#define TOKEN_MOST  (4u << 20) /* one text, or blanks between two tokens */
#define NAME_MOST   (1u << 20)
#define CHUNK_BYTES (64u * 1024u)

/* Times before and after which they cannot be meant as time of day: 2000-01-01 and 2100-01-01. */
#define EPOCH_FROM_NS INT64_C(946684800000000000)
#define EPOCH_TO_NS   INT64_C(4102444800000000000)

/* What this format never says. */
#define LACKS                                                                                                \
    "the split of shared memory into static and dynamic, the driver's shared-memory carve-out, cluster "     \
    "size, local "                                                                                           \
    "memory, launch type"

/* Where in the document we are. */
enum place { DOCUMENT, TOP, EVENTS, EVENT, ARGS, VECTOR, DEVICES, DEVICE, DISTRIBUTED, ELSEWHERE };

/* What a key means there. Integers come first: they have a place in struct values. X(name, place, key, scale) */
#define INTEGERS(X)                                                                                          \
    X(TS, EVENT, "ts", 3)                                                                                    \
    X(DUR, EVENT, "dur", 3)                                                                                  \
    X(PID, EVENT, "pid", 0)                                                                                  \
    X(ARG_DEVICE, ARGS, "device", 0)                                                                         \
    X(ARG_CONTEXT, ARGS, "context", 0)                                                                       \
    X(ARG_STREAM, ARGS, "stream", 0)                                                                         \
    X(ARG_CORRELATION, ARGS, "correlation", 0)                                                               \
    X(ARG_REGISTERS, ARGS, "registers per thread", 0)                                                        \
    X(ARG_SMEM, ARGS, "shared memory", 0)                                                                    \
    X(ARG_CLAIM, ARGS, "est. achieved occupancy %", 4)                                                       \
    X(ARG_GRAPH_NODE, ARGS, "graph node id", 0)                                                              \
    X(DEV_ID, DEVICE, "id", 0)                                                                               \
    X(DEV_MEMORY, DEVICE, "totalGlobalMem", 0)                                                               \
    X(DEV_MAJOR, DEVICE, "computeMajor", 0)                                                                  \
    X(DEV_MINOR, DEVICE, "computeMinor", 0)                                                                  \
    X(DEV_THREADS_PER_BLOCK, DEVICE, "maxThreadsPerBlock", 0)                                                \
    X(DEV_THREADS_PER_SM, DEVICE, "maxThreadsPerMultiprocessor", 0)                                          \
    X(DEV_REGISTERS_PER_BLOCK, DEVICE, "regsPerBlock", 0)                                                    \
    X(DEV_REGISTERS_PER_SM, DEVICE, "regsPerMultiprocessor", 0)                                              \
    X(DEV_WARP, DEVICE, "warpSize", 0)                                                                       \
    X(DEV_SMEM_PER_BLOCK, DEVICE, "sharedMemPerBlock", 0)                                                    \
    X(DEV_SMEM_OPTIN, DEVICE, "sharedMemPerBlockOptin", 0)                                                   \
    X(DEV_SMEM_PER_SM, DEVICE, "sharedMemPerMultiprocessor", 0)                                              \
    X(DEV_SMS, DEVICE, "numSms", 0)                                                                          \
    X(RANK, DISTRIBUTED, "rank", 0)                                                                          \
    X(BASE_TIME, TOP, "baseTimeNanoseconds", 0)                                                              \
    X(SCHEMA, TOP, "schemaVersion", 0)

enum meaning {
#define X(name, place, key, scale) name,
    INTEGERS(X)
#undef X
        INTEGER_COUNT,
    PH = INTEGER_COUNT,
    CATEGORY,
    NAME,
    DEVICE_NAME,
    THE_EVENTS,
    THE_DEVICES,
    THE_DISTRIBUTED,
    THE_ARGS,
    GRID,
    BLOCK,
    CLUSTER,
    NOTHING,
};

static const struct key {
    enum place place;
    const char *text;
    enum meaning meaning;
    size_t length;
    int scale;
} keys[] = {
#define X(name, place, key, scale) {place, key, name, sizeof key - 1, scale},
    INTEGERS(X)
#undef X
#define KEY(place, key, meaning)                                                                             \
    {                                                                                                        \
        place, key, meaning, sizeof key - 1, 0                                                               \
    }
        KEY(EVENT, "ph", PH),
    KEY(EVENT, "cat", CATEGORY),
    KEY(EVENT, "name", NAME),
    KEY(EVENT, "args", THE_ARGS),
    KEY(ARGS, "grid", GRID),
    KEY(ARGS, "block", BLOCK),
    KEY(ARGS, "cluster", CLUSTER),
    KEY(DEVICE, "name", DEVICE_NAME),
    KEY(TOP, "traceEvents", THE_EVENTS),
    KEY(TOP, "deviceProperties", THE_DEVICES),
    KEY(TOP, "distributedInfo", THE_DISTRIBUTED),
};
#define N_KEYS (sizeof keys / sizeof *keys)

struct vector {
    int64_t value[3];
    unsigned n; /* elements met, also those beyond the third */
    bool bad;
};

struct event {
    bool kernel, complete, process; /* of the category kernel; ph "X"; of the program itself */
    bool has_args, bad_name;
    size_t name_bytes;
    struct vector grid, block, cluster;
};

struct occ_kineto {
    struct occ_import_sink *sink;
    struct occ_error *err;
    const struct occ_device *gpu;
    const char *gpu_name;
    int status; /* not 0: stop */

    enum place stack[DEPTH_MOST + 1];
    int depth;
    const struct key *key; /* of the value that comes next; NULL: none that we want */
    uint64_t tokens;       /* ever: to notice when one takes too long */

    int64_t values[INTEGER_COUNT];
    uint64_t known, bad; /* bit of each integer */
    struct event event;
    char *name; /* of the event */
    size_t name_allocated;
    char device_name[256];
    int64_t next_device; /* for devices without an id */

    bool described;     /* deviceProperties was there */
    bool only_metadata; /* kernels came before the devices: this pass is for those */
    bool second;        /* and this is the other one */
    bool several_pids;
    int64_t pid, first_ns;
    uint64_t kernels;
};
static_assert(INTEGER_COUNT <= 64, "a bit each");

#define BIT(meaning) (UINT64_C(1) << (meaning))

/* ---- events ---- */

static bool has(const struct occ_kineto *k, enum meaning what)
{
    return (k->known & BIT(what)) != 0;
}

static int64_t get(const struct occ_kineto *k, enum meaning what)
{
    return has(k, what) ? k->values[what] : 0;
}

/* Forgets the integers from `first` to `last`. */
static void forget(struct occ_kineto *k, enum meaning first, enum meaning last)
{
    uint64_t bits = (BIT(last) - BIT(first)) | BIT(last);
    k->known &= ~bits;
    k->bad &= ~bits;
}

static void begin_event(struct occ_kineto *k)
{
    k->event = (struct event){0};
    forget(k, TS, ARG_GRAPH_NODE);
}

static bool fits_u32(int64_t value)
{
    return value >= 0 && value <= UINT32_MAX;
}

static bool take_vector(const struct vector *vector, uint32_t size[3])
{
    for (int i = 0; i < 3; i++) {
        if (vector->bad || vector->n != 3 || vector->value[i] < 0 || vector->value[i] > INT32_MAX)
            return false;
        size[i] = (uint32_t)vector->value[i];
    }
    return true;
}

/* The launch of the event at hand; SKIP_COUNT: nothing is wrong with it. */
static enum occ_import_skip make_launch(const struct occ_kineto *k, struct occ_import_launch *launch)
{
    static const enum meaning u32s[] = {ARG_CONTEXT, ARG_STREAM, ARG_CORRELATION, ARG_REGISTERS, ARG_SMEM};
    struct occ_launch *l = &launch->shape.launch;
    const uint64_t times = BIT(TS) | BIT(DUR);
    if ((k->bad & times) || (k->known & times) != times ||
        __builtin_add_overflow(get(k, TS), get(k, DUR), &launch->end_ns))
        return OCC_IMPORT_SKIP_BAD_TIMES;
    if (!k->event.has_args || !has(k, ARG_REGISTERS) || k->event.grid.n == 0 || k->event.block.n == 0)
        return k->bad & BIT(ARG_REGISTERS) ? OCC_IMPORT_SKIP_BAD_VALUE : OCC_IMPORT_SKIP_NO_CONFIGURATION;
    for (size_t i = 0; i < sizeof u32s / sizeof *u32s; i++)
        if (!fits_u32(get(k, u32s[i])) || (k->bad & BIT(u32s[i])))
            return OCC_IMPORT_SKIP_BAD_VALUE;
    if ((k->bad & (BIT(ARG_DEVICE) | BIT(ARG_GRAPH_NODE))) || k->event.bad_name ||
        !take_vector(&k->event.grid, l->grid) || !take_vector(&k->event.block, l->block))
        return OCC_IMPORT_SKIP_BAD_VALUE;
    if (k->event.cluster.n > 0 && !take_vector(&k->event.cluster, l->cluster))
        return OCC_IMPORT_SKIP_BAD_VALUE;
    launch->start_ns = get(k, TS);
    launch->device = (uint64_t)get(k, ARG_DEVICE);
    launch->context = (uint32_t)get(k, ARG_CONTEXT);
    launch->stream = (uint32_t)get(k, ARG_STREAM);
    launch->correlation = (uint32_t)get(k, ARG_CORRELATION);
    launch->graph_node = (uint64_t)get(k, ARG_GRAPH_NODE);
    l->registers_per_thread = (uint32_t)get(k, ARG_REGISTERS);
    l->dynamic_smem_bytes = (uint32_t)get(k, ARG_SMEM);
    l->carveout_percent = -1;
    if (has(k, ARG_CLAIM))
        launch->claimed_achieved = (double)get(k, ARG_CLAIM) / 1e6;
    return OCC_IMPORT_SKIP_COUNT;
}

/* The GPU that the user named stands for every device of a file that describes none. */
static int use_named_gpu(struct occ_kineto *k, uint64_t number)
{
    const struct occ_store_device device = {.name = k->gpu_name, .limits = *k->gpu};
    if (occ_import_sink_has_device(k->sink, number))
        return 0;
    return occ_import_sink_device(k->sink, number, &device, k->err);
}

static int end_kernel(struct occ_kineto *k)
{
    struct occ_import_launch launch = {
        .name = k->name, .name_bytes = k->event.name_bytes, .claimed_achieved = NAN};
    k->kernels++;
    if (!k->described && !k->second)
        k->only_metadata = true;
    if (k->only_metadata)
        return 0;
    enum occ_import_skip why = make_launch(k, &launch);
    if (why != OCC_IMPORT_SKIP_COUNT) {
        occ_import_sink_skip(k->sink, why);
        return 0;
    }
    if (launch.start_ns < k->first_ns)
        k->first_ns = launch.start_ns;
    int status = k->described ? 0 : use_named_gpu(k, launch.device);
    return status == 0 ? occ_import_sink_launch(k->sink, &launch, k->err) : status;
}

static int end_event(struct occ_kineto *k)
{
    if (k->event.process && has(k, PID)) {
        int64_t pid = get(k, PID);
        k->several_pids |= k->pid != 0 && k->pid != pid;
        k->pid = pid;
    }
    return k->event.kernel && k->event.complete ? end_kernel(k) : 0;
}

/* ---- devices ---- */

static uint32_t limit_of(const struct occ_kineto *k, enum meaning what)
{
    int64_t value = get(k, what);
    return fits_u32(value) && !(k->bad & BIT(what)) ? (uint32_t)value : 0;
}

/* Devices of other makers (their warps are not of 32 threads) are not described: the model knows nothing of them. */
static int end_device(struct occ_kineto *k)
{
    const struct occ_store_device device = {
        .name = k->device_name,
        .limits = {.cc = limit_of(k, DEV_MAJOR) < 100 && limit_of(k, DEV_MINOR) < 10
                             ? limit_of(k, DEV_MAJOR) * 10 + limit_of(k, DEV_MINOR)
                             : 0,
                   .sm_count = limit_of(k, DEV_SMS),
                   .warp_size = limit_of(k, DEV_WARP),
                   .max_threads_per_block = limit_of(k, DEV_THREADS_PER_BLOCK),
                   .max_threads_per_sm = limit_of(k, DEV_THREADS_PER_SM),
                   .registers_per_block = limit_of(k, DEV_REGISTERS_PER_BLOCK),
                   .registers_per_sm = limit_of(k, DEV_REGISTERS_PER_SM),
                   .smem_per_block_bytes = limit_of(k, DEV_SMEM_PER_BLOCK),
                   .smem_per_block_optin_bytes = limit_of(k, DEV_SMEM_OPTIN),
                   .smem_per_sm_bytes = limit_of(k, DEV_SMEM_PER_SM)},
        .memory_bytes = get(k, DEV_MEMORY) > 0 ? (uint64_t)get(k, DEV_MEMORY) : 0,
    };
    int64_t number = has(k, DEV_ID) ? get(k, DEV_ID) : k->next_device;
    k->next_device = number < INT64_MAX ? number + 1 : number;
    if (number < 0 || (device.limits.warp_size != 0 && device.limits.warp_size != 32))
        return 0;
    return occ_import_sink_device(k->sink, (uint64_t)number, &device, k->err);
}

/* ---- yajl's callbacks: 1 goes on, 0 stops ---- */

static enum place place_of(const struct occ_kineto *k)
{
    return k->stack[k->depth];
}

/* What a map or array that begins here is. */
static enum place inner_place(const struct occ_kineto *k, bool map)
{
    static const struct {
        enum place outer;
        enum meaning key; /* NOTHING: any element of an array */
        bool map;
        enum place inner;
    } rows[] = {
        {TOP, THE_EVENTS, false, EVENTS},
        {TOP, THE_DEVICES, false, DEVICES},
        {EVENTS, NOTHING, true, EVENT},
        {EVENT, THE_ARGS, true, ARGS},
        {ARGS, GRID, false, VECTOR},
        {ARGS, BLOCK, false, VECTOR},
        {ARGS, CLUSTER, false, VECTOR},
        {DEVICES, NOTHING, true, DEVICE},
        {TOP, THE_DISTRIBUTED, true, DISTRIBUTED},
        {DOCUMENT, NOTHING, true, TOP},
        {DOCUMENT, NOTHING, false, EVENTS},
    };
    enum meaning key = k->key ? k->key->meaning : NOTHING;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].outer == place_of(k) && rows[i].key == key && rows[i].map == map)
            return rows[i].inner;
    return ELSEWHERE;
}

static struct vector *vector_of(struct occ_kineto *k)
{
    enum meaning key = k->key ? k->key->meaning : NOTHING;
    return key == GRID ? &k->event.grid : key == BLOCK ? &k->event.block : &k->event.cluster;
}

static int begin(struct occ_kineto *k, bool map)
{
    enum place inner = inner_place(k, map);
    k->tokens++;
    if (k->depth == DEPTH_MOST) {
        k->status = occ_fail(k->err, OCC_E_INVALID, "nested deeper than %d levels", DEPTH_MOST);
        return 0;
    }
    k->stack[++k->depth] = inner;
    if (inner == EVENT)
        begin_event(k);
    else if (inner == ARGS)
        k->event.has_args = true;
    else if (inner == DEVICES)
        k->described = true;
    else if (inner == VECTOR)
        *vector_of(k) = (struct vector){0}; /* the key stays: elements ask for it */
    else if (inner == DEVICE) {
        forget(k, DEV_ID, DEV_SMS);
        k->device_name[0] = '\0';
    }
    if (inner != VECTOR)
        k->key = NULL;
    return 1;
}

static int end(struct occ_kineto *k)
{
    enum place inner = k->stack[k->depth--];
    k->tokens++;
    k->key = NULL;
    if (inner == EVENT)
        k->status = end_event(k);
    else if (inner == DEVICE && !k->second)
        k->status = end_device(k);
    return k->status == 0;
}

static int on_key(void *context, const unsigned char *text, size_t n)
{
    struct occ_kineto *k = context;
    enum place place = place_of(k);
    k->tokens++;
    k->key = NULL;
    if (place == ELSEWHERE || (place == ARGS && !k->event.kernel && k->event.process))
        return 1;
    for (size_t i = 0; i < N_KEYS; i++)
        if (keys[i].length == n && keys[i].place == place && memcmp(keys[i].text, text, n) == 0) {
            k->key = &keys[i];
            break;
        }
    return 1;
}

static void take_number(struct occ_kineto *k, const char *text, size_t n)
{
    enum meaning what = k->key->meaning;
    int64_t value = 0;
    if (what >= INTEGER_COUNT)
        return;
    if (occ_decimal_parse(text, n, k->key->scale, &value)) {
        k->values[what] = value;
        k->known |= BIT(what);
    } else {
        k->bad |= BIT(what);
    }
}

static void take_element(struct vector *vector, const char *text, size_t n)
{
    int64_t value = 0;
    if (!occ_decimal_parse(text, n, 0, &value))
        vector->bad = true;
    else if (vector->n < 3)
        vector->value[vector->n] = value;
    vector->n++;
}

static int on_number(void *context, const char *text, size_t n)
{
    struct occ_kineto *k = context;
    k->tokens++;
    if (place_of(k) == VECTOR)
        take_element(vector_of(k), text, n);
    else if (k->key)
        take_number(k, text, n);
    return 1;
}

static int keep_name(struct occ_kineto *k, const unsigned char *text, size_t n)
{
    k->event.bad_name = n > NAME_MOST;
    if (n > NAME_MOST)
        return 0;
    if (n > k->name_allocated) {
        char *moved = realloc(k->name, n);
        if (!moved)
            return occ_fail(k->err, OCC_E_NO_MEMORY, "out of memory");
        k->name = moved;
        k->name_allocated = n;
    }
    memcpy(k->name, text, n);
    k->event.name_bytes = n;
    return 0;
}

static bool is_text(const unsigned char *text, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp((const char *)text, word, n) == 0;
}

static void keep_device_name(struct occ_kineto *k, const unsigned char *text, size_t n)
{
    n = n < sizeof k->device_name - 1 ? n : sizeof k->device_name - 1;
    memcpy(k->device_name, text, n);
    k->device_name[n] = '\0';
}

static int on_string(void *context, const unsigned char *text, size_t n)
{
    struct occ_kineto *k = context;
    enum meaning what = k->key ? k->key->meaning : NOTHING;
    k->tokens++;
    if (place_of(k) == VECTOR)
        vector_of(k)->bad = true;
    else if (what < INTEGER_COUNT)
        k->bad |= BIT(what);
    else if (what == PH)
        k->event.complete = is_text(text, n, "X");
    else if (what == CATEGORY) {
        k->event.kernel = is_text(text, n, "kernel");
        k->event.process =
            is_text(text, n, "cpu_op") || is_text(text, n, "cuda_runtime") || is_text(text, n, "cuda_driver");
    } else if (what == NAME && n > 0)
        k->status = keep_name(k, text, n);
    else if (what == DEVICE_NAME)
        keep_device_name(k, text, n);
    return k->status == 0;
}

/* true, false, null */
static int on_other(struct occ_kineto *k)
{
    k->tokens++;
    if (place_of(k) == VECTOR)
        vector_of(k)->bad = true;
    else if (k->key && k->key->meaning < INTEGER_COUNT)
        k->bad |= BIT(k->key->meaning);
    return 1;
}

static int on_null(void *context)
{
    return on_other(context);
}

static int on_boolean(void *context, int value)
{
    (void)value;
    return on_other(context);
}

static int on_map(void *context)
{
    return begin(context, true);
}

static int on_array(void *context)
{
    return begin(context, false);
}

static int on_end(void *context)
{
    return end(context);
}

static const yajl_callbacks callbacks = {.yajl_null = on_null,
                                         .yajl_boolean = on_boolean,
                                         .yajl_number = on_number,
                                         .yajl_string = on_string,
                                         .yajl_start_map = on_map,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = on_end,
                                         .yajl_start_array = on_array,
                                         .yajl_end_array = on_end};

/* ---- feeding it ---- */

struct feed {
    struct occ_kineto *kineto;
    yajl_handle parser;
    uint64_t bytes;       /* given so far */
    uint64_t token_bytes; /* since the last token */
};

static int feed_begin(struct feed *feed, struct occ_kineto *k)
{
    *feed = (struct feed){.kineto = k, .parser = yajl_alloc(&callbacks, NULL, k)};
    if (!feed->parser)
        return occ_fail(k->err, OCC_E_NO_MEMORY, "out of memory");
    (void)yajl_config(feed->parser, yajl_dont_validate_strings, 1);
    k->depth = 0;
    k->stack[0] = DOCUMENT;
    k->key = NULL;
    k->known = k->bad = 0;
    k->first_ns = INT64_MAX;
    k->kernels = 0;
    return 0;
}

/* What stopped yajl, with the position. */
static int feed_failed(struct feed *feed, size_t consumed)
{
    struct occ_kineto *k = feed->kineto;
    unsigned long long at = (unsigned long long)(feed->bytes + consumed);
    if (k->status != 0) /* one of ours */
        return occ_error_prefix(k->err, "byte %llu", at);
    unsigned char *said = yajl_get_error(feed->parser, 0, NULL, 0);
    if (said)
        said[strcspn((char *)said, "\n")] = '\0';
    k->status =
        occ_fail(k->err, OCC_E_INVALID, "byte %llu: not sound JSON: %s", at, said ? (char *)said : "?");
    yajl_free_error(feed->parser, said);
    return k->status;
}

static int feed_chunk(struct feed *feed, const unsigned char *data, size_t n)
{
    struct occ_kineto *k = feed->kineto;
    uint64_t tokens = k->tokens;
    if (yajl_parse(feed->parser, data, n) != yajl_status_ok)
        return feed_failed(feed, yajl_get_bytes_consumed(feed->parser));
    feed->bytes += n;
    feed->token_bytes = tokens == k->tokens ? feed->token_bytes + n : 0;
    if (feed->token_bytes > TOKEN_MOST)
        k->status = occ_fail(k->err, OCC_E_INVALID, "byte %llu: a text of more than %u bytes",
                             (unsigned long long)feed->bytes, TOKEN_MOST);
    return k->status;
}

static int feed_end(struct feed *feed)
{
    struct occ_kineto *k = feed->kineto;
    if (yajl_complete_parse(feed->parser) == yajl_status_ok)
        return 0;
    if (k->status != 0)
        return feed_failed(feed, 0);
    k->status = occ_fail(k->err, OCC_E_INVALID, "byte %llu: the file ends in the middle of the JSON",
                         (unsigned long long)feed->bytes);
    return k->status;
}

/* ---- what the whole document says ---- */

static int finish(struct occ_kineto *k)
{
    char version[48];
    bool has_version = has(k, SCHEMA);
    int64_t shift_ns = has(k, BASE_TIME) ? get(k, BASE_TIME) : 0, first_ns = 0;
    bool sum = k->first_ns != INT64_MAX && !__builtin_add_overflow(k->first_ns, shift_ns, &first_ns);
    bool epoch = sum && first_ns >= EPOCH_FROM_NS && first_ns < EPOCH_TO_NS;
    (void)snprintf(version, sizeof version, "schema %lld", (long long)get(k, SCHEMA));
    const struct occ_import_recording recording = {
        .tool = "kineto",
        .tool_version = has_version ? version : NULL,
        .pid = !k->several_pids && k->pid > 0 && k->pid <= INT32_MAX ? (int32_t)k->pid : 0,
        .rank = has(k, RANK) && get(k, RANK) >= 0 && get(k, RANK) <= INT32_MAX ? (int32_t)get(k, RANK) : -1,
        .time_base = epoch ? OCC_IMPORT_TIME_EPOCH : OCC_IMPORT_TIME_UNKNOWN,
        .shift_ns = shift_ns,
        .lacks = LACKS,
    };
    return occ_import_sink_recording(k->sink, &recording, k->err);
}

/* After the first pass: is another one needed, or possible? */
static int check_devices(const struct occ_kineto *k)
{
    if (k->kernels == 0)
        return occ_fail(k->err, OCC_E_INVALID, "no kernel in it: was it recorded with CUDA activities?");
    if (k->only_metadata && !k->described && !k->gpu)
        return occ_fail(
            k->err, OCC_E_INVALID,
            "the file does not describe its GPU (no deviceProperties); say which it was: --gpu NAME");
    return 0;
}

int occ_kineto_read(struct occ_kineto_input *input, const struct occ_device *gpu, const char *gpu_name,
                    struct occ_import_sink *sink, struct occ_error *err)
{
    struct occ_kineto *k = calloc(1, sizeof *k);
    unsigned char *chunk = malloc(CHUNK_BYTES);
    int status = k && chunk ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    for (int pass = 0; status == 0 && (pass == 0 || k->only_metadata); pass++) {
        struct feed feed;
        size_t n = 0;
        if (pass == 0)
            *k = (struct occ_kineto){.sink = sink, .err = err, .gpu = gpu, .gpu_name = gpu_name};
        k->second = pass > 0;
        k->only_metadata = false;
        status = feed_begin(&feed, k);
        while (status == 0 && (status = input->read(input, chunk, CHUNK_BYTES, &n, err)) == 0 && n > 0) {
            status = feed_chunk(&feed, chunk, n);
            if (status == 0)
                occ_import_sink_progress(sink, input->done, input->total);
        }
        if (status == 0)
            status = feed_end(&feed);
        if (feed.parser)
            yajl_free(feed.parser);
        if (status == 0)
            status = check_devices(k);
        if (status == 0 && k->only_metadata)
            status = input->rewind(input, err);
    }
    if (status == 0)
        status = finish(k);
    if (k)
        free(k->name);
    free(k);
    free(chunk);
    return status;
}

/* ---- files ---- */

struct file_input {
    struct occ_kineto_input input;
    gzFile file;
};

static int file_read(struct occ_kineto_input *input, unsigned char *data, size_t size, size_t *ret_n,
                     struct occ_error *err)
{
    struct file_input *f = (struct file_input *)input;
    int n = gzread(f->file, data, (unsigned)size), code = Z_OK;
    const char *said = gzerror(f->file, &code);
    if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
        return code == Z_ERRNO ? occ_fail_errno(err, errno, "cannot read")
                               : occ_fail(err, OCC_E_CORRUPT, "byte %lld of the gzip file: damaged: %s",
                                          (long long)gzoffset(f->file), said);
    input->done = (uint64_t)gzoffset(f->file);
    *ret_n = (size_t)n;
    return 0;
}

static int file_rewind(struct occ_kineto_input *input, struct occ_error *err)
{
    struct file_input *f = (struct file_input *)input;
    return gzrewind(f->file) == 0 ? 0 : occ_fail(err, OCC_E_IO, "cannot read it twice");
}

int occ_import_read_kineto(const char *path, const struct occ_device *gpu, const char *gpu_name,
                           struct occ_import_sink *sink, struct occ_error *err)
{
    struct file_input f = {.input = {.read = file_read, .rewind = file_rewind}};
    struct stat status;
    f.file = gzopen(path, "rbe");
    if (!f.file)
        return occ_fail_errno(err, errno, "%s", path);
    (void)gzbuffer(f.file, 2 * CHUNK_BYTES);
    if (stat(path, &status) == 0)
        f.input.total = (uint64_t)status.st_size;
    int failed = occ_kineto_read(&f.input, gpu, gpu_name, sink, err);
    (void)gzclose_r(f.file);
    return failed == 0 ? 0 : occ_error_prefix(err, "%s", path);
}
