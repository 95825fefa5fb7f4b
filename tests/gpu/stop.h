/*
 * Ends a program early and orderly: signals end waits instead of the process, so that counter sources are
 * closed and children reaped. One thread.
 */
#pragma once

#include <stdbool.h>

/* Catches SIGTERM, SIGINT and SIGHUP: they only make gpu_stopped() true. */
void gpu_stop_catch(void);
/* Requests SIGTERM for this process at its parent's end. */
void gpu_stop_with_parent(void);
bool gpu_stopped(void);
/* Returns seconds since gpu_stop_catch(): experiments leave parts out instead of exceeding their time. */
double gpu_elapsed_s(void);
/* Returns false if a signal arrived before the end. */
bool gpu_sleep(double seconds);
