/* Normalised names; see names.h. Any thread. */
#include "names.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { HASH_DIGITS_MIN = 8 };

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static size_t count_digits(const char *text, size_t n)
{
    size_t digits = 0;
    while (digits < n && isdigit((unsigned char)text[digits]))
        digits++;
    return digits;
}

static bool starts_with(const char *text, size_t n, const char *start)
{
    size_t length = strlen(start);
    return n >= length && memcmp(text, start, length) == 0;
}

/* The length of a word without "_" and its last part, if that is a counter or a hash. */
static size_t strip_suffix(const char *word, size_t n)
{
    size_t at = n, digits = 0;
    while (at > 0 && isxdigit((unsigned char)word[at - 1]) && !isupper((unsigned char)word[at - 1]))
        digits += isdigit((unsigned char)word[--at]) ? 1 : 0;
    if (at < 2 || word[at - 1] != '_' || digits == 0)
        return n;
    bool is_counter = digits == n - at && starts_with(word, n, "triton_");
    return is_counter || n - at >= HASH_DIGITS_MIN ? at - 1 : n;
}

/* The length of a tile size at the start of the text: "64x64_32x6", "128x128x8"; 0: there is none. */
static size_t tile_length(const char *text, size_t n)
{
    size_t end = 0, at = count_digits(text, n);
    while (at > 0 && at < n && (text[at] == 'x' || (end && text[at] == '_'))) {
        bool is_size = text[at] == 'x';
        size_t more = count_digits(text + at + 1, n - at - 1);
        if (more == 0)
            break;
        at += 1 + more;
        end = is_size ? at : end;
    }
    return end;
}

/* Copies a word that begins with a letter, with "#" for numbers of static functions and, if `loose`, for tile
 * sizes; returns the end of the copy. */
static char *copy_word(const char *word, size_t n, bool loose, char *out)
{
    bool is_static = starts_with(word, n, "__nv_static_");
    n = strip_suffix(word, n);
    for (size_t i = 0; i < n; i++) {
        bool is_first = i == 0 || !isdigit((unsigned char)word[i - 1]);
        size_t number = is_static ? count_digits(word + i, n - i) : 0;
        if (loose && number == 0 && is_first)
            number = tile_length(word + i, n - i);
        *out++ = number ? '#' : word[i];
        i += number ? number - 1 : 0;
    }
    return out;
}

void diff_normalise_name(const char *demangled, bool loose, char *out)
{
    const char *at = demangled, *end;
    while (*at) {
        size_t n = 0;
        while (is_word(at[n]))
            n++;
        if (n == 0 && strncmp(at, "[abi:", 5) == 0 && (end = strchr(at, ']'))) {
            at = end + 1;
        } else if (n == 0) {
            *out++ = *at++;
        } else if (!isdigit((unsigned char)*at) && !starts_with(at, n, "_GLOBAL__N_") &&
                   !starts_with(at, n, "_INTERNAL_")) {
            out = copy_word(at, n, loose, out);
        } else if (isdigit((unsigned char)*at) && !loose && (at == demangled || at[-1] != '#')) {
            memcpy(out, at, n);
            out += n;
        } else {
            *out++ = '#';
        }
        at += n;
    }
    *out = '\0';
}
