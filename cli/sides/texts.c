/* See texts.h. */
#include "texts.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "support/text.h"

const char *diff_duration_text(double ns, char buffer[32])
{
    return isnan(ns) ? "-" : occ_format_duration((int64_t)llround(ns), buffer, 32);
}

const char *diff_change_text(double change, char buffer[16])
{
    (void)snprintf(buffer, 16, isfinite(change) ? "%+.1f%%" : "-", 100 * change);
    return buffer;
}
