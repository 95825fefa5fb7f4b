/* occq top --advice; see top.h. One thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "show.h"
#include "support/cleanup.h"
#include "top.h"

/* Lines sorted by configuration, or by kernel and device. */
struct index {
    struct top_line **lines;
    size_t n;
    bool by_config;
};

static int compare_ids(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const struct occ_row_kernel *a, const struct occ_row_kernel *b, bool by_config)
{
    int order = compare_ids(a->id, b->id);
    return order != 0 || by_config ? order : compare_ids(a->device, b->device);
}

static int compare_lines(const void *left, const void *right, void *by_config)
{
    const struct top_line *const *a = left, *const *b = right;
    return compare(&(*a)->row.kernel, &(*b)->row.kernel, *(const bool *)by_config);
}

static struct top_line *line_of(const struct index *index, const struct occ_config_row *config)
{
    struct occ_row_kernel key = config->kernel;
    size_t low = 0, high = index->n;
    key.id = index->by_config ? config->id : key.id;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(&index->lines[middle]->row.kernel, &key, index->by_config);
        if (order == 0)
            return index->lines[middle];
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

static void add_advice(struct top_line *line, const struct occ_config_row *config)
{
    struct occ_measurement means;
    struct analysis_advice advice[OCC_ADVICE_MAX];
    const struct analysis a = show_analysis(config, &means);
    enum occ_owner owner = analysis_owner(&a).owner;
    size_t n = analysis_advise(&a, advice);
    bool is_first = n > 0 && !advice[0].is_below_unknown && advice[0].prediction.is_promised;
    double saves_ns = is_first ? (1 - advice[0].prediction.ratio) * (double)config->total_ns : NAN;
    if (!is_first || saves_ns <= line->advice_saves_ns)
        return;
    line->advice_saves_ns = saves_ns;
    line->advice_config = (double)config->id;
    if (owner == OCC_OWNER_USER || owner == OCC_OWNER_UNKNOWN)
        (void)analysis_advice_change(&advice[0].change, line->advice, sizeof line->advice);
    else
        (void)snprintf(line->advice, sizeof line->advice, "%s",
                       occ_change_text(occ_change_for(owner, advice[0].change.kind)));
    (void)snprintf(line->knob, sizeof line->knob, "%s", advice[0].knob);
}

static void set_bound(struct top_line *line, const struct occ_config_row *longest)
{
    struct occ_measurement means;
    const struct analysis a = show_analysis(longest, &means);
    line->bound_ns = longest->total_ns;
    line->bound = occ_bound_word(analysis_bound(&a));
}

int top_advise_rows(const struct occ_config_rows *configs, bool by_config, struct top_line *lines, size_t n,
                    struct occ_error *err)
{
    _cleanup_(occ_freep) struct top_line **sorted = calloc(n + 1, sizeof *sorted);
    _cleanup_(occ_freep) const struct occ_config_row **longest = calloc(n + 1, sizeof *longest);
    const struct index index = {sorted, n, by_config};
    if (!sorted || !longest)
        return occ_no_memory(err);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &lines[i];
    qsort_r(sorted, n, sizeof *sorted, compare_lines, &by_config);
    for (const struct occ_config_row *row = configs->rows; row < configs->rows + configs->n; row++) {
        struct top_line *line = row->analysed ? line_of(&index, row) : NULL;
        if (!line)
            continue;
        const struct occ_config_row **most = &longest[line - lines];
        if (!*most || row->total_ns >= (*most)->total_ns)
            *most = row;
        if (!line->is_answered)
            add_advice(line, row);
    }
    for (size_t i = 0; i < n; i++)
        if (longest[i])
            set_bound(&lines[i], longest[i]);
    return 0;
}
