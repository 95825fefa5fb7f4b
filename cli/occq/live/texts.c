/* The lines above the table of `occq live`; see model.h. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "support/text.h"

/* Writes the age of the newest launch: "newest 1.2 s ago", "ahead" if the clock was set back; without
 * launches the reason. */
static void age_text(const struct live_sample *sample, char *text, size_t size)
{
    int64_t age_ns = sample->at_ns - sample->newest_ns;
    char age[32];
    (void)occ_format_duration(age_ns < 0 ? -age_ns : age_ns, age, sizeof age);
    if (sample->missing_run != 0)
        (void)snprintf(text, size, "there is no run %" PRId64, sample->missing_run);
    else if (sample->newest_ns == 0)
        (void)snprintf(text, size, "no launches yet");
    else
        (void)snprintf(text, size, "newest %s %s", age,
                       age_ns < 0 ? "ahead (the clock was set back)" : "ago");
}

int64_t live_complete_ns(const struct live_sample *sample, int64_t behind_ns)
{
    int64_t late_ns = sample->at_ns - LIVE_LATE_NS;
    if (behind_ns == 0 || behind_ns > sample->at_ns)
        return sample->at_ns;
    return behind_ns > late_ns ? behind_ns : late_ns;
}

/* Writes "5 s", "5 s up to 2.1 s ago". */
static void window_text(const struct live_sample *sample, char *text, size_t size)
{
    char age[32];
    (void)occ_format_duration(sample->window_ns, text, size);
    if (sample->complete_ns < sample->at_ns)
        occ_text_append(text, size, " up to ", "%s ago",
                        occ_format_duration(sample->at_ns - sample->complete_ns, age, sizeof age));
}

void live_head_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES])
{
    char window[80], age[96] = "", overhead[32];
    bool is_said = sample->newest_ns != 0 && sample->newest_ns == sample->complete_ns;
    if (!is_said)
        age_text(sample, age, sizeof age);
    window_text(sample, window, sizeof window);
    (void)snprintf(line, LIVE_LINE_BYTES, "last %s%s%s  %" PRId64 " run%s  lost %" PRId64 "  overhead %s",
                   window, is_said ? "" : "  ", age, sample->runs, sample->runs == 1 ? "" : "s", sample->lost,
                   cli_percent_text(sample->overhead, overhead, sizeof overhead));
}

/* ---- GPUs ---- */

const struct live_use *live_use_of(const struct live_sample *sample, size_t i)
{
    for (size_t k = 0; sample->uses && k < sample->gpus.n; k++)
        if (sample->uses[k].device == sample->gpus.rows[i].kernel.id)
            return &sample->uses[k];
    return NULL;
}

void live_set_shares(struct live_sample *sample)
{
    double window_ns = (double)sample->window_ns * (double)sample->gpus.n;
    for (size_t i = 0; i < sample->kernels.n; i++) {
        struct top_line *line = &sample->lines[i];
        for (size_t k = 0; sample->uses && k < sample->gpus.n; k++)
            if (sample->uses[k].device == line->row.kernel.device)
                line->gpu_share = (double)line->row.total_ns * sample->uses[k].alone / window_ns;
    }
}

enum { BAR_WIDTH = 20 };

/* Draws the parts of a window: used, busy but not used, idle. */
static void draw_bar(const struct live_use *use, bool ascii, char bar[3 * BAR_WIDTH + 1])
{
    static const char *const blocks[] = {"\xe2\x96\x88", "\xe2\x96\x92", "\xc2\xb7"}, *const letters[] = {
                                                                                          "#", "=", "."};
    const char *const *marks = ascii ? letters : blocks;
    double busy = use ? occ_at_most(occ_positive(use->busy), 1) : 0,
           used = use ? occ_at_most(occ_positive(use->used), busy) : 0;
    int busy_end = (int)lround(busy * BAR_WIDTH), used_end = (int)lround(used * BAR_WIDTH);
    bar[0] = '\0';
    for (int i = 0; i < BAR_WIDTH; i++)
        (void)strcat(bar, marks[i < used_end ? 0 : i < busy_end ? 1 : 2]);
}

void live_gpu_text(const struct live_sample *sample, size_t i, bool ascii, char line[LIVE_LINE_BYTES])
{
    const struct occ_top_row *row = &sample->gpus.rows[i];
    const struct live_use *use = live_use_of(sample, i);
    const char *name = row->kernel.short_name ? row->kernel.short_name : "";
    char bar[3 * BAR_WIDTH + 1], busy[40], percent[32], used[32], achieved[32], covered[32],
        measured[80] = "";
    draw_bar(use, ascii, bar);
    if (!isnan(row->achieved))
        (void)snprintf(measured, sizeof measured, "  achieved %s in %s",
                       cli_percent_text(row->achieved, achieved, sizeof achieved),
                       cli_percent_text(row->measured_ratio, covered, sizeof covered));
    (void)snprintf(busy, sizeof busy, "%s%s", use && use->is_least ? ">=" : "",
                   cli_percent_text(use ? use->busy : (double)NAN, percent, sizeof percent));
    (void)snprintf(line, LIVE_LINE_BYTES, "GPU %-2" PRId64 " %s busy %6s  used %6s%s  %s%s", row->kernel.id,
                   bar, busy, cli_percent_text(use ? use->used : (double)NAN, used, sizeof used),
                   row->kernel.simulated && !strstr(name, "simulated") ? "  sim" : "", name, measured);
    occ_text_sanitise(line);
}

/* ---- lists ---- */

/* Appends "NAME 12.3%" to a list after `title`. */
static void append_share(char line[LIVE_LINE_BYTES], const char *title, const char *name, double share)
{
    char percent[32];
    occ_text_append(line, LIVE_LINE_BYTES, ", ", "%s%.60s %s", line[0] ? "" : title, name,
                    cli_percent_text(share, percent, sizeof percent));
}

void live_causes_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES])
{
    double all = 0;
    line[0] = '\0';
    for (size_t i = 0; i < sample->causes.n; i++)
        all += top_waste_of(&sample->causes.rows[i]);
    for (size_t i = 0; i < sample->causes.n; i++) {
        const struct occ_top_row *row = &sample->causes.rows[i];
        append_share(line, "loss by main cause: ", row->kernel.short_name ? row->kernel.short_name : "none",
                     top_waste_of(row) / all);
    }
    if (!line[0])
        (void)snprintf(line, LIVE_LINE_BYTES, "loss by main cause: -");
    occ_text_sanitise(line);
}

/* A share with its name, for sorting. */
struct share {
    const char *name;
    double ratio;
};

static int largest_first(const void *left, const void *right)
{
    double a = ((const struct share *)left)->ratio, b = ((const struct share *)right)->ratio;
    return (a < b) - (a > b);
}

void live_owners_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES])
{
    struct share owners[OCC_OWNERS] = {{NULL, 0}};
    size_t n = 0;
    line[0] = '\0';
    for (size_t i = 0; i < sample->kernels.n; i++) {
        const struct top_line *of = &sample->lines[i];
        size_t k = 0;
        while (k < n && of->whose && strcmp(owners[k].name, of->whose) != 0)
            k++;
        if (k == OCC_OWNERS || !of->whose)
            continue;
        n = k == n ? n + 1 : n;
        owners[k].name = of->whose;
        owners[k].ratio += (double)of->row.total_ns / sample->sums.ns;
    }
    qsort(owners, n, sizeof *owners, largest_first);
    for (size_t i = 0; i < n && n > 1; i++)
        append_share(line, "time by owner: ", owners[i].name, owners[i].ratio);
    occ_text_sanitise(line);
}

/* Writes "FusedMoE x 36", or "Block (directly)" for launches of a layer outside of the layers inside it. */
static void name_layer(const struct occ_layers *tree, size_t at, bool ascii, char *name, size_t size)
{
    const struct occ_layer *layer = &tree->layers[at];
    size_t parent = at;
    name[0] = '\0';
    while (layer->name[0] == '(' && parent > 0 && tree->layers[parent].depth >= layer->depth)
        parent--;
    if (tree->layers[parent].depth < layer->depth)
        (void)snprintf(name, size, "%.40s ", tree->layers[parent].name);
    (void)snprintf(name + strlen(name), size - strlen(name), "%.80s", layer->name);
    if (layer->count > 1)
        occ_text_append(name, size, ascii ? " x " : " \xc3\x97 ", "%u", layer->count);
    if (layer->is_backward)
        occ_text_append(name, size, " ", "backward");
}

enum { LAYERS_SHOWN = 16 };

/* Writes the indices of the innermost layers with the longest times, the longest first. Returns their number.
 */
static size_t longest_leaves(const struct occ_layers *tree, size_t leaves[LAYERS_SHOWN])
{
    size_t n = 0;
    for (size_t i = 0; i < tree->n; i++) {
        size_t at = n;
        if (i + 1 < tree->n && tree->layers[i + 1].depth > tree->layers[i].depth)
            continue; /* has layers inside */
        while (at > 0 && tree->layers[leaves[at - 1]].time_s < tree->layers[i].time_s)
            at--;
        if (at == LAYERS_SHOWN)
            continue;
        n += n < LAYERS_SHOWN;
        memmove(leaves + at + 1, leaves + at, (n - 1 - at) * sizeof *leaves);
        leaves[at] = i;
    }
    return n;
}

void live_layers_text(const struct live_sample *sample, bool ascii, char line[LIVE_LINE_BYTES])
{
    const struct occ_layers *tree = &sample->layers.tree;
    char name[160];
    size_t leaves[LAYERS_SHOWN], n = longest_leaves(tree, leaves);
    line[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        name_layer(tree, leaves[i], ascii, name, sizeof name);
        append_share(line, "layers by time: ", name, tree->layers[leaves[i]].share);
    }
    occ_text_sanitise(line);
}

void live_nothing_text(const struct live_sample *sample, const struct live_model *model,
                       char line[LIVE_LINE_BYTES])
{
    char window[32], age[96];
    (void)occ_format_duration(sample->window_ns, window, sizeof window);
    age_text(sample, age, sizeof age);
    line[0] = '\0';
    if (sample->err.code != 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "%.440s; waiting until it can be read", sample->err.message);
    else if (model->n == 0 && sample->kernels.n > 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "no kernel's name has '%s' in it", model->filter);
    else if (model->n == 0 && sample->missing_run != 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "%s ('occq runs' lists them); waits for it", age);
    else if (model->n == 0 && sample->newest_ns == 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "waits for the first launch: \"occtrace PROGRAM\" records one");
    else if (model->n == 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "no launches in the last %s that match (%s); waits for more",
                       window, age);
    occ_text_sanitise(line);
}
