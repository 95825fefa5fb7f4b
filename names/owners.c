/*
 * Owners and families of kernels; see owners.h. A name is divided into scope, base and template arguments;
 * the first rule that fits one of these decides on the owner. Words between underscores of the base (or, for
 * a generic function such as cutlass::Kernel<K>, of its first argument) name tile, layout, stages and
 * alignment. No state; any thread.
 */
#include "owners.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "demangle.h"
#include "family_text.h"
#include "owner_rules.h"

/* ---- parts of a name ---- */

#define IDENTIFIER "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$"

static bool is_identifier(char c)
{
    return c != '\0' && strchr(IDENTIFIER, c) != NULL;
}

/* The start of the qualified name that ends before `base`: over identifiers, "::" and pairs of brackets. */
static const char *scope_of(const char *name, const char *base)
{
    const char *s = base;
    unsigned depth = 0;
    for (; s > name; s--) {
        char c = s[-1];
        if (strchr(")>}]", c))
            depth++;
        else if (strchr("(<{[", c)) {
            if (depth == 0)
                break;
            depth--;
        } else if (depth == 0 && !is_identifier(c) && c != ':') {
            break;
        }
    }
    return s;
}

static void divide(const char *name, struct occ_name_parts *ret_parts)
{
    const char *base = NULL, *after = NULL, *end = name + strlen(name);
    occ_demangled_base(name, &base, &after);
    const char *scope = scope_of(name, base);
    *ret_parts = (struct occ_name_parts){.scope = {scope, (size_t)(base - scope)},
                                         .base = {base, (size_t)(after - base)},
                                         .name = {name, (size_t)(end - name)},
                                         .arguments = {after, 0}};
    if (*after == '<') {
        const char *close = occ_demangled_skip_brackets(after);
        size_t n = (size_t)(close - after) - 1;
        ret_parts->arguments = (struct occ_span){after + 1, n > 0 && close[-1] == '>' ? n - 1 : n};
    }
}

/* Writes "a::b::c" of the mangled name "_ZN1a1b1cE..." or "_Z1c...", and its first template argument if
 * that is a plain type. false: another kind of name. */
static bool read_mangled(const char *mangled, char *text, size_t size)
{
    const char *s = mangled + 2;
    size_t n = 0;
    if (strncmp(mangled, "_Z", 2) != 0)
        return false;
    if (*s == 'N')
        s += 1 + strspn(s + 1, "rVK");
    for (const char *separator = ""; isdigit((unsigned char)*s);) {
        size_t length = 0, between = strlen(separator);
        while (isdigit((unsigned char)*s) && length < size)
            length = length * 10 + (size_t)(*s++ - '0');
        if (length == 0 || strnlen(s, length) < length || n + between + length >= size)
            break;
        memcpy(text + n, separator, between);
        memcpy(text + n + between, s, length);
        n += between + length;
        s += length;
        bool is_argument = *separator == '<';
        separator = *s == 'I' ? "<" : "::";
        s += *s == 'I';
        if (is_argument)
            break;
    }
    text[n] = '\0';
    return n > 0;
}

/* ---- rules ---- */

static bool has(struct occ_span span, const char *pattern)
{
    return memmem(span.begin, span.n, pattern, strlen(pattern)) != NULL;
}

static bool starts(struct occ_span span, const char *pattern)
{
    size_t n = strlen(pattern);
    return span.n >= n && memcmp(span.begin, pattern, n) == 0;
}

static bool fits(const struct occ_name_parts *parts, enum occ_name_part part, const char *pattern)
{
    switch (part) {
    case OCC_PART_SCOPE_STARTS:
        return starts(parts->scope, pattern);
    case OCC_PART_SCOPE_HAS:
        return has(parts->scope, pattern);
    case OCC_PART_BASE_STARTS:
        return starts(parts->base, pattern);
    case OCC_PART_BASE_IS:
        return parts->base.n == strlen(pattern) && starts(parts->base, pattern);
    case OCC_PART_BASE_HAS:
        return has(parts->base, pattern);
    case OCC_PART_ARGUMENTS_HAVE:
        return has(parts->arguments, pattern);
    case OCC_PART_NAME_HAS:
        return has(parts->name, pattern);
    case OCC_PART_TRITON_SIGNATURE:
        return occ_family_signature_bytes(parts->base) > 0;
    }
    return false;
}

static const struct occ_owner_rule *find_rule(const struct occ_name_parts *parts)
{
    for (size_t i = 0; i < occ_owner_rules_count; i++) {
        const struct occ_owner_rule *rule = &occ_owner_rules[i];
        if (fits(parts, rule->part, rule->pattern) && (!rule->also || has(parts->base, rule->also)))
            return rule->owner != OCC_OWNER_UNKNOWN ? rule : NULL;
    }
    return NULL;
}

static const struct occ_family_rule *find_family(const struct occ_name_parts *parts)
{
    for (size_t i = 0; i < occ_family_rules_count; i++)
        if (fits(parts, occ_family_rules[i].part, occ_family_rules[i].pattern))
            return &occ_family_rules[i];
    return NULL;
}

static bool has_any(struct occ_span span, const char *const *words)
{
    for (; *words; words++)
        if (has(span, *words))
            return true;
    return false;
}

/* ---- a kernel ---- */

/* The part that names tile and layout: the base, or the first argument of a generic function. */
static struct occ_span details_of(const struct occ_name_parts *parts)
{
    static const char *const generic[] = {"Kernel", "Kernel2", "device_kernel", NULL};
    for (size_t i = 0; generic[i]; i++)
        if (fits(parts, OCC_PART_BASE_IS, generic[i]))
            return parts->arguments;
    return parts->base;
}

/* The traits that the words of any kernel's name tell, beside those of its rules. */
static uint32_t traits_of(const struct occ_name_parts *parts, struct occ_span details, uint32_t traits,
                          const char *const *tensor_core_words)
{
    if (has_any(details, tensor_core_words))
        traits |= OCC_TRAIT_TENSOR_CORES;
    if (has_any(details, occ_other_pipe_words))
        traits &= ~(uint32_t)OCC_TRAIT_TENSOR_CORES;
    if (has(parts->base, "Persistent") || has(parts->base, "persistent"))
        traits |= OCC_TRAIT_PERSISTENT;
    if (has(details, "splitK") || has(details, "splitk"))
        traits |= OCC_TRAIT_SPLIT_K;
    return traits;
}

static void describe(const struct occ_name_parts *parts, const struct occ_owner_rule *rule,
                     struct occ_kernel_owner *owner)
{
    static const char *const none[] = {NULL};
    const struct occ_family_rule *family = rule->family ? NULL : find_family(parts);
    struct occ_span details = details_of(parts);
    owner->owner = rule->owner;
    owner->library = rule->library;
    uint32_t traits = rule->traits | (family ? family->traits : 0);
    owner->traits = traits_of(parts, details, traits, traits & OCC_TRAIT_GEMM ? occ_tensor_core_words : none);
    if (owner->traits & OCC_TRAIT_GEMM)
        occ_family_details(details, owner);
    if (rule->family)
        (void)snprintf(owner->family, sizeof owner->family, "%s", rule->family);
    else
        occ_family_text(parts, family, owner->family);
    if (owner->family[0] == '\0')
        (void)snprintf(owner->family, sizeof owner->family, "%s", rule->library);
}

void occ_kernel_owner(const char *demangled, struct occ_kernel_owner *ret_owner)
{
    char name[OCC_OWNER_NAME_BYTES];
    struct occ_name_parts parts;
    if (!read_mangled(demangled, name, sizeof name)) {
        size_t n = strnlen(demangled, sizeof name - 1);
        memcpy(name, demangled, n);
        name[n] = '\0';
    }
    divide(name, &parts);
    const struct occ_owner_rule *rule = find_rule(&parts);
    *ret_owner = (struct occ_kernel_owner){.owner = OCC_OWNER_UNKNOWN, .library = ""};
    if (rule)
        describe(&parts, rule, ret_owner);
    else {
        ret_owner->traits = traits_of(&parts, details_of(&parts), 0, occ_own_tensor_core_words);
        occ_family_put(ret_owner->family, parts.base.n > 0 ? parts.base : parts.name);
    }
}

const char *occ_kernel_label(const struct occ_kernel_owner *owner, char label[OCC_KERNEL_LABEL_BYTES])
{
    (void)snprintf(label, OCC_KERNEL_LABEL_BYTES, "%s%s%s%s", owner->family, owner->tile[0] ? " " : "",
                   owner->tile, owner->alignment == 1 ? " align1" : "");
    return label;
}

static const struct {
    const char *word, *text;
} owner_texts[OCC_OWNERS] = {
    [OCC_OWNER_UNKNOWN] = {"unknown", "yours?"},
    [OCC_OWNER_USER] = {"user", "yours"},
    [OCC_OWNER_TRITON] = {"triton", "Triton"},
    [OCC_OWNER_FRAMEWORK] = {"framework", "framework"},
    [OCC_OWNER_LIBRARY] = {"library", "library"},
    [OCC_OWNER_COMMUNICATION] = {"communication", "communication"},
};

const char *occ_owner_word(enum occ_owner owner)
{
    return owner_texts[owner < OCC_OWNERS ? owner : OCC_OWNER_UNKNOWN].word;
}

const char *occ_owner_text(enum occ_owner owner)
{
    return owner_texts[owner < OCC_OWNERS ? owner : OCC_OWNER_UNKNOWN].text;
}
