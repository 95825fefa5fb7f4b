/*
 * Ending early and in order: signals end waits instead of the process, so that counter sources are given back
 * and children reaped. One thread.
 */
#pragma once

#include <stdbool.h>

/* From now on SIGTERM, SIGINT and SIGHUP only make gpu_stopped() true. */
void gpu_stop_catch(void);
/* SIGTERM for this process when its parent ends. */
void gpu_stop_with_parent(void);
bool gpu_stopped(void);
/* Seconds since gpu_stop_catch(): experiments leave things out rather than run out of time. */
double gpu_elapsed_s(void);
/* false: a signal came before the time was over. */
bool gpu_sleep(double seconds);
