/* occq top --advice; see top.h. One thread. */
#include <math.h>
#include <stdio.h>

#include "show.h"
#include "support/cleanup.h"
#include "top.h"

static struct top_line *line_of(struct top_line *lines, size_t n, const struct occ_config_row *config,
                                bool by_config)
{
    for (struct top_line *line = lines; line < lines + n; line++)
        if (by_config ? line->row.kernel.id == config->id
                      : line->row.kernel.id == config->kernel.id &&
                            line->row.kernel.device == config->kernel.device)
            return line;
    return NULL;
}

static void add_config(struct top_line *line, const struct occ_config_row *config)
{
    struct occ_measurement means;
    struct analysis_advice advice[OCC_ADVICE_MAX];
    const struct analysis a = show_analysis(config, &means);
    if (config->total_ns >= line->bound_ns) {
        line->bound_ns = config->total_ns;
        line->bound = occ_bound_word(analysis_bound(&a));
    }
    size_t n = analysis_advise(&a, advice);
    bool is_first = n > 0 && !advice[0].is_below_unknown;
    double saves_ns = is_first ? advice[0].saves_most * (double)config->total_ns : NAN;
    if (!is_first || saves_ns <= line->advice_saves_ns)
        return;
    line->advice_saves_ns = saves_ns;
    line->advice_config = (double)config->id;
    (void)analysis_advice_change(&advice[0].change, line->advice, sizeof line->advice);
    (void)snprintf(line->knob, sizeof line->knob, "%s", advice[0].knob);
}

void top_advise_rows(const struct occ_config_rows *configs, bool by_config, struct top_line *lines, size_t n)
{
    for (const struct occ_config_row *row = configs->rows; row < configs->rows + configs->n; row++) {
        struct top_line *line = row->analysed ? line_of(lines, n, row, by_config) : NULL;
        if (line)
            add_config(line, row);
    }
}

int top_advise(struct occ_store *store, const struct occ_filter *filter, bool by_config,
               struct top_line *lines, size_t n, struct occ_error *err)
{
    _cleanup_(occ_config_rows_free) struct occ_config_rows configs = {0};
    int status = occ_store_configs(store, filter, &configs, err);
    if (status == 0)
        status = occ_store_add_uses(store, filter, &configs, err);
    if (status == 0)
        top_advise_rows(&configs, by_config, lines, n);
    return status;
}
