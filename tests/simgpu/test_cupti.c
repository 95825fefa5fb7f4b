/*
 * Tests the CUPTI double like a profiler: records and their layouts by version, buffers and flushes, truth,
 * graphs, and every scripted fault.
 */
#include "test_child.h"

#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#define OK(call) CHECK_EQUAL(call, 0)

enum { BUFFER_BYTES = 16384, MOST = 20000 };

static CUcontext context;
static CUmodule module;
static union {
    CUpti_ActivityKernel10 kernel;
    uint8_t bytes[256];
} records[MOST];
static CUpti_ActivityGraphTrace2 graph_record;
static unsigned record_count, copy_count, set_count, graph_count, requested;
static atomic_uint returned; /* counted by the worker, also while a test waits for it */
static size_t most_in_buffer;
static pthread_t requester;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void CUPTIAPI request_buffer(uint8_t **buffer, size_t *size, size_t *records_at_most)
{
    pthread_mutex_lock(&lock);
    requested++;
    requester = pthread_self();
    pthread_mutex_unlock(&lock);
    *size = BUFFER_BYTES;
    *buffer = malloc(BUFFER_BYTES);
    *records_at_most = 0;
}

static size_t kernel_bytes; /* distance of two records, by the library's iteration */

static void keep(const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        CHECK(record_count < MOST);
        size_t bytes = sizeof *records < kernel_bytes ? sizeof *records : kernel_bytes;
        memcpy(&records[record_count++], record, bytes);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) {
        memcpy(&graph_record, record, sizeof graph_record);
        graph_count++;
    }
    copy_count += record->kind == CUPTI_ACTIVITY_KIND_MEMCPY;
    set_count += record->kind == CUPTI_ACTIVITY_KIND_MEMSET;
}

static void measure(uint8_t *buffer, size_t valid)
{
    CUpti_Activity *first = NULL, *second = NULL;
    OK(cuptiActivityGetNextRecord(buffer, valid, &first));
    second = first;
    if (cuptiActivityGetNextRecord(buffer, valid, &second) != CUPTI_SUCCESS)
        kernel_bytes = valid;
    else if (first->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        kernel_bytes = (size_t)((uint8_t *)second - (uint8_t *)first);
}

static void CUPTIAPI take_buffer(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t count = 0;
    CHECK(!ctx && !stream && size == BUFFER_BYTES);
    pthread_mutex_lock(&lock);
    if (valid) /* an unused buffer comes back empty */
        measure(buffer, valid);
    for (; cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS; count++)
        keep(record);
    most_in_buffer = count > most_in_buffer ? count : most_in_buffer;
    returned++;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void begin(void)
{
    OK(cuptiActivityRegisterCallbacks(request_buffer, take_buffer));
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    OK(cuInit(0));
    OK(cuCtxCreate(&context, NULL, 0, 0));
    OK(cuModuleLoad(&module, SIM_TEST_IMAGES "/plain.fatbin"));
    kernel_bytes = sizeof records->kernel; /* until the first buffer shows another size */
}

static void launch(const char *name, unsigned grid, unsigned block, unsigned smem)
{
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuLaunchKernel(function, grid, 1, 1, block, 1, 1, smem, NULL, NULL, NULL));
}

static void launch_times(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        launch("plain", 1000, 256, 0);
    OK(cuCtxSynchronize());
}

static unsigned dropped(void)
{
    size_t count;
    OK(cuptiActivityGetNumDroppedRecords(NULL, 0, &count));
    return (unsigned)count;
}

/* ---- records ---- */

static void one_record(void)
{
    begin();
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "dynamic"));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 60));
    launch("clustered", 264, 64, 0);
    launch("dynamic", 1000, 128, 60000);
    OK(cuCtxSynchronize());
    OK(cuModuleUnload(module)); /* names outlive the module */
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 2);
    const CUpti_ActivityKernel10 *a = &records[0].kernel, *b = &records[1].kernel;
    CHECK(strcmp(a->name, "clustered") == 0 && strcmp(b->name, "dynamic") == 0);
    CHECK(a->start > 0 && a->start < a->end && a->end <= b->start && b->start < b->end);
    CHECK(a->clusterX == 2 && a->clusterY == 1 && a->clusterZ == 1 && b->clusterX == 0);
    CHECK(a->maxActiveClusters > 0);
    CHECK(b->gridX == 1000 && b->gridY == 1 && b->blockX == 128 && b->blockZ == 1);
    CHECK(b->dynamicSharedMemory == 60000 && b->staticSharedMemory == 0 && b->registersPerThread > 0);
    CHECK(b->isSharedMemoryCarveoutRequested == 1 && b->sharedMemoryCarveoutRequested == 60);
    CHECK_EQUAL(b->sharedMemoryExecuted, 164 << 10); /* 60 % of 228 KB is above the step of 132 */
    CHECK(b->shmemLimitConfig == CUPTI_FUNC_SHMEM_LIMIT_OPTIN && a->shmemLimitConfig == 0);
    CHECK(a->correlationId != b->correlationId && a->gridId != b->gridId);
    CHECK(a->deviceId == 0 && a->contextId == 1 && a->streamId == 7 && a->graphNodeId == 0 &&
          a->graphId == 0);
    CHECK_EQUAL(a->launchType, CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR);
}

static uint64_t realtime_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void now_is_real(void)
{
    uint64_t before = realtime_ns(), now;
    begin();
    launch_times(1);
    OK(cuptiActivityFlushAll(0));
    OK(cuptiGetTimestamp(&now));
    CHECK(now >= before && now <= realtime_ns());
    CHECK(records[0].kernel.end <= now && records[0].kernel.end >= before);
}

static void copies_and_fills(void)
{
    CUdeviceptr at;
    char host[1000] = {0};
    begin();
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    OK(cuMemAlloc(&at, sizeof host));
    OK(cuMemcpyHtoD(at, host, sizeof host));
    OK(cuMemcpyDtoH(host, at, sizeof host));
    OK(cuMemsetD8(at, 1, sizeof host));
    OK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET));
    OK(cuMemsetD8(at, 2, sizeof host));
    launch_times(1);
    OK(cuptiActivityFlushAll(0));
    CHECK(copy_count == 2 && set_count == 1 && record_count == 1);
}

static uint32_t external_kinds[64];
static uint64_t external_ids[64];
static uint32_t external_correlations[64];
static size_t external_count;

static void CUPTIAPI take_all(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)ctx;
    (void)stream;
    (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS && external_count < 64) {
        const CUpti_ActivityExternalCorrelation *e = (const void *)record;
        const CUpti_ActivityAPI *api = (const void *)record;
        const CUpti_ActivityKernel10 *kernel = (const void *)record;
        external_kinds[external_count] = record->kind;
        external_ids[external_count] =
            record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION ? e->externalId : 0;
        external_correlations[external_count++] =
            record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION ? e->correlationId
            : record->kind == CUPTI_ACTIVITY_KIND_DRIVER             ? api->correlationId
                                                                     : kernel->correlationId;
    }
    free(buffer);
}

/* An external id precedes the record of an API call, if kind and call are both recorded. */
static void external_correlation(void)
{
    const CUpti_ExternalCorrelationKind kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
    uint64_t last = 0;
    begin();
    OK(cuptiActivityRegisterCallbacks(request_buffer, take_all));
    CHECK_EQUAL(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_SIZE, 1),
                CUPTI_ERROR_INVALID_PARAMETER);
    CHECK_EQUAL(cuptiActivityPopExternalCorrelationId(kind, &last), CUPTI_ERROR_QUEUE_EMPTY);
    OK(cuptiActivityPushExternalCorrelationId(kind, 41));
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
    launch_times(1); /* no record of the call: no id */
    OK(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1));
    launch_times(1);
    OK(cuptiActivityPushExternalCorrelationId(kind, 42));
    launch_times(1);
    OK(cuptiActivityPopExternalCorrelationId(kind, &last));
    CHECK_EQUAL(last, 42);
    OK(cuptiActivityPopExternalCorrelationId(kind, NULL));
    launch_times(1); /* no id is pushed */
    OK(cuptiActivityFlushAll(0));
    const uint32_t K = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, D = CUPTI_ACTIVITY_KIND_DRIVER,
                   E = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    const uint32_t expected[] = {K, E, D, K, E, D, K, D, K};
    CHECK_EQUAL(external_count, 9);
    for (size_t i = 0; i < 9; i++)
        CHECK_EQUAL(external_kinds[i], expected[i]);
    CHECK(external_ids[1] == 41 && external_ids[4] == 42);
    CHECK(external_correlations[1] == external_correlations[2] &&
          external_correlations[2] == external_correlations[3]);
    CHECK(external_correlations[4] == external_correlations[6] &&
          external_correlations[3] != external_correlations[4]);
}

static void test_records(void **state)
{
    (void)state;
    RUN(one_record);
    RUN(now_is_real);
    RUN(copies_and_fills);
    RUN(external_correlation);
}

/* ---- versions ---- */

static uint32_t expected_version;
static size_t expected_bytes;

static void layout(void)
{
    uint32_t version;
    OK(cuptiGetVersion(&version));
    CHECK_EQUAL(version, expected_version);
    begin();
    launch_times(70); /* more than one buffer of the longest records */
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 70);
    CHECK_EQUAL(kernel_bytes, expected_bytes);
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityKernel10 *r = &records[i].kernel;
        CHECK(r->start < r->end && r->gridX == 1000 && r->blockX == 256 && strcmp(r->name, "plain") == 0);
        CHECK_EQUAL(r->channelType, expected_version >= 17 ? CUPTI_CHANNEL_TYPE_COMPUTE : 0);
        CHECK_EQUAL(r->localMemoryTotal_v2, 0);
    }
}

static void test_layouts(void **state)
{
    static const struct {
        const char *setting;
        uint32_t version;
        size_t bytes;
    } versions[] = {
        {"OCCSIM_CUPTI_VERSION=12", 12, 144},         {"OCCSIM_CUPTI_VERSION=14", 14, 160},
        {"OCCSIM_CUPTI_VERSION=16", 16, 168},         {"OCCSIM_CUPTI_VERSION=17", 17, 176},
        {"OCCSIM_CUPTI_VERSION=18", 18, 200},         {"OCCSIM_CUPTI_VERSION=20", 20, 208},
        {"OCCSIM_CUPTI_VERSION=28", 28, 208},         {"OCCSIM_CUPTI_VERSION=130000", 130000, 216},
        {"OCCSIM_CUPTI_VERSION=130100", 130100, 224}, {"OCCSIM_CUPTI_VERSION=130400", 130400, 232},
    };
    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        expected_version = versions[i].version;
        expected_bytes = versions[i].bytes;
        RUN(layout, versions[i].setting);
    }
}

static void old_library(void)
{
    CUptiResult (*get_version)(uint32_t *) = NULL;
    uint32_t version = 0;
    void *old = dlopen(SIM_TEST_LIBRARIES "/old/libcupti.so.12", RTLD_NOW | RTLD_LOCAL);
    CHECK(old);
    *(void **)&get_version = dlsym(old, "cuptiGetVersion");
    OK(get_version(&version));
    CHECK_EQUAL(version, 20);
    CHECK(!dlsym(old, "cuptiSubscribe_v2") && dlsym(old, "cuptiSubscribe"));
}

static void partial_library(void)
{
    void *partial = dlopen(SIM_TEST_LIBRARIES "/partial/libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    CHECK(partial);
    CHECK(!dlsym(partial, "cuptiActivityFlushAll") && dlsym(partial, "cuptiActivityEnable"));
}

static void test_broken_brothers(void **state)
{
    (void)state;
    RUN(old_library);
    RUN(partial_library);
}

/* ---- buffers ---- */

static void incomplete_ones_wait(void)
{
    begin();
    launch("plain", 132 * 8 * 20000, 256, 0); /* virtual time does not reach its end without a wait */
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 0);
    OK(cuCtxSynchronize());
    OK(cuptiActivityFlushAll(0));
    CHECK(record_count == 1 && records[0].kernel.end > records[0].kernel.start);
}

/* A busy buffer stays with CUPTI over flushes and is returned full, after its last record is complete. */
static void a_busy_thread_gets_them_back_full(void)
{
    begin();
    for (int i = 0; i < 3 * (BUFFER_BYTES / 216); i++) {
        launch("plain", i % 75 ? 10 : 132 * 8 * 20000, 256, 0); /* the stream waits for the long kernels */
        OK(cuptiActivityFlushAll(0));
    }
    CHECK(requested == 3 && returned == 0);
    OK(cuCtxSynchronize());
    OK(cuptiActivityFlushAll(0));
    CHECK(returned == 3 && record_count == 3 * (BUFFER_BYTES / 216));
}

static void flush_late(void)
{
    (void)cuptiActivityFlushAll(0);
}

static void ends_with_a_late_flush(void)
{
    (void)atexit(flush_late); /* runs before the handlers that the library registers later */
    begin();
    launch_times(1);
    exit(0);
}

static void no_call_after_its_exit_handlers(void)
{
    pid_t child = fork();
    int status;
    if (child == 0)
        ends_with_a_late_flush();
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void forced_ones_have_no_times(void)
{
    begin();
    launch_times(1);
    launch("plain", 132 * 8 * 20000, 256, 0);
    OK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK_EQUAL(record_count, 2);
    CHECK(records[0].kernel.start > 0 && records[1].kernel.start == 0 && records[1].kernel.end == 0);
}

static void asked_in_the_launching_thread(void)
{
    begin();
    launch_times(1);
    CHECK(requested == 1 && pthread_equal(requester, pthread_self()));
    launch_times(300);
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(most_in_buffer, BUFFER_BYTES / 216);
    CHECK_EQUAL(returned, requested);
    CHECK(record_count == 301 && requested == 301 / 75 + 1);
}

static void *launch_many(void *unused)
{
    (void)unused;
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < 1000; i++)
        launch("plain", 10, 128, 0);
    return NULL;
}

static int count_threads(void)
{
    struct stat tasks;
    CHECK(stat("/proc/self/task", &tasks) == 0);
    return (int)tasks.st_nlink - 2;
}

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

/* Counts with an extra thread of the program: the thread sanitizer starts its own thread with the first one.
 */
static int count_threads_of_program(void)
{
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
    return count_threads();
}

static void worker_comes_with_enable(void)
{
    int before = count_threads_of_program();
    begin();
    CHECK_EQUAL(count_threads() - before, 1);
}

/* The worker has the signal mask of the first launching thread, and still returns full buffers. */
static void worker_comes_with_the_first_launch(void)
{
    int before = count_threads_of_program();
    begin();
    CHECK_EQUAL(count_threads(), before);
    launch_times(1);
    CHECK_EQUAL(count_threads() - before, 1);
    launch_times(200);
    for (int ms = 0; ms < 20000 && returned == 0; ms++)
        usleep(1000);
    CHECK(returned > 0);
}

static void from_threads(void)
{
    pthread_t ids[4];
    begin();
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&ids[i], NULL, launch_many, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    OK(cuCtxSynchronize());
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 4000);
    CHECK_EQUAL(dropped(), 0);
}

static void from_threads_into_one(void)
{
    uint8_t no = 0;
    size_t size = sizeof no;
    OK(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &no));
    size = 0;
    CHECK_EQUAL(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &no),
                CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    from_threads();
}

static void CUPTIAPI no_buffer(uint8_t **buffer, size_t *size, size_t *records_at_most)
{
    *buffer = NULL;
    *size = *records_at_most = 0;
}

static void without_buffers(void)
{
    begin();
    OK(cuptiActivityRegisterCallbacks(no_buffer, take_buffer));
    launch_times(5);
    CHECK_EQUAL(dropped(), 5);
    CHECK_EQUAL(dropped(), 0);
}

static void test_buffers(void **state)
{
    (void)state;
    RUN(incomplete_ones_wait, "OCCSIM_CLOCK=virtual");
    RUN(no_call_after_its_exit_handlers, "OCCSIM_LOG=/dev/null");
    RUN(a_busy_thread_gets_them_back_full, "OCCSIM_CLOCK=virtual");
    RUN(forced_ones_have_no_times, "OCCSIM_CLOCK=virtual");
    RUN(asked_in_the_launching_thread);
    RUN(worker_comes_with_enable);
    RUN(worker_comes_with_the_first_launch, "OCCSIM_FAULT=late_worker:1");
    RUN(from_threads);
    RUN(from_threads_into_one);
    RUN(without_buffers);
}

/* ---- graphs ---- */

static CUgraphExec three_node_graph(CUstream stream)
{
    CUgraph graph;
    CUgraphExec exec;
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "plain"));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < 3; i++)
        OK(cuLaunchKernel(function, 10, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    return exec;
}

static void graph_nodes(void)
{
    CUstream stream;
    uint32_t id;
    begin();
    OK(cuStreamCreate(&stream, 0));
    CUgraphExec exec = three_node_graph(stream);
    OK(cuptiGetGraphExecId(exec, &id));
    for (int i = 0; i < 2; i++)
        OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 6);
    for (unsigned i = 0; i < 6; i++) {
        const CUpti_ActivityKernel10 *r = &records[i].kernel, *replay = &records[i % 3].kernel;
        CHECK(r->graphId == id && r->graphNodeId == replay->graphNodeId && r->graphNodeId != 0);
        CHECK_EQUAL(r->correlationId, records[i / 3 * 3].kernel.correlationId);
        CHECK(i == 0 || r->start >= records[i - 1].kernel.end);
        CHECK(i % 3 == 0 || r->graphNodeId != records[i - 1].kernel.graphNodeId);
    }
    CHECK(records[0].kernel.correlationId != records[3].kernel.correlationId);
}

static void whole_graphs(void)
{
    CUstream stream;
    begin();
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
    OK(cuStreamCreate(&stream, 0));
    CUgraphExec exec = three_node_graph(stream);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    launch_times(1);
    OK(cuptiActivityFlushAll(0));
    CHECK(graph_count == 1 && record_count == 1); /* no records of nodes; other launches have records */
    CHECK(graph_record.start < graph_record.end && graph_record.graphId != 0);
}

/* Replays a graph of a kernel and a fill 20 times; returns the number of launches without times. */
static unsigned without_times_of_20(void)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr at;
    unsigned without = 0;
    size_t limit = 2, size = sizeof limit;
    begin();
    OK(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size, &limit));
    OK(cuMemAlloc(&at, 256));
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD8Async(at, 0, 256, stream));
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "plain"));
    OK(cuLaunchKernel(function, 10, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 20; i++)
        OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 20);
    for (unsigned i = 0; i < 20; i++)
        without += records[i].kernel.start == 0;
    return without;
}

static void graphs_with_fills_leak(void)
{
    CHECK_EQUAL(without_times_of_20(), 20 - (2 * 5 - 1)); /* the tenth fill takes the last place */
}

static void graphs_with_recorded_fills_do_not(void)
{
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    CHECK_EQUAL(without_times_of_20(), 0);
}

/* The fault "leak_all": recorded fills leak too. */
static void graphs_with_recorded_fills_leak(void)
{
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    CHECK_EQUAL(without_times_of_20(), 20 - (2 * 5 - 1));
}

static void later_versions_do_not_leak(void)
{
    CHECK_EQUAL(without_times_of_20(), 0);
}

static void test_graphs(void **state)
{
    (void)state;
    RUN(graphs_with_fills_leak, "OCCSIM_FAULT=leak:5", "OCCSIM_CUPTI_VERSION=130200");
    RUN(graphs_with_recorded_fills_do_not, "OCCSIM_FAULT=leak:5", "OCCSIM_CUPTI_VERSION=24");
    RUN(graphs_with_recorded_fills_leak, "OCCSIM_FAULT=leak:5,leak_all:1", "OCCSIM_CUPTI_VERSION=24");
    RUN(later_versions_do_not_leak, "OCCSIM_FAULT=leak:5,leak_all:1", "OCCSIM_CUPTI_VERSION=130300");
    RUN(later_versions_do_not_leak, "OCCSIM_FAULT=leak:5", "OCCSIM_CUPTI_VERSION=130300");
    RUN(graph_nodes);
    RUN(whole_graphs);
}

/* ---- repetition in virtual time, truth ---- */

static const char *fingerprint_path;

static int by_start(const void *a, const void *b)
{
    uint64_t x = ((const CUpti_ActivityKernel10 *)a)->start, y = ((const CUpti_ActivityKernel10 *)b)->start;
    return (x > y) - (x < y);
}

static void fingerprint(void)
{
    begin();
    for (unsigned i = 1; i < 200; i++)
        launch(i % 3 ? "plain" : "heavy", i * 37, 128, 0);
    OK(cuCtxSynchronize());
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 199);
    qsort(records, record_count, sizeof *records, by_start); /* buffers come back in any order */
    FILE *file = fopen(fingerprint_path, "w");
    CHECK(file);
    for (unsigned i = 0; i < record_count; i++)
        fprintf(file, "%llu %llu\n", (unsigned long long)records[i].kernel.start,
                (unsigned long long)records[i].kernel.end);
    fclose(file);
}

static void read_all(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(text, 1, room - 1, file);
    text[n] = 0;
    fclose(file);
}

/* Compares line i of the truth file with record i. */
static void compare_truth(const char *truth, const char *stamps)
{
    char *line = strchr(truth, '\n'), *stamp = (char *)(uintptr_t)stamps;
    size_t lines = 0;
    for (line++; *line; line = strchr(line, '\n') + 1, lines++) {
        unsigned long long start = strtoull(stamp, &stamp, 10), end = strtoull(stamp, &stamp, 10), t_start,
                           t_end;
        const char *at = line;
        for (int comma = 0; comma < 14; comma++)
            at = strchr(at, ',') + 1;
        assert_int_equal(sscanf(at, "%llu,%llu", &t_start, &t_end), 2);
        assert_true(t_start == start && t_end == end);
    }
    assert_int_equal(lines, 199);
}

static void test_virtual_time_and_truth(void **state)
{
    static char first[1 << 16], again[1 << 16], truth[1 << 18], directory[] = "/tmp/simgpu-test-XXXXXX";
    char a[64], b[64], t[64], setting[128];
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(a, sizeof a, "%s/a", directory);
    snprintf(b, sizeof b, "%s/b", directory);
    snprintf(t, sizeof t, "%s/truth", directory);
    snprintf(setting, sizeof setting, "OCCSIM_TRUTH=%s", t);
    fingerprint_path = a;
    RUN(fingerprint, "OCCSIM_CLOCK=virtual", setting);
    fingerprint_path = b;
    RUN(fingerprint, "OCCSIM_CLOCK=virtual");
    read_all(a, first, sizeof first);
    read_all(b, again, sizeof again);
    read_all(t, truth, sizeof truth);
    assert_string_equal(first, again);
    compare_truth(truth, first);
    unlink(a);
    unlink(b);
    unlink(t);
    rmdir(directory);
}

/* Lets processes start at once: each waits for the end of the pipe. */
static int starting_line[2];

static void launch_with_others(void)
{
    char byte;
    close(starting_line[1]);
    CHECK_EQUAL(read(starting_line[0], &byte, 1), 0);
    begin();
    launch_times(1);
}

static void test_truth_of_many_processes(void **state)
{
    enum { PROCESSES = 12 };
    static char truth[1 << 16];
    char path[] = "/tmp/simgpu-truth-XXXXXX", variable[64];
    pid_t children[PROCESSES];
    (void)state;
    int fd = mkstemp(path), status;
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(pipe(starting_line), 0);
    snprintf(variable, sizeof variable, "OCCSIM_TRUTH=%s", path);
    for (size_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i])
            continue;
        putenv(variable);
        launch_with_others();
        _exit(0);
    }
    close(starting_line[0]);
    close(starting_line[1]);
    for (size_t i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    read_all(path, truth, sizeof truth);
    unlink(path);
    size_t lines = 0, headers = 0;
    for (const char *line = truth; *line; line = strchr(line, '\n') + 1, lines++)
        headers += strncmp(line, "name,", 5) == 0;
    assert_int_equal(headers, 1);
    assert_int_equal(lines, PROCESSES + 1);
    assert_memory_equal(truth, "name,", 5);
}

/* ---- callbacks ---- */

static struct {
    CUpti_CallbackId id;
    CUpti_ApiCallbackSite site;
    CUcontext context;
    CUstream stream;
} called[8];
static size_t n_called;

static void CUPTIAPI note_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                   const void *info)
{
    const CUpti_CallbackData *call = info;
    (void)data;
    CHECK_EQUAL(domain, CUPTI_CB_DOMAIN_DRIVER_API);
    CHECK(n_called < 8 && call->functionParams);
    called[n_called].id = id;
    called[n_called].site = call->callbackSite;
    called[n_called].context = call->context;
    memcpy(&called[n_called++].stream, call->functionParams, sizeof(CUstream));
}

/* As CUPTI says: the thread's current context, even if the stream belongs to another one. */
static void callbacks_of_streams(void)
{
    static const CUpti_CallbackId ids[] = {CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
                                           CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2};
    CUpti_SubscriberHandle subscriber;
    CUcontext own, other;
    CUstream stream;
    begin();
    OK(cuCtxGetCurrent(&own));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuptiSubscribe(&subscriber, note_callback, NULL));
    for (size_t i = 0; i < 2; i++)
        OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, ids[i]));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamDestroy(stream));
    OK(cuptiUnsubscribe(subscriber));
    CHECK_EQUAL(n_called, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQUAL(called[i].id, ids[i / 2]);
        CHECK_EQUAL(called[i].site, i % 2 ? CUPTI_API_EXIT : CUPTI_API_ENTER);
        CHECK(called[i].context == other && called[i].context != own && called[i].stream == stream);
    }
}

static void test_callbacks(void **state)
{
    (void)state;
    RUN(callbacks_of_streams);
}

/* ---- faults ---- */

static void refused_subscription(void)
{
    CUpti_SubscriberHandle handle;
    const char *text;
    CHECK_EQUAL(cuptiSubscribe(&handle, NULL, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK_EQUAL(cuptiGetLastError(), 39);
    OK(cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text));
    CHECK(strcmp(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED") == 0);
}

static void second_subscriber(void)
{
    CUpti_SubscriberHandle first, second;
    OK(cuptiSubscribe(&first, NULL, NULL));
    CHECK_EQUAL(cuptiSubscribe(&second, NULL, NULL), 39);
    OK(cuptiUnsubscribe(first));
    OK(cuptiSubscribe(&second, NULL, NULL));
}

static void refused_registration(void)
{
    CHECK_EQUAL(cuptiActivityRegisterCallbacks(request_buffer, take_buffer), 15);
    CHECK_EQUAL(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
}

static void refused_enabling(void)
{
    CHECK_EQUAL(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 39);
}

static void lost_records(void)
{
    begin();
    launch_times(100);
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 90);
    CHECK_EQUAL(dropped(), 10);
}

static void bad_stamps(void)
{
    unsigned zero = 0, backwards = 0;
    begin();
    launch_times(60);
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 60);
    for (unsigned i = 0; i < 60; i++) {
        zero += records[i].kernel.start == 0 && records[i].kernel.end == 0;
        backwards += records[i].kernel.end < records[i].kernel.start;
    }
    CHECK(zero == 10 && backwards == 10); /* every 6th; every 4th that is not a 6th */
}

static void mixed_up(void)
{
    unsigned later = 0;
    begin();
    launch_times(60);
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 60); /* one buffer */
    for (unsigned i = 1; i < 60; i++)
        later += records[i].kernel.start < records[i - 1].kernel.start;
    CHECK_EQUAL(later, 60 / 3 * 2);
}

static void small_buffers(void)
{
    begin();
    launch_times(12);
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(returned, requested);
    CHECK_EQUAL(record_count, 12);
    CHECK(most_in_buffer == 3 && requested == 4);
}

static void late_buffers(void)
{
    begin();
    launch_times(1);
    OK(cuptiActivityFlushAll(0));
    CHECK_EQUAL(record_count, 0);
    OK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK(record_count == 1 && records[0].kernel.end > records[0].kernel.start);
}

static void finalized(void)
{
    begin();
    launch_times(3);
    OK(cuptiFinalize());
    CHECK_EQUAL(record_count, 3);
    launch_times(3);
    CHECK_EQUAL(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION); /* the callbacks are unregistered */
    CHECK_EQUAL(record_count, 3);
}

/* Results seen with 13.0.85 on drivers 550 and 580. */
static void without_a_device(void)
{
    CUpti_SubscriberHandle subscriber;
    size_t value = 4, bytes = sizeof value;
    CHECK_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
    CHECK_EQUAL(
        cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &bytes, &value),
        CUPTI_ERROR_UNKNOWN);
    CHECK_EQUAL(cuptiActivityRegisterCallbacks(request_buffer, take_buffer), CUPTI_ERROR_UNKNOWN);
    CHECK_EQUAL(cuptiSubscribe(&subscriber, NULL, NULL), CUPTI_ERROR_UNKNOWN);
    CHECK_EQUAL(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_ERROR_UNKNOWN);
    CHECK_EQUAL(cuptiActivityFlushAll(0), CUPTI_ERROR_UNKNOWN);
    CHECK_EQUAL(cuptiGetLastError(), CUPTI_SUCCESS);
}

static void test_faults(void **state)
{
    (void)state;
    RUN(without_a_device, "OCCSIM_FAULT=init:100");
    RUN(refused_subscription, "OCCSIM_FAULT=subscribe:39");
    RUN(second_subscriber);
    RUN(refused_registration, "OCCSIM_FAULT=register:15");
    RUN(refused_enabling, "OCCSIM_FAULT=enable:39");
    RUN(lost_records, "OCCSIM_FAULT=drop:10");
    RUN(bad_stamps, "OCCSIM_FAULT=zero:6,backwards:4");
    RUN(mixed_up, "OCCSIM_FAULT=shuffle:3");
    RUN(small_buffers, "OCCSIM_FAULT=small:800");
    RUN(late_buffers, "OCCSIM_FAULT=late:100000");
    RUN(finalized);
    RUN(one_record, "OCCSIM_FAULT=nonsense:1,drop:none,zero:0", "OCCSIM_BLOCK_NS=-5", "OCCSIM_CLOCK=sundial",
        "OCCSIM_LOG=/dev/null"); /* invalid settings are reported and ignored */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_broken_brothers),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_virtual_time_and_truth),
        cmocka_unit_test(test_truth_of_many_processes),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
