/*
 * Which share of GPU time is recorded, and the reasons for the rest (table.h).
 *
 * A scan compares NVML's compute processes with the programs that report. A program with launches that is
 * missing in NVML's list (a driver without list, another pid namespace) has a row without GPU. A scan starts
 * when a reader of the table asks for it, at most every 10 s, so an idle daemon sleeps; readers get the table
 * of the last scan that has ended. NVML and /proc may block: a scan has a thread of its own, which ends with
 * the scan. A scan that never ends stops further scans; the loop goes on.
 *
 * A reason holds for a minute unless the process begins or ends to report.
 *
 * Threads: the daemon's loop calls every function here; the mutex guards the table and the state of a scan.
 */
#pragma once

#include "table.h"

struct occ_coverage;

struct occ_coverage_options {
    const char *root;      /* prefix of system paths, for tests; NULL: "" */
    const char *socket;    /* the daemon's */
    const char *nvml_path; /* NULL: libnvidia-ml.so.1 */
    int64_t interval_ns;   /* shortest interval between the starts of two scans; 0: 10 s */
};

int occ_coverage_new(const struct occ_coverage_options *options, struct occ_coverage **ret_coverage,
                     struct occ_error *err);
/* Waits at most a second for a running scan; then its thread frees the memory. NULL is allowed. */
void occ_coverage_free(struct occ_coverage *coverage);

/* A program that reports. */
struct occ_coverage_program {
    int32_t pid;
    int64_t start_boot_ns; /* -1: unknown */
    bool is_quiet;         /* it reports that it records nothing */
    bool has_launches;     /* it has reported launches: it holds a GPU */
};

/* true if a scan may start now. */
bool occ_coverage_is_due(struct occ_coverage *coverage, int64_t now_ns);
/* Starts a scan with these programs. Without memory or a thread, the next call tries again. */
void occ_coverage_scan(struct occ_coverage *coverage, const struct occ_coverage_program *programs, size_t n,
                       int64_t now_ns);
/* true while a scan runs. */
bool occ_coverage_is_scanning(struct occ_coverage *coverage);

/* The table of the last scan, until occ_coverage_return(). */
const struct occ_coverage_table *occ_coverage_borrow(struct occ_coverage *coverage);
void occ_coverage_return(struct occ_coverage *coverage);
