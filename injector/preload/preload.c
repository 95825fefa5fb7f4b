/*
 * libocctrace-preload.so: what occtrace puts into LD_PRELOAD. As a program starts, CUDA_INJECTION64_PATH
 * names libocctrace.so, which lies beside this file, and this file's path leaves LD_PRELOAD, so that children
 * inherit the variable only. The driver does the rest in cuInit. If the variable is set already, it is
 * another tool's and stays.
 *
 * It is loaded into programs of every C library: it links none, allocates nothing, calls nothing (bash has a
 * getenv and a setenv of its own), and needs one object that all of them export. For set-user-ID programs the
 * dynamic linker ignores LD_PRELOAD.
 *
 * Thread: the program's first, before main().
 */
#include <stdbool.h>
#include <stddef.h>

extern char **__environ __attribute__((weak));

/* The longest path that the kernel opens, with its end; and the largest environment that is changed. */
enum { PATH_BYTES = 4096, VARIABLES_MAX = 8192 };

static const char own_name[] = "/libocctrace-preload.so", guest_name[] = "/libocctrace.so";
static const char preload[] = "LD_PRELOAD=", injection[] = "CUDA_INJECTION64_PATH=";

/* The new environment, and what is new in it. */
static char *variables[VARIABLES_MAX + 2];
static char variable[sizeof injection + PATH_BYTES];

/* The variable whose text begins so, or NULL. */
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

/* An entry of LD_PRELOAD, which a colon or a blank ends. */
static size_t length_of(const char *entry)
{
    size_t n = 0;
    while (entry[n] != '\0' && entry[n] != ':' && entry[n] != ' ')
        n++;
    return n;
}

/* True, and `variable` is made, if the entry is this file's absolute path. */
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

/* Removes this file from the list, in place: the kernel made the text writable. False: it is not in it. */
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
