/*
 * Makes a timeline of launches: recorded from a real program (tests/data/attribution) and replayed with new
 * durations and gaps each time, or made up. One thread; aborts without memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution_physics.h"

struct timeline_event {
    double start_ns, duration_ns;
    double slowness; /* duration / the configuration's usual duration */
    uint32_t config, stream;
    bool alone;    /* the stream pauses before and after this launch */
    uint32_t node; /* of a graph, from 1; 0: not from a graph */
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
    const char *recording; /* path of a file; NULL: made up from the members below */
    uint32_t n_configs, streams;
    enum timeline_order order;
    double shortest_ns, longest_ns; /* durations are uniform in their logarithm */
    double gap_ns;                  /* mean, between launches */
    double graph_gap_ns;            /* after each turn of a fixed order, which is a graph */
    uint32_t graphs, nodes;  /* graphs of so many nodes, of any configuration, follow each other at random;
                                0: one graph with one node for each configuration */
    double node_spread;      /* sigma of the logarithm of a node's duration / its configuration's */
    double idle_ns, busy_ns; /* mean time without and with launches; recordings: idle between replays */
    bool apart;              /* streams share no configurations */
    double longer;           /* durations of all streams except the first are multiplied by this; 0: not */
    double alone, pause_ns;  /* this part of the launches has a pause before and after */
    /* recorded and made-up launches: */
    double duration_spread; /* spread of durations between launches of a configuration */
    double stragglers;      /* part of the launches with 1.3 to 3 times the duration */
    double
        persistent_ns; /* duration of a small kernel that runs again and again on its own stream; 0: none */
    double seconds;
};

/* Returns 0, or -1 after a message on stderr if the recording cannot be read. */
int timeline_make(const struct timeline_options *options, uint64_t *random, struct timeline *ret_timeline);
void timeline_free(struct timeline *timeline);
