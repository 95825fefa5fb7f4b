/*
 * Why nothing was recorded of a program that ran: what can be found out from outside, after its end. One thread.
 */
#ifndef OCC_CLI_ABSENCE_H
#define OCC_CLI_ABSENCE_H

#include <stddef.h>

/* The file that execvp(3) takes for `name`, as an absolute path where it can be had; "" if none. */
void absence_find_program(const char *name, char *path, size_t size);

/* One line: setuid, statically linked, no CUDA driver, CUDA not initialised. Never NULL. `path`: the program's file. */
const char *absence_reason(const char *path);

#endif
