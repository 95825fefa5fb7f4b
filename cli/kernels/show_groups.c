/* Groups launch configurations by kernel and device; see show.h. Pure. */
#include <stdlib.h>

#include "show.h"

static int most_time_first(const void *left, const void *right)
{
    const struct show_group *a = left, *b = right;
    return (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns);
}

int show_groups_make(const struct occ_config_rows *rows, size_t shown_max, struct show_group **ret_groups,
                     size_t *ret_n, struct occ_error *err)
{
    size_t n = 0;
    struct show_group *groups = calloc(rows->n + 1, sizeof *groups);
    if (!groups)
        return occ_no_memory(err);
    for (const struct occ_config_row *row = rows->rows; row < rows->rows + rows->n; row++) {
        if (n == 0 || groups[n - 1].configs->kernel.id != row->kernel.id ||
            groups[n - 1].configs->kernel.device != row->kernel.device)
            groups[n++] = (struct show_group){.configs = row};
        struct show_group *g = &groups[n - 1];
        g->n++;
        g->shown = g->n < shown_max ? g->n : shown_max;
        g->launches += row->launches;
        g->total_ns += row->total_ns;
    }
    qsort(groups, n, sizeof *groups, most_time_first);
    *ret_groups = groups;
    *ret_n = n;
    return 0;
}

void show_groups_free(struct show_group **groups)
{
    for (struct show_group *g = *groups; g && g->configs; g++) {
        for (size_t i = 0; g->nearest && i < g->shown; i++)
            free(g->nearest[i]);
        free(g->nearest);
        occ_top_free(&g->ranges);
    }
    free(*groups);
}
