/* Judges the kernels of `occq show`; see show_answers.h. One thread. */
#include "show_answers.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/text.h"

static int make_overview(const struct show_question *question, struct show_answers *answers,
                         struct occ_error *err)
{
    const struct occ_filter *filter = question->filter;
    const struct occ_filter all = occ_overview_filter(filter);
    int status = occ_store_top(question->store, question->has_gpu_time ? &all : filter, OCC_TOP_BY_KERNEL,
                               &answers->top, err);
    if (status != 0)
        return status;
    return question->has_gpu_time
               ? occ_overview_make(question->store, filter, &answers->top, &answers->overview, err)
               : occ_overview_make_kernels(question->store, filter, &answers->top, &answers->overview, err);
}

int show_find_answers(const struct show_question *question, struct show_group *groups, size_t n,
                      struct show_answers *ret_answers, struct occ_error *err)
{
    *ret_answers = (struct show_answers){.list = calloc(n + 1, sizeof *ret_answers->list)};
    if (!ret_answers->list)
        return occ_no_memory(err);
    const struct occ_overview *overview = question->overview ? question->overview : &ret_answers->overview;
    int status = n > 0 && !question->overview ? make_overview(question, ret_answers, err) : 0;
    if (status == 0 && n > 0)
        status = occ_judge_open(overview, &ret_answers->judge, err);
    for (size_t i = 0; i < n && status == 0; i++) {
        status = occ_judge_kernel(&ret_answers->judge, groups[i].configs, &ret_answers->list[i], err);
        if (status == 0)
            groups[i].answer = &ret_answers->list[i];
        else if (status == OCC_E_NOT_FOUND)
            status = 0;
    }
    return status;
}

void show_answers_free(struct show_answers *answers)
{
    occ_judge_close(&answers->judge);
    occ_overview_free(&answers->overview);
    occ_top_free(&answers->top);
    free(answers->list);
}

/* Finds the finding's change in the advice for the configuration with most time. */
static bool find_item(const struct analysis *a, const struct occ_finding *f, struct analysis_advice *ret_item)
{
    struct analysis_advice list[OCC_ADVICE_MAX];
    size_t n = f->advice == OCC_ADVICE_COUNT ? 0 : analysis_advise(a, list), i = 0;
    while (i < n && (list[i].change.kind != f->advice || list[i].change.needed != f->needed))
        i++;
    if (i < n)
        *ret_item = list[i];
    return i < n;
}

bool show_find_change(const struct show_group *group, struct analysis_advice *ret_item)
{
    struct occ_measurement means;
    enum occ_owner owner = group->answer->owner.owner;
    bool is_own = owner == OCC_OWNER_USER || owner == OCC_OWNER_UNKNOWN;
    const struct analysis a = show_analysis(group->configs, &means);
    return is_own && group->configs->analysed && find_item(&a, &group->answer->finding, ret_item);
}

const char *show_change_text(const struct show_group *group, char *text, size_t size)
{
    struct occ_measurement means;
    const struct analysis a = show_analysis(group->configs, &means);
    const struct occ_finding *f = &group->answer->finding;
    struct analysis_advice item;
    char change[96];
    if (f->change == OCC_CHANGE_BUSY)
        (void)analysis_advice_note(&a, text, size);
    else if (show_find_change(group, &item))
        (void)snprintf(text, size, "%s; %s", analysis_advice_change(&item.change, change, sizeof change),
                       item.knob);
    else
        (void)snprintf(text, size, "%s", occ_change_text(f->change));
    if (f->aside != OCC_ASIDE_NONE)
        occ_text_append(text, size, "; ", "%s", occ_aside_text(f->aside));
    return text;
}
