/* See library.h. */
#include "library.h"
#include "activity_abi.h"
#include "python.h"
#include "scratch.h"
#include "trusted.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the search ---- */

/* Groups of candidates, the best last. Candidates in PYTHON and OFFERED are opened only if they can be
 * trusted: another user may have written a directory of PATH or a path that another process names. */
enum group { PYTHON, OFFERED, TOOLKIT, PACKAGES, CONFIGURED, MAPPED };

/* Rank of a candidate: group, major version, release, place in the list. The largest rank comes first. */
#define RELEASE_SHIFT              16
#define RELEASE_BITS               UINT64_C(0xffffffff)
#define RELEASE(year, part, patch) ((uint64_t)(year) << 20 | (uint64_t)(part) << 10 | (uint64_t)(patch))
#define FIRST_RELEASE              RELEASE(2023, 2, 0) /* CUDA 12.2 */
#define RELEASE_13_0_GA            RELEASE(2025, 3, 0)

static const struct {
    uint32_t major;
    const char *name;
} files[] = {{13, "libcupti.so.13"}, {12, "libcupti.so.12"}};
#define FILES (sizeof files / sizeof files[0])

/* A pass over all candidates, which keeps the best candidate below the last one tried. */
struct pass {
    struct occ_cupti_search *search; /* the name of the candidate goes to `search` */
    uint64_t below, best;            /* ranks; best 0: no candidate */
    uint32_t seen[MAPPED + 1];       /* number of candidates seen in each group */
    bool is_theirs[FILES];           /* the program's packages contain this major version */
    char root[PATH_MAX];             /* directory of the packages seen last */
    char torch[PATH_MAX];            /* path of a mapped libtorch, or "" */
    char path[PATH_MAX];             /* path of a candidate */
    char directory[PATH_MAX];        /* entry of a list of directories */
    union {
        Dl_serinfo list;
        char bytes[8192];
    } rpath;
};

/* Reads the release from the file's real name; 0: the name has none. False: the file does not exist. */
static bool read_release(const char *path, uint64_t *ret_release)
{
    char target[256];
    unsigned int year = 0, part = 0, patch = 0;
    ssize_t n = readlink(path, target, sizeof target - 1);
    *ret_release = 0;
    if (n < 0)
        return errno == EINVAL; /* EINVAL: the file exists, but is no symbolic link */
    target[n] = '\0';
    const char *suffix = strstr(target, ".so.");
    if (suffix && sscanf(suffix, ".so.%4u.%4u.%3u", &year, &part, &patch) >= 2 && year >= 2000 &&
        year < 4096 && part < 1024)
        *ret_release = RELEASE(year, part, patch);
    return true;
}

static void add(struct pass *p, enum group group, uint32_t major, uint64_t release, const char *name)
{
    uint64_t rank = (uint64_t)group << 56 | (uint64_t)major << 48 | release << RELEASE_SHIFT |
                    (UINT16_MAX - p->seen[group]++ % UINT16_MAX);
    if (rank >= p->below || rank <= p->best || strlen(name) >= PATH_MAX)
        return;
    p->best = rank;
    memcpy(p->search->name, name, strlen(name) + 1);
}

/* Adds both major versions in `directory` below `base`; "": the loader's search path. */
static void add_directory(struct pass *p, enum group group, const char *base, const char *directory)
{
    uint64_t release = 0;
    for (size_t i = 0; i < FILES; i++) {
        int n = snprintf(p->path, sizeof p->path, "%s%s%s", base, directory, files[i].name);
        if (n >= PATH_MAX || (group <= TOOLKIT && p->is_theirs[i]) ||
            (p->path[0] == '/' && !read_release(p->path, &release)))
            continue;
        p->is_theirs[i] |= group == PACKAGES;
        add(p, group, files[i].major, release, p->path);
    }
}

static void add_python(void *pass, const char *directory)
{
    add_directory(pass, PYTHON, directory, "/nvidia/cu13/lib/");
    add_directory(pass, PYTHON, directory, "/nvidia/cuda_cupti/lib/");
}

static void add_packages(struct pass *p, const char *object)
{
    static const char *const signs[] = {"/site-packages/", "/dist-packages/", "/torch/lib/libtorch"};
    const char *end = NULL;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0] && !end; i++)
        end = strstr(object, signs[i]);
    if (!end)
        return;
    size_t n = (size_t)(end - object) + (strncmp(end, "/torch", 6) == 0 ? 0 : strlen("/site-packages"));
    if (n >= PATH_MAX || (strncmp(p->root, object, n) == 0 && p->root[n] == '\0'))
        return;
    memcpy(p->root, object, n);
    p->root[n] = '\0';
    add_directory(p, PACKAGES, p->root, "/nvidia/cu13/lib/");
    add_directory(p, PACKAGES, p->root, "/nvidia/cuda_cupti/lib/");
}

/* Must not open files: dl_iterate_phdr(3) holds a lock of the loader. */
static int look_at_object(struct dl_phdr_info *info, size_t size, void *pass)
{
    (void)size;
    struct pass *p = pass;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (!slash)
        return 0;
    if (strncmp(slash, "/libcupti.so", 12) == 0 || strncmp(slash, "/libcupti-", 10) == 0)
        add(p, MAPPED, 0, 0, info->dlpi_name);
    else if (strncmp(slash, "/libtorch", 9) == 0 && strlen(info->dlpi_name) < sizeof p->torch)
        memcpy(p->torch, info->dlpi_name, strlen(info->dlpi_name) + 1);
    if (p->search->configured[0] == '\0')
        add_packages(p, info->dlpi_name);
    return 0;
}

/* Adds the directories of libtorch's RPATH. */
static void add_rpath(struct pass *p)
{
    Dl_serinfo *list = &p->rpath.list;
    void *torch = p->torch[0] ? dlopen(p->torch, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!torch)
        return;
    if (dlinfo(torch, RTLD_DI_SERINFOSIZE, list) == 0 && list->dls_size <= sizeof p->rpath &&
        dlinfo(torch, RTLD_DI_SERINFO, list) == 0)
        for (unsigned int i = 0; i < list->dls_cnt; i++)
            if (!(list->dls_serpath[i].dls_flags & (LA_SER_LIBPATH | LA_SER_DEFAULT)))
                add_directory(p, PACKAGES, list->dls_serpath[i].dls_name, "/");
    (void)dlclose(torch);
}

static void add_toolkit(struct pass *p, const char *base)
{
    if (!base || base[0] != '/')
        return;
    add_directory(p, TOOLKIT, base, "/extras/CUPTI/lib64/");
    add_directory(p, TOOLKIT, base, "/lib64/");
    add_directory(p, TOOLKIT, base, "/lib/");
}

static void add_library_path(struct pass *p)
{
    const char *list = secure_getenv("LD_LIBRARY_PATH");
    for (size_t n; list && *list; list += n + (list[n] != '\0')) {
        n = strcspn(list, ":;");
        if (list[0] != '/' || n >= sizeof p->directory)
            continue;
        memcpy(p->directory, list, n);
        p->directory[n] = '\0';
        add_directory(p, TOOLKIT, p->directory, "/");
    }
}

/* Puts the name of the next candidate into `search`. False: no candidate is left. */
static bool next_candidate(struct occ_cupti_search *search)
{
    struct pass *p = occ_scratch_get(sizeof *p);
    if (!p)
        return false;
    p->search = search;
    p->below = search->rank ? search->rank : UINT64_MAX;
    (void)dl_iterate_phdr(look_at_object, p);
    if (search->configured[0] != '\0') {
        add(p, CONFIGURED, 0, 0, search->configured);
    } else {
        add_rpath(p);
        add_library_path(p);
        add_directory(p, TOOLKIT, "", "");
        add_toolkit(p, secure_getenv("CUDA_HOME"));
        add_toolkit(p, secure_getenv("CUDA_PATH"));
        add_toolkit(p, "/usr/local/cuda");
        if (search->offered && search->offered[0])
            add(p, OFFERED, 0, 0, search->offered);
        if (p->best == 0) /* the last group: a pass looks there when nothing else is left */
            occ_python_packages(add_python, p);
    }
    search->rank = p->best;
    occ_scratch_put(p, sizeof *p);
    return search->rank != 0;
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

void occ_cupti_refuse(char reason[OCC_CUPTI_REASON_BYTES], const char *format, ...)
{
    static const char separator[] = "; ", more[] = "; ...";
    va_list arguments;
    size_t used = strlen(reason), at = used ? used + sizeof separator - 1 : 0;
    if (used + sizeof more > OCC_CUPTI_REASON_BYTES)
        return;
    va_start(arguments, format);
    int n = at < OCC_CUPTI_REASON_BYTES
                ? vsnprintf(reason + at, OCC_CUPTI_REASON_BYTES - at, format, arguments)
                : OCC_CUPTI_REASON_BYTES;
    va_end(arguments);
    if (used == 0)
        return;
    bool fits = at + (size_t)n + sizeof more <= OCC_CUPTI_REASON_BYTES;
    memcpy(reason + used, fits ? separator : more, fits ? sizeof separator - 1 : sizeof more);
}

/* Checks the release in the file's name. */
static const char *release_problem(uint64_t release)
{
    if (release == RELEASE_13_0_GA)
        return occ_cupti_version_problem(OCC_CUPTI_VERSION_13_0_GA);
    return release != 0 && release < FIRST_RELEASE ? occ_cupti_version_problem(0) : NULL;
}

static bool is_accepted(struct occ_cupti *cupti, const char *name, char reason[OCC_CUPTI_REASON_BYTES])
{
    static const char *const names[] = {"cuptiGetVersion", "cuptiGetResultString"};
    struct {
        uint32_t (*get_version)(uint32_t *version);
        uint32_t (*result_string)(uint32_t result, const char **text);
    } calls;
    Dl_info info;
    (void)occ_library_bind(cupti->handle, names, 2, &calls);
    if (!calls.get_version) {
        occ_cupti_refuse(reason, "%.150s lacks %s", name, names[0]);
        return false;
    }
    cupti->result_string = calls.result_string;
    cupti->path = dladdr(dlsym(cupti->handle, names[0]), &info) != 0 ? info.dli_fname : "";
    if (calls.get_version(&cupti->version) != OCC_CUPTI_SUCCESS)
        cupti->version = 0;
    const char *problem = occ_cupti_version_problem(cupti->version);
    if (problem)
        occ_cupti_refuse(reason, "%.150s (version %u) %s", name, cupti->version, problem);
    return problem == NULL;
}

/* True if an earlier candidate was the same library. */
static bool is_tried(struct occ_cupti_search *search, void *handle)
{
    for (size_t i = 0; i < sizeof search->tried / sizeof search->tried[0]; i++) {
        if (search->tried[i] == handle)
            return true;
        if (!search->tried[i]) {
            search->tried[i] = handle;
            break;
        }
    }
    return false;
}

/* False: the file exists, and users other than root and this process's user may have written it. */
static bool is_trusted(enum group group, const char *name, char resolved[PATH_MAX],
                       char reason[OCC_CUPTI_REASON_BYTES])
{
    char why[OCC_CUPTI_REASON_BYTES] = "";
    const char *file = strrchr(name, '/');
    if (group > OFFERED) {
        memcpy(resolved, name, strlen(name) + 1);
        return true;
    }
    if (!file || strncmp(file, "/libcupti", 9) != 0)
        (void)snprintf(why, sizeof why, "its name is not that of a libcupti");
    else if (group == OFFERED ? occ_trusted_offered(name, "/proc/self/mountinfo", resolved, why, sizeof why)
                              : occ_trusted_file(name, resolved, why, sizeof why))
        return true;
    occ_cupti_refuse(reason, "%.150s is not trusted: %.150s", name, why);
    return false;
}

/* Opens the candidate; a null handle: failed. */
static void open_candidate(struct occ_cupti_search *search, enum group group, struct occ_cupti *cupti,
                           char reason[OCC_CUPTI_REASON_BYTES])
{
    char *path = search->path;
    if (!is_trusted(group, search->name, path, reason))
        return;
    cupti->handle =
        dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE | (group == MAPPED ? RTLD_NOLOAD : 0));
    if (cupti->handle)
        return;
    (void)dlerror(); /* the program must not read our error with dlerror() */
    if (group == CONFIGURED)
        occ_cupti_refuse(reason, "OCCTRACE_CUPTI cannot be opened: %.180s", path);
    else if (path[0] == '/' && group != MAPPED)
        occ_cupti_refuse(reason, "%.180s cannot be opened", path);
}

bool occ_cupti_find(struct occ_cupti_search *search, struct occ_cupti *cupti,
                    char reason[OCC_CUPTI_REASON_BYTES])
{
    while (next_candidate(search)) {
        const char *problem = release_problem(search->rank >> RELEASE_SHIFT & RELEASE_BITS);
        *cupti = (struct occ_cupti){0};
        if (problem)
            occ_cupti_refuse(reason, "%.150s %s", search->name, problem);
        else
            open_candidate(search, (enum group)(search->rank >> 56), cupti, reason);
        if (cupti->handle && !is_tried(search, cupti->handle) && is_accepted(cupti, search->name, reason))
            return true;
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
