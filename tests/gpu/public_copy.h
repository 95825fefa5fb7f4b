/*
 * Makes a program of the kit that every user can start: copies it if only root can enter its directory
 * (mktemp -d, /root). One thread.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "support/error.h"

struct gpu_public_copy {
    char directory[64];     /* "": no copy */
    char program[PATH_MAX]; /* its path */
};

/* `name`: a program beside this executable. */
int gpu_public_copy_make(struct gpu_public_copy *copy, const char *name, struct occ_error *err);
void gpu_public_copy_remove(struct gpu_public_copy *copy);
