/*
 * The checks of an experiment in C, and the verdict that follows: refuted if one fails, confirmed if all
 * hold, unclear if nothing could be checked. One thread.
 */
#pragma once

#include <stdbool.h>

#include "report.h"
#include "sampled.h"

struct gpu_checks {
    int held, failed;
};

/* The text says what was seen and what was expected. */
void gpu_check(struct gpu_checks *checks, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum gpu_verdict gpu_checks_verdict(const struct gpu_checks *checks);

/* Why the experiment cannot go on; returns its exit code: 77, or 1 when it is because of a signal. */
int gpu_cannot(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a source that was not read to its end; 1 also when the process that sampled died. */
int gpu_cannot_sample(const char *what, const struct gpu_sampled *seen);

/* `PREFIX.NAME`, for tables of values. */
void gpu_report_value_of(const char *prefix, const char *name, double value, const char *unit);
/* What gpu_sample saw, as `PREFIX.NAME` values. */
void gpu_report_sampled(const char *prefix, const struct gpu_sampled *seen);

/* False for NaN. */
bool gpu_is_near(double value, double expected, double tolerance);
