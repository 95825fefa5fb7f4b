/* The changes of `occq top --advice`; kernels have the same changes as in `occq show`. One thread. */
#pragma once

#include "show_answers.h"
#include "top.h"

struct top_changes {
    struct occ_config_rows configs;
    struct show_group *groups;
    size_t n;
    struct show_answers answers;
    const struct show_group **of_lines; /* each line's group; NULL: no answer. NULL for configurations */
};

/* Sets the advice of the first `n` lines, which are configurations (by_config) or kernels on devices. Free
 * the changes with top_changes_free(), also after a failure. */
int top_changes_find(const struct show_question *question, bool by_config, struct top_line *lines, size_t n,
                     struct top_changes *ret_changes, struct occ_error *err);
void top_changes_free(struct top_changes *changes);
