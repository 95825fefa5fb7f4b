/* Prints the ranges of a kernel's launches for `occq show`; see show.h. One thread. */
#include "show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/json.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "cli/history/sql_table.h"
#include "top.h"

#define SHOWN_MAX 3u /* maximum number of ranges on the page */

static int most_time_first(const void *left, const void *right)
{
    const struct occ_top_row *a = left, *b = right;
    return a->total_ns != b->total_ns ? (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns)
                                      : (a->kernel.id > b->kernel.id) - (a->kernel.id < b->kernel.id);
}

int show_find_ranges(struct occ_store *store, const struct occ_filter *filter, struct show_group *group,
                     struct occ_error *err)
{
    char kernel[32], gpu[32];
    struct occ_filter of_group = *filter;
    if (sql_number(occ_store_sqlite(store), "SELECT EXISTS(SELECT 1 FROM stored_range)") == 0)
        return 0;
    (void)snprintf(kernel, sizeof kernel, "%" PRId64, group->configs->kernel.id);
    (void)snprintf(gpu, sizeof gpu, "%" PRId64, group->configs->kernel.device);
    of_group.kernel = kernel;
    of_group.gpu = gpu;
    int status = occ_store_top(store, &of_group, OCC_TOP_BY_RANGE, &group->ranges, err);
    if (status == 0 && group->ranges.n > 1)
        qsort(group->ranges.rows, group->ranges.n, sizeof *group->ranges.rows, most_time_first);
    return status;
}

void show_ranges(const struct show_group *group)
{
    const struct occ_top *ranges = &group->ranges;
    double covered = top_covered_ratio(ranges);
    size_t shown = 0, known = 0;
    if (!(covered > 0))
        return;
    cli_print("  launched in (%.1f %% of its time has a range):\n", floor(covered * 1000) / 10);
    for (size_t i = 0; i < ranges->n; i++) {
        const struct occ_top_row *row = &ranges->rows[i];
        known += row->kernel.short_name != NULL;
        if (!row->kernel.short_name || shown == SHOWN_MAX)
            continue;
        shown++;
        cli_print("    %5.1f %%  %s\n", 100 * (double)row->total_ns / (double)group->total_ns,
                  row->kernel.short_name);
    }
    if (known > shown)
        cli_print("    and %zu more: occq top --by range --kernel ...\n", known - shown);
}

void show_json_ranges(struct occ_json *json, const struct show_group *group)
{
    if (group->ranges_skipped) {
        occ_json_null(json, "ranges");
        return;
    }
    occ_json_array(json, "ranges", false);
    for (size_t i = 0; i < group->ranges.n; i++) {
        const struct occ_top_row *row = &group->ranges.rows[i];
        occ_json_object(json, NULL, true);
        occ_json_string(json, "range", row->kernel.short_name);
        occ_json_unsigned(json, "launches", row->launches);
        occ_json_unsigned(json, "total_duration_ns", row->total_ns);
        occ_json_close(json);
    }
    occ_json_close(json);
}
