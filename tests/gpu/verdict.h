/*
 * The checks of an experiment in C, and the resulting verdict: refuted if one fails, confirmed if all hold,
 * unclear without checks. One thread.
 */
#pragma once

#include <stdbool.h>

#include "report.h"
#include "sampled.h"

struct gpu_checks {
    int held, failed;
};

/* Adds a check; the text has the measured and the expected value. */
void gpu_check(struct gpu_checks *checks, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum gpu_verdict gpu_checks_verdict(const struct gpu_checks *checks);

/* Reports the reason why the experiment cannot continue; returns its exit code: 77, or 1 after a signal. */
int gpu_cannot(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a source that was not read to its end; 1 also if the sampling process died. */
int gpu_cannot_sample(const char *what, const struct gpu_sampled *seen);

/* Reports a value as `PREFIX.NAME`, for tables. */
void gpu_report_value_of(const char *prefix, const char *name, double value, const char *unit);
/* Reports gpu_sample's results as `PREFIX.NAME` values. */
void gpu_report_sampled(const char *prefix, const struct gpu_sampled *seen);

/* Returns false for NaN. */
bool gpu_is_near(double value, double expected, double tolerance);
