/* Error messages of the readers. Names from files are copied as they are: the caller sanitises them for
 * printing. Pure; any thread. */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

int occ_image_fail(struct occ_image_error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list arguments;
    va_start(arguments, format);
    err->code = code;
    (void)vsnprintf(err->message, sizeof err->message, format, arguments);
    va_end(arguments);
    return code;
}

void occ_image_prefix(struct occ_image_error *err, const char *format, ...)
{
    if (!err)
        return;
    struct occ_image_error before = *err;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(err->message, sizeof err->message, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof err->message)
        (void)snprintf(err->message + length, sizeof err->message - (size_t)length, "%s", before.message);
}
