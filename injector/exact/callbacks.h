/* CUPTI's callbacks around launches, captures and the end of contexts: they begin and end sessions
 * (profiler.h). */
#pragma once

#include "profiler.h"

/* Subscribes and turns measuring on; false with the problem set. By the thread that initialises CUDA. */
bool occ_exact_watch(struct occ_exact *exact);

/* Ends the sessions of all contexts. The caller holds `lock` and has turned measuring off. */
void occ_exact_end_all(struct occ_exact *exact);
