/*
 * What simulated devices execute, told by the programs that launch to whoever samples counters: one
 * append-only file for each device below OCCSIM_COUNTERS, named after its uuid, so that a sampler sees the
 * launches of all processes.
 *
 * A record says what one launch holds while nothing of it changes. All of a launch's records are one write()
 * with O_APPEND, made when the launch is placed: its times lie in the future then. Times are CLOCK_REALTIME,
 * in ns.
 *
 * A program locks the file (flock) from the moment it reads the clock for a launch until the launch is told,
 * and samplers read under the same lock: what they have not read starts later, however long a program waits
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
#define SIM_SAMPLER_SUFFIX "sampler"  /* empty; locked by the process that samples the device */
#define SIM_TURN_SUFFIX    "turn"     /* the process whose turn it is (turns.c) */

/* What a launch keeps busy beside its SMs. */
enum sim_unit { SIM_UNIT_ISSUE, SIM_UNIT_DRAM, SIM_UNIT_L2, SIM_UNIT_L1, SIM_UNIT_TENSOR, SIM_UNITS };

struct sim_segment {
    uint32_t magic;
    uint32_t waiting; /* enum sim_limit: what the blocks that wait have too little of; SIM_NOT_WAITING */
    uint64_t start_ns, end_ns;
    double blocks, warps;   /* resident */
    double started;         /* blocks that start in it: as many as are resident when it begins */
    double active_sms;      /* with a block of this launch */
    double busy[SIM_UNITS]; /* 0...1 of what the device can do */
};

enum sim_access { SIM_READ, SIM_APPEND, SIM_UPDATE };

/* Opens a device's file, made if it is not there. -1: errno. */
int sim_segments_open(const char *directory, const uint8_t uuid[SIM_UUID_BYTES], const char *suffix,
                      enum sim_access access);
