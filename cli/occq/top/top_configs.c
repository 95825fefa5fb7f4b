/* See top_configs.h. One thread. */
#include "top_configs.h"

#include <string.h>

static const char *join(struct occ_arena *texts, const char *name, const char *sizes)
{
    char *text = name ? occ_arena_bytes(texts, strlen(name) + strlen(sizes) + 1) : NULL;
    return text ? strcat(strcpy(text, name), sizes) : NULL;
}

bool top_name_configs(const struct kernel_names *names, struct occ_top *top, struct occ_arena *texts)
{
    for (size_t i = 0; i < top->n && !texts->failed; i++) {
        struct occ_row_kernel *row = &top->rows[i].kernel, kernel = {.id = top->rows[i].dominant.kernel};
        const char *sizes = row->short_name ? strrchr(row->short_name, ' ') : NULL;
        kernel_names_apply(names, &kernel);
        if (!sizes || !kernel.short_name)
            continue;
        row->words = join(texts, kernel.words, sizes);
        row->short_name = join(texts, kernel.short_name, sizes);
    }
    return !texts->failed;
}
