/* Copies of text that may hold any bytes, as UTF-8. Pure; any thread. */
#pragma once

#include <stddef.h>

/* Copies `n` bytes, with U+FFFD in place of each byte that is not part of a valid character. Returns the
 * number of bytes written, without a NUL. `to` NULL: only counts them. */
size_t query_utf8_copy(char *to, const char *from, size_t n);
/* Returns a copy of a text by query_utf8_copy(), to be freed. NULL: no memory. */
char *query_utf8_text(const char *text);
