/*
 * Reads kernels from compiled code: cubins, fat binaries, host programs, and the output of "ptxas -v".
 *
 * A file may contain a kernel several times, compiled for several capabilities. The reader takes the kernel
 * that the driver would choose; if none runs on the device, it takes the nearest one, which is shown with a
 * warning.
 *
 * One thread.
 */
#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "calc.h"
#include "cli/input.h"
#include "image/image.h"
#include "image/ptxas.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/cut.h"
#include "names/demangle.h"
#include "support/map.h"
#include "support/regexp.h"

enum { MAX_KERNELS = 65536 };

void calc_kernels_release(struct calc_kernels *kernels)
{
    for (size_t i = 0; i < kernels->n; i++)
        free(kernels->list[i].name);
    free(kernels->list);
    *kernels = (struct calc_kernels){0};
}

OCC_CLEANUP(occ_image, occ_image_free)
OCC_CLEANUP(occ_image_list, occ_image_list_free)
OCC_CLEANUP(occ_ptxas, occ_ptxas_free)

struct bytes {
    void *data;
    size_t n;
};

static void bytes_release(struct bytes *bytes)
{
    free(bytes->data);
}

/* ---- collecting ---- */

/* The requested kernels, and the kernels found. */
struct collection {
    uint32_t cc;
    const char *asked;         /* a kernel's name or a regular expression; NULL: all */
    struct occ_regexp *regexp; /* NULL: `asked` is no expression */
    bool has_named;            /* `found` has only kernels with exactly this name */
    struct calc_kernels found;
    size_t room;
    struct occ_map names; /* hash of a name -> the first kernel with that hash */
    bool has_equal_hashes;
};

/* Returns a kernel's rank, smaller is better: runnable first, then the nearest capability. */
static uint32_t distance(const struct calc_kernel *kernel, uint32_t cc)
{
    uint32_t apart = kernel->sm > cc ? kernel->sm - cc : cc - kernel->sm;
    return kernel->runs ? apart : 1000 + apart + (kernel->sm > cc ? 1000 : 0);
}

/* Returns the kernel of this name; NULL: none yet. Compares names one by one only if hashes are equal. */
static struct calc_kernel *find_name(struct collection *c, const char *name)
{
    uint32_t first = occ_map_get(&c->names, XXH3_64bits(name, strlen(name)));
    for (size_t i = first; i < c->found.n; i = c->has_equal_hashes ? i + 1 : c->found.n)
        if (strcmp(c->found.list[i].name, name) == 0)
            return &c->found.list[i];
    return NULL;
}

/* Adds the list's last kernel to the map. Returns false without memory. */
static bool add_name(struct collection *c, const char *name)
{
    uint32_t last = (uint32_t)c->found.n - 1, first;
    first = occ_map_put(&c->names, XXH3_64bits(name, strlen(name)), last);
    c->has_equal_hashes |= first < last;
    return first != OCC_MAP_NONE;
}

static bool is_named(const struct collection *c, const char *const names[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(c->asked, names[i]) == 0)
            return true;
    return false;
}

static bool is_matched(const struct collection *c, const char *const names[], size_t n)
{
    bool is_cut = strstr(c->asked, OCC_ELLIPSIS) != NULL;
    for (size_t i = 0; i < n; i++)
        if (is_cut ? occ_text_is_cut_of(c->asked, names[i])
                   : c->regexp && occ_regexp_matches(c->regexp, names[i]))
            return true;
    return false;
}

/* True if the kernel is requested. The first kernel with exactly the requested name removes the earlier
 * matches of the expression. */
static bool is_asked_for(struct collection *c, const char *const names[], size_t n)
{
    if (!c->asked)
        return true;
    bool named = is_named(c, names, n);
    if (named && !c->has_named) {
        calc_kernels_release(&c->found);
        occ_map_free(&c->names);
        c->room = 0;
        c->has_named = true;
    }
    return named || (!c->has_named && is_matched(c, names, n));
}

/* Keeps the kernel if it is requested and ranks better than a kept kernel of the same name; sets its name. */
static int collect(struct collection *c, const char *mangled, struct calc_kernel kernel,
                   struct occ_error *err)
{
    _cleanup_(occ_freep) char *name = NULL;
    _cleanup_(occ_freep) char *brief = NULL;
    if (occ_demangle(mangled, &name, &brief) != 0)
        return occ_no_memory(err);
    const char *const names[] = {name, mangled, brief};
    if (!is_asked_for(c, names, sizeof names / sizeof *names))
        return 0;
    struct calc_kernel *there = find_name(c, name);
    kernel.runs = occ_image_runs_on(kernel.sm, kernel.suffix, c->cc);
    if (there && distance(there, c->cc) <= distance(&kernel, c->cc))
        return 0;
    if (!there && !occ_grow((void **)&c->found.list, &c->room, c->found.n, MAX_KERNELS, sizeof kernel))
        return occ_fail(err, OCC_E_FULL, "more than %d kernels, or out of memory; --kernel chooses some",
                        MAX_KERNELS);
    bool is_new = !there;
    if (there)
        free(there->name);
    else
        there = &c->found.list[c->found.n++];
    kernel.name = occ_take(name);
    *there = kernel;
    return !is_new || add_name(c, kernel.name) ? 0 : occ_no_memory(err);
}

/* Drops kernels that do not run on the device if other kernels do. */
static void keep_best(struct calc_kernels *found)
{
    size_t kept = 0, running = 0;
    for (size_t i = 0; i < found->n; i++)
        running += found->list[i].runs;
    for (size_t i = 0; i < found->n; i++) {
        if (running > 0 && !found->list[i].runs)
            free(found->list[i].name);
        else
            found->list[kept++] = found->list[i];
    }
    found->n = kept;
}

static int fail_image(const struct occ_image_error *why, struct occ_error *err)
{
    int code = why->code == OCC_IMAGE_E_NO_MEMORY ? OCC_E_NO_MEMORY : OCC_E_INVALID;
    return occ_fail(err, code, "%s", why->message);
}

/* ---- cubins, fat binaries, programs ---- */

static int collect_image(const struct occ_image *image, char suffix, struct collection *c,
                         struct occ_error *err)
{
    int status = 0;
    for (uint32_t i = 0; i < image->kernel_count && status == 0; i++) {
        const struct occ_image_kernel *k = &image->kernels[i];
        struct calc_kernel kernel = {.sm = image->sm,
                                     .suffix = suffix,
                                     .registers = k->registers,
                                     .static_smem_bytes = k->static_smem_bytes,
                                     .barriers = k->barriers,
                                     .max_threads = k->max_threads,
                                     .local_bytes = k->local_bytes};
        memcpy(kernel.cluster, k->cluster, sizeof kernel.cluster);
        status = collect(c, k->name, kernel, err);
    }
    return status;
}

static int read_entry(const struct occ_image_list *list, size_t index, struct collection *c,
                      struct occ_error *err)
{
    _cleanup_(occ_image_freep) struct occ_image *image = NULL;
    struct occ_image_error why = {0};
    if (occ_image_load(list, index, &image, &why) != 0)
        return fail_image(&why, err);
    return collect_image(image, occ_image_list_entry(list, index)->suffix, c, err);
}

/* Reads the cubins that run on the device, or all cubins without `running_only`. */
static int read_entries(const struct occ_image_list *list, bool running_only, struct collection *c,
                        size_t *ret_cubins, struct occ_error *err)
{
    *ret_cubins = 0;
    for (size_t i = 0; i < occ_image_list_count(list); i++) {
        const struct occ_image_entry *entry = occ_image_list_entry(list, i);
        if (entry->kind != OCC_IMAGE_KIND_CUBIN ||
            (running_only && !occ_image_runs_on(entry->sm, entry->suffix, c->cc)))
            continue;
        ++*ret_cubins;
        int status = read_entry(list, i, c, err);
        if (status != 0)
            return status;
    }
    return 0;
}

static int read_image(const struct bytes *bytes, struct collection *c, struct occ_error *err)
{
    _cleanup_(occ_image_list_freep) struct occ_image_list *list = NULL;
    struct occ_image_error why = {0};
    size_t cubins = 0;
    char held[256];
    if (occ_image_list_new(bytes->data, bytes->n, &list, &why) != 0)
        return fail_image(&why, err);
    int status = read_entries(list, true, c, &cubins, err);
    if (status == 0 && cubins == 0)
        status = read_entries(list, false, c, &cubins, err);
    if (status == 0 && cubins == 0)
        return occ_fail(err, OCC_E_INVALID, "nothing compiled in it, only %s",
                        occ_image_list_text(list, held, sizeof held));
    return status;
}

/* ---- ptxas -v ---- */

static int read_ptxas(const struct bytes *bytes, struct collection *c, struct occ_error *err)
{
    _cleanup_(occ_ptxas_freep) struct occ_ptxas *report = NULL;
    struct occ_image_error why = {0};
    int status = 0;
    if (occ_ptxas_read(bytes->data, bytes->n, &report, &why) != 0)
        return fail_image(&why, err);
    for (size_t i = 0; i < report->count && status == 0; i++) {
        const struct occ_ptxas_kernel *k = &report->kernels[i];
        struct calc_kernel kernel = {.sm = k->sm,
                                     .suffix = k->suffix,
                                     .registers = k->registers,
                                     .static_smem_bytes = k->static_smem_bytes,
                                     .barriers = k->barriers,
                                     .local_bytes = k->stack_bytes,
                                     .spill_bytes = k->spill_store_bytes,
                                     .knows_spills = k->has_stack};
        status = collect(c, k->name, kernel, err);
    }
    return status;
}

/* ---- files ---- */

typedef int reader(const struct bytes *bytes, struct collection *c, struct occ_error *err);

/* Reports that no kernel was found. `why`: the error of --kernel as an expression. */
static int fail_nothing(const struct collection *c, const char *path, const struct occ_error *why,
                        struct occ_error *err)
{
    if (c->asked && why->message[0])
        return occ_fail(err, OCC_E_USAGE, "--kernel: no kernel of %s has this name, and %s", path,
                        why->message);
    return occ_fail(err, OCC_E_NOT_FOUND, c->asked ? "%s: no kernel matches --kernel" : "%s: no kernel in it",
                    path);
}

static int read_file(reader *read_them, const char *path, struct collection *c, struct occ_error *err)
{
    _cleanup_(bytes_release) struct bytes bytes = {NULL, 0};
    struct occ_error why = OCC_ERROR_INIT;
    int status = cli_read_input(path, &bytes.data, &bytes.n, err);
    if (status == 0 && c->asked && occ_regexp_compile(c->asked, &c->regexp, &why) == OCC_E_NO_MEMORY)
        status = occ_no_memory(err);
    if (status != 0)
        return status;
    status = read_them(&bytes, c, err);
    occ_regexp_free(c->regexp);
    c->regexp = NULL;
    if (status != 0)
        return occ_error_prefix(err, "%s", path);
    keep_best(&c->found);
    return c->found.n > 0 ? 0 : fail_nothing(c, path, &why, err);
}

int calc_read_kernels(const char *path, bool is_ptxas, uint32_t cc, const char *asked,
                      struct calc_kernels *ret_kernels, struct occ_error *err)
{
    struct collection c = {.cc = cc, .asked = asked};
    int status = read_file(is_ptxas ? read_ptxas : read_image, path, &c, err);
    if (status == 0)
        *ret_kernels = c.found;
    else
        calc_kernels_release(&c.found);
    occ_map_free(&c.names);
    return status;
}
