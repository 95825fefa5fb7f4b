/*
 * Processes by their number and start: the kernel gives the number of a process that ended to another one. No
 * global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Start of a process in clock ticks since the machine's start, from the text of /proc/PID/stat; -1: unknown.
 */
int64_t occ_process_parse_start(const char *text);

/* The kernel has begun to end the process's main thread, by the text of /proc/PID/stat. */
bool occ_process_parse_ending(const char *text);

/* The same of a process; true also where that is unknown. */
bool occ_process_is_ending(const char *root, int32_t pid);

/* Start of a process in nanoseconds since the machine's start (occ_boot_ns); -1: unknown. `root` is "" or the
 * directory that stands for "/" (tests). */
int64_t occ_process_start_boot_ns(const char *root, int32_t pid);

/* The same since the epoch, by the clock as it is set now; 0: unknown. */
int64_t occ_process_start_ns(const char *root, int32_t pid);

/* No process has this pid, or the process that has it began after `observed_ns`. A minute is allowed for
 * clocks that were set. false also where the start cannot be read. */
bool occ_process_is_gone(int32_t pid, int64_t observed_ns);
