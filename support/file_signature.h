/* Detects a change of a file since it was read, by stat(2) before reading and again later. No state. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* All zero: there was no file. */
struct occ_file_signature {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
};

static inline struct occ_file_signature occ_file_signature_of(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return (struct occ_file_signature){.size = 0};
    return (struct occ_file_signature){status.st_dev, status.st_ino, status.st_size, status.st_ctim};
}

static inline bool occ_file_signature_is_same(const struct occ_file_signature *a,
                                              const struct occ_file_signature *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}
