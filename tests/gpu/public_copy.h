/*
 * A program of the kit that every user can start: below a directory that only root enters (mktemp -d, /root)
 * it is copied. One thread.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "support/error.h"

struct gpu_public_copy {
    char directory[64];     /* "": nothing was copied */
    char program[PATH_MAX]; /* its path */
};

/* `name`: of a program beside this executable. */
int gpu_public_copy_make(struct gpu_public_copy *copy, const char *name, struct occ_error *err);
void gpu_public_copy_remove(struct gpu_public_copy *copy);
