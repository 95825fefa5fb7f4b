/* Changed minutes of a history: which of them a pass leaves for later. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Measured values arrive seconds after their launches: a minute sent at once would soon be sent again. */
enum { OCC_CHANGES_WAIT_S = 30 };

/* Returns true if the minute ended less than OCC_CHANGES_WAIT_S before `now_s`; now_s 0: no minute waits. A
 * minute that ends far in the future does not wait: its clock is wrong. */
bool occ_changes_must_wait(int64_t now_s, int64_t minute);

/* The last number that a history ever gave to a change, even if the change's row was deleted. */
extern const char occ_changes_last_sql[];
