/*
 * libocctrace-preload.so, which occtrace puts into LD_PRELOAD. At a program's start it sets
 * CUDA_INJECTION64_PATH to libocctrace.so, next to this file, and removes this file's path from LD_PRELOAD,
 * so that children inherit only the variable. The driver does the rest in cuInit. A variable that is set
 * already belongs to another tool and stays.
 *
 * The library is loaded into programs with any C library: it links none, allocates nothing, calls no function
 * (bash has its own getenv and setenv), and needs one object that all of them export. The dynamic linker
 * ignores LD_PRELOAD for set-user-ID programs.
 *
 * Thread: the program's first, before main().
 */
#include <stdbool.h>
#include <stddef.h>

extern char **__environ __attribute__((weak));

/* The longest path that the kernel opens, with its NUL; the largest environment that is changed. */
enum { PATH_BYTES = 4096, VARIABLES_MAX = 8192 };

static const char own_name[] = "/libocctrace-preload.so", guest_name[] = "/libocctrace.so";
static const char preload[] = "LD_PRELOAD=", injection[] = "CUDA_INJECTION64_PATH=";

/* The new environment, and its new variable. */
static char *variables[VARIABLES_MAX + 2];
static char variable[sizeof injection + PATH_BYTES];

/* The variable that begins with this text, or NULL. */
static char *find(const char *beginning)
{
    for (char **slot = __environ; *slot; slot++) {
        size_t n = 0;
        while (beginning[n] != '\0' && (*slot)[n] == beginning[n])
            n++;
        if (beginning[n] == '\0')
            return *slot;
    }
    return NULL;
}

/* Length of an entry of LD_PRELOAD, which ends at a colon or a blank. */
static size_t length_of(const char *entry)
{
    size_t n = 0;
    while (entry[n] != '\0' && entry[n] != ':' && entry[n] != ' ')
        n++;
    return n;
}

/* true if the entry is this file's absolute path; then `variable` is filled in. */
static bool is_own(const char *entry, size_t length)
{
    size_t name = sizeof own_name - 1, directory = length - name;
    if (entry[0] != '/' || length <= name || length >= PATH_BYTES)
        return false;
    for (size_t i = 0; i < name; i++)
        if (entry[directory + i] != own_name[i])
            return false;
    for (size_t i = 0; i < sizeof injection - 1; i++)
        variable[i] = injection[i];
    for (size_t i = 0; i < directory; i++)
        variable[sizeof injection - 1 + i] = entry[i];
    for (size_t i = 0; i < sizeof guest_name; i++)
        variable[sizeof injection - 1 + directory + i] = guest_name[i];
    return true;
}

/* Removes this file from the list, in place: the kernel made the text writable. false: the list does not
 * contain it. */
static bool take_out(char *list, bool stays)
{
    char *end = list, *last = NULL;
    for (char *entry = list; *entry != '\0';) {
        size_t bare = length_of(entry), length = bare + (entry[bare] != '\0');
        bool own = is_own(entry, bare);
        for (size_t i = 0; i < length && (stays || !own); i++)
            *end++ = entry[i];
        entry += length;
        last = own ? entry : last;
    }
    if (last && !stays && *last == '\0' && end > list)
        end--; /* the separator before it */
    *end = '\0';
    return last;
}

__attribute__((constructor)) static void on_load(void)
{
    char *list = &__environ && __environ ? find(preload) : NULL;
    if (!list || !take_out(list + sizeof preload - 1, find("OCCTRACE_PRELOAD_ALL=1")))
        return;
    size_t n = 0;
    for (char **slot = __environ; *slot; slot++) {
        if (n == VARIABLES_MAX)
            return;
        if (*slot != list || list[sizeof preload - 1] != '\0')
            variables[n++] = *slot;
    }
    if (!find(injection))
        variables[n] = variable;
    __environ = variables;
}
