/*
 * Readable kernel names. The demangler is the C++ runtime's, through its callback form: a name of 300 bytes can stand
 * for gigabytes of text, and only the callback lets us stop. It keeps its state on the stack, so leaving it with
 * longjmp loses nothing. Names it does not know (longer than 1 KiB, not mangled at all) stay as they are; the short
 * name is then read from the mangled one. Names are other people's: control characters are replaced. Any thread.
 */
#include "demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "text.h"

#define DEMANGLED_MAX_BYTES 16384
#define SHORT_MAX_BYTES     256

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

/* The readable name, or NULL. */
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

/* Past the bracket that closes the one at `s`; the end of the text when none does. "->" and "operator<" do not
 * occur inside template arguments of kernel names often enough to matter: the short name is for reading. */
static const char *skip_brackets(const char *s)
{
    static const char open[] = "<([{", close[] = ">)]}";
    unsigned depth = 0;
    for (; *s; s++) {
        if (strchr(open, *s))
            depth++;
        else if (strchr(close, *s) && --depth == 0)
            return s + 1;
    }
    return s;
}

/* Where the function's own name begins and ends in a demangled name: after the last blank or "::" at the outermost
 * level, before the template arguments and arguments. */
static void find_short(const char *name, const char **ret_begin, const char **ret_end)
{
    const char *begin = name, *end = NULL, *s = name;
    while (*s) {
        if (strncmp(s, "operator", 8) == 0 && !isalnum((unsigned char)s[8]) && s[8] != '_') {
            begin = s;
            s += 8;
            s += strncmp(s, "()", 2) == 0 ? 2 : strspn(s, "+-*/%^&|~!=<>,[]");
            end = s;
            break;
        }
        if (strncmp(s, "(anonymous namespace)", 21) == 0) {
            s += 21;
        } else if (*s == '(') {
            end = s;
            break;
        } else if (*s == '<') {
            const char *after = skip_brackets(s);
            if (*after != ':') {
                end = s;
                if (*after == ' ' && after[1] != '\0' && strchr(after, '(')) {
                    end = NULL; /* "std::vector<int> f(...)": that was the return type */
                    begin = after + 1;
                }
            }
            s = after;
            if (end)
                break;
        } else if (*s == '{') {
            s = skip_brackets(s);
        } else {
            if (*s == ' ' || (s[0] == ':' && s[1] == ':'))
                begin = *s == ' ' ? s + 1 : s + 2;
            s += s[0] == ':' && s[1] == ':' ? 2 : 1;
        }
    }
    *ret_begin = begin;
    *ret_end = end ? end : s;
}

/* The last plain word of "_Z6kernelIiEvT_" or "_ZN2ns6kernelE...": names are a length and that many letters. */
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
    find_short(demangled ? demangled : mangled, &begin, &end);
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
