/*
 * Finds the directories of Python packages from the environment: the packages of $VIRTUAL_ENV, of the python3
 * in PATH, and the user's own. Runs no program. Relative directories in PATH are ignored.
 *
 * Uses libc only; maps memory during a call, and allocates none. Threads: any.
 */
#pragma once

/* Calls `found` with each directory of packages that exists, at most 4096 bytes long with its NUL. */
void occ_python_packages(void (*found)(void *context, const char *directory), void *context);
