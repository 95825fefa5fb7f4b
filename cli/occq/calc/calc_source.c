/*
 * Kernels from compiled code: cubins, fat binaries, host programs, and the text of "ptxas -v".
 *
 * A file may hold a kernel several times, compiled for several capabilities. What counts is the one that the driver
 * would take; where none runs on the device, the nearest one is shown (its figures are what the compiler made for
 * another capability, which the command says).
 *
 * One thread.
 */
#include "calc.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/image.h"
#include "image/ptxas.h"
#include "support/cleanup.h"
#include "support/demangle.h"

#define FILE_MAX_BYTES   (UINT64_C(1) << 33)
#define FILE_FIRST_BYTES (UINT64_C(1) << 16)

enum { MAX_KERNELS = 65536 };

static void kernel_release(struct calc_kernel *kernel)
{
    free(kernel->name);
}

void calc_kernels_release(struct calc_kernels *kernels)
{
    for (size_t i = 0; i < kernels->n; i++)
        kernel_release(&kernels->list[i]);
    free(kernels->list);
    *kernels = (struct calc_kernels){0};
}

/* ---- files ---- */

struct bytes {
    char *data;
    size_t n;
};

static void bytes_release(struct bytes *bytes)
{
    free(bytes->data);
}

static int grow(struct bytes *bytes, size_t *room, const char *path, struct occ_error *err)
{
    if (*room >= FILE_MAX_BYTES)
        return occ_fail(err, OCC_E_FULL, "%s: larger than 8 GiB", path);
    *room = *room ? *room * 2 : FILE_FIRST_BYTES;
    char *data = realloc(bytes->data, *room);
    if (!data)
        return occ_fail(err, OCC_E_NO_MEMORY, "%s: out of memory", path);
    bytes->data = data;
    return 0;
}

static int read_all(const char *path, struct bytes *bytes, struct occ_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    _cleanup_(occ_closep) int own = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int fd = is_stdin ? STDIN_FILENO : own;
    size_t room = 0;
    if (fd < 0)
        return occ_fail_errno(err, errno, "cannot open %s", path);
    for (;;) {
        if (bytes->n == room && grow(bytes, &room, path, err) != 0)
            return err ? err->code : OCC_E_NO_MEMORY;
        ssize_t got = read(fd, bytes->data + bytes->n, room - bytes->n);
        if (got == 0)
            return 0;
        if (got > 0)
            bytes->n += (size_t)got;
        else if (errno != EINTR)
            return occ_fail_errno(err, errno, "cannot read %s", path);
    }
}

/* ---- gathering ---- */

/* Which kernels, and what was found so far. */
struct gathering {
    uint32_t cc;
    const regex_t *regex; /* NULL: all */
    struct calc_kernels *found;
    size_t room;
};

/* Rank: runnable first, then closest SM version. */
static uint32_t distance(const struct calc_kernel *kernel, uint32_t cc)
{
    uint32_t apart = kernel->sm > cc ? kernel->sm - cc : cc - kernel->sm;
    return kernel->runs ? apart : 1000 + apart + (kernel->sm > cc ? 1000 : 0);
}

static struct calc_kernel *find_name(const struct calc_kernels *kernels, const char *name)
{
    for (size_t i = 0; i < kernels->n; i++)
        if (strcmp(kernels->list[i].name, name) == 0)
            return &kernels->list[i];
    return NULL;
}

static int append(struct gathering *g, const struct calc_kernel *kernel, struct occ_error *err)
{
    struct calc_kernels *found = g->found;
    if (found->n == MAX_KERNELS)
        return occ_fail(err, OCC_E_FULL, "more than %d kernels; --kernel chooses some", MAX_KERNELS);
    if (found->n == g->room) {
        size_t room = g->room ? g->room * 2 : 64;
        struct calc_kernel *list = realloc(found->list, room * sizeof *list);
        if (!list)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        found->list = list;
        g->room = room;
    }
    found->list[found->n++] = *kernel;
    return 0;
}

/* `kernel` without a name; takes it if it is asked for, and better than the one of that name that is there. */
static int gather(struct gathering *g, const char *mangled, struct calc_kernel kernel, struct occ_error *err)
{
    _cleanup_(occ_freep) char *name = NULL;
    _cleanup_(occ_freep) char *brief = NULL;
    if (occ_demangle(mangled, &name, &brief) != 0)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    if (g->regex && regexec(g->regex, name, 0, NULL, 0) != 0 && regexec(g->regex, mangled, 0, NULL, 0) != 0)
        return 0;
    struct calc_kernel *there = find_name(g->found, name);
    kernel.runs = occ_image_runs_on(kernel.sm, kernel.suffix, g->cc);
    if (there && distance(there, g->cc) <= distance(&kernel, g->cc))
        return 0;
    kernel.name = occ_take(name);
    if (there) {
        kernel_release(there);
        *there = kernel;
        return 0;
    }
    int status = append(g, &kernel, err);
    if (status != 0)
        kernel_release(&kernel);
    return status;
}

/* Keeps what fits best: kernels that do not run on the device are left out if others do. */
static void keep_best(struct gathering *g)
{
    struct calc_kernels *found = g->found;
    size_t kept = 0, running = 0;
    for (size_t i = 0; i < found->n; i++)
        running += found->list[i].runs;
    for (size_t i = 0; i < found->n; i++) {
        if (running > 0 && !found->list[i].runs)
            kernel_release(&found->list[i]);
        else
            found->list[kept++] = found->list[i];
    }
    found->n = kept;
}

typedef int reader(const struct bytes *bytes, struct gathering *g, struct occ_error *err);

static int read_kernels(reader *read_them, const char *path, uint32_t cc, const char *regex,
                        struct calc_kernels *ret_kernels, struct occ_error *err)
{
    _cleanup_(bytes_release) struct bytes bytes = {0};
    _cleanup_(calc_kernels_release) struct calc_kernels found = {0};
    regex_t compiled;
    struct gathering g = {.cc = cc, .found = &found, .regex = regex ? &compiled : NULL};
    int status = read_all(path, &bytes, err);
    if (status != 0)
        return status;
    if (regex && regcomp(&compiled, regex, REG_EXTENDED | REG_NOSUB) != 0)
        return occ_fail(err, OCC_E_INVALID, "--kernel: not a regular expression");
    status = read_them(&bytes, &g, err);
    if (regex)
        regfree(&compiled);
    if (status != 0)
        return occ_error_prefix(err, "%s", path);
    if (found.n == 0)
        return occ_fail(err, OCC_E_NOT_FOUND, regex ? "%s: no kernel fits --kernel" : "%s: no kernel in it",
                        path);
    keep_best(&g);
    *ret_kernels = found;
    found = (struct calc_kernels){0};
    return 0;
}

static int fail_image(const struct occ_image_error *why, struct occ_error *err)
{
    int code = why->code == OCC_IMAGE_E_NO_MEMORY ? OCC_E_NO_MEMORY : OCC_E_INVALID;
    return occ_fail(err, code, "%s", why->message);
}

/* ---- cubins, fat binaries, programs ---- */

static void image_freep(struct occ_image **image)
{
    occ_image_free(*image);
}

static void image_list_freep(struct occ_image_list **list)
{
    occ_image_list_free(*list);
}

static int gather_image(const struct occ_image *image, char suffix, struct gathering *g,
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
        status = gather(g, k->name, kernel, err);
    }
    return status;
}

static int read_entry(const struct occ_image_list *list, size_t index, struct gathering *g,
                      struct occ_error *err)
{
    _cleanup_(image_freep) struct occ_image *image = NULL;
    struct occ_image_error why = {0};
    if (occ_image_load(list, index, &image, &why) != 0)
        return fail_image(&why, err);
    return gather_image(image, occ_image_list_entry(list, index)->suffix, g, err);
}

/* Cubins that run on the device; without `running_only` all of them. */
static int read_entries(const struct occ_image_list *list, bool running_only, struct gathering *g,
                        size_t *ret_cubins, struct occ_error *err)
{
    *ret_cubins = 0;
    for (size_t i = 0; i < occ_image_list_count(list); i++) {
        const struct occ_image_entry *entry = occ_image_list_entry(list, i);
        if (entry->kind != OCC_IMAGE_KIND_CUBIN ||
            (running_only && !occ_image_runs_on(entry->sm, entry->suffix, g->cc)))
            continue;
        ++*ret_cubins;
        int status = read_entry(list, i, g, err);
        if (status != 0)
            return status;
    }
    return 0;
}

static int read_image(const struct bytes *bytes, struct gathering *g, struct occ_error *err)
{
    _cleanup_(image_list_freep) struct occ_image_list *list = NULL;
    struct occ_image_error why = {0};
    size_t cubins = 0;
    char held[256];
    if (occ_image_list_new(bytes->data, bytes->n, &list, &why) != 0)
        return fail_image(&why, err);
    int status = read_entries(list, true, g, &cubins, err);
    if (status == 0 && cubins == 0)
        status = read_entries(list, false, g, &cubins, err);
    if (status == 0 && cubins == 0)
        return occ_fail(err, OCC_E_INVALID, "nothing compiled in it, only %s",
                        occ_image_list_text(list, held, sizeof held));
    return status;
}

int calc_read_image(const char *path, uint32_t cc, const char *regex, struct calc_kernels *ret_kernels,
                    struct occ_error *err)
{
    return read_kernels(read_image, path, cc, regex, ret_kernels, err);
}

/* ---- ptxas -v ---- */

static void ptxas_freep(struct occ_ptxas **report)
{
    occ_ptxas_free(*report);
}

static int read_ptxas(const struct bytes *bytes, struct gathering *g, struct occ_error *err)
{
    _cleanup_(ptxas_freep) struct occ_ptxas *report = NULL;
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
                                     .spill_bytes = k->spill_store_bytes};
        status = gather(g, k->name, kernel, err);
    }
    return status;
}

int calc_read_ptxas(const char *path, uint32_t cc, const char *regex, struct calc_kernels *ret_kernels,
                    struct occ_error *err)
{
    return read_kernels(read_ptxas, path, cc, regex, ret_kernels, err);
}
