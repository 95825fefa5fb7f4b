/* Shortens the texts of a column to a width. Different texts remain different: texts that would look alike
 * show the parts that differ, and a number ("~2") if these parts are equal too. Pure apart from malloc; any
 * thread. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the columns of a sanitised UTF-8 text on a screen, in any locale; an East Asian character has 2. */
size_t cli_text_width(const char *text);

/* Returns a locale that knows the width of UTF-8 characters, for uselocale(); the process's global locale
 * if no such locale is installed. */
locale_t cli_text_locale(void);

/* Replaces texts (malloc'ed, sanitised) that are wider than `width`, which is at least 8. `ellipsis` marks
 * each omitted part. Returns false if memory is exhausted. */
bool cli_fit_texts(char **texts, size_t n, size_t width, const char *ellipsis);
