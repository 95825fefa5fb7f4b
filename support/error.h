/*
 * Errors of our own processes: one convention for every library of the project.
 *
 *   int f(..., struct occ_error *err);      0, or a negative OCC_E_* code
 *
 * - `err` may be NULL; then only the code comes back.
 * - The message is set once, where the cause is known, in words for a user; callers may put context in front
 *   with occ_error_prefix(). A function that returns 0 leaves `err` alone.
 * - `ret_` out-parameters are untouched on failure.
 * - Libraries neither log nor exit: only main.c files, the daemon's loop and CLI commands print.
 *
 * Threads: an occ_error belongs to its caller; nothing here is global.
 */
#ifndef OCC_SUPPORT_ERROR_H
#define OCC_SUPPORT_ERROR_H

/* X(name, value, what it means) */
#define OCC_ERROR_CODES(X)                                                                                   \
    X(OCC_E_INVALID, -1, "an argument or input is not valid")                                                \
    X(OCC_E_NOT_FOUND, -2, "what was asked for does not exist")                                              \
    X(OCC_E_IO, -3, "the system refused an operation")                                                       \
    X(OCC_E_NO_MEMORY, -4, "memory could not be had")                                                        \
    X(OCC_E_CORRUPT, -5, "stored or received bytes make no sense")                                           \
    X(OCC_E_VERSION, -6, "from a version that this one does not read")                                       \
    X(OCC_E_BUSY, -7, "in use by somebody else")                                                             \
    X(OCC_E_READ_ONLY, -8, "writing is not allowed")                                                         \
    X(OCC_E_FULL, -9, "no space, or a limit reached")                                                        \
    X(OCC_E_DENIED, -10, "permission missing")

enum occ_error_code {
#define X(name, value, text) name = value,
    OCC_ERROR_CODES(X)
#undef X
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

/* Like occ_fail with OCC_E_IO (or the closer code for EACCES, ENOENT, ENOMEM, ENOSPC, EROFS, EBUSY), the
 * message ended by ": " and the text of `error_number`. */
int occ_fail_errno(struct occ_error *err, int error_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts context in front of a message that is already set. Keeps the code; returns it. With NULL, OCC_E_INVALID: the code
 * travelled with the message. */
int occ_error_prefix(struct occ_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
