/* The guest's own threads: detached, with every signal blocked, and never with real-time scheduling, which a
 * thread inherits from the one that created it. */
#pragma once

#include <stdbool.h>

/* false: the system allows no further thread. */
bool occ_thread_start(void *(*run)(void *), void *context);

/* Call it first in `run`: sets the thread's name and scheduling. */
void occ_thread_settle(void);
