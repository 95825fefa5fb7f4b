/*
 * The entry points with a stream parameter. This file is compiled twice: plain, with stream 0 as the legacy
 * default stream, and with CUDA_API_PER_THREAD_DEFAULT_STREAM, where cuda.h adds _ptsz or _ptds to each name
 * and stream 0 is the calling thread's own. It has only the code that differs; driver_*.c does the work.
 * Threads: any.
 */
#include "driver.h"

#include "clock.h"

#include <string.h>

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define DEFAULT_STREAM CU_STREAM_PER_THREAD
#else
#define DEFAULT_STREAM CU_STREAM_LEGACY
#endif

static CUresult stream_of(CUstream handle, struct sim_stream **ret)
{
    return sim_stream_of(handle ? handle : DEFAULT_STREAM, ret);
}

static CUresult submit(CUstream handle, const struct sim_op *op)
{
    struct sim_stream *stream;
    CUresult result = stream_of(handle, &stream);
    return result ? result : sim_submit(stream, op);
}

static struct sim_called called_of(const struct sim_stream *stream, CUstream handle)
{
    return (struct sim_called){.context = (CUcontext)stream->context, .stream = handle};
}

/* ---- kernels ---- */

static CUresult launch(CUstream handle, CUfunction function, const struct sim_launch *shape)
{
    struct sim_op op = {.kind = SIM_OP_KERNEL, .asynchronous = true, .launch = *shape};
    struct sim_stream *stream;
    CUresult result = sim_function_of(function, &op.launch.function);
    if (!result)
        result = stream_of(handle, &stream);
    if (result)
        return result;
    const struct sim_called called = called_of(stream, handle);
    sim_tell_call(SIM_CALL_LAUNCH, &called, NULL);
    result = sim_submit(stream, &op);
    sim_tell_call(SIM_CALL_LAUNCH, &called, &result);
    return result;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    (void)kernelParams; /* kernels are timed, not executed */
    (void)extra;
    struct sim_launch shape = {.grid = {gridDimX, gridDimY, gridDimZ},
                               .block = {blockDimX, blockDimY, blockDimZ},
                               .dynamic_smem_bytes = sharedMemBytes,
                               .carveout_percent = -1};
    return launch(hStream, f, &shape);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                   unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                   void **kernelParams)
{
    (void)kernelParams;
    struct sim_launch shape = {.grid = {gridDimX, gridDimY, gridDimZ},
                               .block = {blockDimX, blockDimY, blockDimZ},
                               .dynamic_smem_bytes = sharedMemBytes,
                               .carveout_percent = -1,
                               .cooperative = true};
    return launch(hStream, f, &shape);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    (void)kernelParams;
    (void)extra;
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_launch shape = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                               .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                               .dynamic_smem_bytes = config->sharedMemBytes,
                               .carveout_percent = -1};
    sim_launch_attributes(config, &shape);
    return launch(config->hStream, f, &shape);
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct sim_op op = {
        .kind = SIM_OP_HOST, .asynchronous = true, .host = {.function = fn, .data = userData}};
    return fn ? submit(hStream, &op) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
    struct sim_op op = {.kind = SIM_OP_HOST,
                        .asynchronous = true,
                        .host = {.callback = callback, .handle = hStream, .data = userData}};
    return callback && !flags ? submit(hStream, &op) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (result)
        return result;
    const struct sim_called called = called_of(stream, hStream);
    sim_tell_call(SIM_CALL_GRAPH, &called, NULL);
    result = sim_graph_launch(hGraphExec, stream);
    sim_tell_call(SIM_CALL_GRAPH, &called, &result);
    return result;
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    return result ? result : sim_handle(hGraphExec, SIM_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    instantiateParams->hErrNode_out = NULL;
    instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return cuGraphInstantiateWithFlags(phGraphExec, hGraph, instantiateParams->flags);
}

/* ---- copies and fills ---- */

/* Copies the data at once, since no kernel reads it; the copy's duration is added to the stream. */
static CUresult copy(CUstream handle, void *to, CUmemorytype to_type, const void *from,
                     CUmemorytype from_type, size_t bytes, bool asynchronous)
{
    struct sim_op op = {.kind = SIM_OP_COPY,
                        .asynchronous = asynchronous,
                        .copy = {.bytes = bytes, .from = from_type, .to = to_type}};
    CUresult result = sim_copy_check(to, to_type, from, from_type, bytes);
    if (result || !bytes)
        return result;
    result = submit(handle, &op);
    if (!result)
        memmove(to, from, bytes);
    return result;
}

static void *pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

#define DEVICE CU_MEMORYTYPE_DEVICE
#define HOST   CU_MEMORYTYPE_HOST

CUresult cuMemcpyHtoD(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy(NULL, pointer(dstDevice), DEVICE, srcHost, HOST, ByteCount, false);
}

CUresult cuMemcpyDtoH(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy(NULL, dstHost, HOST, pointer(srcDevice), DEVICE, ByteCount, false);
}

CUresult cuMemcpyDtoD(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy(NULL, pointer(dstDevice), DEVICE, pointer(srcDevice), DEVICE, ByteCount, false);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
    return copy(hStream, pointer(dstDevice), DEVICE, srcHost, HOST, ByteCount, true);
}

CUresult cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    return copy(hStream, dstHost, HOST, pointer(srcDevice), DEVICE, ByteCount, true);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    return copy(hStream, pointer(dstDevice), DEVICE, pointer(srcDevice), DEVICE, ByteCount, true);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy(NULL, pointer(dst), sim_memory_type(dst), pointer(src), sim_memory_type(src), ByteCount,
                false);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy(hStream, pointer(dst), sim_memory_type(dst), pointer(src), sim_memory_type(src), ByteCount,
                true);
}

/* Returns the first byte of one side of a copy of rows. */
static char *row_start(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y,
                       size_t pitch)
{
    char *base = type == HOST ? (char *)(uintptr_t)host : pointer(device);
    return base ? base + y * pitch + x : NULL;
}

static CUmemorytype side_of(CUmemorytype type, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_UNIFIED ? sim_memory_type(device) : type;
}

/* Copies rows; arrays are not simulated. */
static CUresult copy_rows(CUstream handle, const CUDA_MEMCPY2D *c, bool asynchronous)
{
    if (!c || c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return c ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    size_t from_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    size_t to_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    char *from = row_start(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, from_pitch);
    char *to = row_start(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, to_pitch);
    CUmemorytype from_side = side_of(c->srcMemoryType, c->srcDevice);
    CUmemorytype to_side = side_of(c->dstMemoryType, c->dstDevice);
    struct sim_op op = {.kind = SIM_OP_COPY,
                        .asynchronous = asynchronous,
                        .copy = {.bytes = c->WidthInBytes * c->Height, .from = from_side, .to = to_side}};
    CUresult result = sim_initialized();
    for (size_t row = 0; !result && row < c->Height; row++)
        result =
            sim_copy_check(to + row * to_pitch, to_side, from + row * from_pitch, from_side, c->WidthInBytes);
    if (result || !op.copy.bytes)
        return result;
    result = submit(handle, &op);
    for (size_t row = 0; !result && row < c->Height; row++)
        memmove(to + row * to_pitch, from + row * from_pitch, c->WidthInBytes);
    return result;
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *pCopy)
{
    return copy_rows(NULL, pCopy, false);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *pCopy)
{
    return copy_rows(NULL, pCopy, false);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_rows(hStream, pCopy, true);
}

/* Fills memory; `bytes` is the size of an element: 1, 2 or 4. */
static CUresult fill(CUstream handle, CUdeviceptr to, uint32_t value, size_t bytes, size_t count,
                     bool asynchronous)
{
    struct sim_op op = {.kind = SIM_OP_SET,
                        .asynchronous = asynchronous,
                        .set = {.bytes = bytes * count, .value = value, .asynchronous = asynchronous}};
    CUresult result = sim_copy_check(pointer(to), DEVICE, pointer(to), DEVICE, bytes * count);
    if (result || !count)
        return result;
    result = submit(handle, &op);
    for (size_t i = 0; !result && i < count; i++)
        memcpy((char *)pointer(to) + i * bytes, &value, bytes);
    return result;
}

CUresult cuMemsetD8(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return fill(NULL, dstDevice, uc, 1, N, false);
}

CUresult cuMemsetD16(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return fill(NULL, dstDevice, us, 2, N, false);
}

CUresult cuMemsetD32(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return fill(NULL, dstDevice, ui, 4, N, false);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return fill(hStream, dstDevice, uc, 1, N, true);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return fill(hStream, dstDevice, us, 2, N, true);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return fill(hStream, dstDevice, ui, 4, N, true);
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    return result ? result : cuMemAlloc(dptr, bytesize);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    return result ? result : cuMemFree(dptr);
}

/* ---- events and synchronisation ---- */

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    struct sim_op op = {.kind = SIM_OP_RECORD, .asynchronous = true, .event = sim_handle(hEvent, SIM_EVENT)};
    return op.event ? submit(hStream, &op) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    (void)flags;
    return cuEventRecord(hEvent, hStream);
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    (void)Flags;
    struct sim_op op = {.kind = SIM_OP_WAIT, .asynchronous = true, .event = sim_handle(hEvent, SIM_EVENT)};
    return op.event ? submit(hStream, &op) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamSynchronize(CUstream hStream)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    return result ? result : sim_stream_wait(stream);
}

CUresult cuStreamQuery(CUstream hStream)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (result)
        return result;
    sim_clock_spend(200);
    sim_lock();
    uint64_t ready = sim_stream_ready_locked(stream);
    bool busy = stream->host_functions > 0;
    sim_unlock();
    return ready <= sim_clock_now() && !busy ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* ---- properties of streams ---- */

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (!result && priority)
        *priority = stream->priority;
    return result || priority ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (!result && flags)
        *flags = stream->flags;
    return result || flags ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (!result && streamId)
        *streamId = stream->id;
    return result || streamId ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (!result && pctx)
        *pctx = (CUcontext)stream->context;
    return result || pctx ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (!result && device)
        *device = stream->context->device->ordinal;
    return result || device ? result : CUDA_ERROR_INVALID_VALUE;
}

/* ---- capture ---- */

CUresult cuStreamBeginCapture(CUstream hStream, CUstreamCaptureMode mode)
{
    (void)mode; /* unsafe calls of other threads are not detected */
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (result)
        return result;
    const struct sim_called called = called_of(stream, hStream);
    sim_tell_call(SIM_CALL_CAPTURE_BEGIN, &called, NULL);
    result = sim_capture_begin(stream);
    sim_tell_call(SIM_CALL_CAPTURE_BEGIN, &called, &result);
    return result;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (result)
        return result;
    const struct sim_called called = called_of(stream, hStream);
    sim_tell_call(SIM_CALL_CAPTURE_END, &called, NULL);
    result = sim_capture_end(stream, phGraph);
    sim_tell_call(SIM_CALL_CAPTURE_END, &called, &result);
    return result;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (!result && captureStatus)
        *captureStatus = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return result || captureStatus ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    struct sim_stream *stream;
    CUresult result = stream_of(hStream, &stream);
    if (result)
        return result;
    if (!captureStatus_out)
        return CUDA_ERROR_INVALID_VALUE;
    *captureStatus_out = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (id_out)
        *id_out = stream->capture ? stream->capture_id : 0;
    if (graph_out)
        *graph_out = (CUgraph)stream->capture;
    if (dependencies_out)
        *dependencies_out = (const CUgraphNode *)stream->tail.items;
    if (edgeData_out)
        *edgeData_out = NULL;
    if (numDependencies_out)
        *numDependencies_out = stream->tail.count;
    return CUDA_SUCCESS;
}
