/* Headings of results that ncu printed; see ncu.h. Any thread. */
#include <stdio.h>
#include <string.h>

#include "ncu.h"

/* True for names with a number each, such as "Context 1, Stream 7". */
static bool are_facts(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ";
    for (;;) {
        size_t name = strspn(text, letters), number = strspn(text + name, "0123456789.");
        if (name < 2 || number == 0 || text[name - 1] != ' ')
            return false;
        text += name + number;
        if (*text == '\0')
            return true;
        if (strncmp(text, ", ", 2) != 0)
            return false;
        text += 2;
    }
}

/* Searches backwards from `end` for sizes such as "(768, 1, 1)x(256, 1, 1)". */
static void take_sizes(const char *line, const char *end, struct occ_ncu_heading *h)
{
    const char *block = end, *grid;
    int used = 0;
    while (block > line && *block != '(')
        block--;
    for (grid = block; grid > line && grid[-1] != '(';)
        grid--;
    if (grid == line)
        return;
    grid--;
    h->has_sizes = sscanf(grid, "(%10u, %6u, %6u)x(%6u, %6u, %6u)%n", &h->size[0], &h->size[1], &h->size[2],
                          &h->size[3], &h->size[4], &h->size[5], &used) == 6 &&
                   grid + used == end;
    h->name_bytes = h->has_sizes ? (size_t)(grid - line) : h->name_bytes;
}

/* Searches for a date such as ", 2022-Jan-16 10:42:52" before `end`. */
static void take_date(const char *line, const char *end, struct occ_ncu_heading *h)
{
    const char *comma = end - 1;
    char month[4];
    int numbers[5], used = 0;
    while (comma > line && *comma != ',')
        comma--;
    h->has_date = sscanf(comma, ", %4d-%3[A-Za-z]-%2d %2d:%2d:%2d%n", &numbers[0], month, &numbers[1],
                         &numbers[2], &numbers[3], &numbers[4], &used) == 6 &&
                  comma + used == end;
    h->name_bytes = h->has_date ? (size_t)(comma - line) : h->name_bytes;
}

bool occ_ncu_parse_heading(const char *line, struct occ_ncu_heading *h)
{
    static const char mark[] = ", Context ";
    const char *end = NULL;
    for (const char *at = line; (at = strstr(at, mark)); at++)
        end = at;
    if (!end || end == line || !are_facts(end + 2))
        return false;
    *h = (struct occ_ncu_heading){.name = line, .name_bytes = (size_t)(end - line), .facts = end + 2};
    take_sizes(line, end, h);
    if (!h->has_sizes)
        take_date(line, end, h);
    while (h->name_bytes > 0 && line[h->name_bytes - 1] == ' ')
        h->name_bytes--;
    return true;
}
