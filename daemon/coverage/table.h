/*
 * The processes on GPUs with their reasons, and the GPU time by reason.
 *
 * GPU time is the time during which processes hold a GPU, or an instance of one: NVML lists them. It is
 * divided equally between the processes that hold the GPU. A holder that launches nothing counts like a busy
 * one. The table is brought up to date by scans: the time between two scans has the processes of the later
 * one, so each start or end of a process is uncertain by the interval of scans. An interval of more than
 * OCC_COVERAGE_GAP_NS is not counted. Pure; one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evidence.h"
#include "gpu_processes.h"

#define OCC_COVERAGE_GAP_NS INT64_C(300000000000)

/* A process on one GPU; a process on two GPUs has two rows. */
struct occ_coverage_row {
    char gpu[OCC_GPU_NAME_BYTES]; /* "": missing in NVML's list */
    int32_t pid;
    bool has_identity;     /* uid, start and name are known */
    int64_t start_boot_ns; /* -1: unknown */
    uint32_t uid;
    char name[OCC_EVIDENCE_NAME_BYTES];
    enum occ_coverage_reason reason;
    int64_t judged_ns; /* monotonic time of the evidence for the reason */
    double held_s;     /* the process's part of the GPU's time, since it has had this reason;
                          NaN: no GPU */
};

struct occ_coverage_table {
    uint64_t scans;                           /* number of scans, failed ones too */
    int64_t scanned_ns;                       /* monotonic time of the last scan; 0: none, or it failed */
    char problem[256];                        /* why the last scan failed; "": it succeeded */
    double held_s[OCC_COVERAGE_REASON_COUNT]; /* of ended processes too */
    size_t dropped;                           /* processes without a row, whose reason is unknown */
    unsigned int n_refused;                   /* see gpu_processes.h */
    size_t n;
    struct occ_coverage_row rows[OCC_GPU_PROCESSES_MAX]; /* rows without a GPU are the last */
};

/* The row of the same process on any GPU; NULL: none. */
const struct occ_coverage_row *occ_coverage_table_find(const struct occ_coverage_table *table, int32_t pid,
                                                       int64_t start_boot_ns);

/* Completes `next`, whose rows have everything but held_s, with the times of `previous` and of the interval
 * until `now_ns` (monotonic). */
void occ_coverage_table_advance(struct occ_coverage_table *next, const struct occ_coverage_table *previous,
                                int64_t now_ns);
