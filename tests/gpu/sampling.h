/*
 * Reads a counter source for a while, for the counter experiments. Wraps daemon/sampling/counters/source.h
 * and adds the samples themselves, the processor time of reading, and means.
 *
 * One thread. gpu_sampling_close() closes a source; experiments that end early call it before they
 * exit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sampling/counters/source.h"

struct sampling {
    const struct occ_source_kind *kind;
    struct occ_source *source; /* NULL: could not be opened, see state and error */
    enum occ_source_state state;
    struct occ_error error;
    struct occ_sample *samples; /* all samples, oldest first */
    size_t n, room;
    int64_t read_every_ns, next_read_ns;
    int64_t interval_ns;
    uint64_t reads, full_reads;
    double cpu_s; /* processor time of the process in read() */
};

/* Means over the samples with the needed counters; NaN without such samples. */
struct sampling_means {
    double achieved;      /* warps / (active x maximum warps) */
    double elapsed;       /* warps / (elapsed x SMs x maximum warps) */
    double sm_active;     /* active / (elapsed x SMs) */
    double blocks;        /* resident blocks of an active SM */
    double block_us;      /* a block's duration, from resident and launched blocks (Little's law) */
    double seconds;       /* time that the samples cover */
    double cycles_per_ns; /* elapsed cycles / time: the SM clock in GHz by the counters */
};

enum occ_source_state gpu_sampling_open(struct sampling *sampling, const struct occ_source_kind *kind,
                                        int64_t interval_ns, uint64_t buffer_bytes);
bool gpu_sampling_due(const struct sampling *sampling, int64_t now_ns);
enum occ_source_state gpu_sampling_read(struct sampling *sampling);
void gpu_sampling_forget(struct sampling *sampling); /* drops the samples */
/* Reads until `seconds` have passed, a signal arrives or the source is lost. */
enum occ_source_state gpu_sampling_run(struct sampling *sampling, double seconds);
void gpu_sampling_means(const struct sampling *sampling, uint32_t max_warps, uint32_t sms,
                        struct sampling_means *ret_means);
void gpu_sampling_stats(const struct sampling *sampling, struct occ_source_stats *ret_stats);
/* Writes a line `start_ns end_ns warps active elapsed` per sample. Returns 0, or -1 if the file cannot be
 * written. */
int gpu_sampling_dump(const struct sampling *sampling, const char *path);
void gpu_sampling_close(struct sampling *sampling); /* frees the samples too */
