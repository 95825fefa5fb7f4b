/* Families in words; see family_text.h. */
#include "family_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "support/cut.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool is_word_character(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool equals(struct occ_span span, const char *text)
{
    return span.n == strlen(text) && memcmp(span.begin, text, span.n) == 0;
}

void occ_family_put(char family[OCC_FAMILY_BYTES], struct occ_span text)
{
    size_t n = text.n, room = OCC_FAMILY_BYTES - sizeof OCC_ELLIPSIS;
    if (n >= OCC_FAMILY_BYTES) {
        for (n = room; n > 0 && ((unsigned char)text.begin[n] & 0xc0) == 0x80;)
            n--;
        memcpy(family, text.begin, n);
        memcpy(family + n, OCC_ELLIPSIS, sizeof OCC_ELLIPSIS);
        return;
    }
    memcpy(family, text.begin, n);
    family[n] = '\0';
}

/* ---- words of an identifier ---- */

static const char *const prefixes[] = {"CUDAFunctorOnSelf_",
                                       "CUDAFunctorOnOther_",
                                       "CUDAFunctor_",
                                       "launch_",
                                       "direct_",
                                       "gpu_",
                                       "cunn_",
                                       "_cuda_",
                                       "_"};
static const char *const suffixes[] = {
    "_kernel_cuda", "_cuda_kernel", "_kernel_impl", "CUDAKernel", "_kernel", "Kernel",        "_cuda",
    "_impl",        "Functor",      "_functor",     "Ops",        "_nocast", "_and_transform"};

static struct occ_span strip(struct occ_span word)
{
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (word.n > n && memcmp(word.begin, prefixes[i], n) == 0)
            word = (struct occ_span){word.begin + n, word.n - n};
    }
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (word.n > n && memcmp(word.begin + word.n - n, suffixes[i], n) == 0)
            word.n -= n;
    }
    return word;
}

/* Appends "max pool 2d backward" for "maxPool_2d_backward". Capitals that follow each other stay. */
static size_t put_words(char *text, size_t size, struct occ_span word)
{
    size_t n = 0;
    for (size_t i = 0; i < word.n && n + 2 < size; i++) {
        char c = word.begin[i], before = i > 0 ? word.begin[i - 1] : '_';
        char after = i + 1 < word.n ? word.begin[i + 1] : '_';
        bool is_hump = isupper((unsigned char)c) && islower((unsigned char)before);
        bool is_acronym =
            isupper((unsigned char)c) && (isupper((unsigned char)after) || isupper((unsigned char)before));
        if ((c == '_' || is_hump) && n > 0 && text[n - 1] != ' ')
            text[n++] = ' ';
        if (c != '_')
            text[n++] = is_acronym ? c : (char)tolower((unsigned char)c);
    }
    n -= n > 0 && text[n - 1] == ' ';
    text[n] = '\0';
    return n;
}

/* ---- the operation among template arguments ---- */

/* Wrappers, types and functions that take an operation, and name none. */
static bool names_no_operation(struct occ_span word)
{
    static const char *const others[] = {"AUnaryFunctor",
                                         "BUnaryFunctor",
                                         "BinaryFunctor",
                                         "BinaryOpScalarFunctor",
                                         "ReduceOp",
                                         "func_wrapper_t",
                                         "BinaryOpListAlphaFunctor",
                                         "TensorListMetadata",
                                         "gpu_kernel_impl",
                                         "gpu_index_kernel",
                                         "gpu_kernel_impl_nocast",
                                         "OpaqueType",
                                         "array",
                                         "Array",
                                         "TrivialOffsetCalculator",
                                         "LoadWithoutCast",
                                         "lambda",
                                         "StoreWithoutCast",
                                         "operator",
                                         "OffsetCalculator",
                                         "anonymous",
                                         "unnamed",
                                         "namespace",
                                         "const",
                                         "float",
                                         "double",
                                         "int",
                                         "long",
                                         "short",
                                         "char",
                                         "unsigned",
                                         "signed",
                                         "bool",
                                         "true",
                                         "false",
                                         "void",
                                         "float2",
                                         "half",
                                         "__half",
                                         "__nv_bfloat16",
                                         "BFloat16",
                                         "Half",
                                         "complex",
                                         "uint32_t"};
    for (size_t i = 0; i < COUNT(others); i++)
        if (equals(word, others[i]))
            return true;
    return false;
}

/* The first identifier that is neither a namespace nor a wrapper or type; empty: none. */
static struct occ_span find_operation(struct occ_span arguments)
{
    for (size_t i = 0; i < arguments.n;) {
        struct occ_span word = {arguments.begin + i, 0};
        while (i + word.n < arguments.n && is_word_character(word.begin[word.n]))
            word.n++;
        i += word.n > 0 ? word.n : 1;
        bool is_namespace = i + 1 < arguments.n && memcmp(arguments.begin + i, "::", 2) == 0;
        if (word.n > 0 && !isdigit((unsigned char)word.begin[0]) && !is_namespace &&
            !names_no_operation(word))
            return word;
    }
    return (struct occ_span){arguments.begin, 0};
}

/* ---- forms ---- */

size_t occ_family_signature_bytes(struct occ_span base)
{
    const char *last = memrchr(base.begin, '_', base.n);
    size_t n = last ? base.n - (size_t)(last + 1 - base.begin) : 0;
    size_t letters = 0, signs = 0;
    for (size_t i = 0; i < n; i++) {
        letters += strchr("dce", last[1 + i]) != NULL;
        signs += isdigit((unsigned char)last[1 + i]) || strchr("dce", last[1 + i]);
    }
    bool is_signature = n >= 4 && signs == n && letters > 0 && last[1] == '0' && n - letters >= 2;
    return is_signature ? n + 1 : 0;
}

/* The base after the rule's pattern, without a number at its end: "add_cos_sin" of "..._add_cos_sin_0". */
static struct occ_span rest_of(struct occ_span base, size_t from)
{
    struct occ_span rest = {base.begin + from, base.n - from};
    size_t n = rest.n;
    while (n > 0 && isdigit((unsigned char)rest.begin[n - 1]))
        n--;
    if (n < rest.n && n > 1 && rest.begin[n - 1] == '_')
        rest.n = n - 1;
    return rest;
}

static struct occ_span next_word(struct occ_span base, size_t from)
{
    struct occ_span word = {base.begin + from, 0};
    while (from + word.n < base.n && word.begin[word.n] != '_')
        word.n++;
    return word;
}

void occ_family_text(const struct occ_name_parts *parts, const struct occ_family_rule *rule,
                     char family[OCC_FAMILY_BYTES])
{
    char text[OCC_OWNER_NAME_BYTES];
    struct occ_span word = {"", 0};
    size_t n = rule ? strlen(rule->family) : 0, from = rule ? strlen(rule->pattern) : 0;
    if (!rule)
        word = strip(rest_of(
            (struct occ_span){parts->base.begin, parts->base.n - occ_family_signature_bytes(parts->base)},
            0));
    else if (rule->form == OCC_FORM_OPERATION)
        word = strip(find_operation(parts->arguments));
    else if (rule->form == OCC_FORM_REST)
        word = rest_of(parts->base, from);
    else if (rule->form == OCC_FORM_TYPE)
        word = next_word(parts->base, from);
    memcpy(text, rule ? rule->family : "", n);
    if (n > 0 && word.n > 0)
        text[n++] = ' ';
    if (!rule || rule->form == OCC_FORM_OPERATION) {
        n += put_words(text + n, sizeof text - n, word);
    } else {
        size_t room = sizeof text - n;
        memcpy(text + n, word.begin, word.n < room ? word.n : room);
        n += word.n < room ? word.n : room;
    }
    occ_family_put(family, (struct occ_span){text, n});
}

/* ---- tile, layout, stages, alignment ---- */

/* A number at `*at`, which moves behind it; 0: none, or above 65535. */
static unsigned read_number(struct occ_span word, size_t *at)
{
    unsigned value = 0;
    size_t first = *at;
    for (; *at < word.n && isdigit((unsigned char)word.begin[*at]); ++*at)
        value = value <= 65535 ? value * 10 + (unsigned)(word.begin[*at] - '0') : value;
    return *at > first && value <= 65535 ? value : 0;
}

/* "128x64", "t128x64x32", "tilesize128x64x32": two numbers after one of the prefixes. `*ret_is_all`: nothing
 * follows. */
static bool read_pair(struct occ_span word, unsigned *ret_first, unsigned *ret_second, bool *ret_is_all)
{
    static const char *const before[] = {"tilesize", "t", ""};
    for (size_t i = 0; i < COUNT(before); i++) {
        size_t at = strlen(before[i]);
        if (word.n <= at || memcmp(word.begin, before[i], at) != 0)
            continue;
        *ret_first = read_number(word, &at);
        if (*ret_first == 0 || at >= word.n || word.begin[at] != 'x')
            return false;
        at++;
        *ret_second = read_number(word, &at);
        *ret_is_all = at == word.n;
        return *ret_second > 0;
    }
    return false;
}

static unsigned read_after(struct occ_span word, const char *prefix)
{
    size_t at = strlen(prefix);
    if (word.n <= at || memcmp(word.begin, prefix, at) != 0)
        return 0;
    unsigned value = read_number(word, &at);
    return at == word.n || isalpha((unsigned char)word.begin[at]) ? value : 0;
}

/* "tn" and "TNT": transposed or not, of the operands and the result. */
static bool is_layout(struct occ_span word)
{
    if (word.n < 2 || word.n > 3)
        return false;
    for (size_t i = 0; i < word.n; i++)
        if (!strchr("nt", tolower((unsigned char)word.begin[i])))
            return false;
    return true;
}

static unsigned architecture_of(struct occ_span word)
{
    static const struct {
        const char *word;
        unsigned cc;
    } chips[] = {{"maxwell", 50}, {"volta", 70}, {"turing", 75}, {"ampere", 80}, {"hopper", 90}};
    for (size_t i = 0; i < COUNT(chips); i++)
        if (equals(word, chips[i].word))
            return chips[i].cc;
    unsigned value = read_after(word, "sm");
    return value >= 20 && value < 1000 ? value : 0;
}

/* Reads a word of a name; the first word of a kind counts. A second pair, "32x6", is the tile's depth and the
 * number of stages. */
static void read_word(struct occ_span word, bool is_after_tile, struct occ_kernel_owner *owner)
{
    unsigned first = 0, second = 0, alignment = read_after(word, "align"), stages = read_after(word, "stage");
    unsigned architecture = architecture_of(word);
    bool is_all = false, is_pair = read_pair(word, &first, &second, &is_all);
    if (is_pair && owner->tile[0] == '\0')
        (void)snprintf(owner->tile, sizeof owner->tile, "%ux%u", first, second);
    else if (is_pair && is_all && is_after_tile && owner->stages == 0)
        owner->stages = (uint16_t)second;
    bool is_stages = is_after_tile && word.n == 2 && word.begin[0] == 's'; /* "s3" of TensorRT-LLM */
    if (owner->stages == 0)
        owner->stages = (uint16_t)(is_stages ? read_after(word, "s") : stages);
    if (owner->alignment == 0)
        owner->alignment = (uint16_t)alignment;
    if (owner->architecture == 0)
        owner->architecture = (uint16_t)architecture;
    if (owner->layout[0] == '\0' && is_layout(word))
        for (size_t i = 0; i < word.n; i++)
            owner->layout[i] = (char)tolower((unsigned char)word.begin[i]);
}

void occ_family_details(struct occ_span text, struct occ_kernel_owner *owner)
{
    static const char cutlass[] = "cutlass_"; /* "cutlass_80_tensorop_..." */
    bool had_tile = false;
    if (text.n > sizeof cutlass && memcmp(text.begin, cutlass, sizeof cutlass - 1) == 0) {
        size_t at = sizeof cutlass - 1;
        owner->architecture = (uint16_t)read_number(text, &at);
    }
    for (size_t i = 0; i < text.n && text.begin[i] != '(';) {
        struct occ_span word = {text.begin + i, 0};
        while (i + word.n < text.n && isalnum((unsigned char)word.begin[word.n]))
            word.n++;
        read_word(word, had_tile, owner);
        had_tile = owner->tile[0] != '\0';
        i += word.n + 1;
    }
}
