/*
 * A store in memory for tests of the collector: the functions of store/store.h that the daemon calls, with a
 * transaction that can be discarded (a crash) and faults on demand. The tests link it before the real
 * library, so its functions take precedence.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/measured.h"
#include "store/store.h"

#define FAKE_ROWS   (1u << 20)
#define FAKE_THINGS 64

struct fake_row {
    int64_t run, device;
    struct occ_store_launch launch;
};

struct fake_run {
    struct occ_run row; /* its strings dangle; the members below are copies */
    char exe[5000], session[64], level[16], reason[400], hostname[300];
    char losses[256], costs[256]; /* "word count " ... */
    char periods[1024];           /* "level from-until reason;" each; a dropped one is "dropped from;" */
    bool ended;
};

struct fake_position {
    uint8_t uuid[16];
    uint64_t next, measured;
};

struct fake_state {
    size_t n_rows, n_runs, n_positions;
    struct fake_run runs[FAKE_THINGS];
    struct fake_position positions[FAKE_THINGS];
    struct occ_measured_sums measured; /* sum over all configurations */
};

struct occ_store {
    struct fake_row *rows;
    struct fake_state now, committed;
    struct occ_store_device devices[FAKE_THINGS];
    char device_names[FAKE_THINGS][100];
    char ranges[FAKE_THINGS][64];
    uint32_t n_devices, n_kernels, n_shapes, n_ranges;
    uint64_t commits, puts;
    uint64_t models; /* number of reads of a configuration's model */
    size_t n_measured, n_values, n_samples, n_seconds;
    int64_t measured_run, values_device, samples_device, seconds_device; /* arguments of the last calls */
    int64_t energy_mj[FAKE_THINGS], energy_ns[FAKE_THINGS];              /* sums, by device */
    uint32_t measured_config;
    struct occ_launch_value last_value;
    int fail_samples; /* an OCC_E_* until the test sets 0 */
    uint64_t memory_bytes;
    /* an OCC_E_* until the test sets 0 */
    int fail_append, fail_commit, fail_put, fail_end;
    int64_t fail_device; /* only appends to this device fail; 0: to all */
};

struct occ_store *fake_store_new(void);
void fake_store_free(struct occ_store *store);
/* Discards the uncommitted transaction. */
void fake_store_crash(struct occ_store *store);
