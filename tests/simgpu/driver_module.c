/*
 * Modules, libraries and functions. A CUlibrary is a module without a context, a CUkernel is its function;
 * either handle can be launched, like with the real driver. Threads: any; the lists are under sim_lock().
 */
#include "driver.h"

#include "env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES (INT64_C(1) << 31)

/* ---- loading ---- */

static CUresult result_of(int image_code)
{
    switch (image_code) {
    case OCC_IMAGE_OK:
        return CUDA_SUCCESS;
    case OCC_IMAGE_E_NO_BINARY:
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case OCC_IMAGE_E_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return CUDA_ERROR_INVALID_IMAGE;
    }
}

static void module_free(struct sim_module *module)
{
    struct sim_module **link = module->context ? &module->context->modules : NULL;
    while (link && *link && *link != module)
        link = &(*link)->next;
    if (link && *link)
        *link = module->next;
    for (uint32_t i = 0; module->globals && i < module->image->global_count; i++) {
        if (module->globals[i].base)
            sim_memory_free_locked(module->globals[i].base);
    }
    for (uint32_t i = 0; module->functions && i < module->image->cubin->kernel_count; i++)
        module->functions[i].type = 0;
    module->type = 0;
    free(module->globals);
    free(module->functions);
    sim_image_free(module->image);
    free(module);
}

static bool function_init_locked(struct sim_function *function, struct sim_module *module, uint32_t index,
                                 const struct sim_gpu *gpu)
{
    const struct occ_image_kernel *kernel = &module->image->cubin->kernels[index];
    uint32_t most = sim_gpu_limit(gpu, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    *function = (struct sim_function){.type = SIM_FUNCTION,
                                      .module = module,
                                      .kernel = kernel,
                                      .parameters = &module->image->parameters[index],
                                      .name = sim_intern_locked(kernel->name),
                                      .hash = sim_hash(kernel->name),
                                      .carveout_percent = -1};
    function->max_dynamic_smem_bytes =
        kernel->static_smem_bytes < most ? most - kernel->static_smem_bytes : 0;
    return function->name != NULL;
}

/* Takes ownership of `image`. */
static struct sim_module *module_new_locked(struct sim_context *context, struct sim_image *image,
                                            const struct sim_gpu *gpu)
{
    struct sim_module *module = calloc(1, sizeof *module);
    if (!module) {
        sim_image_free(image);
        return NULL;
    }
    *module = (struct sim_module){.type = SIM_MODULE, .context = context, .image = image};
    module->functions = calloc((size_t)image->cubin->kernel_count + 1, sizeof *module->functions);
    module->globals = calloc((size_t)image->global_count + 1, sizeof *module->globals);
    bool good = module->functions && module->globals;
    for (uint32_t i = 0; good && i < image->cubin->kernel_count; i++)
        good = function_init_locked(&module->functions[i], module, i, gpu);
    if (!good) {
        module_free(module);
        return NULL;
    }
    if (context) {
        module->next = context->modules;
        context->modules = module;
    }
    return module;
}

void sim_modules_free_locked(struct sim_context *context)
{
    while (context->modules)
        module_free(context->modules);
}

/* Loads an image; `size` 0: the length of its headers. */
static CUresult load(struct sim_context *context, struct sim_device *device, const void *bytes, size_t size,
                     struct sim_module **ret)
{
    struct sim_image *image;
    int code = size ? sim_image_read(bytes, size, device->sm, &image)
                    : sim_image_read_memory(bytes, device->sm, &image);
    if (code)
        return result_of(code);
    sim_lock();
    *ret = module_new_locked(context, image, device->gpu);
    sim_unlock();
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Reads the whole file and appends a NUL, for PTX. Returns NULL if it cannot be read. */
static char *read_file(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return NULL;
    char *bytes = NULL;
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size > 0 && size < MAX_FILE_BYTES && fseek(file, 0, SEEK_SET) == 0)
        bytes = malloc((size_t)size + 1);
    if (bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size) {
        bytes[size] = 0;
        *ret_size = (size_t)size;
    } else {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
}

static CUresult load_file(struct sim_context *context, struct sim_device *device, const char *path,
                          struct sim_module **ret)
{
    size_t size = 0;
    char *bytes = read_file(path, &size);
    if (!bytes)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = load(context, device, bytes, size, ret);
    free(bytes);
    return result;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                            CUjit_option *options, void **optionValues)
{
    (void)numOptions; /* options for a compiler, which is not simulated */
    (void)options;
    (void)optionValues;
    struct sim_context *context;
    struct sim_module *loaded;
    CUresult result = sim_current(&context);
    if (!result && (!module || !image))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = load(context, context->device, image, 0, &loaded);
    if (!result)
        *module = (CUmodule)loaded;
    return result;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
    struct sim_context *context;
    struct sim_module *loaded;
    CUresult result = sim_current(&context);
    if (!result && (!module || !fname))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = load_file(context, context->device, fname, &loaded);
    if (!result)
        *module = (CUmodule)loaded;
    return result;
}

static CUresult module_of(const void *handle, struct sim_module **ret)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    *ret = sim_handle(handle, SIM_MODULE);
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult unload(const void *handle)
{
    struct sim_module *module;
    CUresult result = module_of(handle, &module);
    if (result)
        return result;
    sim_lock();
    module_free(module);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule hmod)
{
    return unload(hmod);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult result = sim_initialized();
    if (!result && mode)
        *mode = CU_MODULE_LAZY_LOADING;
    return result || mode ? result : CUDA_ERROR_INVALID_VALUE;
}

/* ---- libraries: for the calling thread's device, or the first one ---- */

static struct sim_device *library_device(void)
{
    struct sim_context *context;
    return sim_current(&context) == CUDA_SUCCESS ? context->device : sim_device_at(0);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                           void **jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption *libraryOptions, void **libraryOptionValues,
                           unsigned int numLibraryOptions)
{
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    struct sim_module *loaded;
    CUresult result = sim_initialized();
    if (!result && (!library || !code))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = load(NULL, library_device(), code, 0, &loaded);
    if (!result)
        *library = (CUlibrary)loaded;
    return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption *libraryOptions, void **libraryOptionValues,
                               unsigned int numLibraryOptions)
{
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    struct sim_module *loaded;
    CUresult result = sim_initialized();
    if (!result && (!library || !fileName))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = load_file(NULL, library_device(), fileName, &loaded);
    if (!result)
        *library = (CUlibrary)loaded;
    return result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return unload(library);
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct sim_module *module;
    CUresult result = module_of(library, &module);
    if (!result && pMod)
        *pMod = (CUmodule)module;
    return result || pMod ? result : CUDA_ERROR_INVALID_VALUE;
}

/* ---- finding functions ---- */

CUresult sim_function_of(const void *handle, struct sim_function **ret)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    *ret = sim_handle(handle, SIM_FUNCTION);
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult find_function(const void *handle, const char *name, struct sim_function **ret)
{
    struct sim_module *module;
    CUresult result = module_of(handle, &module);
    if (result)
        return result;
    const struct occ_image_kernel *kernel = name ? sim_image_kernel(module->image, name) : NULL;
    if (!kernel)
        return name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    *ret = &module->functions[kernel - module->image->cubin->kernels];
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct sim_function *function;
    CUresult result = find_function(hmod, name, &function);
    if (!result && hfunc)
        *hfunc = (CUfunction)function;
    return result || hfunc ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct sim_function *function;
    CUresult result = find_function(library, name, &function);
    if (!result && pKernel)
        *pKernel = (CUkernel)function;
    return result || pKernel ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct sim_function *function;
    CUresult result = sim_function_of(kernel, &function);
    if (!result && pFunc)
        *pFunc = (CUfunction)function;
    return result || pFunc ? result : CUDA_ERROR_INVALID_VALUE;
}

static CUresult count_functions(const void *handle, unsigned int *count)
{
    struct sim_module *module;
    CUresult result = module_of(handle, &module);
    if (!result && count)
        *count = module->image->cubin->kernel_count;
    return result || count ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    return count_functions(mod, count);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    return count_functions(lib, count);
}

static CUresult list_functions(const void *handle, void **items, unsigned int room)
{
    struct sim_module *module;
    CUresult result = module_of(handle, &module);
    if (!result && !items)
        result = CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; !result && i < room && i < module->image->cubin->kernel_count; i++)
        items[i] = &module->functions[i];
    return result;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
    return list_functions(mod, (void **)functions, numFunctions);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    return list_functions(lib, (void **)kernels, numKernels);
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
    struct sim_function *function;
    CUresult result = sim_function_of(hfunc, &function);
    if (!result && name)
        *name = function->name;
    return result || name ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
    return cuFuncGetName(name, (CUfunction)hfunc);
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct sim_function *function;
    CUresult result = sim_function_of(hfunc, &function);
    if (!result && hmod)
        *hmod = (CUmodule)function->module;
    return result || hmod ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    return cuFuncGetModule((CUmodule *)pLib, (CUfunction)kernel);
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    struct sim_function *function;
    CUresult result = sim_function_of(func, &function);
    if (result)
        return result;
    if (!paramOffset || paramIndex >= function->parameters->count)
        return CUDA_ERROR_INVALID_VALUE;
    *paramOffset = function->parameters->list[paramIndex].offset;
    if (paramSize)
        *paramSize = function->parameters->list[paramIndex].bytes;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    return cuFuncGetParamInfo((CUfunction)kernel, paramIndex, paramOffset, paramSize);
}

/* Returns LOADED: lazy loading is not simulated. */
CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct sim_function *found;
    CUresult result = sim_function_of(function, &found);
    if (!result && state)
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return result || state ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncLoad(CUfunction function)
{
    struct sim_function *found;
    return sim_function_of(function, &found);
}

/* ---- globals ---- */

static CUresult make_global_locked(struct sim_module *module, uint32_t index, struct sim_context *context)
{
    const struct sim_global *global = &module->image->globals[index];
    uintptr_t base = sim_memory_new_locked(context, global->bytes, CU_MEMORYTYPE_DEVICE);
    if (!base)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (global->initial)
        memcpy((void *)base, global->initial, global->bytes);
    module->globals[index] = (struct sim_buffer){.base = base, .bytes = global->bytes};
    return CUDA_SUCCESS;
}

static CUresult find_global(const void *handle, const char *name, CUdeviceptr *dptr, size_t *bytes)
{
    struct sim_module *module;
    struct sim_context *context;
    CUresult result = module_of(handle, &module);
    if (!result)
        result = sim_current(&context);
    if (result || !name)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    uint32_t i = 0;
    while (i < module->image->global_count && strcmp(module->image->globals[i].name, name) != 0)
        i++;
    if (i == module->image->global_count)
        return CUDA_ERROR_NOT_FOUND;
    sim_lock();
    if (!module->globals[i].base)
        result = make_global_locked(module, i, context);
    if (!result && dptr)
        *dptr = module->globals[i].base;
    if (!result && bytes)
        *bytes = module->globals[i].bytes;
    sim_unlock();
    return result;
}

CUresult cuModuleGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    return find_global(hmod, name, dptr, bytes);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    return find_global(library, name, dptr, bytes);
}

/* ---- attributes of functions ---- */

static const struct sim_gpu *gpu_of(const struct sim_function *function)
{
    const struct sim_context *context = function->module->context;
    return context ? context->device->gpu : library_device()->gpu;
}

static int max_threads_of(const struct sim_function *function)
{
    uint32_t bound = function->kernel->max_threads;
    uint32_t threads = sim_max_threads(gpu_of(function), function->kernel->registers);
    return (int)(bound && bound < threads ? bound : threads);
}

static CUresult get_attribute(int *pi, CUfunction_attribute attribute, const struct sim_function *function)
{
    const struct occ_image_kernel *kernel = function->kernel;
    int version = (int)function->module->image->cubin->sm;
    const uint32_t *cluster = function->cluster[0] ? function->cluster : kernel->cluster;
    const int values[] = {
        [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = max_threads_of(function),
        [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)kernel->static_smem_bytes,
        [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = (int)function->module->image->constant_bytes,
        [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)kernel->local_bytes,
        [CU_FUNC_ATTRIBUTE_NUM_REGS] = (int)kernel->registers,
        [CU_FUNC_ATTRIBUTE_PTX_VERSION] = version,
        [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = version,
        [CU_FUNC_ATTRIBUTE_CACHE_MODE_CA] = 0,
        [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = (int)function->max_dynamic_smem_bytes,
        [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = function->carveout_percent,
        [CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = 0,
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = (int)cluster[0],
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = (int)cluster[1],
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = (int)cluster[2],
        [CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = function->non_portable_cluster,
        [CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] = function->cluster_policy,
    };
    if ((unsigned)attribute >= sizeof values / sizeof *values)
        return CUDA_ERROR_INVALID_VALUE;
    *pi = values[attribute];
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct sim_function *function;
    CUresult result = sim_function_of(hfunc, &function);
    if (result)
        return result;
    return pi ? get_attribute(pi, attrib, function) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_dynamic_smem(struct sim_function *function, int value)
{
    uint32_t optin = sim_gpu_limit(gpu_of(function), CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    uint32_t used = function->kernel->static_smem_bytes;
    if (value < 0 || used > optin || (uint32_t)value > optin - used)
        return CUDA_ERROR_INVALID_VALUE;
    function->max_dynamic_smem_bytes = (uint32_t)value;
    function->smem_optin = true;
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct sim_function *function, CUfunction_attribute attribute, int value)
{
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return set_dynamic_smem(function, value);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        function->carveout_percent = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (value < 0)
            return CUDA_ERROR_INVALID_VALUE;
        function->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = (uint32_t)value;
        for (int i = 0; i < 3; i++)
            function->cluster[i] += value && !function->cluster[i];
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        function->non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        function->cluster_policy = value;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct sim_function *function;
    CUresult result = sim_function_of(hfunc, &function);
    if (result)
        return result;
    sim_lock();
    result = set_attribute(function, attrib, value);
    sim_unlock();
    return result;
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
    (void)dev;
    return cuFuncGetAttribute(pi, attrib, (CUfunction)kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
    (void)dev;
    return cuFuncSetAttribute((CUfunction)kernel, attrib, val);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    struct sim_function *function;
    CUresult result = sim_function_of(hfunc, &function);
    if (!result && config > CU_FUNC_CACHE_PREFER_EQUAL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        function->cache_config = config;
    return result;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    (void)dev;
    return cuFuncSetCacheConfig((CUfunction)kernel, config);
}
