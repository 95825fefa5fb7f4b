/* The table of status values and their texts for people; see status.h. Any thread. */
#include <time.h>

#include "status.h"
#include "support/text.h"

#define OCC_STATUS_ROW(id, key, kind, label) {key, OCC_STATUS_AS_##kind, label},
const struct occ_status_row occ_status_rows[OCC_STATUS_COUNT] = {OCC_STATUS(OCC_STATUS_ROW)};

static void format_time(double seconds, char text[OCC_STATUS_TEXT_BYTES])
{
    time_t time = (time_t)seconds;
    struct tm tm = {0};
    (void)localtime_r(&time, &tm);
    if (strftime(text, OCC_STATUS_TEXT_BYTES, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        text[0] = '\0';
}

const char *occ_status_format(enum occ_status_kind kind, double number, char text[OCC_STATUS_TEXT_BYTES])
{
    switch (kind) {
    case OCC_STATUS_AS_BYTES:
        return occ_format_bytes((uint64_t)number, text, OCC_STATUS_TEXT_BYTES);
    case OCC_STATUS_AS_SECONDS:
        return number > 0 ? occ_format_duration((int64_t)(number * 1e9), text, OCC_STATUS_TEXT_BYTES) : "0 s";
    case OCC_STATUS_AS_RATIO:
        (void)snprintf(text, OCC_STATUS_TEXT_BYTES, "%.1f %%", 100 * number);
        return text;
    case OCC_STATUS_AS_TIME:
        format_time(number, text);
        return text;
    default:
        (void)snprintf(text, OCC_STATUS_TEXT_BYTES, "%.0f", number);
        return text;
    }
}
