/*
 * Common functions of the sample programs; see common.h. The launch counter may be used from any thread,
 * everything else only from the thread that calls sample_open().
 */
#include "common.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sample_driver cu;

static _Atomic uint64_t launches;

void sample_die(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(code);
}

void sample_check(CUresult result, const char *call, const char *file, int line)
{
    if (result == CUDA_SUCCESS)
        return;
    const char *text = NULL;
    if (cu.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "unknown error";
    sample_die(SAMPLE_FAILED, "%s:%d: %s: %s (%d)", file, line, call, text, (int)result);
}

/* Two steps, so that the text is the name after cuda.h's renaming: "cuMemAlloc_v2". */
#define TEXT(name)    TEXT_OF(name)
#define TEXT_OF(name) #name

static void open_driver(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define X(name) {TEXT(name), offsetof(struct sample_driver, name)},
        SAMPLE_FUNCTIONS(X)
#undef X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        sample_die(SAMPLE_NO_DEVICE, "no CUDA driver: %s", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            sample_die(SAMPLE_NO_DEVICE, "CUDA driver too old: it has no %s", functions[i].name);
        memcpy((char *)&cu + functions[i].offset, &function, sizeof function);
    }
}

int sample_attribute(const struct sample_device *device, CUdevice_attribute attribute)
{
    int value = 0;
    CHECK(cu.cuDeviceGetAttribute(&value, attribute, device->handle));
    return value;
}

static void read_limits(struct sample_device *device)
{
    device->cc = sample_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                 sample_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    device->sm_count = sample_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    device->smem_per_sm_bytes =
        sample_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    device->smem_optin_bytes =
        sample_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    device->smem_reserved_bytes =
        sample_attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
}

void sample_open(struct sample_device *device)
{
    sample_open_number(device, 0);
}

void sample_open_number(struct sample_device *device, int number)
{
    open_driver();
    CUresult result = cu.cuInit(0);
    int count = 0;
    if (result == CUDA_SUCCESS)
        result = cu.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS || count <= number)
        sample_die(SAMPLE_NO_DEVICE, "no CUDA device %d (%d)", number, (int)result);
    CHECK(cu.cuDeviceGet(&device->handle, number));
    CHECK(cu.cuDeviceGetName(device->name, (int)sizeof device->name, device->handle));
    device->simulated = strcasestr(device->name, "simulated") != NULL;
    read_limits(device);
    CHECK(cu.cuDevicePrimaryCtxRetain(&device->context, device->handle));
    CHECK(cu.cuCtxSetCurrent(device->context));
}

void sample_close(struct sample_device *device)
{
    CHECK(cu.cuDevicePrimaryCtxRelease(device->handle));
}

CUmodule sample_load(const void *image)
{
    CUmodule module = NULL;
    CHECK(cu.cuModuleLoadData(&module, image));
    return module;
}

CUfunction sample_kernel(CUmodule module, const char *name)
{
    CUfunction kernel = NULL;
    CUresult result = cu.cuModuleGetFunction(&kernel, module, name);
    if (result != CUDA_SUCCESS)
        sample_die(SAMPLE_FAILED, "no kernel %s in the embedded code (%d)", name, (int)result);
    return kernel;
}

void sample_permit_smem(CUfunction kernel, unsigned bytes)
{
    CHECK(cu.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes));
}

void sample_launch(CUfunction kernel, const struct sample_shape *shape, CUstream stream, void **arguments)
{
    CHECK(cu.cuLaunchKernel(kernel, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
                            shape->block[1], shape->block[2], shape->smem_bytes, stream, arguments, NULL));
    sample_count(1);
}

void sample_count(uint64_t n)
{
    atomic_fetch_add_explicit(&launches, n, memory_order_relaxed);
}

uint64_t sample_counted(void)
{
    return atomic_load_explicit(&launches, memory_order_relaxed);
}

int sample_finish(void)
{
    printf("launches: %" PRIu64 "\n", sample_counted());
    if (fflush(stdout) != 0 || ferror(stdout))
        sample_die(SAMPLE_FAILED, "cannot write: %s", strerror(errno));
    return 0;
}

static uint64_t parse_number(const struct sample_option *option, const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (!end || *end != '\0' || errno == ERANGE || value < option->min || value > option->max)
        sample_die(SAMPLE_USAGE, "%s wants a number from %" PRIu64 " to %" PRIu64, option->name, option->min,
                   option->max);
    return value;
}

static void print_help(const char *about, const struct sample_option *options)
{
    printf("%s\n", about);
    for (; options->name; options++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", options->name, options->argument ? options->argument : "");
        printf("  %-18s %s\n", left, options->help);
    }
    exit(0);
}

static const struct sample_option *find_option(const struct sample_option *options, const char *name)
{
    for (; options->name; options++)
        if (strcmp(options->name, name) == 0)
            return options;
    sample_die(SAMPLE_USAGE, "unknown option '%s', see --help", name);
}

void sample_parse(char **argv, const char *about, const struct sample_option *options)
{
    for (char **word = argv + 1; *word; word++) {
        if (strcmp(*word, "--help") == 0)
            print_help(about, options);
        const struct sample_option *option = find_option(options, *word);
        if (option->argument && !word[1])
            sample_die(SAMPLE_USAGE, "%s wants %s", option->name, option->argument);
        if (option->number)
            *option->number = parse_number(option, *++word);
        else if (option->text)
            *option->text = *++word;
        else
            *option->flag = true;
    }
}

uint64_t sample_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
