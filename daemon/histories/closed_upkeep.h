/* Retention in closed histories: at intervals the next owner's history, in the order of their names, is
 * opened as if a program had connected. Its upkeep follows (histories.h), and it is closed when it is idle.
 * One thread. Logs. */
#pragma once

#include "histories.h"

/* Schedules the next opening one interval from now. */
void occ_closed_upkeep_plan(struct occ_histories *histories, int64_t now_ns);
/* Opens the next history if it is due. */
void occ_closed_upkeep_poll(struct occ_histories *histories, int64_t now_ns);
