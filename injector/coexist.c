/* See coexist.h. A row of `signs` is the prefix of variables that a profiler sets for the programs it runs.
 * Variables that only locate a tool's installation (NSYS_ROOT of a module system) are no sign. Nor is
 * CUDA_INJECTION64_PATH: it names the guest itself. */
#include "coexist.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *prefix;
    const char *tool;
} signs[] = {
    {"NSYS_", "Nsight Systems"},
    {"NV_NSIGHT", "Nsight Compute"},
    {"NV_COMPUTE", "Nsight Compute"},
    {"NV_SANITIZER", "Compute Sanitizer"},
};

static const char *const path_suffixes[] = {"_ROOT", "_HOME", "_DIR", "_PATH", "_VERSION"};

static bool is_path_variable(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof path_suffixes / sizeof path_suffixes[0]; i++) {
        size_t m = strlen(path_suffixes[i]);
        if (n >= m && memcmp(name + n - m, path_suffixes[i], m) == 0)
            return true;
    }
    return false;
}

/* The tool that sets "NAME=value", or NULL. */
static const char *tool_of(const char *entry, size_t name_length)
{
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (strncmp(entry, signs[i].prefix, strlen(signs[i].prefix)) == 0 &&
            !is_path_variable(entry, name_length))
            return signs[i].tool;
    return NULL;
}

bool occ_coexist_must_yield(char *const *environment, char *reason, size_t size)
{
    for (; environment && *environment; environment++) {
        const char *entry = *environment;
        size_t name_length = strcspn(entry, "=");
        const char *tool = tool_of(entry, name_length);
        if (tool) {
            (void)snprintf(reason, size, "%s is at work (%.*s is set)", tool,
                           (int)(name_length > 64 ? 64 : name_length), entry);
            return true;
        }
    }
    return false;
}
