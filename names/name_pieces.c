/* Cuts demangled names; see name_pieces.h. Any thread. */
#include "name_pieces.h"

#include "demangle.h"

static size_t identifier(const char *s)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.");
}

/* The position after "ns::" or "(anonymous namespace)::" at `s`; `s`: no namespace. */
static const char *skip_namespace(const char *s)
{
    static const char anonymous[] = "(anonymous namespace)";
    size_t n = strncmp(s, anonymous, sizeof anonymous - 1) == 0 ? sizeof anonymous - 1 : identifier(s);
    return n > 0 && strncmp(s + n, "::", 2) == 0 && s[n + 2] != '{' ? s + n + 2 : s;
}

const char *occ_name_simplify(struct occ_arena *arena, const char *text)
{
    char *out = occ_arena_get(arena, strlen(text) + 1, 1);
    size_t n = 0;
    while (out && *text) {
        const char *after = skip_namespace(text);
        size_t word = identifier(text);
        bool blank = *text == ' ' && (n == 0 || strchr(", ", out[n - 1]) || text[1] == '>');
        if (after == text) {
            after += word ? word : 1;
            memcpy(out + n, text, blank ? 0 : (size_t)(after - text));
            n += blank ? 0 : (size_t)(after - text);
        }
        text = after;
    }
    return out ? out : "?";
}

/* Puts the items of the list in brackets at `s` into the slots; returns the position after the list. */
static const char *cut_list(struct occ_arena *arena, const char *s, const char **slots)
{
    const char *end = occ_demangled_skip_brackets(s), *stop = end > s + 1 ? end - 1 : s + 1, *from = ++s;
    for (size_t i = 0; s <= stop; s++) {
        if (s < stop && strchr("<([{", *s)) {
            s = occ_demangled_skip_brackets(s) - 1;
        } else if (s == stop || (*s == ',' && i + 1 < OCC_NAME_ARGUMENTS)) {
            slots[i++] = occ_arena_part(arena, from, (size_t)(s - from));
            from = s + 1 + (s + 1 < stop && s[1] == ' ');
        }
    }
    return end;
}

/* Puts the text after arguments and parameters, such as "::{lambda()#2}::operator()() const", into slots, the
 * last part first. */
static void cut_parts(struct occ_arena *arena, const char *s, const char **slots)
{
    for (size_t n = 0; *s && n < OCC_NAME_PARTS; n++) {
        const char *from = s += strncmp(s, "::", 2) == 0 ? 2 : 0;
        while (*s && (n + 1 == OCC_NAME_PARTS || strncmp(s, "::", 2) != 0))
            s = strchr("<([{", *s) ? occ_demangled_skip_brackets(s) : s + 1;
        memmove(slots + 1, slots, n * sizeof *slots);
        slots[0] = occ_arena_part(arena, from, (size_t)(s - from));
    }
}

/* Puts the text around the head into slots; the head is [head, after) in `text`. */
static void cut(struct occ_arena *arena, const char *text, const char *head, const char *after,
                struct occ_name_pieces *ret_pieces)
{
    for (size_t i = 0; i < OCC_NAME_SLOTS; i++)
        ret_pieces->slots[i] = "";
    ret_pieces->slots[OCC_NAME_SCOPE] = occ_arena_part(arena, text, (size_t)(head - text));
    if (*after == '<')
        after = cut_list(arena, after, ret_pieces->slots);
    if (*after == '(')
        after = cut_list(arena, after, ret_pieces->slots + OCC_NAME_FIRST_PARAMETER);
    cut_parts(arena, after, ret_pieces->slots + OCC_NAME_FIRST_PART);
}

void occ_name_cut_type(struct occ_arena *arena, const char *text, struct occ_name_pieces *ret_pieces)
{
    const char *head = text, *simple = occ_name_simplify(arena, text);
    struct occ_name_line line = {.n = 0};
    for (const char *after; (after = skip_namespace(head)) != head;)
        head = after;
    size_t n = identifier(head);
    cut(arena, text, head, head + n, ret_pieces);
    ret_pieces->key = ret_pieces->head = occ_arena_part(arena, head, n);
    occ_name_put(&line, head, n);
    occ_name_put_text(&line, head[n] ? "<" OCC_ELLIPSIS ">" : "");
    bool short_enough = strlen(simple) <= OCC_NAME_SHORT_ENOUGH || n == 0;
    ret_pieces->alone = short_enough ? simple : occ_arena_part(arena, line.text, line.n);
}

void occ_name_cut_kernel(struct occ_arena *arena, const struct occ_kernel_name *kernel,
                         struct occ_name_pieces *ret_pieces)
{
    const char *head = NULL, *after = NULL;
    occ_demangled_base(kernel->demangled, &head, &after);
    cut(arena, kernel->demangled, head, after, ret_pieces);
    ret_pieces->key = ret_pieces->head = ret_pieces->alone = kernel->short_name;
}
