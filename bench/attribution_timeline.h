/*
 * What ran when: launches of a program, recorded from a real one (tests/data/attribution) and replayed with
 * other durations and gaps each time, or made up. One thread; aborts where memory ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution_physics.h"

struct timeline_event {
    double start_ns, duration_ns;
    double slowness; /* duration / the configuration's usual one */
    uint32_t config, stream;
    bool alone; /* after and before a pause of the stream */
};

struct timeline {
    uint32_t sms, warps_per_sm;
    struct physics_kernel *configs;
    uint32_t n_configs;
    struct timeline_event *events; /* by start */
    size_t n_events;
};

enum timeline_order { TIMELINE_RANDOM, TIMELINE_FIXED, TIMELINE_PHASES };

struct timeline_options {
    const char *recording; /* a file's name; NULL: made up of what follows */
    uint32_t n_configs, streams;
    enum timeline_order order;
    double shortest_ns, longest_ns; /* durations are uniform in their logarithm */
    double gap_ns;                  /* mean, between launches */
    double graph_gap_ns;            /* after each turn of a fixed order */
    double idle_ns, busy_ns; /* mean time without and with launches; recordings: idle between replays */
    bool apart;              /* streams share no configurations ... */
    double longer;           /* ... and all but the first one's last so many times longer; 0: not */
    double alone, pause_ns;  /* this part of the launches has a pause before and after it */
    /* of all: */
    double duration_spread; /* between launches of a configuration */
    double stragglers;      /* part of the launches that last 1.3 to 3 times longer */
    double
        persistent_ns; /* 0, or: on a stream of its own, a small kernel that lasts so long, again and again */
    double seconds;
};

/* 0, or -1 after a message on stderr: the recording cannot be read. */
int timeline_make(const struct timeline_options *options, uint64_t *random, struct timeline *ret_timeline);
void timeline_free(struct timeline *timeline);
