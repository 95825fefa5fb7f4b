/*
 * Demangled and short names of kernels. The demangler is the C++ runtime's, in its callback form: a name of
 * 300 bytes can expand to gigabytes, and only the callback can stop the expansion. The demangler keeps its
 * state on the stack, so that longjmp leaks nothing. Unknown names (longer than 1 KiB, or not
 * mangled) stay as they are; then the short name comes from the mangled name. Any thread.
 */
#include "demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/error.h"
#include "support/text.h"

#define DEMANGLED_MAX_BYTES 16384
#define SHORT_MAX_BYTES     256
#define BRACKETS_MAX        256 /* depth of nested brackets */

#ifdef OCC_HAVE_DEMANGLER
int __gcclibcxx_demangle_callback(const char *mangled, void (*callback)(const char *, size_t, void *),
                                  void *opaque);

struct output {
    jmp_buf too_long;
    size_t size;
    char text[DEMANGLED_MAX_BYTES + 1];
};

static void collect(const char *part, size_t n, void *opaque)
{
    struct output *out = opaque;
    if (n > DEMANGLED_MAX_BYTES - out->size)
        longjmp(out->too_long, 1);
    memcpy(out->text + out->size, part, n);
    out->size += n;
}

static bool demangle_into(struct output *out, const char *mangled)
{
    return setjmp(out->too_long) == 0 && __gcclibcxx_demangle_callback(mangled, collect, out) == 0;
}

/* NULL: not a mangled name, too long, or no memory. */
static char *demangle(const char *mangled)
{
    struct output *out = malloc(sizeof *out);
    char *name = NULL;
    if (!out)
        return NULL;
    out->size = 0;
    if (demangle_into(out, mangled)) {
        out->text[out->size] = '\0';
        name = strdup(out->text);
    }
    free(out);
    return name;
}
#else
static char *demangle(const char *mangled)
{
    (void)mangled;
    return NULL;
}
#endif

const char *occ_demangled_skip_brackets(const char *s)
{
    static const char open[] = "<([{", close[] = ">)]}";
    char expected[BRACKETS_MAX];
    size_t depth = 0;
    for (; *s; s++) {
        const char *opens = strchr(open, *s);
        if (opens && depth < BRACKETS_MAX)
            expected[depth++] = close[opens - open];
        else if (depth > 0 && *s == expected[depth - 1] && --depth == 0)
            return s + 1;
    }
    return s;
}

#define ANONYMOUS       "(anonymous namespace)"
#define STARTS(s, text) (strncmp(s, text, sizeof text - 1) == 0)

/* The position after "operator()", "operator+" and so on at `s`; NULL: none. */
static const char *skip_operator(const char *s)
{
    if (!STARTS(s, "operator") || isalnum((unsigned char)s[8]) || s[8] == '_')
        return NULL;
    s += 8;
    return s + (STARTS(s, "()") ? 2 : strspn(s, "+-*/%^&|~!=<>,[]"));
}

void occ_demangled_base(const char *name, const char **ret_begin, const char **ret_end)
{
    const char *s = name, *after;
    *ret_begin = name;
    while (*s) {
        if ((after = skip_operator(s))) {
            *ret_begin = s;
            s = after;
            break;
        }
        size_t step = STARTS(s, ANONYMOUS) ? sizeof ANONYMOUS - 1 : STARTS(s, "::") ? 2 : 1;
        if (*s == '<' || *s == '{') {
            after = occ_demangled_skip_brackets(s);
            bool return_type =
                *after == ' ' && after[1] != '\0' && strchr(after, '('); /* "vector<int> f(...)" */
            if (*s == '<' && *after != ':' && !return_type)
                break;
            if (*s == '<' && return_type)
                *ret_begin = after + 1;
            s = after;
        } else if (*s == '(' && step == 1) {
            break;
        } else {
            if (*s == ' ' || STARTS(s, "::"))
                *ret_begin = s + step;
            s += step;
        }
    }
    *ret_end = s;
}

/* The last identifier of "_Z6kernelIiEvT_" or "_ZN2ns6kernelE...": a length and that many characters. */
static char *short_from_mangled(const char *mangled)
{
    const char *s = mangled + 2, *word = NULL;
    size_t length = 0, left = strlen(s);
    if (*s == 'N')
        s += 1 + strspn(s + 1, "rVK");
    while (isdigit((unsigned char)*s)) {
        size_t n = 0;
        while (isdigit((unsigned char)*s) && n < 100000)
            n = n * 10 + (size_t)(*s++ - '0');
        left = strlen(s);
        if (n == 0 || n > left)
            break;
        word = s;
        length = n;
        s += n;
    }
    return word ? strndup(word, length < SHORT_MAX_BYTES ? length : SHORT_MAX_BYTES) : NULL;
}

static char *short_name(const char *mangled, const char *demangled)
{
    const char *begin = NULL, *end = NULL;
    if (!demangled && strncmp(mangled, "_Z", 2) == 0) {
        char *word = short_from_mangled(mangled);
        if (word)
            return word;
    }
    occ_demangled_base(demangled ? demangled : mangled, &begin, &end);
    size_t n = (size_t)(end - begin);
    if (n == 0)
        return strndup(demangled ? demangled : mangled, SHORT_MAX_BYTES);
    return strndup(begin, n < SHORT_MAX_BYTES ? n : SHORT_MAX_BYTES);
}

int occ_demangle(const char *mangled, char **ret_demangled, char **ret_short)
{
    _cleanup_(occ_freep) char *readable = strncmp(mangled, "_Z", 2) == 0 ? demangle(mangled) : NULL;
    _cleanup_(occ_freep) char *shorter = short_name(mangled, readable);
    if (!readable)
        readable = strdup(mangled);
    if (!readable || !shorter)
        return OCC_E_NO_MEMORY;
    occ_text_sanitise(readable);
    occ_text_sanitise(shorter);
    *ret_demangled = occ_take(readable);
    *ret_short = occ_take(shorter);
    return 0;
}
