/* Texts of a column cut to its width. Texts that differ differ after the cut, too: what would look alike
 * shows parts from where it differs, and what even these do not tell apart gets a number ("~2"). Pure apart
 * from malloc; any thread. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/* Columns on a screen of a sanitised text in UTF-8, whatever the locale: 2 of an East Asian character. */
size_t cli_text_width(const char *text);

/* In which the width of UTF-8 is known; where none is installed, the user's. For uselocale(). */
locale_t cli_text_locale(void);

/* Replaces texts (malloc'ed, sanitised) that are wider than `width`, which is at least 8. `ellipsis`: what
 * stands for what was left out. false: no memory. */
bool cli_fit_texts(char **texts, size_t n, size_t width, const char *ellipsis);
