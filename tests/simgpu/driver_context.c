/*
 * Contexts: primary ones, created ones, each thread's stack of current ones.
 *
 * A primary context keeps its struct until the process ends, since handles to it may exist; a created one is
 * freed. Threads: any; the stack is the thread's own.
 */
#include "driver.h"

#include <stdlib.h>

#define STACK_DEPTH 64

static _Thread_local struct sim_context *stack[STACK_DEPTH];
static _Thread_local unsigned depth;

static struct sim_context *context_new_locked(struct sim_device *device, unsigned flags)
{
    static uint32_t last_id;
    struct sim_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->type = SIM_CONTEXT;
    context->id = ++last_id;
    context->device = device;
    context->flags = flags;
    context->next_stream_id = 7; /* CUPTI's number of a first context's default stream */
    context->legacy = sim_stream_new_locked(context, CU_STREAM_DEFAULT, 0);
    if (!context->legacy) {
        free(context);
        return NULL;
    }
    context->next_stream_id = 13;
    return context;
}

CUresult sim_current(struct sim_context **ret)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    struct sim_context *context = depth ? stack[depth - 1] : NULL;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context->destroyed)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *ret = context;
    return CUDA_SUCCESS;
}

static CUresult context_of(CUcontext handle, struct sim_context **ret)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    *ret = sim_handle(handle, SIM_CONTEXT);
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult push(struct sim_context *context)
{
    if (depth == STACK_DEPTH)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

static void free_contents_locked(struct sim_context *context)
{
    sim_modules_free_locked(context);
    sim_memory_free_context_locked(context);
}

/* ---- created contexts ---- */

CUresult cuCtxCreate(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
    (void)ctxCreateParams; /* execution affinity and CIG are not simulated */
    CUresult result = sim_initialized();
    if (result)
        return result;
    struct sim_device *device = sim_device_at(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_context *context = context_new_locked(device, flags);
    sim_unlock();
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pctx = (CUcontext)context;
    return push(context);
}

CUresult cuCtxDestroy(CUcontext ctx)
{
    struct sim_context *context;
    CUresult result = context_of(ctx, &context);
    if (result)
        return result;
    sim_tell_call(SIM_CALL_CONTEXT_END, &(struct sim_called){.context = ctx}, NULL);
    sim_context_wait(context);
    if (depth && stack[depth - 1] == context)
        depth--;
    sim_lock();
    free_contents_locked(context);
    sim_streams_free_locked(context);
    context->type = 0;
    free(context);
    sim_unlock();
    return CUDA_SUCCESS;
}

/* ---- primary contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    struct sim_device *device = sim_device_at(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    if (!device->primary)
        device->primary = context_new_locked(device, device->primary_flags);
    if (device->primary) {
        device->primary->destroyed = false;
        device->primary_users++;
    }
    *pctx = (CUcontext)device->primary;
    sim_unlock();
    return *pctx ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Ends the primary context; its struct stays, since handles to it may exist. */
static void end_primary(struct sim_device *device)
{
    if (!device->primary)
        return;
    sim_tell_call(SIM_CALL_CONTEXT_END, &(struct sim_called){.context = (CUcontext)device->primary}, NULL);
    sim_context_wait(device->primary);
    sim_lock();
    free_contents_locked(device->primary);
    device->primary->destroyed = true;
    device->primary_users = 0;
    sim_unlock();
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    struct sim_device *device = sim_device_at(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    bool used = device->primary_users > 0;
    bool last = used && --device->primary_users == 0;
    sim_unlock();
    if (last)
        end_primary(device);
    return used ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    struct sim_device *device = sim_device_at(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    end_primary(device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    struct sim_device *device = sim_device_at(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    device->primary_flags = flags;
    if (device->primary)
        device->primary->flags = flags;
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    struct sim_device *device = sim_device_at(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    *flags = device->primary_flags;
    *active = device->primary_users > 0;
    sim_unlock();
    return CUDA_SUCCESS;
}

/* ---- the current context ---- */

CUresult cuCtxPushCurrent(CUcontext ctx)
{
    struct sim_context *context;
    CUresult result = context_of(ctx, &context);
    return result ? result : push(context);
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (pctx)
        *pctx = (CUcontext)stack[depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    struct sim_context *context = NULL;
    CUresult result = ctx ? context_of(ctx, &context) : sim_initialized();
    if (result)
        return result;
    if (!ctx) {
        depth -= depth > 0;
        return CUDA_SUCCESS;
    }
    depth -= depth > 0;
    return push(context);
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = depth ? (CUcontext)stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (!result && !device)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *device = context->device->ordinal;
    return result;
}

CUresult cuCtxSynchronize(void)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    return result ? result : sim_context_wait(context);
}

/* The forms of CUDA 13 name a context; NULL is the current one. */
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    struct sim_context *context;
    CUresult result = ctx ? context_of(ctx, &context) : sim_current(&context);
    if (!result && !device)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *device = context->device->ordinal;
    return result;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
    struct sim_context *context;
    CUresult result = ctx ? context_of(ctx, &context) : sim_current(&context);
    return result ? result : sim_context_wait(context);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (!result && !flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *flags = context->flags;
    return result;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct sim_context *context;
    CUresult result = ctx ? context_of(ctx, &context) : sim_current(&context);
    if (!result && !ctxId)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *ctxId = context->id;
    return result;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct sim_context *context;
    CUresult result = ctx ? context_of(ctx, &context) : sim_current(&context);
    if (!result && !version)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *version = SIM_DRIVER_VERSION;
    return result;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (!result)
        context->cache_config = config;
    return result;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (!result && !pconfig)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *pconfig = context->cache_config;
    return result;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (result)
        return result;
    if ((unsigned)limit >= sizeof context->limits / sizeof *context->limits)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (result)
        return result;
    if (!pvalue)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= sizeof context->limits / sizeof *context->limits)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *pvalue = context->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (result)
        return result;
    if (leastPriority)
        *leastPriority = 0;
    if (greatestPriority)
        *greatestPriority = -5;
    return CUDA_SUCCESS;
}
