/* The output device of text for people: its width, its colours, and the pager. Standard output is tested for
 * a terminal once, before a pager replaces it. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Begins the output of a command. `colour`: "auto", "always", "never". With `pager`, if the output goes to a
 * terminal: sends standard output, and standard error if it is a terminal too, through $OCC_PAGER, $PAGER or
 * less until cli_screen_end(); "" and "cat" mean no pager. */
void cli_screen_begin(const char *colour, bool pager);
/* Waits for the pager; call after standard output is closed. */
void cli_screen_end(void);

/* Returns the characters in a line: $COLUMNS, else the terminal's width; 0: no terminal, or unknown width. */
size_t cli_screen_width(void);
/* Returns the setting of --color; auto: true for a terminal with colours if NO_COLOR is not set. */
bool cli_screen_has_colour(void);

/* Meanings with a colour: red, green, dim. */
enum cli_tone { CLI_TONE_NONE, CLI_TONE_BAD, CLI_TONE_GOOD, CLI_TONE_UNSURE, CLI_TONES };
/* Writes `word` in the colour of its meaning if the screen has colours, then blanks up to `width` columns. */
void cli_put_word(FILE *out, enum cli_tone tone, const char *word, int width);

/* Returns the mark of omitted text: "\u2026", or ".." if the locale lacks this character. */
const char *cli_screen_ellipsis(void);
/* " × ", or " x " if the locale has no such sign. */
const char *cli_screen_times(void);
/* Prints like printf(), for people: a line wider than the screen continues on the next line, indented. A line
 * is written when it is complete, so other output must begin after a line end. */
void cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a line; words beyond `limit` columns (0: no limit) continue on further lines, indented by two more
 * columns. */
void cli_put_line(FILE *out, const char *line, size_t limit);
/* Reports that memory was exhausted and the output lacks text: cli_run() then fails. */
void cli_screen_lose_text(void);
bool cli_screen_lost_text(void);
/* Returns a sanitised copy for the screen, to be freed; replaces the ellipsis if the locale has none. NULL:
 * no memory. */
char *cli_screen_text(const char *text);
