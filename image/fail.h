/* Error messages of image/. */
#pragma once

#include "image.h"

/* Sets code and message (err may be NULL) and returns `code`. */
int occ_image_fail(struct occ_image_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends context to a message, such as "entry 3 (sm_90) at byte 4711: ". */
void occ_image_prefix(struct occ_image_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
