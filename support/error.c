/* Error messages: formatting only, no state. May be entered from any thread. */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int occ_fail(struct occ_error *err, int code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        (void)vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
    }
    return code;
}

static int code_of_errno(int error_number)
{
    switch (error_number) {
    case EACCES:
    case EPERM:
        return OCC_E_DENIED;
    case ENOENT:
        return OCC_E_NOT_FOUND;
    case ENOMEM:
        return OCC_E_NO_MEMORY;
    case ENOSPC:
    case EDQUOT:
        return OCC_E_FULL;
    case EROFS:
        return OCC_E_READ_ONLY;
    case EBUSY:
    case EADDRINUSE:
        return OCC_E_BUSY;
    default:
        return OCC_E_IO;
    }
}

int occ_no_memory(struct occ_error *err)
{
    return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
}

int occ_fail_errno(struct occ_error *err, int error_number, const char *format, ...)
{
    int code = code_of_errno(error_number);
    if (err) {
        char reason[128];
        va_list args;
        va_start(args, format);
        err->code = code;
        int used = vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        size_t at = used < 0 ? 0 : (size_t)used;
        if (at < sizeof err->message)
            (void)snprintf(err->message + at, sizeof err->message - at, ": %s",
                           strerror_r(error_number, reason, sizeof reason));
    }
    return code;
}

int occ_error_prefix(struct occ_error *err, const char *format, ...)
{
    if (!err)
        return OCC_E_INVALID;
    char old[OCC_ERROR_MESSAGE_BYTES];
    memcpy(old, err->message, sizeof old);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    size_t at = used < 0 ? 0 : (size_t)used;
    if (at < sizeof err->message)
        (void)snprintf(err->message + at, sizeof err->message - at, ": %s", old);
    return err->code;
}
