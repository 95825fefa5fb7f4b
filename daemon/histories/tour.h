/* What is closed ages too: now and then the next of the owners' histories, in the order of their names, is
 * opened as if a program had come. Its upkeep follows (histories.h), and it is closed when it is idle. One
 * thread. Logs. */
#pragma once

#include "histories.h"

/* The next one is opened some time from now. */
void occ_tour_plan(struct occ_histories *histories, int64_t now_ns);
/* Opens it if its time has come. */
void occ_tour_poll(struct occ_histories *histories, int64_t now_ns);
