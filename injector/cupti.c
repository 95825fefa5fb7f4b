/* See cupti.h. */
#include "cupti.h"
#include "guest_log.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum need { OPTIONAL, REQUIRED };

static const struct symbol {
    size_t offset;
    const char *name;
    enum need need;
} symbols[] = {
#define X(slot, symbol, need, parameters) {offsetof(struct occ_cupti, slot), symbol, need},
#include "cupti_table.def"
#undef X
};

/* ---- where to look ---- */

enum where { MAPPED, CONFIGURED, LOADER, UNDER_VARIABLE, UNDER_ROOT };

/* A candidate is a place and a soname below it. `base` is a variable's name or a directory. */
static const struct candidate {
    enum where where;
    const char *base;
    const char *rest;
} candidates[] = {
    {MAPPED, NULL, "libcupti.so.13"},
    {MAPPED, NULL, "libcupti.so.12"},
    {CONFIGURED, NULL, NULL},
    {LOADER, NULL, "libcupti.so.13"},
    {LOADER, NULL, "libcupti.so.12"},
#define TOOLKIT(where, base)                                                                                 \
    {where, base, "extras/CUPTI/lib64/libcupti.so.13"}, {where, base, "extras/CUPTI/lib64/libcupti.so.12"},  \
        {where, base, "lib64/libcupti.so.13"}, {where, base, "lib64/libcupti.so.12"},                        \
        {where, base, "lib/libcupti.so.13"},                                                                 \
    {                                                                                                        \
        where, base, "lib/libcupti.so.12"                                                                    \
    }
    TOOLKIT(UNDER_VARIABLE, "CUDA_HOME"),
    TOOLKIT(UNDER_VARIABLE, "CUDA_PATH"),
    TOOLKIT(UNDER_ROOT, "/usr/local/cuda"),
#undef TOOLKIT
};

#define CANDIDATES ((unsigned int)(sizeof candidates / sizeof candidates[0]))

/* What dlopen gets for a candidate; false: the candidate is not there. */
static bool name_candidate(const struct candidate *c, const char *configured, char name[PATH_MAX])
{
    const char *base = c->base;
    switch (c->where) {
    case MAPPED:
    case LOADER:
        return snprintf(name, PATH_MAX, "%s", c->rest) > 0;
    case CONFIGURED:
        return configured[0] != '\0' && snprintf(name, PATH_MAX, "%s", configured) < PATH_MAX;
    case UNDER_VARIABLE:
        base = secure_getenv(c->base);
        if (!base || base[0] != '/')
            return false;
        break;
    case UNDER_ROOT:
        break;
    }
    return snprintf(name, PATH_MAX, "%s/%s", base, c->rest) < PATH_MAX;
}

static void *open_candidate(const struct candidate *c, const char *configured)
{
    char name[PATH_MAX];
    if (!name_candidate(c, configured, name))
        return NULL;
    int how = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;
    void *handle = dlopen(name, c->where == MAPPED ? how | RTLD_NOLOAD : how);
    if (handle)
        occ_guest_log("libcupti: %s%s", name, c->where == MAPPED ? " (already in the program)" : "");
    else
        (void)dlerror(); /* so that the program does not read our error */
    return handle;
}

/* ---- what is in it ---- */

static const char *bind_symbols(struct occ_cupti *cupti)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *function = dlsym(cupti->handle, symbols[i].name);
        memcpy((char *)cupti + symbols[i].offset, &function, sizeof function);
        if (!function)
            (void)dlerror();
        if (!function && symbols[i].need == REQUIRED)
            return symbols[i].name;
    }
    return NULL;
}

const char *occ_cupti_version_problem(uint32_t version)
{
    if (version < OCC_CUPTI_VERSION_12_2)
        return "is older than CUDA 12.2";
    if (version == OCC_CUPTI_VERSION_13_0_GA)
        return "is that of CUDA 13.0 without its update 1, which crashes programs";
    return NULL;
}

static bool is_usable(struct occ_cupti *cupti, char reason[OCC_REASON_BYTES])
{
    const char *missing = bind_symbols(cupti);
    if (missing) {
        (void)snprintf(reason, OCC_REASON_BYTES, "libcupti lacks %s", missing);
        return false;
    }
    if (cupti->get_version(&cupti->version) != OCC_CUPTI_SUCCESS)
        cupti->version = 0;
    const char *problem = occ_cupti_version_problem(cupti->version);
    if (problem)
        (void)snprintf(reason, OCC_REASON_BYTES, "libcupti (version %u) %s", cupti->version, problem);
    return problem == NULL;
}

bool occ_cupti_find(struct occ_cupti_search *search, struct occ_cupti *cupti, char reason[OCC_REASON_BYTES])
{
    memset(cupti, 0, sizeof *cupti);
    while (search->next < CANDIDATES) {
        const struct candidate *c = &candidates[search->next++];
        if (c->where > CONFIGURED && search->configured[0] != '\0')
            break;
        cupti->handle = open_candidate(c, search->configured);
        if (cupti->handle && is_usable(cupti, reason))
            return true;
        if (!cupti->handle && c->where == CONFIGURED && search->configured[0] != '\0')
            (void)snprintf(reason, OCC_REASON_BYTES, "OCCTRACE_CUPTI cannot be opened: %.180s",
                           search->configured);
    }
    memset(cupti, 0, sizeof *cupti);
    return false;
}

/* ---- start ---- */

static void describe(const struct occ_cupti *cupti, const char *what, uint32_t result,
                     char reason[OCC_REASON_BYTES])
{
    const char *text = NULL;
    if (result == OCC_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS) {
        (void)snprintf(reason, OCC_REASON_BYTES, "another profiler uses CUPTI in this program");
        return;
    }
    if (!cupti->result_string || cupti->result_string(result, &text) != OCC_CUPTI_SUCCESS || !text)
        text = "unknown error";
    (void)snprintf(reason, OCC_REASON_BYTES, "CUPTI (version %u) refused %s: error %u, %.120s",
                   cupti->version, what, result, text);
}

/* Wishes, not needs: a library that does not know one goes on without it. */
static bool set_attribute(struct occ_cupti *cupti, enum occ_cupti_attribute attribute, void *value,
                          size_t bytes)
{
    if (!cupti->set_attribute)
        return false;
    uint32_t result = cupti->set_attribute(attribute, &bytes, value);
    if (result != OCC_CUPTI_SUCCESS)
        occ_guest_log("CUPTI attribute %d: error %u", (int)attribute, result);
    return result == OCC_CUPTI_SUCCESS;
}

static bool set_attributes(struct occ_cupti *cupti)
{
    uint8_t zeroed = 1;
    /* each device buffer is 3.2 MB of GPU memory, about 100,000 launches: made ahead so that no launch waits for
     * one, and never more than about 100 MB */
    size_t pre_allocate = 4, limit = 32;
    (void)set_attribute(cupti, OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_PRE_ALLOCATE, &pre_allocate,
                        sizeof pre_allocate);
    (void)set_attribute(cupti, OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT, &limit, sizeof limit);
    return set_attribute(cupti, OCC_CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER, &zeroed, sizeof zeroed);
}

uint32_t occ_cupti_start(struct occ_cupti *cupti, occ_cupti_buffer_requested *requested,
                         occ_cupti_buffer_completed *completed, bool *ret_zeroed,
                         char reason[OCC_REASON_BYTES])
{
    *ret_zeroed = set_attributes(cupti);
    uint32_t result = cupti->register_callbacks(requested, completed);
    if (result != OCC_CUPTI_SUCCESS) {
        describe(cupti, "its callbacks", result, reason);
        return result;
    }
    result = cupti->enable(OCC_CUPTI_KIND_CONCURRENT_KERNEL);
    if (result != OCC_CUPTI_SUCCESS)
        describe(cupti, "kernel records", result, reason);
    return result;
}

bool occ_cupti_is_version_trouble(uint32_t result)
{
    return result == OCC_CUPTI_ERROR_NOT_COMPATIBLE || result == OCC_CUPTI_ERROR_NOT_INITIALIZED;
}
