/* The program's file, looked at before it starts, and why no launches of it were recorded. One thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct program {
    char path[PATH_MAX];  /* absolute where possible; "": not found */
    const char *obstacle; /* why nothing can be recorded of it; NULL: nothing is in the way */
    char other_tool[256]; /* the obstacle, if that is another tool's injection */
    bool takes_preload;   /* its dynamic linker takes 64-bit libraries, and its runtime allows them */
};

/* `name` as execvp(3) finds it; a script stands for its interpreter, but for `path`. `library`: our own, or
 * NULL. */
void program_inspect(const char *name, const char *library, struct program *program);

/* After its end, what can be found out from outside: one line. */
const char *program_no_launches_reason(const struct program *program);
