/* Checks that match a pattern against the lines of files, of a variable or of the probe's output; see
 * doctor.h. One thread. */
#include "doctor.h"

#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"

#define TEXT_BYTES 65536

size_t doctor_glob(const struct doctor_machine *machine, const char *pattern, glob_t *ret_paths)
{
    char below[PATH_MAX];
    (void)snprintf(below, sizeof below, "%s%s", machine->root, pattern);
    *ret_paths = (glob_t){0};
    return glob(below, GLOB_BRACE, NULL, ret_paths) == 0 ? ret_paths->gl_pathc : 0;
}

/* Reads the first `size` - 1 bytes. Returns false for an empty or unreadable file. */
static bool read_file(const char *path, char *text, size_t size)
{
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, size - 1, file) : 0;
    text[n] = '\0';
    return n > 0;
}

bool doctor_match(const char *text, const char *pattern, char *found)
{
    regex_t expression;
    regmatch_t group[2];
    const char *at = text;
    bool matched = false;
    if (regcomp(&expression, pattern, REG_EXTENDED | REG_NEWLINE) != 0)
        return false;
    while (at && regexec(&expression, at, 2, group, 0) == 0) {
        doctor_append(found, "%.*s", (int)(group[1].rm_eo - group[1].rm_so), at + group[1].rm_so);
        matched = true;
        at = strchr(at + group[0].rm_eo, '\n');
        at = at ? at + 1 : NULL;
    }
    regfree(&expression);
    return matched;
}

static bool matches(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    static char text[TEXT_BYTES];
    glob_t paths;
    bool matched = false;
    const char *value = check->source[0] == '$' ? getenv(check->source + 1) : machine->probe;
    if (check->source[0] != '/')
        return value && doctor_match(value, check->pattern, found);
    size_t n = doctor_glob(machine, check->source, &paths);
    for (size_t i = 0; i < n; i++)
        matched |=
            read_file(paths.gl_pathv[i], text, sizeof text) && doctor_match(text, check->pattern, found);
    globfree(&paths);
    return matched;
}

bool doctor_must(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    bool matched = matches(machine, check, found);
    if (!matched)
        doctor_append(found, "none");
    return matched;
}

bool doctor_must_not(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    return !matches(machine, check, found);
}

bool doctor_may(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    (void)matches(machine, check, found);
    return true;
}

bool doctor_if_set(const struct doctor_machine *machine, const struct doctor_check *check, char *found)
{
    const char *value = getenv(check->source + 1);
    bool fine = !value || matches(machine, check, found);
    found[0] = '\0'; /* a row with doctor_may shows a value that matches */
    if (!fine)
        doctor_append(found, "%s", value);
    return fine;
}
