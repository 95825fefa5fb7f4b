/* Prints the answer of `occq diff` for people: as text, and as Markdown for a review. One thread (stdio). */
#pragma once

#include "cli/sides/report.h"
#include "cli/stream.h"

void diff_print_text(const struct diff_report *report, const struct diff_line *lines);
void diff_print_markdown(const struct diff_report *report, const struct diff_line *lines);

/* Prints a code span. No text can end it early, even within a table. */
void diff_markdown_code(FILE *out, const char *text);
