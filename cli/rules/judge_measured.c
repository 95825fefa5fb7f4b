/*
 * Measured rules about rows and groups of a comparison; see judge_measured.h.
 *
 * A kernel has the verdict of its group (compare/levels.h), which pools its launch configurations. If the
 * group is undecided, the pairs of launch configurations decide. A worse pair breaks the rule also in a
 * kernel with the verdict "same". A worse family breaks a rule without kernel: unless a kernel in it is
 * worse, and likewise all kernels together.
 */
#include "judge_measured.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/sides/diff_rows.h"
#include "cli/sides/report.h"
#include "cli/sides/texts.h"
#include "support/cleanup.h"
#include "support/text.h"

enum { TEXT_BYTES = 256 };

/* ---- a rule ---- */

struct work {
    const struct judge_terms *terms;
    struct rule_result *result;
    struct diff_levels levels; /* without groups if the rule is not about time, or needs a floor */
    bool *is_decided;          /* for each group: one of its pairs has a verdict of its own */
    bool *is_open;             /* for each group: one of its pairs is undecided */
    double floor;              /* the rule's; without one the default, which needs three runs on each side */
    bool needs_floor;
    struct occ_error *err;
};

static bool covers(const struct work *w, const struct diff_pair *pair)
{
    const struct diff_item *item = pair->main_item[DIFF_B];
    return item && rule_matches(w->result->rule, diff_config_row(item)->kernel.id);
}

/* Returns the index of the kernel's group; n: it has none. */
static size_t group_of(const struct work *w, const struct diff_pair *pair)
{
    size_t i = 0;
    while (i < w->levels.n && (w->levels.groups[i].scope != DIFF_SCOPE_KERNEL ||
                               !diff_group_has(w->terms->diff, &w->levels, &w->levels.groups[i], pair)))
        i++;
    return i;
}

static bool is_decided(enum diff_verdict verdict)
{
    return verdict != DIFF_UNDECIDED;
}

/* The factor of the work in the rule's metric. An occupancy does not depend on the work. */
static double work_factor_of(const struct rule *rule, const struct diff_pair *pair)
{
    return rule->metric == RULE_METRIC_ACHIEVED ? 1 : pair->work_factor;
}

/* Prints "time of a launch +20.0% (95 %: +19.7% to +20.3%)". */
static void ratio_text(const struct rule *rule, bool is_for_work, const struct diff_ratio *ratio,
                       char text[TEXT_BYTES])
{
    static const char *const metrics[] = {RULE_METRICS(OCC_WORD)};
    char change[16], low[16], high[16];
    (void)snprintf(text, TEXT_BYTES, "%s %s %s", metrics[rule->metric],
                   is_for_work ? "for the same work" : "of a launch",
                   diff_change_text(ratio->ratio - 1, change));
    if (!isnan(ratio->low))
        occ_text_append(text, TEXT_BYTES, "", " (95 %%: %s to %s)", diff_change_text(ratio->low - 1, low),
                        diff_change_text(ratio->high - 1, high));
}

static void add_share(double share, char text[TEXT_BYTES])
{
    occ_text_append(text, TEXT_BYTES, "", ", %.1f%% of the time", 100 * share);
}

/* The number of a configuration is the difference between rows of one kernel. */
static void add_configuration(const struct diff_pair *pair, char text[TEXT_BYTES])
{
    if (pair->configs[DIFF_B] == 1)
        occ_text_append(text, TEXT_BYTES, "", ", configuration %" PRId64, pair->main_item[DIFF_B]->row->id);
}

/* ---- pairs ---- */

static enum diff_verdict verdict_of(const struct work *w, const struct diff_pair *pair)
{
    const struct rule *rule = w->result->rule;
    return w->needs_floor ? DIFF_UNDECIDED
                          : diff_verdict_of(w->terms->diff, pair, (enum diff_metric)rule->metric, w->floor,
                                            rule->min_time);
}

static int add_pair(struct work *w, const struct diff_pair *pair)
{
    const struct rule *rule = w->result->rule;
    char text[TEXT_BYTES];
    ratio_text(rule, fabs(work_factor_of(rule, pair) - 1) > 0, &pair->ratio[rule->metric], text);
    add_configuration(pair, text);
    return judge_add_kernel(w->terms, w->result, diff_config_row(pair->main_item[DIFF_B]),
                            diff_share(w->terms->diff, pair), text, w->err);
}

/* Returns the ratio of the mean times of a launch, for a change with too few replicates; NaN: not known. */
static double mean_ratio(uint64_t launches_a, uint64_t ns_a, uint64_t launches_b, uint64_t ns_b)
{
    return launches_a > 0 && launches_b > 0 && ns_a > 0
               ? (double)ns_b / (double)launches_b / ((double)ns_a / (double)launches_a)
               : (double)NAN;
}

static void keep_pair(struct work *w, const struct diff_pair *pair)
{
    const struct rule *rule = w->result->rule;
    const struct diff_sums *a = &pair->sums[DIFF_A], *b = &pair->sums[DIFF_B];
    double share = diff_share(w->terms->diff, pair), factor = work_factor_of(rule, pair);
    struct diff_ratio ratio = pair->ratio[rule->metric];
    char text[TEXT_BYTES];
    if (isnan(ratio.ratio) && rule->metric == RULE_METRIC_TIME)
        ratio.ratio = mean_ratio(a->launches, a->total_ns, b->launches, b->total_ns) * factor;
    ratio_text(rule, fabs(factor - 1) > 0, &ratio, text);
    add_configuration(pair, text);
    add_share(share, text);
    judge_keep_open(w->result, diff_config_row(pair->main_item[DIFF_B])->kernel.short_name, share,
                    ratio.ratio - 1, text);
}

/* Judges a pair of a kernel without a verdict. `group`: the kernel's group, if it has one. */
static int judge_pair(struct work *w, const struct diff_pair *pair, size_t group)
{
    enum diff_verdict verdict = verdict_of(w, pair);
    bool has_group = group < w->levels.n;
    if (is_decided(verdict)) {
        w->result->judged++;
        w->is_decided[group] = true;
        return verdict == DIFF_WORSE ? add_pair(w, pair) : 0;
    }
    w->is_open[group] = true;
    if (has_group)
        return 0;
    w->result->undecided++;
    w->result->of_other_work += isnan(work_factor_of(w->result->rule, pair)) ? 1 : 0;
    keep_pair(w, pair);
    return 0;
}

static int judge_pairs(struct work *w, size_t *matched)
{
    const struct diff *diff = w->terms->diff;
    int status = 0;
    for (uint32_t i = 0; i < diff->n_pairs && status == 0; i++) {
        const struct diff_pair *pair = &diff->pairs[i];
        size_t group = group_of(w, pair);
        if (!covers(w, pair) || diff_share(diff, pair) < w->result->rule->min_time)
            continue;
        *matched += group == w->levels.n ? 1 : 0;
        enum diff_verdict verdict = group < w->levels.n ? w->levels.groups[group].verdict : DIFF_UNDECIDED;
        if (pair->level == DIFF_ONE_SIDE)
            w->result->without_baseline++;
        else if (!is_decided(verdict))
            status = judge_pair(w, pair, group);
        else if (verdict != DIFF_WORSE && verdict_of(w, pair) == DIFF_WORSE)
            status = add_pair(w, pair);
    }
    return status;
}

/* ---- groups ---- */

static struct diff_ratio ratio_of(const struct diff_group *g)
{
    struct diff_ratio ratio = g->ratio;
    if (isnan(ratio.ratio) && !g->is_for_work)
        ratio.ratio =
            mean_ratio(g->launches[DIFF_A], g->total_ns[DIFF_A], g->launches[DIFF_B], g->total_ns[DIFF_B]);
    return ratio;
}

static void group_text(const struct work *w, const struct diff_group *g, char text[TEXT_BYTES])
{
    const struct diff_ratio ratio = ratio_of(g);
    ratio_text(w->result->rule, g->is_for_work, &ratio, text);
    if (g->configurations > 1)
        occ_text_append(text, TEXT_BYTES, "", ", %" PRIu32 " configurations", g->configurations);
    else if (g->scope == DIFF_SCOPE_KERNEL)
        add_configuration(g->main_pair, text);
}

/* Judges kernels by their groups. */
static int judge_kernels(struct work *w, size_t *matched)
{
    int status = 0;
    for (size_t i = 0; i < w->levels.n && status == 0; i++) {
        const struct diff_group *g = &w->levels.groups[i];
        char text[TEXT_BYTES];
        if (g->scope != DIFF_SCOPE_KERNEL || !covers(w, g->main_pair))
            continue;
        ++*matched;
        w->result->judged += is_decided(g->verdict) ? 1 : 0;
        group_text(w, g, text);
        if (g->verdict == DIFF_WORSE)
            status = judge_add_kernel(w->terms, w->result, diff_config_row(g->main_pair->main_item[DIFF_B]),
                                      g->share, text, w->err);
    }
    return status;
}

/* Counts kernels without a verdict of the group, and with an undecided large pair or without decided ones. */
static void count_open(struct work *w)
{
    for (size_t i = 0; i < w->levels.n; i++) {
        const struct diff_group *g = &w->levels.groups[i];
        char text[TEXT_BYTES];
        if (g->scope != DIFF_SCOPE_KERNEL || is_decided(g->verdict) || !covers(w, g->main_pair) ||
            (w->is_decided[i] && !w->is_open[i]))
            continue;
        w->result->undecided++;
        group_text(w, g, text);
        add_share(g->share, text);
        judge_keep_open(w->result, diff_config_row(g->main_pair->main_item[DIFF_B])->kernel.short_name,
                        g->share, ratio_of(g).ratio - 1, text);
    }
}

/* True if a kernel, or a launch configuration, of the family is worse. */
static bool has_worse(const struct work *w, const struct diff_group *family)
{
    const struct diff *diff = w->terms->diff;
    for (size_t i = 0; i < w->levels.n; i++)
        if (w->levels.groups[i].scope == DIFF_SCOPE_KERNEL && w->levels.groups[i].verdict == DIFF_WORSE &&
            diff_group_has(diff, &w->levels, family, w->levels.groups[i].main_pair))
            return true;
    for (uint32_t i = 0; i < diff->n_pairs; i++)
        if (diff_group_has(diff, &w->levels, family, &diff->pairs[i]) &&
            verdict_of(w, &diff->pairs[i]) == DIFF_WORSE)
            return true;
    return false;
}

/* Judges families without a worse kernel. */
static int judge_families(struct work *w)
{
    int status = 0;
    for (size_t i = 0; i < w->levels.n && status == 0; i++) {
        const struct diff_group *g = &w->levels.groups[i];
        char text[TEXT_BYTES], name[96];
        if (g->scope != DIFF_SCOPE_FAMILY || g->verdict != DIFF_WORSE || has_worse(w, g))
            continue;
        (void)snprintf(name, sizeof name, "family %.80s", g->name);
        group_text(w, g, text);
        status = judge_add_group(w->terms, w->result, name, g->share, text, w->err);
    }
    return status;
}

/* Judges all kernels together, unless a smaller group breaks the rule. */
static int judge_total(struct work *w)
{
    const struct diff_group *g = w->levels.n > 0 ? &w->levels.groups[0] : NULL;
    char text[TEXT_BYTES];
    if (!g || g->scope != DIFF_SCOPE_TOTAL || g->verdict != DIFF_WORSE ||
        w->result->n_findings + w->result->allowed > 0)
        return 0;
    group_text(w, g, text);
    return judge_add_group(w->terms, w->result, "all kernels", g->share, text, w->err);
}

/* ---- all ---- */

static void work_free(struct work *w)
{
    diff_levels_free(&w->levels);
    free(w->is_decided);
    free(w->is_open);
}

int judge_measured(const struct judge_terms *terms, struct rule_result *result, size_t *ret_matched,
                   struct occ_error *err)
{
    const struct rule *rule = result->rule;
    _cleanup_(work_free) struct work w = {.terms = terms,
                                          .result = result,
                                          .floor = isnan(rule->floor) ? DIFF_FLOOR : rule->floor,
                                          .needs_floor = isnan(rule->floor) && terms->one_run,
                                          .err = err};
    int status = 0;
    if (rule->metric == RULE_METRIC_TIME && !w.needs_floor)
        status = diff_levels_make(terms->diff, w.floor, rule->min_time, &w.levels, err);
    w.is_decided = calloc(w.levels.n + 1, sizeof *w.is_decided);
    w.is_open = calloc(w.levels.n + 1, sizeof *w.is_open);
    if (!w.is_decided || !w.is_open)
        return occ_no_memory(err);
    if (status == 0)
        status = judge_kernels(&w, ret_matched);
    if (status == 0)
        status = judge_pairs(&w, ret_matched);
    if (status == 0)
        count_open(&w);
    if (status == 0 && !rule->kernel)
        status = judge_families(&w);
    return status == 0 && !rule->kernel ? judge_total(&w) : status;
}
