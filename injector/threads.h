/* The guest's own threads: detached, with every signal blocked, and never with real-time scheduling, which a
 * thread inherits from the one that created it. */
#pragma once

#include <stdbool.h>

/* False: the system allows no further thread. */
bool occ_thread_start(void *(*run)(void *), void *context);

/* First in `run`: the thread's name, and its scheduling. */
void occ_thread_settle(void);
