/*
 * Log lines of our own processes, on stderr only: "occtraced: level: text", or for journald "<priority>text";
 * one write(2) per line, so that lines of several threads and processes do not mix. Level from
 * OCCTRACE_LOG=error|warning|info|debug (default warning) or occ_log_set_level(). Only main functions, the
 * daemon's loop and CLI commands log.
 *
 * Threads: set name and level before other threads start; occ_log() may be called from any thread.
 */
#pragma once

enum occ_log_level { OCC_LOG_ERROR, OCC_LOG_WARNING, OCC_LOG_INFO, OCC_LOG_DEBUG };

/* `program` must outlive all logging (a literal). Reads OCCTRACE_LOG; an unknown level there keeps the
 * default. */
void occ_log_init(const char *program);
void occ_log_set_level(enum occ_log_level level);
void occ_log(enum occ_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
