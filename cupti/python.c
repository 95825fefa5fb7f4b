/* See python.h. */
#include "python.h"
#include "scratch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Minor versions of python3.N to look for. */
#define OLDEST_MINOR 6
#define NEWEST_MINOR 40

struct search {
    void (*found)(void *context, const char *directory);
    void *context;
    char path[PATH_MAX], prefix[PATH_MAX], python[PATH_MAX], target[PATH_MAX];
};

/* Looks below an installation's prefix; Debian's pip and apt use further directories. */
static void look_below(struct search *s, const char *prefix)
{
    char *path = s->path;
    for (unsigned int minor = NEWEST_MINOR; minor >= OLDEST_MINOR; minor--) {
        if (snprintf(path, PATH_MAX, "%s/lib/python3.%u/site-packages", prefix, minor) < PATH_MAX &&
            access(path, X_OK) == 0)
            s->found(s->context, path);
        if (snprintf(path, PATH_MAX, "%s/local/lib/python3.%u/dist-packages", prefix, minor) < PATH_MAX &&
            access(path, X_OK) == 0)
            s->found(s->context, path);
    }
    if (snprintf(path, PATH_MAX, "%s/lib/python3/dist-packages", prefix) < PATH_MAX &&
        access(path, X_OK) == 0)
        s->found(s->context, path);
}

/* Looks beside an interpreter: the prefix is the parent of the interpreter's directory. */
static void look_beside(struct search *s, const char *python)
{
    const char *slash = strrchr(python, '/');
    if (snprintf(s->prefix, sizeof s->prefix, "%.*s/..", (int)(slash - python), python) < PATH_MAX)
        look_below(s, s->prefix);
}

/* Looks in PATH. In a virtual environment, python3 is a link to the installation's python3, which has further
 * packages. */
static void look_in_path(struct search *s)
{
    char *python = s->python, *target = s->target;
    const char *list = secure_getenv("PATH");
    for (size_t n; list && *list; list += n + (list[n] == ':')) {
        n = strcspn(list, ":");
        if (list[0] != '/' || snprintf(python, PATH_MAX, "%.*s/python3", (int)n, list) >= PATH_MAX ||
            access(python, X_OK) != 0)
            continue;
        look_beside(s, python);
        if (realpath(python, target) && strcmp(python, target) != 0)
            look_beside(s, target);
        return;
    }
}

void occ_python_packages(void (*found)(void *context, const char *directory), void *context)
{
    struct search *s = occ_scratch_get(sizeof *s);
    const char *environment = secure_getenv("VIRTUAL_ENV"), *home = secure_getenv("HOME");
    if (!s)
        return;
    s->found = found;
    s->context = context;
    if (environment && environment[0] == '/')
        look_below(s, environment);
    look_in_path(s);
    if (home && home[0] == '/' && snprintf(s->prefix, sizeof s->prefix, "%s/.local", home) < PATH_MAX)
        look_below(s, s->prefix);
    occ_scratch_put(s, sizeof *s);
}
