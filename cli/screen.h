/* Where text for people goes: how wide it is, whether it has colours, and the pager. Standard output is a
 * terminal or it is not: that is decided once, before a pager stands between. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* `colour`: "auto", "always", "never". With `pager`, and if standard output is a terminal: from here to
 * cli_screen_end() it, and standard error if that is a terminal too, go through $OCC_PAGER, $PAGER or less;
 * "" and "cat" are none. */
void cli_screen_begin(const char *colour, bool pager);
/* After standard output was closed: waits for the pager. */
void cli_screen_end(void);

/* Characters in a line: $COLUMNS, else the terminal's; 0: there is none, or its width is unknown. */
size_t cli_screen_width(void);
/* --color; auto: a terminal with colours, and NO_COLOR is not set. */
bool cli_screen_has_colour(void);

/* What stands for text that was left out: "\u2026", or ".." where the locale has no such character. */
const char *cli_screen_ellipsis(void);
/* printf() of text for people: a line that is wider than the screen goes on below, further in. A line is
 * written when it ends; other output begins where one has. */
void cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Text is missing in the output, since memory ended: cli_run() then fails. */
void cli_screen_lose_text(void);
bool cli_screen_lost_text(void);
/* A sanitised copy for the screen, to be freed: the locale may have no ellipsis. NULL: no memory. */
char *cli_screen_text(const char *text);
