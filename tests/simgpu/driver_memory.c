/*
 * Memory: device, managed and pinned buffers are all host memory, mapped without reservation, so that a
 * program may allocate a card's 140 GB if it does not touch them. A table finds buffers by address, and
 * copies outside a buffer are refused. Threads: any; the table is under sim_lock().
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct sim_buffer *buffers; /* sorted by base */
static size_t buffer_count, buffer_room;

static size_t page_up(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

/* Returns the index of the first buffer with a base above `at`. */
static size_t buffer_after(uintptr_t at)
{
    size_t low = 0, high = buffer_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (buffers[middle].base <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool add_buffer(const struct sim_buffer *buffer)
{
    if (buffer_count == buffer_room) {
        size_t room = buffer_room ? buffer_room * 2 : 64;
        struct sim_buffer *more = realloc(buffers, room * sizeof *more);
        if (!more)
            return false;
        buffers = more;
        buffer_room = room;
    }
    size_t at = buffer_after(buffer->base);
    memmove(buffers + at + 1, buffers + at, (buffer_count - at) * sizeof *buffers);
    buffers[at] = *buffer;
    buffer_count++;
    return true;
}

uintptr_t sim_memory_new_locked(struct sim_context *context, size_t bytes, CUmemorytype type)
{
    struct sim_device *device = context->device;
    bool on_device = type != CU_MEMORYTYPE_HOST;
    if (!bytes || bytes > SIZE_MAX / 2 ||
        (on_device && bytes > device->gpu->memory_bytes - device->memory_used_bytes))
        return 0;
    void *memory = mmap(NULL, page_up(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return 0;
    struct sim_buffer buffer = {(uintptr_t)memory, bytes, type, device, context};
    if (!add_buffer(&buffer)) {
        munmap(memory, page_up(bytes));
        return 0;
    }
    device->memory_used_bytes += on_device ? bytes : 0;
    return buffer.base;
}

const struct sim_buffer *sim_memory_find_locked(uintptr_t at, size_t bytes)
{
    size_t after = buffer_after(at);
    const struct sim_buffer *buffer = after ? &buffers[after - 1] : NULL;
    if (!buffer || at - buffer->base >= buffer->bytes || bytes > buffer->bytes - (at - buffer->base))
        return NULL;
    return buffer;
}

bool sim_memory_free_locked(uintptr_t base)
{
    size_t after = buffer_after(base);
    if (!after || buffers[after - 1].base != base)
        return false;
    struct sim_buffer gone = buffers[after - 1];
    memmove(buffers + after - 1, buffers + after, (buffer_count - after) * sizeof *buffers);
    buffer_count--;
    if (gone.type != CU_MEMORYTYPE_HOST)
        gone.device->memory_used_bytes -= gone.bytes;
    munmap((void *)gone.base, page_up(gone.bytes));
    return true;
}

void sim_memory_free_context_locked(const struct sim_context *context)
{
    for (size_t i = buffer_count; i > 0; i--) {
        if (buffers[i - 1].context == context)
            sim_memory_free_locked(buffers[i - 1].base);
    }
}

CUresult sim_copy_check(const void *to, CUmemorytype to_type, const void *from, CUmemorytype from_type,
                        size_t bytes)
{
    CUresult result = sim_initialized();
    if (result || !bytes)
        return result;
    sim_lock();
    bool good = to && from &&
                (to_type != CU_MEMORYTYPE_DEVICE || sim_memory_find_locked((uintptr_t)to, bytes)) &&
                (from_type != CU_MEMORYTYPE_DEVICE || sim_memory_find_locked((uintptr_t)from, bytes));
    sim_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUmemorytype sim_memory_type(CUdeviceptr address)
{
    sim_lock();
    const struct sim_buffer *buffer = sim_memory_find_locked((uintptr_t)address, 1);
    CUmemorytype type =
        buffer && buffer->type != CU_MEMORYTYPE_HOST ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    sim_unlock();
    return type;
}

static CUresult allocate(uintptr_t *ret, size_t bytes, CUmemorytype type)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (result)
        return result;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    *ret = sim_memory_new_locked(context, bytes, type);
    sim_unlock();
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult release(uintptr_t base)
{
    CUresult result = sim_initialized();
    if (result || !base)
        return result;
    sim_lock();
    bool known = sim_memory_free_locked(base);
    sim_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult allocate_device(CUdeviceptr *dptr, size_t bytes, CUmemorytype type)
{
    uintptr_t base = 0;
    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate(&base, bytes, type);
    if (!result)
        *dptr = base;
    return result;
}

CUresult cuMemAlloc(CUdeviceptr *dptr, size_t bytesize)
{
    return allocate_device(dptr, bytesize, CU_MEMORYTYPE_DEVICE);
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate_device(dptr, bytesize, CU_MEMORYTYPE_UNIFIED);
}

CUresult cuMemAllocPitch(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                         unsigned int ElementSizeBytes)
{
    if (!pPitch || !WidthInBytes || !Height || WidthInBytes > SIZE_MAX / 4 ||
        (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pPitch = (WidthInBytes + 511) & ~(size_t)511;
    if (Height > SIZE_MAX / *pPitch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return cuMemAlloc(dptr, *pPitch * Height);
}

CUresult cuMemFree(CUdeviceptr dptr)
{
    return release((uintptr_t)dptr);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    (void)Flags;
    uintptr_t base = 0;
    if (!pp)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate(&base, bytesize, CU_MEMORYTYPE_HOST);
    if (!result)
        *pp = (void *)base;
    return result;
}

CUresult cuMemAllocHost(void **pp, size_t bytesize)
{
    return cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void *p)
{
    return release((uintptr_t)p);
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    (void)Flags;
    CUresult result = sim_initialized();
    return result ? result : p && bytesize ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostUnregister(void *p)
{
    CUresult result = sim_initialized();
    return result ? result : p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    CUresult result = sim_initialized();
    if (!result && (!pdptr || !p || Flags))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *pdptr = (CUdeviceptr)(uintptr_t)p;
    return result;
}

CUresult cuMemGetInfo(size_t *free, size_t *total)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (!result && (!free || !total))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    sim_lock();
    *total = context->device->gpu->memory_bytes;
    *free = *total - context->device->memory_used_bytes;
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    sim_lock();
    const struct sim_buffer *buffer = sim_memory_find_locked((uintptr_t)dptr, 1);
    if (buffer && pbase)
        *pbase = buffer->base;
    if (buffer && psize)
        *psize = buffer->bytes;
    sim_unlock();
    return buffer ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult pointer_attribute(void *data, CUpointer_attribute attribute, const struct sim_buffer *buffer)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = (CUcontext)buffer->context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = buffer->type == CU_MEMORYTYPE_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = buffer->type == CU_MEMORYTYPE_UNIFIED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = buffer->device->ordinal;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = buffer->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = buffer->bytes;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER) {
        *(CUdeviceptr *)data = ptr;
        return CUDA_SUCCESS;
    }
    sim_lock();
    const struct sim_buffer *buffer = sim_memory_find_locked((uintptr_t)ptr, 1);
    result = buffer ? pointer_attribute(data, attribute, buffer) : CUDA_ERROR_INVALID_VALUE;
    sim_unlock();
    return result;
}
