/* Detects that CUPTI no longer returns times, over windows of several seconds, so that a few bad records do
 * not make the level flicker. Pure; threads: the helper only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OCC_WATCH_ROUNDS  10u   /* length of a window in seconds */
#define OCC_WATCH_RECORDS 1000u /* fewer records in a window are no evidence */

struct occ_watch {
    bool is_without_times; /* more than half of a window's records had no times */
    uint32_t rounds;
    uint64_t records, bad; /* totals at the start of the window */
};

/* Call it once a second with totals since the start. true: is_without_times changed. */
static inline bool occ_watch_round(struct occ_watch *watch, uint64_t records, uint64_t bad)
{
    uint64_t in_window = records - watch->records, bad_in_window = bad - watch->bad;
    bool before = watch->is_without_times;
    if (++watch->rounds < OCC_WATCH_ROUNDS)
        return false;
    if (in_window >= OCC_WATCH_RECORDS)
        watch->is_without_times = bad_in_window > in_window / 2;
    watch->rounds = 0;
    watch->records = records;
    watch->bad = bad;
    return watch->is_without_times != before;
}
