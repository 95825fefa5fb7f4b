/* See ratelimit.h. No global state. */
#include "ratelimit.h"

#include <stdarg.h>
#include <stdio.h>

void occ_ratelimit_log(struct occ_ratelimit *limit, int64_t now_ns, enum occ_log_level level,
                       const char *format, ...)
{
    if (now_ns < limit->quiet_until_ns) {
        limit->left_out++;
        return;
    }
    char text[768];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (limit->left_out)
        occ_log(level, "%s (%llu similar messages left out)", text, (unsigned long long)limit->left_out);
    else
        occ_log(level, "%s", text);
    limit->left_out = 0;
    limit->quiet_until_ns = now_ns + OCC_RATELIMIT_PERIOD_NS;
}
