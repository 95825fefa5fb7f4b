/* See utf8.h. */
#include "utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Valid first bytes of characters of two and more bytes, and the range of the second byte (Unicode, table
 * 3-7): neither longer forms than needed, nor surrogates, nor numbers above U+10FFFF. */
static const struct {
    uint8_t first, last, low, high, bytes;
} sequences[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                 {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};

/* Returns the bytes of the character at `text`, which has `n` bytes; 0: it is not valid. */
static size_t character(const char *text, size_t n)
{
    const uint8_t *at = (const uint8_t *)text;
    if (at[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        size_t bytes = sequences[i].bytes;
        if (at[0] < sequences[i].first || at[0] > sequences[i].last)
            continue;
        if (n < bytes || at[1] < sequences[i].low || at[1] > sequences[i].high)
            return 0;
        for (size_t k = 2; k < bytes; k++)
            if (at[k] < 0x80 || at[k] > 0xbf)
                return 0;
        return bytes;
    }
    return 0;
}

size_t query_utf8_copy(char *to, const char *from, size_t n)
{
    static const char replacement[] = {'\xef', '\xbf', '\xbd'};
    size_t used = 0;
    for (size_t at = 0, bytes; at < n; at += bytes ? bytes : 1) {
        bytes = character(from + at, n - at);
        size_t written = bytes ? bytes : sizeof replacement;
        if (to)
            memcpy(to + used, bytes ? from + at : replacement, written);
        used += written;
    }
    return used;
}

char *query_utf8_text(const char *text)
{
    size_t n = strlen(text), bytes = query_utf8_copy(NULL, text, n);
    char *copy = malloc(bytes + 1);
    if (!copy)
        return NULL;
    (void)query_utf8_copy(copy, text, n);
    copy[bytes] = '\0';
    return copy;
}
