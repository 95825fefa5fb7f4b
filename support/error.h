/*
 * Errors of our own processes: one convention for every library of the project.
 *
 *   int f(..., struct occ_error *err);      0, or a negative OCC_E_* code
 *
 * - `err` may be NULL; then only the code comes back.
 * - The message is set once, where the cause is known, in words for a user; callers may prepend context with
 *   occ_error_prefix(). A function that returns 0 leaves `err` untouched.
 * - `ret_` out-parameters are untouched on failure.
 * - Libraries neither log nor exit: only main.c files, the daemon's loop and CLI commands print.
 *
 * Threads: an occ_error belongs to its caller; nothing here is global.
 */
#pragma once

enum occ_error_code {
    OCC_E_INVALID = -1,   /* an argument or input is not valid */
    OCC_E_NOT_FOUND = -2, /* does not exist */
    OCC_E_IO = -3,        /* a system call failed */
    OCC_E_NO_MEMORY = -4,
    OCC_E_CORRUPT = -5, /* stored or received data is damaged */
    OCC_E_VERSION = -6, /* made by a version that this one cannot read */
    OCC_E_BUSY = -7,    /* in use by another process */
    OCC_E_READ_ONLY = -8,
    OCC_E_FULL = -9,    /* no space, or a limit is reached */
    OCC_E_DENIED = -10, /* permission denied */
    OCC_E_USAGE = -11,  /* wrong usage that shows after a file is read: an argument is no name in it, and no
                           expression */
};

#define OCC_ERROR_MESSAGE_BYTES 512

struct occ_error {
    int code; /* 0 or an OCC_E_* */
    char message[OCC_ERROR_MESSAGE_BYTES];
};

#define OCC_ERROR_INIT                                                                                       \
    {                                                                                                        \
        0, ""                                                                                                \
    }

/* Sets code and message (err may be NULL) and returns `code`, so that `return occ_fail(...)` reads well. */
int occ_fail(struct occ_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* OCC_E_NO_MEMORY. */
int occ_no_memory(struct occ_error *err);

/* Like occ_fail with OCC_E_IO (or the closer code for EACCES, ENOENT, ENOMEM, ENOSPC, EROFS, EBUSY), the
 * message ended by ": " and the text of `error_number`. */
int occ_fail_errno(struct occ_error *err, int error_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends context to a message that is set. Keeps and returns the code; OCC_E_INVALID if err is NULL. */
int occ_error_prefix(struct occ_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
