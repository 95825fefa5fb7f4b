/* Rate-limited log lines. No global state; one thread. */
#include "repeat.h"

#include <stdarg.h>
#include <stdio.h>

void occ_repeat_log(struct occ_repeat *repeat, int64_t now_ns, enum occ_log_level level, const char *format,
                    ...)
{
    if (now_ns < repeat->quiet_until_ns) {
        repeat->left_out++;
        return;
    }
    char text[768];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (repeat->left_out)
        occ_log(level, "%s (%llu more like this before)", text, (unsigned long long)repeat->left_out);
    else
        occ_log(level, "%s", text);
    repeat->left_out = 0;
    repeat->quiet_until_ns = now_ns + OCC_REPEAT_PERIOD_NS;
}
