/* Why no launches of a program were recorded: what can be found out from outside, after its end. One thread.
 */
#ifndef OCC_OCCTRACE_NO_LAUNCHES_H
#define OCC_OCCTRACE_NO_LAUNCHES_H

#include <stddef.h>

/* The file that execvp(3) takes for `name`, as an absolute path where possible; "" if there is none. */
void no_launches_find_program(const char *name, char *path, size_t size);

/* One line: setuid, statically linked, no CUDA driver, CUDA not initialised. Never NULL. `path`: the
 * program's file. */
const char *no_launches_reason(const char *path);

#endif
