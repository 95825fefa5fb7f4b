/* The guest's log: silent unless OCCTRACE_LOG is set; then one line at a time to stderr or appended to a
 * file. Allocates nothing, keeps no descriptor open, preserves errno. Any thread. */
#pragma once

/* "": silent, "stderr", or an absolute path. Copied. */
void occ_guest_log_open(const char *target);

void occ_guest_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
