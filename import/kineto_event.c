/* Events of a Kineto trace as launches, deviceProperties as devices. One thread. */
#include "kineto_state.h"

#include <math.h>
#include <string.h>

static bool fits_u32(int64_t value)
{
    return value >= 0 && value <= UINT32_MAX;
}

static bool take_size(const struct vector *vector, uint32_t size[3])
{
    for (int i = 0; i < 3; i++) {
        if (vector->bad || vector->n != 3 || vector->value[i] < 0 || vector->value[i] > INT32_MAX)
            return false;
        size[i] = (uint32_t)vector->value[i];
    }
    return true;
}

/* The reason to skip the current event; COUNT: the event is a launch that the sink can take. */
static enum occ_import_skip objection(const struct occ_kineto *k)
{
    static const enum integer u32s[] = {ARG_CONTEXT, ARG_STREAM, ARG_CORRELATION, ARG_REGISTERS, ARG_SMEM};
    const struct event *event = &k->event;
    const uint64_t times = BIT(TS) | BIT(DUR);
    if ((k->bad & times) || (k->known & times) != times)
        return OCC_IMPORT_SKIP_BAD_TIMES;
    if (!event->has_args || !occ_kineto_has(k, ARG_REGISTERS) || event->size[GRID].n == 0 ||
        event->size[BLOCK].n == 0)
        return k->bad & BIT(ARG_REGISTERS) ? OCC_IMPORT_SKIP_BAD_VALUE : OCC_IMPORT_SKIP_NO_CONFIGURATION;
    for (size_t i = 0; i < sizeof u32s / sizeof *u32s; i++)
        if (!fits_u32(occ_kineto_get(k, u32s[i])) || (k->bad & BIT(u32s[i])))
            return OCC_IMPORT_SKIP_BAD_VALUE;
    bool bad = (k->bad & (BIT(ARG_DEVICE) | BIT(ARG_GRAPH_NODE))) || event->bad_name;
    return bad ? OCC_IMPORT_SKIP_BAD_VALUE : OCC_IMPORT_SKIP_COUNT;
}

static enum occ_import_skip make_launch(const struct occ_kineto *k, struct occ_import_launch *launch)
{
    struct occ_launch *l = &launch->config.launch;
    const struct vector *size = k->event.size;
    enum occ_import_skip why = objection(k);
    if (why != OCC_IMPORT_SKIP_COUNT)
        return why;
    if (__builtin_add_overflow(k->values[TS], k->values[DUR], &launch->end_ns))
        return OCC_IMPORT_SKIP_BAD_TIMES;
    if (!take_size(&size[GRID], l->grid) || !take_size(&size[BLOCK], l->block) ||
        (size[CLUSTER].n > 0 && !take_size(&size[CLUSTER], l->cluster)))
        return OCC_IMPORT_SKIP_BAD_VALUE;
    launch->name = k->name;
    launch->name_bytes = k->event.name_bytes;
    launch->start_ns = k->values[TS];
    launch->device = (uint64_t)occ_kineto_get(k, ARG_DEVICE);
    launch->context = (uint32_t)occ_kineto_get(k, ARG_CONTEXT);
    launch->stream = (uint32_t)occ_kineto_get(k, ARG_STREAM);
    launch->correlation = (uint32_t)occ_kineto_get(k, ARG_CORRELATION);
    launch->origin.id = launch->correlation;
    launch->graph_node = (uint64_t)occ_kineto_get(k, ARG_GRAPH_NODE);
    l->registers_per_thread = (uint32_t)k->values[ARG_REGISTERS];
    l->dynamic_smem_bytes = (uint32_t)occ_kineto_get(k, ARG_SMEM);
    l->carveout_percent = -1;
    launch->reported_achieved =
        occ_kineto_has(k, ARG_ACHIEVED) ? (double)k->values[ARG_ACHIEVED] / 1e6 : (double)NAN;
    return OCC_IMPORT_SKIP_COUNT;
}

/* The GPU that the user named stands for every device of a file that describes none. */
static int use_named_gpu(struct occ_kineto *k, uint64_t number)
{
    if (occ_import_sink_has_device(k->sink, number))
        return 0;
    return occ_import_sink_device(k->sink, number, occ_import_sink_named_gpu(k->sink), k->err);
}

static int end_kernel(struct occ_kineto *k)
{
    struct occ_import_launch launch;
    k->kernels++;
    if (!k->described && !k->second)
        k->only_metadata = true;
    if (k->only_metadata)
        return 0;
    memset(&launch, 0, sizeof launch);
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

/* ---- ranges ---- */

static bool begins_with(const struct occ_kineto *k, const char *prefix)
{
    size_t n = strlen(prefix);
    return k->event.name_bytes >= n && memcmp(k->name, prefix, n) == 0;
}

/* Takes a call of CUDA's API. The origin has no process, because kernels do not contain their process. */
static int take_call(struct occ_kineto *k, int64_t end_ns)
{
    struct occ_import_call call;
    memset(&call, 0, sizeof call);
    call.process = k->values[PID];
    call.thread = k->values[TID];
    call.start_ns = k->values[TS];
    call.end_ns = end_ns;
    call.origin.id = (uint64_t)occ_kineto_get(k, ARG_CORRELATION);
    /* kernels of a graph belong to the place where the graph was made, not to its replay */
    bool is_replay = begins_with(k, "cudaGraphLaunch") || begins_with(k, "cuGraphLaunch");
    return is_replay ? 0 : occ_import_sink_call(k->sink, &call, k->err);
}

static int take_range(struct occ_kineto *k, int64_t end_ns)
{
    static const char module[] = "nn.Module: ", autograd[] = "autograd::engine::evaluate_function: ";
    size_t skipped = k->event.host == PYTHON ? sizeof module - 1 : 0;
    if (k->event.host == PYTHON && !begins_with(k, module))
        return 0;
    const struct occ_import_range range = {
        .process = k->values[PID],
        .thread = k->values[TID],
        .start_ns = k->values[TS],
        .end_ns = end_ns,
        .name = k->name + skipped,
        .name_bytes = k->event.name_bytes - skipped,
        /* digits are part of names such as Linear_3, aten::conv2d */
        .keeps_digits = k->event.host != ANNOTATION,
        .is_autograd = begins_with(k, autograd),
        .sequence = occ_kineto_has(k, ARG_SEQUENCE) ? k->values[ARG_SEQUENCE] : -1};
    return occ_import_sink_range(k->sink, &range, k->err);
}

static int end_host(struct occ_kineto *k)
{
    const uint64_t needed = BIT(TS) | BIT(DUR) | BIT(PID) | BIT(TID);
    int64_t end_ns = 0;
    if (k->only_metadata || !k->event.complete || (k->known & needed) != needed || (k->bad & needed) ||
        k->event.name_bytes == 0 || __builtin_add_overflow(k->values[TS], k->values[DUR], &end_ns))
        return 0;
    return k->event.host == CALL ? take_call(k, end_ns) : take_range(k, end_ns);
}

int occ_kineto_end_event(struct occ_kineto *k)
{
    bool is_process = k->event.host == OPERATOR || k->event.host == CALL;
    occ_kineto_xla_end(k);
    if (is_process && occ_kineto_has(k, PID)) {
        k->several_pids |= k->pid != 0 && k->pid != k->values[PID];
        k->pid = k->values[PID];
    }
    if (k->event.host != NO_HOST)
        return end_host(k);
    return k->event.kernel && k->event.complete ? end_kernel(k) : 0;
}

/* An integer of a device as a limit; 0: unknown. */
static uint32_t limit(const struct occ_kineto *k, enum integer what)
{
    int64_t value = occ_kineto_get(k, what);
    return fits_u32(value) && !(k->bad & BIT(what)) ? (uint32_t)value : 0;
}

void occ_kineto_note_maker(struct occ_kineto *k, const char *maker, const char *sign)
{
    if (k->maker)
        return;
    k->maker = maker;
    k->maker_sign = sign;
}

/* True for a GPU of another maker. A warp of 64 threads is a wavefront of AMD; AMD's smaller GPUs have
 * wavefronts of 32 threads and are recognized by name. */
static bool is_foreign_device(struct occ_kineto *k, uint32_t warp_size)
{
    static const struct {
        const char *prefix, *maker;
    } names[] = {{"AMD ", "AMD"}, {"Intel", "Intel"}};
    const char *maker = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(k->device_name, names[i].prefix, strlen(names[i].prefix)) == 0)
            maker = names[i].maker;
    if (maker)
        occ_kineto_note_maker(k, maker, "the device's name");
    else if (warp_size == 64)
        occ_kineto_note_maker(k, "AMD", "warpSize 64");
    return maker || (warp_size != 0 && warp_size != 32);
}

int occ_kineto_end_device(struct occ_kineto *k)
{
    uint32_t major = limit(k, DEV_MAJOR), minor = limit(k, DEV_MINOR);
    int64_t memory = occ_kineto_get(k, DEV_MEMORY);
    const struct occ_store_device device = {
        .name = k->device_name,
        .limits = {.cc = major < 100 && minor < 10 ? major * 10 + minor : 0,
                   .sm_count = limit(k, DEV_SMS),
                   .warp_size = limit(k, DEV_WARP),
                   .max_threads_per_block = limit(k, DEV_THREADS_PER_BLOCK),
                   .max_threads_per_sm = limit(k, DEV_THREADS_PER_SM),
                   .registers_per_block = limit(k, DEV_REGISTERS_PER_BLOCK),
                   .registers_per_sm = limit(k, DEV_REGISTERS_PER_SM),
                   .smem_per_block_bytes = limit(k, DEV_SMEM_PER_BLOCK),
                   .smem_per_block_optin_bytes = limit(k, DEV_SMEM_OPTIN),
                   .smem_per_sm_bytes = limit(k, DEV_SMEM_PER_SM)},
        .memory_bytes = memory > 0 ? (uint64_t)memory : 0,
    };
    int64_t number = occ_kineto_has(k, DEV_ID) ? k->values[DEV_ID] : k->next_device;
    k->next_device = number < INT64_MAX ? number + 1 : number;
    if (number < 0 || is_foreign_device(k, device.limits.warp_size))
        return 0;
    return occ_import_sink_device(k->sink, (uint64_t)number, &device, k->err);
}
