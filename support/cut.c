/* Cut names; see cut.h. Any thread. */
#include "cut.h"

#include <stddef.h>
#include <string.h>

/* Bytes of the ellipsis at `text`; 0: there is none. */
static size_t ellipsis_at(const char *text)
{
    static const char *const ellipses[] = {OCC_ELLIPSIS, OCC_ASCII_ELLIPSIS};
    for (size_t i = 0; i < sizeof ellipses / sizeof *ellipses; i++)
        if (strncmp(text, ellipses[i], strlen(ellipses[i])) == 0)
            return strlen(ellipses[i]);
    return 0;
}

/* Bytes before the next ellipsis, or all. */
static size_t part_length(const char *text)
{
    size_t n = 0;
    while (text[n] && ellipsis_at(text + n) == 0)
        n++;
    return n;
}

static bool ends_with(const char *name, const char *part, size_t n)
{
    size_t left = strlen(name);
    return left >= n && memcmp(name + left - n, part, n) == 0;
}

/* The first place of each part is the best one: it leaves most of the name to the parts behind. */
bool occ_text_is_cut_of(const char *cut, const char *name)
{
    size_t n = part_length(cut);
    if (strncmp(cut, name, n) != 0)
        return false;
    for (name += n, cut += n; *cut; name += n, cut += n) {
        cut += ellipsis_at(cut);
        n = part_length(cut);
        if (cut[n] == '\0')
            return ends_with(name, cut, n);
        name = memmem(name, strlen(name), cut, n);
        if (!name)
            return false;
    }
    return *name == '\0';
}
