/*
 * Work of simulated devices, reported by launching programs to samplers of counters: one append-only file per
 * device below OCCSIM_COUNTERS, named after its UUID, so that a sampler sees the launches of all processes.
 *
 * A record has the constant resources of one launch over a period. One write() with O_APPEND
 * has all records of a launch, when the launch is placed: its times lie in the future then. Times are
 * CLOCK_REALTIME, in ns.
 *
 * A program holds a lock on the file (flock) from reading the clock for a launch until the launch is
 * reported, and samplers read under the same lock: unread launches start later, however long a program waits
 * for a processor.
 *
 * No state and no locks; any thread.
 */
#pragma once

#include "residency.h"

#include <stddef.h>
#include <stdint.h>

#define SIM_SEGMENT_MAGIC  UINT32_C(0x5347534f) /* "OSGS" */
#define SIM_NOT_WAITING    SIM_LIMITS
#define SIM_SEGMENT_SUFFIX "segments" /* the records */
#define SIM_SAMPLER_SUFFIX "sampler"  /* an empty file; the sampling process holds a lock on it */
#define SIM_TURN_SUFFIX    "turn"     /* the process that has its turn (turns.c) */

/* Units that a launch uses beside SM resources. */
enum sim_unit { SIM_UNIT_ISSUE, SIM_UNIT_DRAM, SIM_UNIT_L2, SIM_UNIT_L1, SIM_UNIT_TENSOR, SIM_UNITS };

struct sim_segment {
    uint32_t magic;
    uint32_t waiting; /* enum sim_limit: resource that waiting blocks lack; SIM_NOT_WAITING */
    uint64_t start_ns, end_ns;
    double blocks, warps;   /* resident */
    double started;         /* blocks that start in this period */
    double active_sms;      /* with a block of this launch */
    double busy[SIM_UNITS]; /* 0...1, shares of the peak */
};

enum sim_access { SIM_READ, SIM_APPEND, SIM_UPDATE };

/* Opens a device's file and creates it if it is missing. -1: errno. */
int sim_segments_open(const char *directory, const uint8_t uuid[SIM_UUID_BYTES], const char *suffix,
                      enum sim_access access);
