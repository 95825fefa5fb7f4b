/* Shortens texts to a width; see fit.h. Any thread. */
#include "fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "support/cleanup.h"
#include "support/text.h"

locale_t cli_text_locale(void)
{
    static locale_t locale;
    if (!locale)
        locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
    return locale ? locale : LC_GLOBAL_LOCALE;
}

/* Returns the bytes of the first character, and its columns: 2 for an East Asian character, 0 for an accent.
 * ASCII is tested first, since it needs no locale and is most of a name. */
static size_t character(const char *text, size_t *ret_columns)
{
    if (*text >= ' ' && *text < 0x7f) {
        *ret_columns = 1;
        return 1;
    }
    wchar_t code = 0;
    mbstate_t state = {0};
    locale_t user = uselocale(cli_text_locale());
    size_t bytes = mbrtowc(&code, text, 4, &state);
    int columns = bytes <= 4 ? wcwidth(code) : 1;
    (void)uselocale(user);
    *ret_columns = columns < 0 ? 1 : (size_t)columns;
    return bytes > 0 && bytes <= 4 ? bytes : 1;
}

size_t cli_text_width(const char *text)
{
    size_t n = 0;
    for (size_t columns; *text; n += columns)
        text += character(text, &columns);
    return n;
}

/* Returns the end of the characters that fit into `n` columns. */
static const char *fitting(const char *text, size_t n)
{
    for (size_t columns, bytes; *text; text += bytes, n -= columns) {
        bytes = character(text, &columns);
        if (columns > n)
            break;
    }
    return text;
}

/* Returns the first character after at least `n` columns; an accent belongs to the character before. */
static const char *skip(const char *text, size_t n)
{
    size_t done = 0, columns = 0, bytes;
    for (; *text && (bytes = character(text, &columns), done < n || columns == 0); done += columns)
        text += bytes;
    return text;
}

static char *put(char *to, const char *text, size_t columns)
{
    return stpncpy(to, text, (size_t)(fitting(text, columns) - text));
}

enum { PARTS_MAX = 3 };

/* The shown parts of a text: the columns where they begin. */
struct parts {
    size_t from[PARTS_MAX], n;
    bool brief; /* with two parts: a short first part, for more of the second */
};

/* Reduces adjacent ellipses to one, since a short name of a kernel may have an ellipsis of its own beside an
 * added one. */
static char *merge_ellipses(char *text, const char *ellipsis)
{
    size_t n = strlen(ellipsis);
    for (char *at = text; at && (at = strstr(at, ellipsis)); at += n)
        while (strncmp(at + n, ellipsis, n) == 0)
            memmove(at, at + n, strlen(at + n) + 1);
    return text;
}

/* Joins the parts with ellipses to the column's width; the last part is moved to the end of the text if it
 * would go beyond the end. Returns NULL if memory is exhausted. */
static char *cut(const char *text, size_t width, const struct parts *parts, const char *ellipsis)
{
    size_t all = cli_text_width(text), gap = cli_text_width(ellipsis), left = width;
    char *out = calloc(1, strlen(text) + (parts->n + 1) * strlen(ellipsis) + 1), *at = out;
    for (size_t i = 0; out && i < parts->n; i++) {
        bool is_last = i + 1 == parts->n;
        size_t room = is_last ? left : width / (parts->brief && parts->n == 2 ? 6 : 3) - gap,
               from = parts->from[i];
        if (is_last && from + room >= all) {
            (void)put(at, skip(text, all > room ? all - room : 0), room);
            break;
        }
        at = stpcpy(put(at, skip(text, from), is_last ? room - gap : room), ellipsis);
        left -= is_last ? 0 : room + gap;
    }
    return merge_ellipses(out, ellipsis);
}

/* ---- shortened texts that look alike ---- */

struct entry {
    const char *cut, *whole;
    size_t at;
};

static int compare(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = strcmp(a->cut, b->cut);
    return order != 0 ? order : strcmp(a->whole, b->whole);
}

/* Returns the number of equal columns at the start of the first and the last of sorted texts. */
static size_t common_prefix(const struct entry *first, const struct entry *last)
{
    const char *a = first->whole, *b = last->whole;
    size_t n = 0;
    for (size_t bytes, columns; *a; a += bytes, b += bytes, n += columns) {
        bytes = character(a, &columns);
        if (strncmp(a, b, bytes) != 0)
            break;
    }
    return n;
}

struct column {
    char **texts, **cuts;
    struct parts *parts;
    size_t n, width;
    const char *ellipsis;
};

/* Returns the start of a text and a number, for texts with equal parts. */
static char *numbered(const struct column *column, const char *text, size_t number)
{
    char suffix[24], *out = NULL;
    size_t width = column->width - (size_t)snprintf(suffix, sizeof suffix, "~%zu", number);
    char *begin = cut(text, width, &(struct parts){.n = 1}, column->ellipsis);
    if (begin)
        (void)occ_format_text(&out, NULL, "%s%s", begin, suffix);
    free(begin);
    return out;
}

/* Adds to each text the part where the texts differ; in later calls a longer part, another part, and at last
 * a number. */
static bool add_part(const struct column *column, const struct entry *entries, size_t n, size_t *numbers)
{
    enum { CONTEXT = 2 }; /* columns before the difference */
    size_t from = common_prefix(&entries[0], &entries[n - 1]);
    for (size_t i = 0; i < n; i++) {
        struct parts *parts = &column->parts[entries[i].at];
        bool same_as_last = i > 0 && strcmp(entries[i].whole, entries[i - 1].whole) == 0;
        if (cli_text_width(entries[i].whole) <= column->width)
            continue;
        if (parts->n == PARTS_MAX)
            *numbers += !same_as_last;
        else if (parts->n == 2 && !parts->brief)
            parts->brief = true;
        else
            parts->from[parts->n++] = from > CONTEXT ? from - CONTEXT : 0;
        char *text = *numbers > 0 ? numbered(column, entries[i].whole, *numbers)
                                  : cut(entries[i].whole, column->width, parts, column->ellipsis);
        if (!text)
            return false;
        free(column->cuts[entries[i].at]);
        column->cuts[entries[i].at] = text;
    }
    return true;
}

static bool tell_apart(const struct column *column)
{
    _cleanup_(occ_freep) struct entry *entries = calloc(column->n, sizeof *entries);
    bool done = entries != NULL;
    size_t numbers = 0;
    for (size_t i = 0; entries && i < column->n; i++)
        entries[i] = (struct entry){column->cuts[i], column->texts[i], i};
    if (entries)
        qsort(entries, column->n, sizeof *entries, compare);
    for (size_t i = 0, end; done && i < column->n; i = end) {
        for (end = i + 1; end < column->n && strcmp(entries[end].cut, entries[i].cut) == 0;)
            end++;
        if (strcmp(entries[i].whole, entries[end - 1].whole) != 0)
            done = add_part(column, entries + i, end - i, &numbers);
    }
    return done;
}

static bool cut_all(const struct column *column)
{
    for (size_t i = 0; i < column->n; i++) {
        const char *text = column->texts[i];
        column->parts[i].n = 1;
        column->cuts[i] = cli_text_width(text) > column->width
                              ? cut(text, column->width, &column->parts[i], column->ellipsis)
                              : strdup(text);
        if (!column->cuts[i])
            return false;
    }
    for (int tries = 0; tries < 4; tries++)
        if (!tell_apart(column))
            return false;
    return true;
}

bool cli_fit_texts(char **texts, size_t n, size_t width, const char *ellipsis)
{
    struct column column = {.texts = texts,
                            .cuts = calloc(n + 1, sizeof *column.cuts),
                            .parts = calloc(n + 1, sizeof *column.parts),
                            .n = n,
                            .width = width,
                            .ellipsis = ellipsis};
    bool done = column.cuts && column.parts && (n == 0 || cut_all(&column));
    for (size_t i = 0; column.cuts && i < n; i++) {
        free(done ? texts[i] : column.cuts[i]);
        if (done)
            texts[i] = column.cuts[i];
    }
    free(column.cuts);
    free(column.parts);
    return done;
}
