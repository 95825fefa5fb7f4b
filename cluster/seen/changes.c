/* See changes.h. */
#include "changes.h"

#define FUTURE_S 60

const char occ_changes_last_sql[] =
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'stored_minute_change'), 0)";

bool occ_changes_must_wait(int64_t now_s, int64_t minute)
{
    int64_t over_s = now_s - (minute + 1) * 60;
    return now_s != 0 && over_s < OCC_CHANGES_WAIT_S && over_s > -FUTURE_S;
}
