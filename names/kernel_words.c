/*
 * Words for kernels whose name is too long for its place; see kernel_names.h. Kernels with the same family
 * and tile are told apart by words of their names: the word that the fewest of them have, then the next
 * within these, up to three. Any thread.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "demangle.h"
#include "kernel_names.h"
#include "owners.h"
#include "support/arena.h"
#include "support/cleanup.h"
#include "support/error.h"
#include "support/text.h"

#define NEW(arena, n, pointer) occ_arena_get(arena, n, sizeof *(pointer))
#define COUNT(table)           (sizeof(table) / sizeof *(table))

enum {
    MEMBERS_MAX = 64,  /* kernels of a family that are told apart by words: bits of a set */
    TOKENS_MAX = 96,   /* words of a name that are looked at */
    TOKEN_BYTES = 16,  /* longer words, such as hashes, tell people nothing */
    CHOSEN_MAX = 3,    /* words behind a family */
    WORDS_BYTES = 192, /* label, chosen words and number */
};

/* ---- words of a name ---- */

struct token {
    const char *text;
    size_t n;
    uint32_t member, at; /* index of the member in the family; of the token in `tokens` */
};

/* True if a new word begins at `s`: "Causal" in "KvCausal", "Kernel" in "FFTKernel" and in "1aKernel". */
static bool is_hump(const char *s)
{
    bool is_after_capital = isupper((unsigned char)s[-1]) != 0;
    return isupper((unsigned char)s[0]) && (!is_after_capital || islower((unsigned char)s[1]));
}

/* Takes the next word; its length is 0 at the end of the name. */
static const char *take_token(const char *s, const char *end, struct token *ret_token)
{
    while (s < end && !isalnum((unsigned char)*s))
        s++;
    *ret_token = (struct token){.text = s, .n = s < end};
    for (s += s < end; s < end && isalnum((unsigned char)*s) && !is_hump(s); s++)
        ret_token->n++;
    return s;
}

/* True for a word that tells people something about the kernel beside its label. */
static bool is_telling(const struct token *token, const char *label)
{
    static const char *const common[] = {"void",   "const",  "kernel",    "std",       "operator",
                                         "detail", "lambda", "anonymous", "namespace", "unnamed",
                                         "params", "impl",   "val",       "c10"};
    char word[TOKEN_BYTES + 1];
    if (token->n > TOKEN_BYTES)
        return false;
    memcpy(word, token->text, token->n);
    word[token->n] = '\0';
    for (size_t i = 0; i < COUNT(common); i++)
        if (strcasecmp(word, common[i]) == 0)
            return false;
    return strcasestr(label, word) == NULL;
}

/* Words, and numbers with letters such as "32x4", are taken before numbers and single letters. */
static bool is_strong(const struct token *token)
{
    size_t digits = 0;
    while (digits < token->n && isdigit((unsigned char)token->text[digits]))
        digits++;
    return token->n > 1 && digits < token->n;
}

/* ---- families ---- */

/* Kernels with the same label. */
struct family {
    const char *label;
    size_t n;              /* members, at most MEMBERS_MAX */
    struct token *tokens;  /* TOKENS_MAX for each member, in the order of the name; n 0: none */
    uint64_t *member_bits; /* bits of the members that have the word of each of `tokens` */
};

static int compare_tokens(const void *left, const void *right)
{
    const struct token *a = *(struct token *const *)left, *b = *(struct token *const *)right;
    size_t n = a->n < b->n ? a->n : b->n;
    int order = memcmp(a->text, b->text, n);
    return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

/* The start of the function's qualified name, after its return type. */
static const char *skip_return_type(const char *demangled)
{
    const char *base = NULL, *end = NULL;
    size_t depth = 0;
    occ_demangled_base(demangled, &base, &end);
    for (; base > demangled; base--) {
        depth += strchr(")>]}", base[-1]) != NULL;
        if (depth == 0 && base[-1] == ' ')
            break;
        depth -= depth > 0 && strchr("(<[{", base[-1]);
    }
    return base;
}

static size_t read_tokens(const char *demangled, const char *label, struct token *tokens)
{
    size_t n = 0;
    struct token token;
    const char *start = skip_return_type(demangled), *end = start + strnlen(start, OCC_OWNER_NAME_BYTES);
    for (const char *s = start; n < TOKENS_MAX && (s = take_token(s, end, &token), token.n > 0);)
        if (is_telling(&token, label))
            tokens[n++] = token;
    return n;
}

bool occ_kernel_name_has_word(const char *demangled, const char *word, size_t n)
{
    struct token token;
    const char *start = skip_return_type(demangled), *end = start + strnlen(start, OCC_OWNER_NAME_BYTES);
    for (const char *s = start; s = take_token(s, end, &token), token.n > 0;)
        if (token.n == n && memcmp(token.text, word, n) == 0)
            return true;
    return false;
}

/* Sets the member bits of each token: equal tokens have equal bits. */
static bool set_member_bits(struct occ_arena *arena, struct family *family, const char *const *names)
{
    struct token **sorted = NEW(arena, family->n * TOKENS_MAX, sorted);
    size_t n = 0;
    for (size_t i = 0; sorted && i < family->n; i++) {
        struct token *own = family->tokens + i * TOKENS_MAX;
        size_t count = read_tokens(names[i], family->label, own);
        for (size_t k = 0; k < count; k++) {
            own[k].member = (uint32_t)i;
            own[k].at = (uint32_t)(i * TOKENS_MAX + k);
            sorted[n++] = &own[k];
        }
    }
    if (!sorted)
        return false;
    qsort(sorted, n, sizeof *sorted, compare_tokens);
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t bits = 0;
        for (end = i; end < n && compare_tokens(&sorted[i], &sorted[end]) == 0; end++)
            bits |= UINT64_C(1) << sorted[end]->member;
        for (size_t k = i; k < end; k++)
            family->member_bits[sorted[k]->at] = bits;
    }
    return true;
}

/* Returns the member's strong word that the fewest kernels of the set have, else such a weak word; NULL: all
 * kernels of the set have all of its words. */
static const struct token *rarest_word(const struct family *family, size_t member, uint64_t set)
{
    const struct token *best = NULL, *own = family->tokens + member * TOKENS_MAX;
    int fewest = __builtin_popcountll(set);
    for (size_t i = 0; i < TOKENS_MAX && own[i].n > 0; i++) {
        int count = __builtin_popcountll(set & family->member_bits[own[i].at]);
        bool is_stronger = best && is_strong(&own[i]) && !is_strong(best);
        bool is_weaker = best && is_strong(best) && !is_strong(&own[i]);
        if (count < __builtin_popcountll(set) && (is_stronger || (count < fewest && !is_weaker))) {
            best = &own[i];
            fewest = count;
        }
    }
    return best;
}

/* *ret_is_shared: other kernels of the family have all of these words, too. */
static const char *put_words(struct occ_arena *arena, const struct family *family, size_t member,
                             bool *ret_is_shared)
{
    char text[WORDS_BYTES];
    uint64_t set = family->n < MEMBERS_MAX ? (UINT64_C(1) << family->n) - 1 : UINT64_MAX;
    const struct token *token = NULL;
    (void)snprintf(text, sizeof text, "%s", family->label);
    for (size_t i = 0; i < CHOSEN_MAX && (set & (set - 1)) != 0; i++) {
        token = rarest_word(family, member, set);
        if (!token)
            break;
        set &= family->member_bits[token->at];
        occ_text_append(text, sizeof text, " ", "%.*s", (int)token->n, token->text);
    }
    *ret_is_shared = (set & (set - 1)) != 0;
    return occ_arena_copy(arena, text);
}

/* ---- kernels ---- */

struct described {
    const char *text; /* NULL: no rule knows the kernel */
    bool is_shared;
};

struct entry {
    const char *text;
    size_t at;    /* index of the kernel */
    bool is_name; /* a kernel's name, not its words */
};

static int by_text(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = strcmp(a->text, b->text);
    return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

/* A label has a blank, so that no identifier and few regular expressions are equal to it: "CUB scan". */
static const char *label_of(struct occ_arena *arena, const char *demangled)
{
    char label[OCC_KERNEL_LABEL_BYTES], text[WORDS_BYTES];
    struct occ_kernel_owner owner;
    occ_kernel_owner(demangled, &owner);
    (void)occ_kernel_label(&owner, label);
    bool has_blank = strchr(label, ' ') != NULL;
    (void)snprintf(text, sizeof text, "%s%s%s", has_blank ? "" : owner.library, has_blank ? "" : " ", label);
    return owner.library[0] ? occ_arena_copy(arena, text) : NULL;
}

static void describe_family(struct occ_arena *arena, const struct occ_kernel_name *kernels,
                            const struct entry *members, size_t n, struct described *words)
{
    struct family family = {.label = members[0].text, .n = n};
    const char *names[MEMBERS_MAX];
    bool is_described = n > 1 && n <= MEMBERS_MAX;
    struct occ_arena own = {.failed = false};
    if (is_described) {
        family.tokens = NEW(&own, n * TOKENS_MAX, family.tokens);
        family.member_bits = NEW(&own, n * TOKENS_MAX, family.member_bits);
        for (size_t i = 0; i < n; i++)
            names[i] = kernels[members[i].at].demangled;
        is_described = !own.failed && set_member_bits(&own, &family, names);
        arena->failed |= own.failed;
    }
    for (size_t i = 0; i < n; i++) {
        struct described *own_words = &words[members[i].at];
        *own_words = (struct described){members[i].text, n > 1};
        if (is_described)
            own_words->text = put_words(arena, &family, i, &own_words->is_shared);
    }
    occ_arena_free(own.blocks);
}

/* Adds " #ID" to words that other kernels have, too, or that are equal to a name: words that mean one kernel
 * must not mean another one after the next recording. `entries`: room for 2 n. */
static int set_words(struct occ_kernel_name *kernels, size_t n, const struct described *words,
                     struct entry *entries)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (words[i].text)
            entries[count++] = (struct entry){words[i].text, i, false};
        entries[count++] = (struct entry){kernels[i].name ? kernels[i].name : "", i, true};
    }
    qsort(entries, count, sizeof *entries, by_text);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && strcmp(entries[end].text, entries[i].text) == 0;)
            end++;
        for (size_t k = i; k < end; k++) {
            char id[24] = "";
            if (end - i > 1 || words[entries[k].at].is_shared || strstr(entries[k].text, " #"))
                (void)snprintf(id, sizeof id, " #%" PRId64, kernels[entries[k].at].id);
            if (!entries[k].is_name &&
                occ_format_text(&kernels[entries[k].at].words, NULL, "%s%s", entries[k].text, id) != 0)
                return OCC_E_NO_MEMORY;
        }
    }
    return 0;
}

int occ_kernel_names_describe(struct occ_kernel_name *kernels, size_t n)
{
    struct occ_arena arena = {.failed = false};
    struct described *words = NEW(&arena, n + 1, words);
    struct entry *entries = NEW(&arena, 2 * n + 1, entries);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        kernels[i].words = NULL;
        const char *label = arena.failed ? NULL : label_of(&arena, kernels[i].demangled);
        if (label)
            entries[count++] = (struct entry){label, i, false};
    }
    if (!arena.failed)
        qsort(entries, count, sizeof *entries, by_text);
    for (size_t i = 0, end; !arena.failed && i < count; i = end) {
        for (end = i + 1; end < count && strcmp(entries[end].text, entries[i].text) == 0;)
            end++;
        describe_family(&arena, kernels, entries + i, end - i, words);
    }
    int status = arena.failed ? OCC_E_NO_MEMORY : set_words(kernels, n, words, entries);
    occ_arena_free(arena.blocks);
    for (size_t i = 0; i < n && status != 0; i++) {
        free(kernels[i].words);
        kernels[i].words = NULL;
    }
    return status;
}
