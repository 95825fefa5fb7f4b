/* Prints the answer of `occq diff` for people: as text, and as Markdown for a review. One thread (stdio). */
#pragma once

#include "cli/sides/report.h"
#include "cli/stream.h"

int diff_print_text(const struct diff_report *report, const struct diff_line *lines, struct occ_error *err);
int diff_print_markdown(const struct diff_report *report, const struct diff_line *lines,
                        struct occ_error *err);

/* Prints a code span. No text can end it early, even within a table. */
void diff_markdown_code(FILE *out, const char *text);

/* occq diff --image. */
extern const struct cli_command cli_diff_image;
