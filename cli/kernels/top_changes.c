/* Changes for the rows of `occq top`; see top_changes.h. One thread. */
#include "top_changes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/cleanup.h"

static void set_change(const struct show_group *group, struct top_line *line)
{
    const struct occ_finding *f = &group->answer->finding;
    struct analysis_advice item;
    bool is_own = show_find_change(group, &item);
    line->is_answered = true;
    if (f->change == OCC_CHANGE_NONE)
        return;
    if (is_own)
        (void)analysis_advice_change(&item.change, line->advice, sizeof line->advice);
    else
        (void)snprintf(line->advice, sizeof line->advice, "%s", occ_change_text(f->change));
    (void)snprintf(line->knob, sizeof line->knob, "%s", is_own ? item.knob : "");
    line->advice_config = (double)group->configs->id;
    if (f->forecast.is_promised)
        line->advice_saves_ns = (1 - f->forecast.ratio) * (double)group->configs->total_ns;
}

static int compare_groups(const void *left, const void *right)
{
    const struct occ_row_kernel *a = &((const struct show_group *)left)->configs->kernel,
                                *b = &((const struct show_group *)right)->configs->kernel;
    return a->id != b->id ? (a->id > b->id) - (a->id < b->id)
                          : (a->device > b->device) - (a->device < b->device);
}

/* Returns the group of the line in the sorted groups; NULL: there is none. */
static const struct show_group *group_of(const struct top_changes *changes, const struct top_line *line)
{
    const struct occ_config_row of_line = {.kernel = line->row.kernel};
    const struct show_group key = {.configs = &of_line};
    return changes->n ? bsearch(&key, changes->groups, changes->n, sizeof key, compare_groups) : NULL;
}

static void set_changes(struct top_changes *changes, struct top_line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct show_group *group = group_of(changes, &lines[i]);
        changes->of_lines[i] = group && group->answer ? group : NULL;
        if (changes->of_lines[i])
            set_change(group, &lines[i]);
    }
}

/* Sorts the groups and keeps those of the lines: each answer has a price. */
static int choose_groups(struct top_changes *changes, const struct top_line *lines, size_t n,
                         struct occ_error *err)
{
    _cleanup_(occ_freep) bool *is_kept = calloc(changes->n + 1, sizeof *is_kept);
    size_t kept = 0;
    if (!is_kept)
        return occ_no_memory(err);
    if (changes->n > 0)
        qsort(changes->groups, changes->n, sizeof *changes->groups, compare_groups);
    for (size_t i = 0; i < n; i++) {
        const struct show_group *group = group_of(changes, &lines[i]);
        if (group)
            is_kept[group - changes->groups] = true;
    }
    for (size_t i = 0; i < changes->n; i++)
        if (is_kept[i])
            changes->groups[kept++] = changes->groups[i];
    changes->groups[kept] = (struct show_group){.configs = NULL}; /* the end */
    changes->n = kept;
    return 0;
}

static int answer_kernels(const struct show_question *question, struct top_changes *changes,
                          const struct top_line *lines, size_t n, struct occ_error *err)
{
    changes->of_lines = calloc(n + 1, sizeof *changes->of_lines);
    if (!changes->of_lines)
        return occ_no_memory(err);
    int status = show_groups_make(&changes->configs, 1, &changes->groups, &changes->n, err);
    if (status == 0)
        status = choose_groups(changes, lines, n, err);
    return status == 0 ? show_find_answers(question, changes->groups, changes->n, &changes->answers, err)
                       : status;
}

int top_changes_find(const struct show_question *question, bool by_config, struct top_line *lines, size_t n,
                     struct top_changes *ret_changes, struct occ_error *err)
{
    struct top_changes *changes = ret_changes;
    *changes = (struct top_changes){.n = 0};
    int status = occ_store_configs(question->store, question->filter, &changes->configs, err);
    if (status == 0)
        status = occ_store_add_uses(question->store, question->filter, &changes->configs, err);
    if (status == 0 && !by_config)
        status = answer_kernels(question, changes, lines, n, err);
    if (status == 0 && !by_config)
        set_changes(changes, lines, n);
    return status == 0 ? top_advise_rows(&changes->configs, by_config, lines, n, err) : status;
}

void top_changes_free(struct top_changes *changes)
{
    free(changes->of_lines);
    if (changes->groups)
        show_groups_free(&changes->groups);
    show_answers_free(&changes->answers);
    occ_config_rows_free(&changes->configs);
}
