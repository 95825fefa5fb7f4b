/* See verdicts.h. One thread. */
#include "verdicts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"
#include "support/text.h"

enum {
    NAMED_MAX = 3, /* maximum number of undecided kernels named in a sentence */
    PARTS_MAX = 2, /* likewise of groups of a scope in the sentence of a larger group */
};

#define FIELD(key, unit, member) CLI_FIELD(key, key, unit, 0, struct diff_group_line, member, "")
static const struct cli_column group_columns[] = {
    FIELD("level", CLI_PLAIN, level),
    FIELD("name", CLI_PLAIN, name),
    FIELD("layers", CLI_PLAIN, layers),
    FIELD("kernel_mangled", CLI_PLAIN, mangled[DIFF_A]),
    FIELD("kernel_mangled_b", CLI_PLAIN, mangled[DIFF_B]),
    FIELD("verdict", CLI_PLAIN, verdict),
    FIELD("time_ratio", CLI_RATIO, share),
    FIELD("basis", CLI_PLAIN, basis),
    FIELD("mean_duration_change_ratio", CLI_RATIO, change),
    FIELD("change_low_ci95_ratio", CLI_RATIO, low),
    FIELD("change_high_ci95_ratio", CLI_RATIO, high),
    FIELD("change_to_control_ratio", CLI_RATIO, to_control),
    FIELD("change_to_control_low_ci95_ratio", CLI_RATIO, to_control_low),
    FIELD("change_to_control_high_ci95_ratio", CLI_RATIO, to_control_high),
    FIELD("false_verdict_chance", CLI_RATIO, q),
    FIELD("launch_configs", CLI_PLAIN, configurations),
    FIELD("launches_a", CLI_PLAIN, launches[DIFF_A]),
    FIELD("launches_b", CLI_PLAIN, launches[DIFF_B]),
    FIELD("total_duration_ns_a", CLI_PLAIN, total_ns[DIFF_A]),
    FIELD("total_duration_ns_b", CLI_PLAIN, total_ns[DIFF_B]),
    CLI_COLUMN_END,
};

/* ---- names ---- */

/* Names a layer as occq top --by layer names its line. */
static void name_layer(const struct diff_report *r, struct diff_group_line *line)
{
    const struct diff_group *group = line->group;
    const struct diff_layer_line *layer =
        diff_layer_of(&r->layers, r->diff, group->main_pair->main_item[DIFF_A]);
    line->layers = layer ? layer->count : 1;
    (void)snprintf(line->name, sizeof line->name, "%s%s", layer ? layer->path : group->name,
                   layer && layer->phase ? " (backward)" : "");
}

static void name_kernels(const struct diff *diff, struct diff_group_line *line)
{
    const struct diff_pair *pair = line->group->main_pair;
    diff_name_kernels(diff, pair, false, line->name, sizeof line->name);
    diff_name_kernels(diff, pair, true, line->said, sizeof line->said);
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        line->mangled[side] = pair->kernels[side] == 1 ? pair->main_item[side]->row->mangled : NULL;
}

static void name_group(const struct diff_report *r, struct diff_group_line *line)
{
    const struct diff_group *group = line->group;
    if (group->scope == DIFF_SCOPE_KERNEL) {
        name_kernels(r->diff, line);
        return;
    }
    if (group->scope == DIFF_SCOPE_LAYER)
        name_layer(r, line);
    else
        (void)snprintf(line->name, sizeof line->name, "%s", group->name);
    occ_text_sanitise(line->name);
    memcpy(line->said, line->name, sizeof line->said);
}

struct diff_group_line *diff_make_group_lines(const struct diff_report *r)
{
    static const char *const words[] = {DIFF_SCOPES(OCC_WORD)};
    const struct diff_levels *levels = &r->levels;
    struct diff_group_line *lines = calloc(levels->n + 1, sizeof *lines);
    for (size_t i = 0; lines && i < levels->n; i++) {
        const struct diff_group *g = &levels->groups[i];
        lines[i] = (struct diff_group_line){.group = g,
                                            .level = words[g->scope],
                                            .verdict = diff_verdict_word(g->verdict),
                                            .basis = g->is_for_work ? "work" : "launch",
                                            .change = g->ratio.ratio - 1,
                                            .low = g->ratio.low - 1,
                                            .high = g->ratio.high - 1,
                                            .to_control = g->to_control.ratio - 1,
                                            .to_control_low = g->to_control.low - 1,
                                            .to_control_high = g->to_control.high - 1,
                                            .share = g->share,
                                            .q = g->q,
                                            .configurations = g->configurations};
        memcpy(lines[i].launches, g->launches, sizeof g->launches);
        memcpy(lines[i].total_ns, g->total_ns, sizeof g->total_ns);
        name_group(r, &lines[i]);
    }
    if (lines)
        diff_find_within(r, lines);
    return lines;
}

/* True if the kernel has a verdict, or its family has changed. */
static bool is_decided(const struct diff_report *r, const struct diff_group *kernel)
{
    for (size_t i = 0; i < r->levels.n; i++) {
        const struct diff_group *g = &r->levels.groups[i];
        if (g->scope == DIFF_SCOPE_FAMILY && diff_is_change(g->verdict) &&
            diff_group_has(r->diff, &r->levels, g, kernel->main_pair))
            return true;
    }
    return kernel->verdict != DIFF_UNDECIDED;
}

/* ---- sentences ---- */

static bool is_total(const struct diff_group_line *line)
{
    return line->group->scope == DIFF_SCOPE_TOTAL;
}

const struct diff_group_line *diff_next_group(const struct diff_report *r,
                                              const struct diff_group_line *lines,
                                              const struct diff_group_line *line)
{
    const struct diff_group_line *end = lines + r->levels.n,
                                 *total = lines < end && is_total(lines) ? lines : NULL;
    bool is_last = total && !diff_is_change(total->group->verdict);
    if (line && line == total && is_last)
        return NULL;
    for (line = line ? line + 1 : lines; line < end; line++)
        if (diff_is_change(line->group->verdict) && !line->within)
            return line;
    return is_last ? total : NULL;
}

const char *diff_group_word(enum diff_verdict verdict)
{
    static const char *const words[DIFF_VERDICT_COUNT] = {[DIFF_UNDECIDED] = "UNDECIDED",
                                                          [DIFF_WORSE] = "SLOWER",
                                                          [DIFF_BETTER] = "FASTER",
                                                          [DIFF_SAME] = "SAME"};
    return words[verdict];
}

const char *diff_headline(const struct diff_report *r)
{
    bool has[DIFF_VERDICT_COUNT] = {false};
    has[diff_gpu_time_verdict(r)] = r->gpu_time.is_known;
    for (size_t i = 0; i < r->levels.n; i++)
        if (diff_is_change(r->levels.groups[i].verdict) || r->levels.groups[i].scope == DIFF_SCOPE_TOTAL)
            has[r->levels.groups[i].verdict] = true;
    return has[DIFF_BETTER] && has[DIFF_WORSE] ? "faster and slower"
           : has[DIFF_BETTER]                  ? "faster"
           : has[DIFF_WORSE]                   ? "slower"
           : has[DIFF_SAME]                    ? "the same"
                                               : "undecided";
}

static void add_interval(char *text, size_t size, const struct diff_ratio *ratio)
{
    char low[16], high[16];
    if (!isnan(ratio->low))
        occ_text_append(text, size, "", " (95 %%: %s to %s)", diff_change_text(ratio->low - 1, low),
                        diff_change_text(ratio->high - 1, high));
}

static void add_launches(const struct diff_report *r, const struct diff_group *g, char *text)
{
    uint32_t a = diff_per_runs(r->diff, DIFF_A), b = diff_per_runs(r->diff, DIFF_B);
    const char *per_run = a == b ? "" : " a run";
    uint64_t from = g->launches[DIFF_A] / a, to = g->launches[DIFF_B] / b;
    char from_time[32], to_time[32];
    occ_text_append(text, DIFF_GROUP_BYTES, "", "; %" PRIu32 " configuration%s, %" PRIu64, g->configurations,
                    g->configurations == 1 ? "" : "s", from);
    if (from != to)
        occ_text_append(text, DIFF_GROUP_BYTES, "", " -> %" PRIu64, to);
    occ_text_append(text, DIFF_GROUP_BYTES, "", " launches%s, %s -> %s%s", per_run,
                    diff_duration_text((double)g->total_ns[DIFF_A] / a, from_time),
                    diff_duration_text((double)g->total_ns[DIFF_B] / b, to_time), per_run);
}

static void add_name(const struct diff_report *r, const char *name, char *text)
{
    char shown[128];
    (void)snprintf(shown, sizeof shown, "%.120s", name);
    occ_text_sanitise(shown); /* the end may be a part of a character */
    for (char *at = shown; r->is_markdown && (at = strchr(at, '`')) != NULL;)
        *at = '\'';
    occ_text_append(text, DIFF_GROUP_BYTES, "", r->is_markdown ? " `%s`" : " %s", shown);
}

/* Returns "in layer", the words before the name of a group. */
static const char *words_of(const struct diff_group_line *line)
{
    static const char *const places[] = {
        [DIFF_SCOPE_TOTAL] = "in all kernels",
        [DIFF_SCOPE_LAYER] = "in layer",
        [DIFF_SCOPE_FAMILY] = "in family",
        [DIFF_SCOPE_KERNEL] = "in kernel",
    };
    if (!line->group->name_b)
        return places[line->group->scope];
    return line->mangled[DIFF_A] && line->mangled[DIFF_B] ? "in renamed kernel" : "in replaced kernels";
}

const char *diff_group_place(const struct diff_group_line *line, char place[DIFF_PLACE_BYTES])
{
    (void)snprintf(place, DIFF_PLACE_BYTES, "%s%s%s", words_of(line), is_total(line) ? "" : " ", line->said);
    if (line->layers > 1)
        occ_text_append(place, DIFF_PLACE_BYTES, "", "%s%" PRIu32, cli_screen_times(), line->layers);
    return place;
}

static bool is_same_set(const struct diff_group *a, const struct diff_group *b)
{
    return memcmp(a->launches, b->launches, sizeof a->launches) == 0 &&
           memcmp(a->total_ns, b->total_ns, sizeof a->total_ns) == 0;
}

/* Appends "; in it family batch norm -20.1% (...), kernel bn_bw -20.3% (...)": of each scope the groups with
 * the largest change of time. A group with the launches of the one before has no numbers of its own. */
static void add_parts(const struct diff_report *r, const struct diff_group_line *lines,
                      const struct diff_group_line *line, char *text)
{
    size_t named[DIFF_SCOPE_COUNT] = {0}, n = 0, rest = 0;
    const struct diff_group_line *last = line;
    char change[16];
    for (const struct diff_group_line *part = lines; part < lines + r->levels.n; part++) {
        bool is_same = is_same_set(part->group, last->group);
        if (part->within != line || (is_same && strcmp(part->name, last->name) == 0))
            continue;
        if (named[part->group->scope]++ >= PARTS_MAX) {
            rest++;
            continue;
        }
        occ_text_append(text, DIFF_GROUP_BYTES, "", "%s%s", n++ ? ", " : "; in it ",
                        words_of(part) + sizeof "in");
        add_name(r, part->said, text);
        last = part;
        if (is_same)
            continue;
        occ_text_append(text, DIFF_GROUP_BYTES, "", " %s", diff_change_text(part->change, change));
        add_interval(text, DIFF_GROUP_BYTES, &part->group->ratio);
    }
    if (rest > 0)
        occ_text_append(text, DIFF_GROUP_BYTES, "", " and %zu more", rest);
}

const char *diff_group_text(const struct diff_report *r, const struct diff_group_line *lines,
                            const struct diff_group_line *line, char text[DIFF_GROUP_BYTES])
{
    const struct diff_group *g = line->group;
    char change[16], share[16];
    bool is_small = g->verdict == DIFF_SAME && fabs(line->change) >= SIDES_SMALL_CHANGE;
    (void)snprintf(text, DIFF_GROUP_BYTES, "%s%s", diff_change_text(line->change, change),
                   g->is_for_work ? " for the same work" : "");
    add_interval(text, DIFF_GROUP_BYTES, &g->ratio);
    if (is_small)
        occ_text_append(text, DIFF_GROUP_BYTES, "", ", within the floor of %.3g %%", 100 * r->floor);
    if (!r->diff->by_runs && diff_is_change(line->group->verdict))
        occ_text_append(text, DIFF_GROUP_BYTES, "", " within these runs");
    add_launches(r, g, text);
    if (is_total(line) && r->levels.pooled_share < DIFF_TOTAL_SHARE_MIN)
        occ_text_append(text, DIFF_GROUP_BYTES, "", ", only %s of the time of both sides",
                        cli_percent_text(r->levels.pooled_share, share, sizeof share));
    add_parts(r, lines, line, text);
    return text;
}

/* Counts verdicts of change: on the total, and on other groups. */
static void count_changes(const struct diff_levels *levels, size_t *ret_total, size_t *ret_others)
{
    *ret_total = *ret_others = 0;
    for (size_t i = 0; i < levels->n; i++)
        if (diff_is_change(levels->groups[i].verdict))
            ++*(levels->groups[i].scope == DIFF_SCOPE_TOTAL ? ret_total : ret_others);
}

const char *diff_control_text(const struct diff_report *r, char text[DIFF_GROUP_BYTES])
{
    const struct diff_ratio *control = &r->levels.control;
    size_t total, others;
    char change[16];
    count_changes(&r->levels, &total, &others);
    text[0] = '\0';
    if (total > 0 && others == 0)
        (void)snprintf(
            text, DIFF_GROUP_BYTES,
            "no layer, family or kernel changed more than the others: the clock or the load may differ");
    if (others == 0 || isnan(control->ratio))
        return text;
    bool is_small = control->low >= 1 / (1 + r->floor) && control->high <= 1 + r->floor;
    (void)snprintf(text, DIFF_GROUP_BYTES, "everything else %s",
                   diff_change_text(control->ratio - 1, change));
    add_interval(text, DIFF_GROUP_BYTES, control);
    occ_text_append(text, DIFF_GROUP_BYTES, "", "%s",
                    is_small ? ", so not the clock" : ": the clock or the load may differ, too");
    return text;
}

const char *diff_undecided_text(const struct diff_report *r, const struct diff_group_line *lines,
                                char text[DIFF_GROUP_BYTES])
{
    size_t n = 0, kernels = 0;
    char share[16];
    (void)snprintf(text, DIFF_GROUP_BYTES, "undecided:");
    for (size_t i = 0; i < r->levels.n; i++) {
        const struct diff_group *g = lines[i].group;
        kernels += g->scope == DIFF_SCOPE_KERNEL ? 1 : 0;
        if (g->scope != DIFF_SCOPE_KERNEL || is_decided(r, g))
            continue;
        if (n < NAMED_MAX)
            occ_text_append(text, DIFF_GROUP_BYTES, "", "%s %.200s (%s of the time)", n ? "," : "",
                            lines[i].said, cli_percent_text(g->share, share, sizeof share));
        n++;
    }
    if (kernels == 0)
        text[0] = '\0';
    else if (n == 0)
        occ_text_append(text, DIFF_GROUP_BYTES, "", " no kernel with %.3g%% of the time", 100 * r->min_share);
    else if (n > NAMED_MAX)
        occ_text_append(text, DIFF_GROUP_BYTES, "", " and %zu more", n - NAMED_MAX);
    return text;
}

/* ---- rows ---- */

bool diff_row_matters(const struct diff_report *r, const struct diff_pair *pair)
{
    bool is_large = diff_share(r->diff, pair) >= r->min_share;
    switch (diff_verdict_of(r->diff, pair, DIFF_METRIC_TIME, r->floor, r->min_share)) {
    case DIFF_WORSE:
    case DIFF_BETTER:
        return true;
    case DIFF_SAME:
        return is_large && pair->level > DIFF_CONFIG;
    case DIFF_UNDECIDED:
        return is_large && (pair->level > DIFF_CONFIG || r->levels.n == 0);
    default:
        return is_large;
    }
}

/* True if a side has too few launches for blocks. */
static bool is_too_short(const struct diff_report *r, const struct diff_pair *pair)
{
    return !r->diff->by_runs && !r->diff->by_minutes && pair->level != DIFF_ONE_SIDE &&
           (pair->sums[DIFF_A].launches < DIFF_BLOCKED_LAUNCHES_MIN ||
            pair->sums[DIFF_B].launches < DIFF_BLOCKED_LAUNCHES_MIN);
}

/* True if the other side has the kernel of a new or gone row, too. */
static bool is_elsewhere(const struct diff *diff, const struct diff_item *item)
{
    const struct diff_item *end = diff->items + diff->n_items, *first = item;
    while (first > diff->items && strcmp(first[-1].row->mangled, item->row->mangled) == 0)
        first--;
    for (; first < end && strcmp(first->row->mangled, item->row->mangled) == 0; first++)
        if (first->side != item->side)
            return true;
    return false;
}

/* Says that a new or gone row is no new or gone kernel. */
static void explain_one_side(const struct diff *diff, const struct diff_pair *pair, char *text)
{
    uint32_t side = pair->n[DIFF_B] ? DIFF_B : DIFF_A;
    if (is_elsewhere(diff, pair->main_item[side]))
        (void)snprintf(text, DIFF_REASON_BYTES,
                       "%c has the kernel, too, in another range or launch configuration", "BA"[side]);
}

const char *diff_row_reason(const struct diff_report *r, const struct diff_pair *pair,
                            char text[DIFF_REASON_BYTES])
{
    char change[16];
    text[0] = '\0';
    if (pair->level == DIFF_ONE_SIDE)
        explain_one_side(r->diff, pair, text);
    else if (isnan(pair->work_factor))
        (void)snprintf(text, DIFF_REASON_BYTES,
                       "not comparable: another number of launches, each with other work");
    else if (pair->kernels[DIFF_A] != pair->kernels[DIFF_B] && pair->level != DIFF_ONE_SIDE)
        (void)snprintf(text, DIFF_REASON_BYTES, "replaced: %" PRIu32 " kernel%s by %" PRIu32 "; %s",
                       pair->kernels[DIFF_A], pair->kernels[DIFF_A] == 1 ? "" : "s", pair->kernels[DIFF_B],
                       isnan(r->diff->work) ? "no verdict, since the work of the sides is not known"
                                            : "the verdicts on its groups decide");
    else if (is_too_short(r, pair))
        (void)snprintf(text, DIFF_REASON_BYTES, "fewer than %d launches", DIFF_BLOCKED_LAUNCHES_MIN);
    if (!diff_is_change(diff_verdict_of(r->diff, pair, DIFF_METRIC_TIME, r->floor, r->min_share)))
        return text;
    for (size_t i = 0; i < r->levels.n; i++) {
        const struct diff_group *g = &r->levels.groups[i];
        if (g->scope == DIFF_SCOPE_KERNEL && g->verdict == DIFF_SAME &&
            diff_group_has(r->diff, &r->levels, g, pair))
            (void)snprintf(text, DIFF_REASON_BYTES,
                           "the kernel is the same over its %" PRIu32
                           " configurations (%s); this is a part of it",
                           g->configurations, diff_change_text(g->ratio.ratio - 1, change));
    }
    return text;
}

/* ---- JSON ---- */

void diff_verdicts_json(struct occ_json *json, const struct diff_report *r,
                        const struct diff_group_line *lines)
{
    const struct diff_ratio *control = &r->levels.control;
    occ_json_array(json, "verdicts", false);
    for (size_t i = 0; i < r->levels.n; i++) {
        occ_json_object(json, NULL, false);
        cli_json_row(json, group_columns, &lines[i]);
        occ_json_close(json);
    }
    occ_json_close(json);
    occ_json_array(json, "layers", false);
    for (size_t i = 0; i < r->layers.tree.n; i++) {
        occ_json_object(json, NULL, false);
        cli_json_row(json, diff_layer_columns, &r->layers.lines[i]);
        occ_json_close(json);
    }
    occ_json_close(json);
    occ_json_object(json, "control", false);
    occ_json_real(json, "mean_duration_change_ratio", control->ratio - 1);
    occ_json_real(json, "change_low_ci95_ratio", control->low - 1);
    occ_json_real(json, "change_high_ci95_ratio", control->high - 1);
    occ_json_unsigned(json, "launch_configs", r->levels.control_configurations);
    occ_json_close(json);
    occ_json_real(json, "pooled_time_ratio", r->levels.pooled_share);
}
