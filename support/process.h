/*
 * Identifies processes by pid and start time: the kernel reuses the pid of an ended process; and which files
 * they see. No global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Start of a process in clock ticks since the machine's start, from the text of /proc/PID/stat; -1:
 * unknown. */
int64_t occ_process_parse_start(const char *text);

/* The kernel has begun to end the process's main thread, by the text of /proc/PID/stat. */
bool occ_process_parse_ending(const char *text);

/* The same for a process; true also if unknown. */
bool occ_process_is_ending(const char *root, int32_t pid);

/* true if the process is in a pid namespace below the one of `root`/proc, as most containers are, by the line
 * NSpid of /proc/PID/status. false also if unknown. */
bool occ_process_is_nested(const char *root, int32_t pid);

/* Start of a process in nanoseconds since the machine's start (occ_boot_ns); -1: unknown. `root` is "" or the
 * directory that stands for "/" (tests). */
int64_t occ_process_start_boot_ns(const char *root, int32_t pid);

/* Start of a process in nanoseconds since the epoch, by the present setting of the clock; 0: unknown. */
int64_t occ_process_start_ns(const char *root, int32_t pid);

/* True if no process has this pid, or if the process with this pid began after `observed_ns` (with a
 * tolerance of a minute for changed clocks). False also if the start is not readable. */
bool occ_process_is_gone(int32_t pid, int64_t observed_ns);

/* A path means the same file there and here: the process has this one's mount namespace and root directory.
 * False also if the kernel does not tell: it tells root of all processes with no more capabilities, others of
 * their own. */
bool occ_process_shares_files(const char *root, int32_t pid);
