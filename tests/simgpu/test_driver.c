/*
 * Tests the simulated driver like a program: initialisation and injection, devices, modules, launches and
 * refusals, streams, events, graphs, memory, host functions, names and versions of entry points.
 */
#include "test_child.h"

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define OK(call) CHECK_EQUAL(call, CUDA_SUCCESS)

static CUcontext context;
static CUmodule module;

static void begin(void)
{
    CUdevice device;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuCtxCreate(&context, NULL, 0, device));
    OK(cuModuleLoad(&module, SIM_TEST_IMAGES "/plain.fatbin"));
}

static CUfunction function_of(const char *name)
{
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static CUresult launch(const char *name, unsigned grid, unsigned block, unsigned smem, CUstream stream)
{
    return cuLaunchKernel(function_of(name), grid, 1, 1, block, 1, 1, smem, stream, NULL, NULL);
}

/* ---- beginning ---- */

static void injection(void)
{
    OK(cuInit(0));
    OK(cuInit(0));
    CHECK(getenv("SIM_TEST_INJECTED"));
    CHECK(strcmp(getenv("SIM_TEST_INJECTED"), "1 call, 1 device") == 0);
}

static void missing_injection(void)
{
    OK(cuInit(0));
}

static void init_fails(void)
{
    int count;
    CHECK_EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cuInit(0), 803);
    CHECK_EQUAL(cuInit(0), 803);
    CHECK_EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
}

static void no_device(void)
{
    CHECK_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
    CHECK(getenv("SIM_TEST_INJECTED") && strcmp(getenv("SIM_TEST_INJECTED"), "1 call, 0 device") == 0);
    CHECK_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
    CHECK(strcmp(getenv("SIM_TEST_INJECTED"), "1 call, 0 device") == 0);
}

static void child_after_init(void)
{
    OK(cuInit(0));
    pid_t child = fork();
    if (child == 0) {
        int count;
        bool dead =
            cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED;
        _exit(dead ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK_EQUAL(status, 0);
}

static void child_before_init(void)
{
    pid_t child = fork();
    if (child == 0) {
        injection();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK_EQUAL(status, 0);
    CHECK(!getenv("SIM_TEST_INJECTED"));
    injection();
}

static void test_beginning(void **state)
{
    (void)state;
    RUN(injection, "CUDA_INJECTION64_PATH=" SIM_TEST_INJECTION);
    RUN(missing_injection, "CUDA_INJECTION64_PATH=/nonexistent.so");
    RUN(init_fails, "OCCSIM_FAULT=init:803");
    RUN(no_device, "OCCSIM_FAULT=init:100", "CUDA_INJECTION64_PATH=" SIM_TEST_INJECTION);
    RUN(child_after_init);
    RUN(child_before_init, "CUDA_INJECTION64_PATH=" SIM_TEST_INJECTION);
}

/* ---- devices ---- */

static void three_devices(void)
{
    static const int sms[] = {40, 108, 132};
    int count, value, version;
    char name[64];
    CUuuid first, uuid;
    OK(cuInit(0));
    OK(cuDriverGetVersion(&version));
    CHECK_EQUAL(version, 13000);
    OK(cuDeviceGetCount(&count));
    CHECK_EQUAL(count, 3);
    for (int i = 0; i < 3; i++) {
        OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, i));
        CHECK_EQUAL(value, sms[i]);
        OK(cuDeviceGetName(name, sizeof name, i));
        CHECK(strstr(name, " (simulated)"));
        OK(cuDeviceGetUuid(i ? &uuid : &first, i));
        CHECK(i == 0 || memcmp(&uuid, &first, sizeof uuid) != 0);
    }
    CHECK_EQUAL(cuDeviceGet(&value, 3), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQUAL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
}

static void no_such_model(void)
{
    CHECK_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void contexts(void)
{
    CUcontext a, b, now;
    CUdevice device;
    OK(cuInit(0));
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxCreate(&a, NULL, 0, 0));
    OK(cuDevicePrimaryCtxRetain(&b, 1));
    OK(cuCtxPushCurrent(b));
    OK(cuCtxGetDevice(&device));
    CHECK_EQUAL(device, 1);
    OK(cuCtxPopCurrent(&now));
    CHECK(now == b);
    OK(cuCtxGetCurrent(&now));
    CHECK(now == a);
    OK(cuCtxSetCurrent(b));
    OK(cuDevicePrimaryCtxRelease(1));
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuCtxDestroy(a));
    CHECK_EQUAL(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
}

static void test_devices(void **state)
{
    (void)state;
    RUN(three_devices, "OCCSIM_GPU=t4,a100,h200");
    RUN(no_such_model, "OCCSIM_GPU=gtx", "OCCSIM_LOG=/dev/null");
    RUN(contexts, "OCCSIM_GPU=h200,h200");
}

/* ---- modules ---- */

static void functions(void)
{
    int value;
    unsigned count;
    CUfunction function;
    begin();
    OK(cuModuleGetFunctionCount(&count, module));
    CHECK_EQUAL(count, 9);
    CHECK_EQUAL(cuModuleGetFunction(&function, module, "absent"), CUDA_ERROR_NOT_FOUND);
    function = function_of("bounded");
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
    CHECK_EQUAL(value, 8192);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    CHECK_EQUAL(value, 256);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    CHECK_EQUAL(value, 49152 - 8192);
    CHECK_EQUAL(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448),
                CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 8192));
    CUmodule other;
    CHECK_EQUAL(cuModuleLoad(&other, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
    CHECK_EQUAL(cuModuleLoad(&other, SIM_TEST_IMAGES "/ptx.fatbin"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK_EQUAL(cuModuleLoad(&other, SIM_TEST_IMAGES "/sm_80.cubin"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK_EQUAL(cuModuleLoad(&other, SIM_TEST_IMAGES "/sm_80.ptxas"), CUDA_ERROR_INVALID_IMAGE);
    OK(cuModuleUnload(module));
}

static void globals(void)
{
    CUdeviceptr at;
    size_t bytes;
    int got[4] = {0};
    begin();
    OK(cuModuleGetGlobal(&at, &bytes, module, "preset"));
    CHECK_EQUAL(bytes, sizeof got);
    OK(cuMemcpyDtoH(got, at, bytes));
    CHECK_EQUAL(got[2], 3);
    CHECK_EQUAL(cuModuleGetGlobal(&at, &bytes, module, "absent"), CUDA_ERROR_NOT_FOUND);
}

static void libraries(void)
{
    CUlibrary library;
    CUkernel kernel;
    const char *name;
    CUcontext primary;
    OK(cuInit(0));
    OK(cuLibraryLoadFromFile(&library, SIM_TEST_IMAGES "/plain.fatbin", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "plain"));
    OK(cuKernelGetName(&name, kernel));
    CHECK(strcmp(name, "plain") == 0);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
    OK(cuLaunchKernel((CUfunction)kernel, 10, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuLibraryUnload(library));
}

static void test_modules(void **state)
{
    (void)state;
    RUN(functions);
    RUN(globals);
    RUN(libraries);
}

/* ---- launches ---- */

static void refusals(void)
{
    begin();
    OK(launch("plain", 1, 1024, 0, NULL));
    OK(launch("plain", 2147483647, 32, 0, NULL));
    CHECK_EQUAL(launch("plain", 0, 32, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(launch("plain", 2147483648u, 32, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(launch("plain", 1, 0, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(launch("plain", 1, 1025, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CUfunction plain = function_of("plain");
    CHECK_EQUAL(cuLaunchKernel(plain, 1, 65536, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuLaunchKernel(plain, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuLaunchKernel(plain, 1, 1, 1, 64, 32, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(launch("bounded", 1, 257, 0, NULL), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK_EQUAL(launch("dynamic", 1, 32, 49153, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(function_of("dynamic"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
    OK(launch("dynamic", 1, 32, 200000, NULL));
    CHECK_EQUAL(launch("dynamic", 1, 32, 200001, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(launch("clustered", 3, 32, 0, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(launch("clustered", 4, 32, 0, NULL));
    CHECK_EQUAL(cuLaunchCooperativeKernel(plain, 132 * 2 + 1, 1, 1, 1024, 1, 1, 0, NULL, NULL),
                CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    OK(cuLaunchCooperativeKernel(plain, 132 * 2, 1, 1, 1024, 1, 1, 0, NULL, NULL));
}

static void clusters_need_a_device(void)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {2, 1, 1}};
    CUlaunchConfig config = {.gridDimX = 4,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 32,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = 1};
    begin();
    CHECK_EQUAL(cuLaunchKernelEx(&config, function_of("plain"), NULL, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    OK(cuLaunchKernelEx(&config, function_of("plain"), NULL, NULL));
}

static void calculator(void)
{
    int blocks, grid, block;
    begin();
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_of("plain"), 256, 0));
    CHECK_EQUAL(blocks, 8);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_of("dynamic"), 128, 9 << 10));
    CHECK_EQUAL(blocks, 16);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_of("bounded"), 512, 0));
    CHECK_EQUAL(blocks, 0);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function_of("plain"), NULL, 0, 0));
    CHECK_EQUAL(grid * block, 132 * 2048);
    size_t smem;
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&smem, function_of("dynamic"), 8, 128));
    CHECK_EQUAL(smem, (228 << 10) / 8 - 1024);
}

static void test_launches(void **state)
{
    (void)state;
    RUN(refusals, "OCCSIM_CLOCK=ahead");
    RUN(clusters_need_a_device, "OCCSIM_GPU=a100");
    RUN(calculator);
}

/* ---- time ---- */

static float elapsed(CUevent from, CUevent to)
{
    float ms;
    OK(cuEventSynchronize(to));
    OK(cuEventElapsedTime(&ms, from, to));
    return ms * 1e6f;
}

static void stream_order(void)
{
    CUstream a, b;
    CUevent begin_a, end_a, end_b;
    begin();
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&begin_a, 0));
    OK(cuEventCreate(&end_a, 0));
    OK(cuEventCreate(&end_b, 0));
    OK(cuEventRecord(begin_a, a));
    OK(launch("plain", 132 * 16 * 50, 128, 0, a)); /* 50 waves */
    OK(cuEventRecord(end_a, a));
    CHECK_EQUAL(cuEventQuery(end_a), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(cuStreamQuery(b));
    OK(cuStreamWaitEvent(b, end_a, 0));
    OK(launch("plain", 1, 32, 0, b));
    OK(cuEventRecord(end_b, b));
    CHECK(elapsed(begin_a, end_a) > 50 * 500.f);
    CHECK(elapsed(end_a, end_b) > 0);
    OK(cuStreamQuery(a));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

static CUevent recorded(CUstream stream)
{
    CUevent event;
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, stream));
    return event;
}

/* The legacy default stream waits for blocking streams and these wait for it; non-blocking streams do not. */
static void legacy_stream(void)
{
    CUstream blocking, apart;
    begin();
    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    OK(launch("plain", 132 * 4, 128, 0, NULL)); /* does not fill the device */
    CUevent legacy_done = recorded(NULL);
    OK(launch("plain", 1, 32, 0, apart));
    CUevent apart_done = recorded(apart);
    OK(launch("plain", 1, 32, 0, blocking));
    CUevent blocking_done = recorded(blocking);
    OK(launch("plain", 1, 32, 0, NULL));
    CUevent again_done = recorded(NULL);
    float alone = elapsed(legacy_done, blocking_done);
    CHECK(alone > 50000); /* the whole kernel */
    CHECK(elapsed(blocking_done, again_done) > 50000);
    CHECK(elapsed(legacy_done, apart_done) < 10000); /* beside the first */
}

static int order[3], order_count;

static void CUDA_CB host_function(void *data)
{
    order[order_count++] = (int)(intptr_t)data;
}

static void host_functions(void)
{
    CUstream stream;
    begin();
    OK(cuStreamCreate(&stream, 0));
    OK(launch("plain", 100, 128, 0, stream));
    for (intptr_t i = 0; i < 3; i++)
        OK(cuLaunchHostFunc(stream, host_function, (void *)i));
    OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(order_count, 3);
    CHECK(order[0] == 0 && order[1] == 1 && order[2] == 2);
}

static void test_time(void **state)
{
    (void)state;
    RUN(stream_order, "OCCSIM_CLOCK=virtual");
    RUN(legacy_stream, "OCCSIM_CLOCK=virtual", "OCCSIM_BLOCK_NS=100000");
    RUN(host_functions);
    RUN(host_functions, "OCCSIM_CLOCK=virtual");
}

/* ---- memory ---- */

static void memory(void)
{
    CUdeviceptr at, base;
    size_t bytes, free_before, free_now, total;
    unsigned words[256], back[256];
    begin();
    OK(cuMemGetInfo(&free_before, &total));
    OK(cuMemAlloc(&at, sizeof words));
    OK(cuMemGetInfo(&free_now, &total));
    CHECK_EQUAL(free_before - free_now, sizeof words);
    for (unsigned i = 0; i < 256; i++)
        words[i] = i * 7;
    OK(cuMemcpyHtoD(at, words, sizeof words));
    OK(cuMemsetD32(at + 40, 99, 2));
    OK(cuMemcpyDtoH(back, at, sizeof back));
    CHECK(back[9] == 63 && back[10] == 99 && back[11] == 99 && back[12] == 84);
    CHECK_EQUAL(cuMemcpyHtoD(at + 4, words, sizeof words), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpyDtoH(back, at - 4096, 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetAddressRange(&base, &bytes, at + 100));
    CHECK(base == at && bytes == sizeof words);
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = at,
                          .srcPitch = 64,
                          .srcXInBytes = 4,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = back,
                          .WidthInBytes = 8,
                          .Height = 3};
    OK(cuMemcpy2D(&rows));
    CHECK(back[0] == 7 && back[1] == 14 && back[2] == 17 * 7 && back[5] == 34 * 7);
    rows.Height = 1000;
    CHECK_EQUAL(cuMemcpy2D(&rows), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(at));
    CHECK_EQUAL(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&at, (size_t)100 << 30)); /* untouched memory costs nothing */
    CHECK_EQUAL(cuMemAlloc(&base, (size_t)100 << 30), CUDA_ERROR_OUT_OF_MEMORY);
}

static void goes_with_its_context(void)
{
    CUdeviceptr at;
    CUcontext other;
    size_t before, now, total;
    begin();
    OK(cuMemGetInfo(&before, &total));
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuModuleLoad(&module, SIM_TEST_IMAGES "/plain.fatbin"));
    OK(cuMemAlloc(&at, 1 << 20));
    OK(cuCtxDestroy(other));
    OK(cuMemGetInfo(&now, &total));
    CHECK_EQUAL(now, before);
    CHECK_EQUAL(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
}

static void test_memory(void **state)
{
    (void)state;
    RUN(memory);
    RUN(goes_with_its_context);
}

/* ---- graphs ---- */

static CUgraph capture_fork_and_join(CUstream a, CUstream b)
{
    CUevent fork_event, join;
    CUgraph graph;
    OK(cuEventCreate(&fork_event, 0));
    OK(cuEventCreate(&join, 0));
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch("plain", 10, 32, 0, a));
    OK(cuEventRecord(fork_event, a));
    OK(cuStreamWaitEvent(b, fork_event, 0));
    OK(launch("bounded", 10, 32, 0, b));
    OK(launch("dynamic", 10, 32, 0, a));
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(launch("heavy", 10, 32, 0, a));
    OK(cuStreamEndCapture(a, &graph));
    return graph;
}

static void captured_graph(void)
{
    CUstream a, b;
    CUgraphNode nodes[8], before[8];
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    size_t count = 8, waits = 8;
    begin();
    OK(cuStreamCreate(&a, 0));
    OK(cuStreamCreate(&b, 0));
    CUgraph graph = capture_fork_and_join(a, b);
    OK(cuGraphGetNodes(graph, nodes, &count));
    CHECK_EQUAL(count, 4);
    OK(cuGraphNodeGetDependencies(nodes[3], before, NULL, &waits));
    CHECK_EQUAL(waits, 2);
    CHECK_EQUAL(cuStreamSynchronize(b), CUDA_SUCCESS);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, a));
    OK(cuGraphExecUpdate(exec, capture_fork_and_join(a, b), &info));
    CUgraph other;
    OK(cuGraphCreate(&other, 0));
    CHECK_EQUAL(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK_EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, a));
    OK(cuStreamSynchronize(a));
    OK(cuGraphExecDestroy(exec));
}

static void capture_mistakes(void)
{
    CUstream a, b;
    CUevent event;
    CUgraph graph;
    begin();
    OK(cuStreamCreate(&a, 0));
    OK(cuStreamCreate(&b, 0));
    OK(cuEventCreate(&event, 0));
    CHECK_EQUAL(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
                CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(a, &graph), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_EQUAL(cuStreamSynchronize(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(launch("plain", 0, 32, 0, a), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(launch("plain", 1, 32, 0, b));
    CHECK_EQUAL(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    OK(launch("plain", 1, 32, 0, b)); /* both streams work again */
    OK(cuStreamSynchronize(b));
}

static void built_graph(void)
{
    CUgraph graph, child;
    CUgraphNode first, second, set, third;
    CUgraphExec exec;
    CUgraphNodeType type;
    begin();
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = function_of("plain"),
                                      .gridDimX = 4,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 64,
                                      .blockDimY = 1,
                                      .blockDimZ = 1};
    CUDA_MEMSET_NODE_PARAMS fill = {.elementSize = 4, .width = 100, .height = 1};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddKernelNode(&first, child, NULL, 0, &kernel));
    OK(cuGraphAddKernelNode(&second, graph, NULL, 0, &kernel));
    OK(cuGraphAddMemsetNode(&set, graph, NULL, 0, &fill, context));
    OK(cuGraphAddDependencies(graph, &set, &second, NULL, 1));
    OK(cuGraphAddChildGraphNode(&third, graph, &second, 1, child));
    OK(cuGraphNodeGetType(third, &type));
    CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_GRAPH);
    OK(cuGraphDestroy(child)); /* it was copied */
    OK(cuGraphInstantiate(&exec, graph, 0));
    kernel.gridDimX = 8;
    OK(cuGraphExecKernelNodeSetParams(exec, second, &kernel));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    OK(cuGraphAddDependencies(graph, &third, &set, NULL, 1)); /* a cycle */
    CHECK_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_graphs(void **state)
{
    (void)state;
    RUN(captured_graph);
    RUN(capture_mistakes);
    RUN(built_graph);
}

/* ---- entry points ---- */

static void entry_points(void)
{
    static const struct {
        const char *name;
        int version;
        cuuint64_t flags;
        const char *symbol;
    } expected[] = {
        {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 3010, 0, "cuMemAlloc"},
        {"cuCtxCreate", 11000, 0, "cuCtxCreate_v2"},
        {"cuCtxCreate", 12000, 0, "cuCtxCreate_v3"},
        {"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
        {"cuCtxSynchronize", 12090, 0, "cuCtxSynchronize"},
        {"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2"},
        {"cuLaunchKernel", 13000, 0, "cuLaunchKernel"},
        {"cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuLaunchKernel_ptsz"},
        {"cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemcpyHtoD_v2_ptds"},
        {"cuInit", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuInit"},
        {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
    };
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *found;
    CUdriverProcAddressQueryResult status;
    CHECK(driver);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        OK(cuGetProcAddress(expected[i].name, &found, expected[i].version, expected[i].flags, &status));
        CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SUCCESS);
        CHECK(found == dlsym(driver, expected[i].symbol));
    }
    CHECK_EQUAL(cuGetProcAddress("cuNothing", &found, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK_EQUAL(cuGetProcAddress("cuLaunchKernelEx", &found, 11000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

static void nothing_private(void)
{
    const void *table = &table;
    CUuuid id = {{1}};
    OK(cuInit(0));
    CHECK_EQUAL(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    CHECK(table == NULL);
    CHECK_EQUAL(cuArrayCreate(NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
    const char *text;
    OK(cuGetErrorName(CUDA_ERROR_NOT_SUPPORTED, &text));
    CHECK(strcmp(text, "CUDA_ERROR_NOT_SUPPORTED") == 0);
    CHECK_EQUAL(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
}

static void test_entry_points(void **state)
{
    (void)state;
    RUN(entry_points);
    RUN(nothing_private);
}

/* ---- threads ---- */

static void *launch_many(void *unused)
{
    (void)unused;
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < 2000; i++)
        OK(launch("plain", 100, 128, 0, CU_STREAM_PER_THREAD));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void threads(void)
{
    pthread_t ids[4];
    begin();
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&ids[i], NULL, launch_many, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    OK(cuCtxDestroy(context));
}

static void test_threads(void **state)
{
    (void)state;
    RUN(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beginning), cmocka_unit_test(test_devices),      cmocka_unit_test(test_modules),
        cmocka_unit_test(test_launches),  cmocka_unit_test(test_time),         cmocka_unit_test(test_memory),
        cmocka_unit_test(test_graphs),    cmocka_unit_test(test_entry_points), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
