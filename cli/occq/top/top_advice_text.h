/* The text of `occq top --advice` for kernels: cause, change and saving in words. One thread. */
#pragma once

#include "cli/kernels/top_changes.h"

/* Prints the first `n` kernels. `groups`: the group of each line, NULL without an answer. */
void top_advice_print(const struct top_line *lines, const struct show_group *const *groups, size_t n);
