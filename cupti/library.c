/* See library.h. */
#include "library.h"
#include "activity_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the search ---- */

enum where { MAPPED, CONFIGURED, LOADER, UNDER_VARIABLE, UNDER_ROOT };

/* `base` is the name of a variable or a directory. */
static const struct candidate {
    enum where where;
    const char *base;
    const char *file;
} candidates[] = {
#define BOTH(where, base, directory)                                                                         \
    {where, base, directory "libcupti.so.13"},                                                               \
    {                                                                                                        \
        where, base, directory "libcupti.so.12"                                                              \
    }
#define TOOLKIT(where, base)                                                                                 \
    BOTH(where, base, "extras/CUPTI/lib64/"), BOTH(where, base, "lib64/"), BOTH(where, base, "lib/")
    BOTH(MAPPED, NULL, ""),
    {CONFIGURED, NULL, NULL},
    BOTH(LOADER, NULL, ""),
    TOOLKIT(UNDER_VARIABLE, "CUDA_HOME"),
    TOOLKIT(UNDER_VARIABLE, "CUDA_PATH"),
    TOOLKIT(UNDER_ROOT, "/usr/local/cuda"),
#undef TOOLKIT
#undef BOTH
};

#define CANDIDATES ((unsigned int)(sizeof candidates / sizeof candidates[0]))

/* What dlopen(3) gets for a candidate; false: there is no such place. */
static bool name_candidate(const struct candidate *c, const char *configured, char name[PATH_MAX])
{
    const char *base = c->where == UNDER_VARIABLE ? secure_getenv(c->base) : c->base;
    if (c->where == MAPPED || c->where == LOADER)
        return snprintf(name, PATH_MAX, "%s", c->file) > 0;
    if (c->where == CONFIGURED)
        return configured[0] != '\0' && snprintf(name, PATH_MAX, "%s", configured) < PATH_MAX;
    return base && base[0] == '/' && snprintf(name, PATH_MAX, "%s/%s", base, c->file) < PATH_MAX;
}

static void *open_candidate(struct occ_cupti_search *search, const struct candidate *c)
{
    int how = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;
    if (!name_candidate(c, search->configured, search->name))
        return NULL;
    search->was_mapped = c->where == MAPPED;
    void *handle = dlopen(search->name, search->was_mapped ? how | RTLD_NOLOAD : how);
    if (!handle)
        (void)dlerror(); /* the program must not read our error */
    return handle;
}

/* ---- the version gate ---- */

const char *occ_cupti_version_problem(uint32_t version)
{
    if (version < OCC_CUPTI_VERSION_12_2)
        return "is older than CUDA 12.2";
    if (version == OCC_CUPTI_VERSION_13_0_GA)
        return "is that of CUDA 13.0 without its update 1, which crashes programs";
    return NULL;
}

static bool is_accepted(struct occ_cupti *cupti, char reason[OCC_CUPTI_REASON_BYTES])
{
    static const char *const names[] = {"cuptiGetVersion", "cuptiGetResultString"};
    struct {
        uint32_t (*get_version)(uint32_t *version);
        uint32_t (*result_string)(uint32_t result, const char **text);
    } calls;
    (void)occ_library_bind(cupti->handle, names, 2, &calls);
    if (!calls.get_version) {
        (void)snprintf(reason, OCC_CUPTI_REASON_BYTES, "libcupti lacks %s", names[0]);
        return false;
    }
    cupti->result_string = calls.result_string;
    if (calls.get_version(&cupti->version) != OCC_CUPTI_SUCCESS)
        cupti->version = 0;
    const char *problem = occ_cupti_version_problem(cupti->version);
    if (problem)
        (void)snprintf(reason, OCC_CUPTI_REASON_BYTES, "libcupti (version %u) %s", cupti->version, problem);
    return problem == NULL;
}

bool occ_cupti_find(struct occ_cupti_search *search, struct occ_cupti *cupti,
                    char reason[OCC_CUPTI_REASON_BYTES])
{
    bool is_given = search->configured[0] != '\0';
    while (search->next < CANDIDATES) {
        const struct candidate *c = &candidates[search->next++];
        if (c->where > CONFIGURED && is_given)
            break;
        *cupti = (struct occ_cupti){.handle = open_candidate(search, c)};
        if (cupti->handle && is_accepted(cupti, reason))
            return true;
        if (!cupti->handle && c->where == CONFIGURED && is_given)
            (void)snprintf(reason, OCC_CUPTI_REASON_BYTES, "OCCTRACE_CUPTI cannot be opened: %.180s",
                           search->configured);
    }
    *cupti = (struct occ_cupti){0};
    return false;
}

/* ---- functions ---- */

size_t occ_library_bind(void *handle, const char *const *names, size_t n, void *calls)
{
    size_t missing = n;
    for (size_t i = n; i-- > 0;) {
        void *function = dlsym(handle, names[i]);
        memcpy((char *)calls + i * sizeof function, &function, sizeof function);
        if (!function) {
            (void)dlerror();
            missing = i;
        }
    }
    return missing;
}

const char *occ_cupti_result_text(const struct occ_cupti *cupti, uint32_t result)
{
    const char *text = NULL;
    if (!cupti->result_string || cupti->result_string(result, &text) != OCC_CUPTI_SUCCESS || !text)
        return "unknown error";
    return text;
}
