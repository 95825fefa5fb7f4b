/*
 * Makes names that distinguish kernels; see kernel_names.h. A name is divided into a head and slots (template
 * arguments, text after a function's name inside a type, parameters, namespaces). Names with the same head
 * get slots, from left to right, as long as each slot distinguishes more names. The text of a slot is
 * shortened in the same way. Any thread.
 */
#include "kernel_names.h"

#include <inttypes.h>
#include <stdio.h>

#include "support/cleanup.h"
#include "support/error.h"
#include "name_pieces.h"
#include "support/text.h"

#define NEW(arena, n, pointer) occ_arena_get(arena, n, sizeof *(pointer))

enum { ID_BYTES = 32, DEPTH_MAX = 6 /* depth of nested template arguments */ };

/* ---- classes of equal texts ---- */

struct entry {
    uint32_t class_of;
    const char *text;
    size_t at;
};

static int compare(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    return a->class_of != b->class_of ? (a->class_of > b->class_of) - (a->class_of < b->class_of)
                                      : strcmp(a->text, b->text);
}

/* Divides the texts of each class (at first all 0) into classes of equal texts. Returns the number of
 * classes, 0 without memory. `ret_sorted`, if not NULL: the texts by class, malloc'ed. */
static size_t classify(struct occ_arena *arena, const char *const *texts, size_t n, uint32_t *class_of,
                       struct entry **ret_sorted)
{
    uint32_t count = 0;
    struct entry *entries = calloc(n, sizeof *entries);
    arena->failed |= !entries;
    if (!entries)
        return 0;
    for (size_t i = 0; i < n; i++)
        entries[i] = (struct entry){class_of[i], texts[i], i};
    qsort(entries, n, sizeof *entries, compare);
    for (size_t i = 0; i < n; i++) {
        count += i == 0 || compare(&entries[i - 1], &entries[i]) != 0;
        class_of[entries[i].at] = count - 1;
    }
    if (ret_sorted)
        *ret_sorted = entries;
    else
        free(entries);
    return count;
}

/* ---- shortening ---- */

static void shorten(struct occ_arena *arena, const char *const *texts, size_t n, unsigned depth,
                    const char **out);

static void put_list(struct occ_name_line *line, const char *const shown[OCC_NAME_SLOTS], size_t first,
                     const char *brackets)
{
    bool open = false, skipped = false;
    for (size_t i = first; i < first + OCC_NAME_ARGUMENTS; i++) {
        if (shown[i] && shown[i][0]) {
            occ_name_put(line, open ? "," : brackets, 1);
            occ_name_put_text(line, skipped ? OCC_ELLIPSIS "," : "");
            occ_name_put_text(line, shown[i]);
            open = true;
        }
        skipped = !shown[i];
    }
    occ_name_put_text(line, open ? brackets + 1 : "");
}

/* `shown`: the text of each slot, shortened; NULL: the slot is left out. */
static const char *assemble(struct occ_arena *arena, const char *head,
                            const char *const shown[OCC_NAME_SLOTS])
{
    struct occ_name_line line = {.n = 0};
    occ_name_put_text(&line, shown[OCC_NAME_SCOPE] ? shown[OCC_NAME_SCOPE] : "");
    occ_name_put_text(&line, head);
    put_list(&line, shown, 0, "<>");
    put_list(&line, shown, OCC_NAME_FIRST_PARAMETER, "()");
    for (size_t i = OCC_NAME_FIRST_PARAMETER; i-- > OCC_NAME_FIRST_PART;) {
        occ_name_put_text(&line, shown[i] && shown[i][0] ? OCC_ELLIPSIS : "");
        occ_name_put_text(&line, shown[i] ? shown[i] : "");
    }
    return occ_arena_part(arena, line.text, line.n);
}

/* Makes distinct texts for names with the same head; `names`: their pieces. */
static void tell_apart(struct occ_arena *arena, const struct occ_name_pieces *const *names, size_t n,
                       unsigned depth, const char **out)
{
    const char *(*shown)[OCC_NAME_SLOTS] = NEW(arena, n, shown), **texts = NEW(arena, n, texts),
               **shorter = NEW(arena, n, shorter);
    uint32_t *class_of = NEW(arena, n, class_of);
    for (size_t slot = 0, count = 1; !arena->failed && slot < OCC_NAME_SLOTS && count < n; slot++) {
        for (size_t i = 0; i < n; i++)
            texts[i] = names[i]->slots[slot];
        size_t divided = classify(arena, texts, n, class_of, NULL);
        if (divided <= count)
            continue;
        count = divided;
        if (slot != OCC_NAME_SCOPE)
            shorten(arena, texts, n, depth - 1, shorter);
        for (size_t i = 0; i < n; i++)
            shown[i][slot] = slot != OCC_NAME_SCOPE ? shorter[i] : texts[i];
    }
    for (size_t i = 0; i < n; i++)
        out[i] = arena->failed ? "?" : assemble(arena, names[i]->head, (const char *const *)shown[i]);
}

/* Makes texts for names, grouped by head. */
static void describe(struct occ_arena *arena, const struct occ_name_pieces *names, size_t n, unsigned depth,
                     const char **out)
{
    const struct occ_name_pieces **same = NEW(arena, n, same);
    const char **texts = NEW(arena, n, texts);
    uint32_t *class_of = NEW(arena, n, class_of);
    _cleanup_(occ_freep) struct entry *sorted = NULL;
    for (size_t i = 0; !arena->failed && i < n; i++)
        texts[i] = names[i].key;
    if (arena->failed || classify(arena, texts, n, class_of, &sorted) == 0)
        return;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && class_of[sorted[end].at] == class_of[sorted[i].at]; end++)
            same[end - i] = &names[sorted[end].at];
        bool alone = end - i == 1 || !same[0]->key[0];
        if (!alone)
            tell_apart(arena, same, end - i, depth, texts);
        for (size_t k = i; k < end; k++)
            out[sorted[k].at] = alone ? same[k - i]->alone : texts[k - i];
    }
}

static bool has_word(const char *text, const char *word, size_t n)
{
    for (; *text; text += strcspn(text, "_"), text += *text == '_')
        if (strcspn(text, "_") == n && strncmp(text, word, n) == 0)
            return true;
    return false;
}

/* The words that all heads have in common, joined by "_". */
static const char *common_words(struct occ_arena *arena, const struct occ_name_pieces *names, size_t n)
{
    struct occ_name_line line = {.n = 0};
    for (const char *at = names[0].key, *next; n > 1 && *at; at = next + (*next == '_')) {
        size_t length = strcspn(at, "_"), having = 0;
        next = at + length;
        while (having < n && has_word(names[having].key, at, length))
            having++;
        occ_name_put(&line, at, having == n ? length : 0);
        occ_name_put(&line, "_", having == n ? 1 : 0);
    }
    return occ_arena_part(arena, line.text, line.n);
}

/* Shortens a long head by leaving out the common words. */
static const char *shorten_head(struct occ_arena *arena, const char *head, const char *common)
{
    struct occ_name_line line = {.n = 0};
    bool skipped = false;
    if (strlen(head) <= OCC_NAME_SHORT_ENOUGH)
        return head;
    for (const char *at = head, *next; *at; at = next + (*next == '_')) {
        size_t length = strcspn(at, "_");
        bool skip = has_word(common, at, length);
        next = at + length;
        if (skip)
            occ_name_put_text(&line, skipped ? "" : OCC_ELLIPSIS);
        else if (line.n > 0 && !skipped)
            occ_name_put(&line, "_", 1);
        occ_name_put(&line, at, skip ? 0 : length);
        skipped = skip;
    }
    return occ_arena_part(arena, line.text, line.n);
}

/* Describes types by their differences only. */
static void describe_types(struct occ_arena *arena, const char *const *texts, size_t n, unsigned depth,
                           const char **out)
{
    struct occ_name_pieces *types = NEW(arena, n, types);
    if (!types)
        return;
    for (size_t i = 0; i < n; i++)
        occ_name_cut_type(arena, texts[i], &types[i]);
    const char *common = common_words(arena, types, n);
    for (size_t i = 0; i < n; i++) {
        types[i].head = shorten_head(arena, types[i].key, common);
        if (types[i].alone[0] && strcmp(types[i].alone, types[i].key) == 0)
            types[i].alone = types[i].head;
    }
    describe(arena, types, n, depth, out);
}

/* Makes short, distinct texts for distinct texts: without namespaces; of long texts only the differences. */
static void shorten(struct occ_arena *arena, const char *const *texts, size_t n, unsigned depth,
                    const char **out)
{
    const char **different = NEW(arena, n, different), **shorter = NEW(arena, n, shorter);
    uint32_t *class_of = NEW(arena, n, class_of), *check = NEW(arena, n, check);
    size_t count = arena->failed ? 0 : classify(arena, texts, n, class_of, NULL);
    bool is_long = false;
    if (count == 0)
        return;
    for (size_t i = 0; i < n; i++)
        different[class_of[i]] = texts[i];
    for (size_t i = 0; i < count; i++) {
        shorter[i] = occ_name_simplify(arena, different[i]);
        is_long = is_long || strlen(shorter[i]) > OCC_NAME_SHORT_ENOUGH;
    }
    if (is_long && depth > 0)
        describe_types(arena, different, count, depth, shorter);
    bool is_distinct = classify(arena, shorter, count, check, NULL) == count;
    for (size_t i = 0; i < n; i++)
        out[i] = is_distinct ? shorter[class_of[i]] : texts[i];
}

/* ---- kernels ---- */

/* Shortens the kernels' names. A kernel with a unique short name keeps the whole name. */
static void cut_kernels(struct occ_arena *arena, const struct occ_kernel_name *kernels, size_t n,
                        struct occ_name_pieces *pieces)
{
    const char **names = NEW(arena, n, names);
    uint32_t *class_of = NEW(arena, n, class_of), *uses = NEW(arena, n, uses);
    for (size_t i = 0; !arena->failed && i < n; i++)
        names[i] = pieces[i].key = pieces[i].alone = kernels[i].short_name;
    if (arena->failed || classify(arena, names, n, class_of, NULL) == 0)
        return;
    for (size_t i = 0; i < n; i++)
        uses[class_of[i]]++;
    for (size_t i = 0; i < n; i++)
        if (uses[class_of[i]] > 1)
            occ_name_cut_kernel(arena, &kernels[i], &pieces[i]);
}

/* Sets the names, cut to OCC_NAME_BYTES at the start of a UTF-8 sequence. Adds " #ID" if the name is not
 * unique or contains " #". */
static int set_names(struct occ_arena *arena, struct occ_kernel_name *kernels, size_t n, const char **names)
{
    uint32_t *class_of = NEW(arena, n, class_of), *uses = NEW(arena, n, uses);
    for (size_t i = 0; i < n; i++) {
        size_t length = strnlen(names[i], OCC_NAME_BYTES - ID_BYTES);
        while (length > 0 && ((unsigned char)names[i][length] & 0xc0) == 0x80)
            length--;
        names[i] = occ_arena_part(arena, names[i], length);
    }
    if (arena->failed || classify(arena, names, n, class_of, NULL) == 0)
        return OCC_E_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        uses[class_of[i]]++;
    for (size_t i = 0; i < n; i++) {
        char id[ID_BYTES] = "";
        if (uses[class_of[i]] > 1 || strstr(names[i], " #"))
            (void)snprintf(id, sizeof id, " #%" PRId64, kernels[i].id);
        if (occ_format_text(&kernels[i].name, NULL, "%s%s", names[i], id) != 0)
            return OCC_E_NO_MEMORY;
    }
    return 0;
}

int occ_kernel_names_distinguish(struct occ_kernel_name *kernels, size_t n)
{
    struct occ_arena arena = {.failed = false};
    struct occ_name_pieces *pieces = NEW(&arena, n, pieces);
    const char **names = NEW(&arena, n, names);
    for (size_t i = 0; i < n; i++)
        kernels[i].name = NULL;
    if (n > 0)
        cut_kernels(&arena, kernels, n, pieces);
    if (!arena.failed && n > 0)
        describe(&arena, pieces, n, DEPTH_MAX, names);
    int status = arena.failed ? OCC_E_NO_MEMORY : n > 0 ? set_names(&arena, kernels, n, names) : 0;
    for (size_t i = 0; i < n && status != 0; i++) {
        free(kernels[i].name);
        kernels[i].name = NULL;
    }
    occ_arena_free(arena.blocks);
    return status;
}
