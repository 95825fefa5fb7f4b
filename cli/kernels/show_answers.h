/* Answers about the kernels of `occq show`: the findings of the overview of the same launches. One thread. */
#pragma once

#include "show.h"

/* The answers. `list` has one for each group; the other members are the data that they refer to. */
struct show_answers {
    struct occ_top top;
    struct occ_overview overview;
    struct occ_kernel_judge judge;
    struct occ_kernel_answer *list;
};

struct show_question {
    struct occ_store *store;
    const struct occ_filter *filter;
    /* true: shares are of the GPU time of all kernels; the filter must have no conditions on streams, ranges
     * and graphs. false: shares are of each kernel's own time */
    bool has_gpu_time;
    /* an overview of the same launches with GPU time, which outlives the answers; NULL: made here */
    const struct occ_overview *overview;
};

/* Sets groups[i].answer; a group whose launches are gone meanwhile keeps NULL. Free the answers with
 * show_answers_free() after the last use of the groups, also after a failure. */
int show_find_answers(const struct show_question *question, struct show_group *groups, size_t n,
                      struct show_answers *ret_answers, struct occ_error *err);
void show_answers_free(struct show_answers *answers);

/* Finds the answer's change in the advice for the configuration with most time. Returns false if the kernel
 * is not the program's own, or the advice does not have the change. The group needs an answer. */
bool show_find_change(const struct show_group *group, struct analysis_advice *ret_item);
/* Formats the answer's change in words, for own kernels with the parameter and the change in CUDA's terms;
 * and the reason if the change is not about the largest cause. The group needs an answer. Returns `text`. */
const char *show_change_text(const struct show_group *group, char *text, size_t size);
