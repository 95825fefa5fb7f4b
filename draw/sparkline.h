/* A line of text as a picture: a character for each value, relative to the largest. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DRAW_SPARKLINE_BYTES(n) (3 * (n) + 1)

/* Blocks (UTF-8) or ASCII; a blank for a value that is not positive. `text` holds
 * DRAW_SPARKLINE_BYTES(n). */
void draw_sparkline(const double *values, size_t n, bool ascii, char *text);
