/* Answers about the kernels of `occq show`: the findings of the overview of the same launches. One thread. */
#pragma once

#include "show.h"

/* The answers, one for each group. */
struct show_answers {
    struct occ_top top;
    struct occ_overview overview;
    struct occ_kernel_judge judge;
    struct occ_kernel_answer *list;
};

/* Sets groups[i].answer; a group with launches that are gone meanwhile keeps NULL. With `has_gpu_time`,
 * shares are of the GPU time of all kernels: the filter must have no conditions on streams, ranges and
 * graphs. Free with show_answers_free() after the last use of the groups, also after a failure. */
struct show_question {
    struct occ_store *store;
    const struct occ_filter *filter;
    bool has_gpu_time;
    const struct occ_overview
        *overview; /* of these launches, with GPU time; outlives the answers; NULL: ask */
};
int show_find_answers(const struct show_question *question, struct show_group *groups, size_t n,
                      struct show_answers *ret_answers, struct occ_error *err);
void show_answers_free(struct show_answers *answers);

/* Finds the answer's change as advice for the configuration with most time. False: the change is not the
 * program's own, or has no parameter. The group needs an answer. */
bool show_find_change(const struct show_group *group, struct analysis_advice *ret_item);
/* Prints the answer's change in words, with its parameter and, for own kernels, its place in the code.
 * Returns `text`. */
const char *show_change_text(const struct show_group *group, char *text, size_t size);
