/* Regular expressions with a bound; see regexp.h. */
#include "regexp.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* glibc keeps a state of up to about 10 KiB for each byte that it reads first in a new context, until
 * regfree(3). An expression is compiled again after this number of bytes. */
#define RENEWAL_BYTES 8192u

struct occ_regexp {
    regex_t compiled;
    char *pattern;
    size_t read_bytes; /* bytes read since the expression was compiled */
};

/* The end of a bracket expression; its '[' is before `at`. */
static const char *skip_brackets(const char *at)
{
    at += *at == '^';
    at += *at == ']';
    while (*at && *at != ']') {
        const char close[] = {at[1], ']', '\0'};
        const char *end = *at == '[' && at[1] && strchr(":.=", at[1]) ? strstr(at + 2, close) : NULL;
        at = end ? end + 2 : at + 1;
    }
    return at + (*at == ']');
}

/* The maximum number of copies that "{2,5}" makes, plus one for a "*" in place of an upper limit; `at` is
 * after the '{'. */
static double copies(const char *at)
{
    char *end = NULL;
    unsigned long low = strtoul(at, &end, 10), high = *end == ',' ? strtoul(end + 1, NULL, 10) : 0;
    return 2 + (double)(low > high ? low : high);
}

/* The reason not to compile the expression; NULL: none. */
static const char *find_fault(const char *at)
{
    /* nodes by depth of groups; nodes of the last operand */
    double nodes[OCC_REGEXP_MAX_DEPTH] = {0}, last = 0;
    size_t depth = 0;
    while (*at) {
        char c = *at++;
        double before = last;
        if (c == '(' && ++depth == OCC_REGEXP_MAX_DEPTH)
            return "its groups are too deep";
        if (c == '\\' && *at >= '1' && *at <= '9')
            return "back-references are not supported";
        if (c == '(') {
            nodes[depth] = before = last = 1;
        } else if (c == ')' && depth > 0) {
            last = nodes[depth--];
            before = 0;
        } else if (strchr("*+?{", c)) {
            last = c == '{' ? last * copies(at) : 2 * last;
        } else {
            at = c == '[' ? skip_brackets(at) : at + (c == '\\' && *at);
            last = 1;
            before = 0;
        }
        nodes[depth] += last - before;
        if (!(nodes[depth] <= OCC_REGEXP_MAX_NODES))
            return "it is too long with its repetitions";
    }
    return NULL;
}

static int compile(const char *pattern, regex_t *ret_regex, struct occ_error *err)
{
    char text[128];
    const char *fault = find_fault(pattern);
    int code = fault ? 0 : regcomp(ret_regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (code == REG_ESPACE)
        return occ_no_memory(err);
    if (code != 0) {
        (void)regerror(code, ret_regex, text, sizeof text);
        fault = text;
    }
    return fault ? occ_fail(err, OCC_E_INVALID, "'%.64s' is not a regular expression: %s", pattern, fault)
                 : 0;
}

int occ_regexp_compile(const char *pattern, struct occ_regexp **ret_regexp, struct occ_error *err)
{
    struct occ_regexp *r = calloc(1, sizeof *r);
    char *copy = strdup(pattern);
    int status = r && copy ? compile(pattern, &r->compiled, err) : occ_no_memory(err);
    if (status != 0) {
        free(copy);
        free(r);
        return status;
    }
    r->pattern = copy;
    *ret_regexp = r;
    return 0;
}

void occ_regexp_free(struct occ_regexp *r)
{
    if (!r)
        return;
    regfree(&r->compiled);
    free(r->pattern);
    free(r);
}

/* Compiles the expression again to free glibc's states. Without memory the old states stay, which fit into
 * memory. */
static void renew(struct occ_regexp *r)
{
    regex_t fresh;
    r->read_bytes = 0;
    if (regcomp(&fresh, r->pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return;
    regfree(&r->compiled);
    r->compiled = fresh;
}

bool occ_regexp_matches(struct occ_regexp *r, const char *text)
{
    size_t n = strnlen(text, OCC_REGEXP_MAX_TEXT);
    regmatch_t part = {.rm_so = 0, .rm_eo = (regoff_t)n};
    int flags = REG_STARTEND | (text[n] != '\0' ? REG_NOTEOL : 0);
    if (r->read_bytes + n > RENEWAL_BYTES)
        renew(r);
    r->read_bytes += n;
    return regexec(&r->compiled, text, 0, &part, flags) == 0;
}
