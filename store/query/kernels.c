/* Finds kernels by a text. The text is a kernel's name as commands print it: short, full or mangled, or the
 * short name with the parts that distinguish kernels, or words (kernel_names.h). Otherwise the text is a name
 * that a narrow screen cut, or a regular expression for the demangled name, or some words of one
 * kernel. Names are compared first, because most names are also expressions that match other kernels.
 * One thread. */
#include <inttypes.h>
#include <string.h>

#include "query.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/cut.h"
#include "names/kernel_names.h"
#include "support/regexp.h"
#include "support/text.h"

/* The result columns of OCC_SQL_KERNELS after the id, and texts that depend on all kernels. */
enum form { FORM_SHORT, FORM_FULL, FORM_MANGLED, FORM_DISTINCT, FORM_WORDS, FORMS };

static bool put(struct occ_map *kernels, int64_t id)
{
    return occ_map_put(kernels, (uint64_t)id, 0) != OCC_MAP_NONE;
}

/* ---- one pass over the kernels ---- */

/* Selects kernels by the one member that is set. */
struct wanted {
    int64_t id;
    const char *name;
    struct occ_regexp *regexp; /* expression for the demangled name */
};

static bool has_name(sqlite3_stmt *stmt, const char *name)
{
    for (int form = FORM_SHORT; form <= FORM_MANGLED; form++) {
        const char *text = (const char *)sqlite3_column_text(stmt, form + 1);
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static bool is_wanted(const struct wanted *wanted, sqlite3_stmt *stmt)
{
    if (wanted->id)
        return sqlite3_column_int64(stmt, 0) == wanted->id;
    if (wanted->name)
        return has_name(stmt, wanted->name);
    const char *demangled = (const char *)sqlite3_column_text(stmt, FORM_FULL + 1);
    return !wanted->regexp || (demangled && occ_regexp_matches(wanted->regexp, demangled));
}

static int add_kernels(struct occ_store *s, const struct wanted *wanted, struct occ_map *kernels,
                       struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_KERNELS, NULL, 0);
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err))
        if (is_wanted(wanted, stmt) && !put(kernels, sqlite3_column_int64(stmt, 0)))
            rc = occ_no_memory(err);
    return rc;
}

/* ---- names that depend on all kernels, and cut ones ---- */

struct names {
    struct occ_kernel_name *kernels;
    const char **mangled; /* mangled names of the same kernels */
    size_t n, allocated, mangled_allocated;
    struct occ_arena arena;
};

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        free(names->kernels[i].name);
        free(names->kernels[i].words);
    }
    free(names->kernels);
    free(names->mangled);
    occ_arena_free(names->arena.blocks);
}

static const char *copy_column(struct names *names, sqlite3_stmt *stmt, enum form form)
{
    const char *text = (const char *)sqlite3_column_text(stmt, (int)form + 1);
    return occ_arena_copy(&names->arena, text ? text : "");
}

static bool add_names(struct names *names, sqlite3_stmt *stmt)
{
    if (!occ_grow((void **)&names->kernels, &names->allocated, names->n, UINT32_MAX,
                  sizeof *names->kernels) ||
        !occ_grow((void **)&names->mangled, &names->mangled_allocated, names->n, UINT32_MAX,
                  sizeof *names->mangled))
        return false;
    names->mangled[names->n] = copy_column(names, stmt, FORM_MANGLED);
    names->kernels[names->n++] = (struct occ_kernel_name){.id = sqlite3_column_int64(stmt, 0),
                                                          .short_name = copy_column(names, stmt, FORM_SHORT),
                                                          .demangled = copy_column(names, stmt, FORM_FULL)};
    return !names->arena.failed;
}

static int load_names(struct occ_store *s, struct names *names, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_KERNELS, NULL, 0);
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err))
        if (!add_names(names, stmt))
            rc = occ_no_memory(err);
    if (rc == 0 && (occ_kernel_names_distinguish(names->kernels, names->n) != 0 ||
                    occ_kernel_names_describe(names->kernels, names->n) != 0))
        rc = occ_no_memory(err);
    return rc;
}

/* NULL: the kernel has no text of this form. */
static const char *name_of(const struct names *names, size_t i, enum form form)
{
    const struct occ_kernel_name *kernel = &names->kernels[i];
    const char *const forms[FORMS] = {[FORM_SHORT] = kernel->short_name,
                                      [FORM_FULL] = kernel->demangled,
                                      [FORM_MANGLED] = names->mangled[i],
                                      [FORM_DISTINCT] = kernel->name,
                                      [FORM_WORDS] = kernel->words};
    return forms[form];
}

/* True if the text may be words, or a short name with a distinguishing part, which are not stored in the
 * table. */
static bool may_be_distinct(const char *text)
{
    return strpbrk(text, "<(:# ") || strstr(text, OCC_ELLIPSIS);
}

/* ---- cut names ---- */

/* Counts characters; an ellipsis of any form is one. */
static size_t characters(const char *text)
{
    size_t n = 0;
    for (const char *at = text; *at; at++) {
        bool is_ascii_ellipsis = strncmp(at, OCC_ASCII_ELLIPSIS, strlen(OCC_ASCII_ELLIPSIS)) == 0;
        n += ((unsigned char)*at & 0xc0) != 0x80 && !is_ascii_ellipsis;
    }
    return n;
}

/* A screen cuts only longer names: "add #..." is no cut of "add #5". A name of the same length may have the
 * ellipsis itself. */
static bool is_cut_of(const char *cut, const struct names *names, size_t i, enum form form)
{
    const char *name = name_of(names, i, form);
    return name && (characters(name) > characters(cut) || strstr(name, OCC_ELLIPSIS)) &&
           occ_text_is_cut_of(cut, name);
}

/* Fails with a message such as "a cut name of 3 kernels: 4, 17, 21". */
static int fail_ambiguous(const char *cut, const struct names *names, enum form form, size_t n,
                          struct occ_error *err)
{
    enum { LISTED = 6 };
    char numbers[LISTED * 24] = "";
    size_t listed = 0;
    for (size_t i = 0; i < names->n && listed < LISTED; i++)
        if (is_cut_of(cut, names, i, form)) {
            occ_text_append(numbers, sizeof numbers, ", ", "%" PRId64, names->kernels[i].id);
            listed++;
        }
    return occ_fail(err, OCC_E_USAGE,
                    "'%.96s' is a cut name, of %zu kernels (id %s%s): the whole name is in column demangled; "
                    "'occq show' takes an id",
                    cut, n, numbers, n > LISTED ? ", ..." : "");
}

/* Matches a cut name against each form of names, up to the first form with matches, which must be one kernel.
 * No match: *kernels stays empty. */
static int match_cut(const char *cut, const struct names *names, struct occ_map *kernels,
                     struct occ_error *err)
{
    static const enum form order[] = {FORM_DISTINCT, FORM_WORDS, FORM_SHORT, FORM_FULL, FORM_MANGLED};
    for (size_t k = 0; k < FORMS; k++) {
        size_t n = 0, last = 0;
        for (size_t i = 0; i < names->n; i++)
            if (is_cut_of(cut, names, i, order[k])) {
                n++;
                last = i;
            }
        if (n > 1)
            return fail_ambiguous(cut, names, order[k], n, err);
        if (n == 1)
            return put(kernels, names->kernels[last].id) ? 0 : occ_no_memory(err);
    }
    return 0;
}

/* Removes the number in "Kernel<…64x6~2", which only distinguishes cut names on one screen. malloc'ed. */
static char *without_number(const char *text)
{
    char *copy = strdup(text), *mark = copy ? strrchr(copy, '~') : NULL;
    if (mark && mark[1] && mark[1 + strspn(mark + 1, "0123456789")] == '\0')
        *mark = '\0';
    return copy;
}

/* ---- words ---- */

static bool is_word_of(const char *words, const char *word, size_t n)
{
    for (const char *at = words; *at; at += *at == ' ') {
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, word, n) == 0)
            return true;
        at += length;
    }
    return false;
}

/* True if each word of the text is one of the kernel's words, in any order: "tn 64x64" of "GEMM 64x64 tn".
 * The words of its name count, too, beside one of its words: the kernel's words may be others after the next
 * recording, and text that was copied before must not mean its sibling. */
static bool has_words(const struct occ_kernel_name *kernel, const char *text)
{
    bool has_any = false;
    for (size_t n; kernel->words && *text; text += n) {
        n = strcspn(text, " ");
        bool is_own = n > 0 && is_word_of(kernel->words, text, n);
        if (n > 0 && !is_own && !occ_kernel_name_has_word(kernel->demangled, text, n))
            return false;
        has_any = has_any || is_own;
        n += text[n] == ' ';
    }
    return has_any;
}

static int match_distinct(const char *text, const struct names *names, struct occ_map *kernels,
                          struct occ_error *err)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *words = names->kernels[i].words;
        bool is_same = strcmp(names->kernels[i].name, text) == 0 || (words && strcmp(words, text) == 0);
        if (is_same && !put(kernels, names->kernels[i].id))
            return occ_no_memory(err);
    }
    return 0;
}

/* Finds the kernel of words with a number, "GEMM 64x64 #26", also if the words alone would tell it apart. */
static int match_number(const char *text, const struct names *names, struct occ_map *kernels,
                        struct occ_error *err)
{
    const char *mark = strrchr(text, '#');
    uint64_t id = 0;
    if (!mark || mark < text + 2 || mark[-1] != ' ' || occ_parse_u64(mark + 1, 1, INT64_MAX, &id, NULL) != 0)
        return 0;
    _cleanup_(occ_freep) char *words = strndup(text, (size_t)(mark - 1 - text));
    if (!words)
        return occ_no_memory(err);
    for (size_t i = 0; i < names->n; i++) {
        const struct occ_kernel_name *kernel = &names->kernels[i];
        if (kernel->id == (int64_t)id && has_words(kernel, words) && !put(kernels, kernel->id))
            return occ_no_memory(err);
    }
    return 0;
}

static int find_screen_name(struct occ_store *s, const char *text, bool is_cut, struct occ_map *kernels,
                            struct occ_error *err)
{
    _cleanup_(names_release) struct names names = {0};
    _cleanup_(occ_freep) char *cut = without_number(text);
    int rc = cut ? load_names(s, &names, err) : occ_no_memory(err);
    if (rc == 0)
        rc = match_distinct(text, &names, kernels, err);
    if (rc == 0 && kernels->used == 0)
        rc = match_number(text, &names, kernels, err);
    return rc == 0 && is_cut && kernels->used == 0 ? match_cut(cut, &names, kernels, err) : rc;
}

/* ---- families ---- */

/* Fails with the kernels that the text may mean: "7 (GEMM 64x64 nn), 9 (GEMM 64x64 tn)". */
static int fail_family(const char *text, const struct names *names, size_t n, struct occ_error *err)
{
    enum { LISTED = 6 };
    char list[LISTED * 72] = "";
    size_t listed = 0;
    for (size_t i = 0; i < names->n && listed < LISTED; i++) {
        const struct occ_kernel_name *kernel = &names->kernels[i];
        if (!has_words(kernel, text))
            continue;
        occ_text_append(list, sizeof list, ", ", "%" PRId64 " (%.44s)", kernel->id, kernel->words);
        listed++;
    }
    return occ_fail(err, OCC_E_USAGE, "'%.96s' may be any of %zu kernels, by id: %s%s", text, n, list,
                    n > LISTED ? ", ..." : "");
}

/* Finds the kernels that have the words of the text; `is_one`: there must be one. */
static int find_family(struct occ_store *s, const char *text, bool is_one, struct occ_map *kernels,
                       struct occ_error *err)
{
    _cleanup_(names_release) struct names names = {0};
    size_t n = 0;
    int rc = load_names(s, &names, err);
    for (size_t i = 0; i < names.n && rc == 0; i++)
        if (has_words(&names.kernels[i], text)) {
            n++;
            rc = put(kernels, names.kernels[i].id) ? 0 : occ_no_memory(err);
        }
    return rc == 0 && is_one && n > 1 ? fail_family(text, &names, n, err) : rc;
}

/* ---- texts ---- */

static int match(struct occ_store *s, const char *pattern, struct occ_map *kernels, struct occ_error *err)
{
    struct occ_regexp *regexp = NULL;
    int rc = occ_regexp_compile(pattern, &regexp, err);
    if (rc == 0)
        rc = add_kernels(s, &(struct wanted){.regexp = regexp}, kernels, err);
    occ_regexp_free(regexp);
    return rc;
}

/* Finds the kernels that the text names: first by name, then as a regular expression. ".." means a part cut
 * from a name only if the text matches no kernel as an expression. */
static int find_kernels(struct occ_store *s, const char *text, bool is_one, struct occ_map *kernels,
                        struct occ_error *err)
{
    struct occ_error why = OCC_ERROR_INIT;
    bool is_cut = strstr(text, OCC_ELLIPSIS) != NULL;
    int rc = add_kernels(s, &(struct wanted){.name = text}, kernels, err);
    if (rc == 0 && kernels->used == 0 && may_be_distinct(text))
        rc = find_screen_name(s, text, is_cut, kernels, err);
    if (rc != 0 || is_cut || kernels->used > 0)
        return rc;
    int matched = match(s, text, kernels, &why);
    if ((matched == 0 || matched == OCC_E_INVALID) && kernels->used == 0 && strstr(text, OCC_ASCII_ELLIPSIS))
        rc = find_screen_name(s, text, true, kernels, err);
    if (rc == 0 && kernels->used == 0 && (matched == 0 || matched == OCC_E_INVALID))
        rc = find_family(s, text, is_one, kernels, err);
    if (rc != 0 || matched == 0 || kernels->used > 0)
        return rc;
    return matched == OCC_E_INVALID
               ? occ_fail(err, OCC_E_USAGE, "no kernel has this name, and %s", why.message)
               : occ_fail(err, matched, "%s", why.message);
}

/* Removes the kernels that match the text. */
static int exclude_kernels(struct occ_store *s, const char *text, struct occ_map *kernels,
                           struct occ_error *err)
{
    struct occ_map excluded = {0}, kept = {0};
    int rc = find_kernels(s, text, false, &excluded, err);
    if (rc == 0 && excluded.used == 0 && strstr(text, OCC_ELLIPSIS))
        rc = occ_fail(err, OCC_E_USAGE, "no kernel to exclude has the cut name '%.96s'", text);
    for (uint32_t i = 0; i < kernels->capacity && rc == 0; i++)
        if (kernels->values[i] != OCC_MAP_NONE && occ_map_get(&excluded, kernels->keys[i]) == OCC_MAP_NONE &&
            occ_map_put(&kept, kernels->keys[i], 0) == OCC_MAP_NONE)
            rc = occ_no_memory(err);
    occ_map_free(&excluded);
    occ_map_free(kernels);
    *kernels = kept;
    return rc;
}

int occ_store_choose_kernels(struct occ_store *s, const struct occ_filter *filter, struct occ_map *kernels,
                             struct occ_error *err)
{
    const char *text = filter->kernel ? filter->kernel : filter->kernel_regex;
    uint64_t id = 0;
    bool is_number = filter->kernel && occ_parse_u64(text, 1, INT64_MAX, &id, NULL) == 0;
    int rc = !text || is_number ? add_kernels(s, &(struct wanted){.id = (int64_t)id}, kernels, err)
                                : find_kernels(s, text, filter->kernel != NULL, kernels, err);
    return rc == 0 && filter->exclude_regex ? exclude_kernels(s, filter->exclude_regex, kernels, err) : rc;
}
