/*
 * Launches and other operations: checks, durations and reports.
 *
 * An operation is executed when it is submitted: its start and end on the device's timeline are computed at
 * once, and the host continues. Costs of the host and of copies are constants below; kernels have a
 * cost model: a base (OCCSIM_BLOCK_NS) times 0.5 to 2, chosen by the kernel's name and the size of its
 * parameters, or exactly the base (OCCSIM_EXACT_BLOCKS). Threads: any; the state is under sim_lock().
 */
#include "driver.h"

#include "clock.h"
#include "env.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HOST_CALL_NS    1500 /* virtual time of a submission on the host */
#define SUBMIT_NS       2500 /* from the call to the device */
#define COPY_NS         1200 /* fixed cost of a copy */
#define PCIE_BYTES_NS   25   /* bytes per ns between host and device */
#define MEMORY_BYTES_NS 1500 /* inside the device */

static const struct sim_sink *_Atomic sink;

void sim_set_sink(const struct sim_sink *new_sink)
{
    atomic_store(&sink, new_sink);
}

/* ---- reports to the sink ---- */

void sim_report_locked(struct sim_batch *batch, const struct sim_activity *activity)
{
    if (!atomic_load_explicit(&sink, memory_order_relaxed))
        return;
    if (!batch->count) {
        batch->one = *activity;
        batch->count = 1;
        return;
    }
    if (batch->count - 1 >= batch->room) {
        size_t room = batch->room ? batch->room * 2 : 64;
        struct sim_activity *items = realloc(batch->items, room * sizeof *items);
        if (!items)
            return;
        batch->items = items;
        batch->room = room;
    }
    batch->items[batch->count++ - 1] = *activity;
}

/* Correlation id of the launch in progress in this thread; 0: none. Clients learn the id before the launch is
 * placed. */
static _Thread_local uint32_t own_correlation;

static uint32_t new_correlation_locked(void)
{
    static uint32_t last;
    return ++last;
}

uint32_t sim_next_correlation_locked(void)
{
    return own_correlation ? own_correlation : new_correlation_locked();
}

void sim_tell_call(enum sim_call call, const struct sim_called *called, const CUresult *result)
{
    const struct sim_sink *now = atomic_load_explicit(&sink, memory_order_acquire);
    if (!result && (call == SIM_CALL_LAUNCH || call == SIM_CALL_GRAPH)) {
        sim_lock();
        own_correlation = new_correlation_locked();
        sim_unlock();
    }
    struct sim_called whole = *called;
    struct sim_context *current = NULL;
    (void)sim_current(&current);
    whole.current = (CUcontext)current;
    whole.correlation = own_correlation;
    if (now)
        now->call(call, &whole, result);
    if (result)
        own_correlation = 0;
}

void sim_batch_deliver(struct sim_batch *batch)
{
    const struct sim_sink *now = atomic_load_explicit(&sink, memory_order_acquire);
    if (now && batch->count)
        now->activity(&batch->one);
    for (size_t i = 1; now && i < batch->count; i++)
        now->activity(&batch->items[i - 1]);
    free(batch->items);
}

/* ---- limits of a launch ---- */

void sim_launch_attributes(const CUlaunchConfig *config, struct sim_launch *shape)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *value = &config->attrs[i].value;
        switch ((int)config->attrs[i].id) {
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            shape->cluster[0] = value->clusterDim.x;
            shape->cluster[1] = value->clusterDim.y;
            shape->cluster[2] = value->clusterDim.z;
            break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            shape->cluster_policy = (int)value->clusterSchedulingPolicyPreference;
            break;
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            shape->cooperative = value->cooperative != 0;
            break;
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            shape->carveout_percent = (int32_t)value->sharedMemCarveout;
            break;
        default:
            break;
        }
    }
}

static bool dimensions_fit(const struct sim_gpu *gpu, const uint32_t size[3], int first_attribute)
{
    for (int i = 0; i < 3; i++) {
        if (!size[i] || size[i] > sim_gpu_limit(gpu, first_attribute + i))
            return false;
    }
    return true;
}

static uint32_t volume(const uint32_t size[3])
{
    return size[0] * size[1] * size[2];
}

static uint32_t cluster_blocks(const struct sim_launch *launch)
{
    return launch->cluster[0] ? volume(launch->cluster) : 0;
}

/* Sets the cluster dimensions from the launch, the function's attribute or the compiler, in that order, and
 * checks them. */
static CUresult settle_cluster(const struct sim_device *device, struct sim_launch *launch)
{
    const struct sim_function *function = launch->function;
    if (!launch->cluster[0]) {
        bool by_attribute = function->cluster[0] != 0;
        memcpy(launch->cluster, by_attribute ? function->cluster : function->kernel->cluster,
               sizeof launch->cluster);
    }
    if (!launch->cluster[0])
        return CUDA_SUCCESS;
    uint32_t blocks = volume(launch->cluster), most = function->non_portable_cluster ? 16 : 8;
    if (!sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) || !blocks || blocks > most)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (int i = 0; i < 3; i++) {
        if (!launch->cluster[i] || launch->grid[i] % launch->cluster[i])
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    return CUDA_SUCCESS;
}

CUresult sim_launch_check(const struct sim_device *device, struct sim_launch *launch)
{
    const struct occ_image_kernel *kernel = launch->function->kernel;
    if (!dimensions_fit(device->gpu, launch->grid, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
        !dimensions_fit(device->gpu, launch->block, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
        volume(launch->block) > sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) ||
        launch->dynamic_smem_bytes > launch->function->max_dynamic_smem_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (kernel->max_threads && volume(launch->block) > kernel->max_threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return settle_cluster(device, launch);
}

static int32_t carveout_of(const struct sim_launch *launch, const struct sim_context *context)
{
    static const int32_t by_cache[] = {
        [CU_FUNC_CACHE_PREFER_NONE] = -1,
        [CU_FUNC_CACHE_PREFER_SHARED] = 100,
        [CU_FUNC_CACHE_PREFER_L1] = 0,
        [CU_FUNC_CACHE_PREFER_EQUAL] = 50,
    };
    const struct sim_function *function = launch->function;
    if (launch->carveout_percent >= 0)
        return launch->carveout_percent;
    if (function->carveout_percent >= 0)
        return function->carveout_percent;
    CUfunc_cache cache = function->cache_config ? function->cache_config : context->cache_config;
    return cache <= CU_FUNC_CACHE_PREFER_EQUAL ? by_cache[cache] : -1;
}

void sim_demand_of(const struct sim_launch *launch, const struct sim_context *context, struct sim_demand *ret)
{
    const struct occ_image_kernel *kernel = launch->function->kernel;
    *ret = (struct sim_demand){.threads = volume(launch->block),
                               .registers = kernel->registers,
                               .static_smem_bytes = kernel->static_smem_bytes,
                               .dynamic_smem_bytes = launch->dynamic_smem_bytes,
                               .barriers = kernel->barriers,
                               .cluster_blocks = cluster_blocks(launch),
                               .carveout_percent = carveout_of(launch, context)};
}

static bool residency_locked(const struct sim_launch *launch, const struct sim_context *context,
                             struct sim_residency *ret)
{
    struct sim_function *function = launch->function;
    struct sim_demand demand;
    sim_demand_of(launch, context, &demand);
    if (!function->cached || memcmp(&demand, &function->cached_demand, sizeof demand) != 0) {
        function->cached_demand = demand;
        sim_residency(context->device->gpu, &demand, &function->cached_residency);
        function->cached = true;
    }
    *ret = function->cached_residency;
    return ret->blocks_per_sm > 0;
}

/* ---- kernels ---- */

static uint64_t cost_ns(const struct sim_function *function)
{
    if (sim_env()->exact_blocks)
        return sim_env()->block_ns;
    uint64_t choice = (function->hash ^ function->parameters->bytes * UINT64_C(0x9e3779b97f4a7c15)) >> 16;
    uint64_t ns = sim_env()->block_ns * (64 + choice % 193) / 128;
    return ns ? ns : 1;
}

static uint64_t grid_blocks(const struct sim_launch *launch)
{
    return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct sim_activity activity_of(const struct sim_origin *origin, enum sim_activity_kind kind)
{
    const struct sim_stream *stream = origin->stream;
    return (struct sim_activity){.kind = kind,
                                 .device = (uint32_t)stream->context->device->ordinal,
                                 .context = stream->context->id,
                                 .stream = stream->id,
                                 .correlation = origin->correlation,
                                 .graph = origin->graph,
                                 .graph_node = origin->node};
}

static void fill_kernel_activity(struct sim_kernel_activity *kernel, const struct sim_launch *launch,
                                 const struct sim_device *device, const struct sim_residency *residency)
{
    static uint64_t last_grid_id;
    const struct sim_function *function = launch->function;
    *kernel = (struct sim_kernel_activity){
        .name = function->name,
        .grid_id = ++last_grid_id,
        .registers = function->kernel->registers,
        .static_smem_bytes = function->kernel->static_smem_bytes,
        .dynamic_smem_bytes = launch->dynamic_smem_bytes,
        .local_bytes = function->kernel->local_bytes,
        .smem_config_bytes = residency->smem_config_bytes,
        .carveout_percent =
            launch->carveout_percent >= 0 ? launch->carveout_percent : function->carveout_percent,
        .cache_config = function->cache_config,
        .cluster_policy = (uint32_t)launch->cluster_policy,
        .max_cluster_blocks = cluster_blocks(launch) ? 8 : 0,
        .max_active_clusters = residency->max_active_clusters,
        .cooperative = launch->cooperative,
        .smem_optin = function->smem_optin,
    };
    memcpy(kernel->grid, launch->grid, sizeof kernel->grid);
    memcpy(kernel->block, launch->block, sizeof kernel->block);
    memcpy(kernel->cluster, launch->cluster, sizeof kernel->cluster);
    kernel->local_total_bytes =
        (uint64_t)kernel->local_bytes * sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
        sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

static uint64_t wave_blocks_of(const struct sim_device *device, const struct sim_launch *launch,
                               const struct sim_residency *residency)
{
    uint32_t cluster = cluster_blocks(launch);
    if (cluster > 1)
        return (uint64_t)residency->max_active_clusters * cluster;
    return (uint64_t)residency->blocks_per_sm *
           sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

/* Computes the counters of a launch; see struct sim_counts. */
static struct sim_counts counts_of(const struct sim_device *device, const struct sim_launch *launch,
                                   const struct sim_work *work, const struct sim_placement *placed)
{
    uint64_t sms = sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    uint64_t warp = sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    uint64_t full = work->blocks / work->wave_blocks, rest = work->blocks % work->wave_blocks;
    uint64_t in_full = work->wave_blocks < sms ? work->wave_blocks : sms, in_rest = rest < sms ? rest : sms;
    double ns = (double)(placed->end_ns - placed->start_ns), waves = (double)(full + (rest > 0));
    uint64_t warps = (volume(launch->block) + warp - 1) / warp;
    double early = (double)(warps / 2) * (double)sim_env()->warp_imbalance_percent / 100; /* see counters.c */
    return (struct sim_counts){.warps_ns = ((double)warps - early) * placed->block_ns_total,
                               .sms_ns = ns / waves * (double)(full * in_full + in_rest),
                               .blocks_ns = placed->block_ns_total,
                               .ns = ns};
}

static CUresult execute_kernel_locked(const struct sim_origin *origin, const struct sim_launch *asked,
                                      uint64_t ready_ns, uint64_t *ret_end_ns)
{
    struct sim_context *context = origin->stream->context;
    struct sim_device *device = context->device;
    struct sim_launch launch = *asked;
    struct sim_residency residency;
    CUresult result = sim_launch_check(device, &launch);
    if (result)
        return result;
    if (!residency_locked(&launch, context, &residency))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    struct sim_work work = {.ready_ns = later(ready_ns, device->horizon_ns),
                            .blocks = grid_blocks(&launch),
                            .wave_blocks = wave_blocks_of(device, &launch, &residency),
                            .block_ns = cost_ns(launch.function),
                            .imbalance = (double)sim_env()->imbalance_percent / 100,
                            .ramp_ns = sim_env()->ramp_ns,
                            .seed = launch.function->hash};
    if (!work.wave_blocks)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (launch.cooperative && work.blocks > work.wave_blocks)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    struct sim_placement placed;
    bool is_told = sim_counters_begin_locked(device);
    uint64_t now_ns = sim_clock_now();
    if (is_told)
        work.ready_ns = later(later(work.ready_ns, now_ns), sim_turn_ready_locked(device));
    if (!sim_timeline_place(device->timeline, later(now_ns, device->horizon_ns), &work, &placed)) {
        sim_counters_end_locked(device);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_activity activity = activity_of(origin, SIM_ACTIVITY_KERNEL);
    activity.start_ns = placed.start_ns;
    activity.end_ns = *ret_end_ns = placed.end_ns;
    fill_kernel_activity(&activity.kernel, &launch, device, &residency);
    activity.kernel.counts = counts_of(device, &launch, &work, &placed);
    device->in_flight_ns[device->launches++ % SIM_QUEUE_DEPTH] = placed.end_ns;
    sim_report_locked(origin->batch, &activity);
    struct sim_occupation occupation = {.launch = &launch, .residency = &residency};
    sim_counters_publish_locked(device, &occupation);
    if (is_told)
        sim_turn_take_locked(device, placed.end_ns);
    sim_counters_end_locked(device);
    sim_truth_write(&(struct sim_truth){&activity, work.blocks, work.wave_blocks, residency.blocks_per_sm,
                                        work.block_ns, placed.block_ns_total, &occupation});
    return CUDA_SUCCESS;
}

/* ---- copies and fills ---- */

static uint64_t use_engine_locked(struct sim_device *device, size_t engine, uint64_t ready_ns, uint64_t bytes,
                                  struct sim_activity *activity)
{
    uint64_t rate = engine == 2 ? MEMORY_BYTES_NS : PCIE_BYTES_NS;
    activity->start_ns = later(ready_ns, device->copy_engine_ns[engine]);
    activity->end_ns = activity->start_ns + COPY_NS + bytes / rate;
    device->copy_engine_ns[engine] = activity->end_ns;
    return activity->end_ns;
}

static uint64_t execute_copy_locked(const struct sim_origin *origin, const struct sim_op *op,
                                    uint64_t ready_ns)
{
    const struct sim_copy *copy = &op->copy;
    struct sim_activity activity = activity_of(origin, SIM_ACTIVITY_MEMCPY);
    activity.copy = (struct sim_copy_activity){copy->bytes, copy->from, copy->to, op->asynchronous};
    size_t engine = copy->from == CU_MEMORYTYPE_HOST ? 0 : copy->to == CU_MEMORYTYPE_HOST ? 1 : 2;
    uint64_t end =
        use_engine_locked(origin->stream->context->device, engine, ready_ns, copy->bytes, &activity);
    sim_report_locked(origin->batch, &activity);
    return end;
}

static uint64_t execute_set_locked(const struct sim_origin *origin, const struct sim_op *op,
                                   uint64_t ready_ns)
{
    struct sim_activity activity = activity_of(origin, SIM_ACTIVITY_MEMSET);
    activity.set = op->set;
    uint64_t end = use_engine_locked(origin->stream->context->device, 2, ready_ns, op->set.bytes, &activity);
    sim_report_locked(origin->batch, &activity);
    return end;
}

/* ---- all operations ---- */

CUresult sim_execute_locked(const struct sim_origin *origin, const struct sim_op *op, uint64_t ready_ns,
                            uint64_t *ret_end_ns)
{
    *ret_end_ns = ready_ns;
    switch (op->kind) {
    case SIM_OP_KERNEL:
        return execute_kernel_locked(origin, &op->launch, ready_ns, ret_end_ns);
    case SIM_OP_COPY:
        *ret_end_ns = execute_copy_locked(origin, op, ready_ns);
        return CUDA_SUCCESS;
    case SIM_OP_SET:
        *ret_end_ns = execute_set_locked(origin, op, ready_ns);
        return CUDA_SUCCESS;
    case SIM_OP_HOST:
        return sim_host_call_locked(origin->stream, &op->host, ready_ns);
    case SIM_OP_RECORD:
        op->event->recorded = true;
        op->event->time_ns = ready_ns;
        op->event->capture = NULL;
        return CUDA_SUCCESS;
    case SIM_OP_WAIT:
        *ret_end_ns = later(ready_ns, op->event->time_ns);
        return CUDA_SUCCESS;
    case SIM_OP_CHILD:
        return sim_graph_execute_locked(origin, op->child, ready_ns, ret_end_ns);
    case SIM_OP_EMPTY:
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_UNKNOWN;
}

/* Waits for the oldest launch in a full channel of SIM_QUEUE_DEPTH launches. */
void sim_throttle(struct sim_device *device)
{
    sim_lock();
    uint64_t oldest = device->in_flight_ns[device->launches % SIM_QUEUE_DEPTH];
    device->horizon_ns = later(device->horizon_ns, oldest);
    sim_unlock();
    sim_clock_wait_until(oldest);
}

uint64_t sim_ready_locked(const struct sim_stream *stream)
{
    sim_clock_spend(HOST_CALL_NS);
    uint64_t earliest = sim_clock_now() + SUBMIT_NS, before = sim_stream_ready_locked(stream);
    return later(earliest, before ? before + sim_env()->gap_ns : 0);
}

CUresult sim_submit(struct sim_stream *stream, const struct sim_op *op)
{
    struct sim_batch batch = {0};
    struct sim_origin origin = {.stream = stream, .batch = &batch};
    if (op->kind == SIM_OP_KERNEL)
        sim_throttle(stream->context->device);
    sim_lock();
    if (stream->capture || (op->kind == SIM_OP_WAIT && op->event->capture)) {
        CUresult result = sim_capture_locked(stream, op);
        sim_unlock();
        return result;
    }
    uint64_t end = 0;
    bool marks = op->kind == SIM_OP_RECORD || op->kind == SIM_OP_WAIT || op->kind == SIM_OP_HOST;
    uint64_t ready = marks ? sim_stream_ready_locked(stream) : sim_ready_locked(stream);
    if (op->kind == SIM_OP_RECORD)
        ready = later(ready, sim_clock_now());
    origin.correlation = sim_next_correlation_locked();
    CUresult result = sim_execute_locked(&origin, op, ready, &end);
    if (!result && op->kind != SIM_OP_RECORD)
        stream->ready_ns = later(stream->ready_ns, end);
    sim_unlock();
    sim_batch_deliver(&batch);
    if (!result && !op->asynchronous)
        sim_clock_wait_until(end);
    return result;
}
