/* Inspects the program's file before the start, and finds the reason if the program recorded no launches. One
 * thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct program {
    char path[PATH_MAX];  /* absolute where possible; "": not found */
    const char *obstacle; /* reason why no launches can be recorded; NULL: none */
    char other_tool[256]; /* text of the obstacle, if it is another tool's injection */
    /* the program's dynamic linker loads 64-bit libraries, and its runtime allows them */
    bool takes_preload;
};

/* Finds `name` like execvp(3). A script is replaced by its interpreter, except in `path`. `library`:
 * occtrace's own injected library; NULL: none. */
void program_inspect(const char *name, const char *library, struct program *program);

/* After the program's end: one line with the reason found from outside the program. */
const char *program_no_launches_reason(const struct program *program);
