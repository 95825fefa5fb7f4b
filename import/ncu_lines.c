/* Lines without prefixes; see ncu_lines.h. One thread. */
#include "ncu_lines.h"

#include <stdlib.h>
#include <string.h>

static const char byte_order_mark[] = "\xef\xbb\xbf";
static const char digits[] = "0123456789";

bool occ_ncu_first_line(struct occ_ncu_lines *lines)
{
    lines->number = 0;
    lines->goes_on = false;
    return fseeko(lines->file, 0, SEEK_SET) == 0;
}

/* Length of a prefix in brackets whose last word ends with a number: "[rank0]:", "[1,0]<stdout>:",
 * "[host@1,0]<stdout>: ", "[3] ". */
static size_t bracketed(const char *text)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.@,";
    static const char *const ends[] = {"]<stdout>:", "]<stderr>:", "]<stdout>", "]<stderr>", "]:", "]"};
    size_t n = 1 + strspn(text + 1, word);
    if (n == 1 || !strchr(digits, text[n - 1]))
        return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strncmp(text + n, ends[i], strlen(ends[i])) == 0)
            return n + strlen(ends[i]);
    return 0;
}

/* Length of a prefix like "12:", from srun -l. */
static size_t numbered(const char *text)
{
    size_t n = strspn(text, digits);
    return n > 0 && text[n] == ':' ? n + 1 : 0;
}

size_t occ_ncu_prefix(const char *line, char prefix[OCC_NCU_PREFIX_BYTES])
{
    size_t blanks = strspn(line, " \t");
    const char *text = line + blanks;
    size_t n = *text == '[' ? bracketed(text) : numbered(text);
    prefix[0] = '\0';
    if (n > 0 && n < OCC_NCU_PREFIX_BYTES)
        *stpncpy(prefix, text, n) = '\0';
    return n == 0 ? 0 : blanks + n + strspn(text + n, " \t");
}

/* "[default0]" is a local rank, and words in other brackets may mean anything. */
int32_t occ_ncu_rank(const char *prefix)
{
    static const char word[] = "rank";
    size_t end = strcspn(prefix, "]:"), begin = end;
    while (begin > 0 && strchr(digits, prefix[begin - 1]))
        begin--;
    size_t n = strlen(word);
    bool is_named = begin > n && strncmp(prefix + begin - n, word, n) == 0;
    bool is_mpi = begin > 0 && prefix[begin - 1] == ',', is_alone = begin == (size_t)(prefix[0] == '[');
    long rank = end - begin < 8 ? strtol(prefix + begin, NULL, 10) : -1;
    return is_named || is_mpi || is_alone ? (int32_t)rank : -1;
}

static char *without_mark(char *line)
{
    size_t n = strlen(byte_order_mark);
    return strncmp(line, byte_order_mark, n) == 0 ? line + n : line;
}

char *occ_ncu_next_line(struct occ_ncu_lines *lines, char *buffer, size_t size)
{
    char prefix[OCC_NCU_PREFIX_BYTES];
    bool is_wanted = true;
    do {
        bool is_begin = !lines->goes_on;
        if (!fgets(buffer, (int)size, lines->file))
            return NULL;
        lines->goes_on = !strchr(buffer, '\n');
        lines->number += is_begin;
        if (!is_begin)
            continue;
        char *text = without_mark(buffer); /* joined files have a byte order mark in the middle, too */
        size_t n = lines->prefix[0] ? occ_ncu_prefix(text, prefix) : 0;
        is_wanted = !lines->prefix[0] || (n > 0 && strcmp(prefix, lines->prefix) == 0);
        memmove(buffer, text + n, strlen(text + n) + 1);
    } while (!is_wanted);
    return buffer;
}
