/*
 * Fuzzes the short names of kernels and the kernels' owners: any lines as demangled names give distinct names
 * of at most 512 bytes, distinct words, and owners with texts within their limits.
 */
#include "names/kernel_names.h"

#include <stdlib.h>
#include <string.h>

#include "names/demangle.h"
#include "names/owners.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KERNELS_MAX = 24 };

static void check(const struct occ_kernel_name *kernels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++)
            if (strlen(kernels[i].name) > 512 || (k < i && strcmp(kernels[i].name, kernels[k].name) == 0))
                abort();
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n && kernels[i].words; k++)
            if (strcmp(kernels[i].words, kernels[k].name) == 0 ||
                (k != i && kernels[k].words && strcmp(kernels[i].words, kernels[k].words) == 0))
                abort();
}

static void check_owner(const char *name)
{
    struct occ_kernel_owner owner;
    char label[OCC_KERNEL_LABEL_BYTES];
    occ_kernel_owner(name, &owner);
    if (owner.owner >= OCC_OWNERS || strnlen(owner.family, sizeof owner.family) == sizeof owner.family ||
        strnlen(owner.tile, sizeof owner.tile) == sizeof owner.tile ||
        strnlen(owner.layout, sizeof owner.layout) == sizeof owner.layout ||
        strlen(occ_kernel_label(&owner, label)) >= sizeof label)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_kernel_name kernels[KERNELS_MAX];
    char *text = strndup((const char *)data, size), *shorts[KERNELS_MAX], *rest = text, *line = NULL;
    size_t n = 0;
    while (text && n < KERNELS_MAX && (line = strsep(&rest, "\n"))) {
        const char *begin = NULL, *end = NULL;
        check_owner(line);
        occ_demangled_base(line, &begin, &end);
        shorts[n] = strndup(begin, (size_t)(end - begin));
        kernels[n] =
            (struct occ_kernel_name){.id = (int64_t)n + 1, .short_name = shorts[n], .demangled = line};
        if (!shorts[n++])
            abort();
    }
    if (occ_kernel_names_distinguish(kernels, n) != 0 || occ_kernel_names_describe(kernels, n) != 0)
        abort();
    check(kernels, n);
    for (size_t i = 0; i < n; i++) {
        free(kernels[i].name);
        free(kernels[i].words);
        free(shorts[i]);
    }
    free(text);
    return 0;
}
