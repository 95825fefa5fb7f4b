/*
 * Cleanup at the end of a scope, for our own processes (gcc and clang attribute).
 *
 *   _cleanup_(occ_freep) char *name = NULL;
 *   _cleanup_(occ_closep) int fd = -1;
 *
 * Destructors accept NULL, -1 and half-built objects.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

static inline void occ_freep(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

static inline void occ_closep(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* Closes the descriptor if it is open, and sets it to -1. */
static inline void occ_close_fd(int *fd)
{
    occ_closep(fd);
    *fd = -1;
}

static inline void occ_fclosep(FILE **file)
{
    if (*file)
        (void)fclose(*file);
}

/* Defines TYPE_freep() for _cleanup_; `free_it` destroys an object of the type. */
#define OCC_CLEANUP(type, free_it)                                                                           \
    static inline void type##_freep(struct type **object)                                                    \
    {                                                                                                        \
        free_it(*object);                                                                                    \
    }

/* Moves ownership out of a cleaned-up variable. */
#define occ_take(pointer)                                                                                    \
    __extension__({                                                                                          \
        __typeof__(pointer) occ_taken_ = (pointer);                                                          \
        (pointer) = NULL;                                                                                    \
        occ_taken_;                                                                                          \
    })
