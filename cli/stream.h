/*
 * Destinations of a command's output: standard output and standard error, or streams that a library set to
 * keep the answer. While streams are set there is no terminal, no pager and no colour. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Receives answers. */
FILE *cli_out(void);
/* Receives notes and messages of failures. */
FILE *cli_err(void);

/* Sets both streams, for text with lines of `width` characters; 0: unlimited. NULL, NULL, 0: the process's
 * own streams again. */
void cli_redirect(FILE *out, FILE *err, size_t width);
/* Returns true while streams are set; *ret_width receives their width. */
bool cli_is_redirected(size_t *ret_width);
