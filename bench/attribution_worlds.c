/* See attribution_worlds.h. */
#include "attribution_worlds.h"

#include <stdio.h>

/* Timelines; times in us and s. */
#define RECORDED(file, n, spread_, seconds_)                                                                 \
    .timeline = {.recording = (file), .n_configs = (n), .duration_spread = (spread_), .seconds = (seconds_)}
#define V100(spread_, seconds_) RECORDED("v100", 193, spread_, seconds_)
#define A100(spread_, seconds_) RECORDED("a100", 539, spread_, seconds_)
#define IDLE(idle_s_)                                                                                        \
    .timeline = {.recording = "v100",                                                                        \
                 .n_configs = 193,                                                                           \
                 .duration_spread = 0.05,                                                                    \
                 .idle_ns = (idle_s_)*1e9,                                                                   \
                 .seconds = 40}
#define PERSISTENT(lasts_s)                                                                                  \
    .timeline = {.recording = "v100",                                                                        \
                 .n_configs = 193,                                                                           \
                 .duration_spread = 0.05,                                                                    \
                 .persistent_ns = (lasts_s)*1e9,                                                             \
                 .seconds = 50}
#define RANDOM(n, from_us, to_us, seconds_)                                                                  \
    .timeline = {.n_configs = (n),                                                                           \
                 .streams = 1,                                                                               \
                 .order = TIMELINE_RANDOM,                                                                   \
                 .shortest_ns = (from_us)*1e3,                                                               \
                 .longest_ns = (to_us)*1e3,                                                                  \
                 .gap_ns = 1500,                                                                             \
                 .duration_spread = 0.04,                                                                    \
                 .seconds = (seconds_)}
/* A fifth of the launches has no neighbour in at least one sample. */
#define ALONE(n, from_us, to_us, seconds_)                                                                   \
    .timeline = {.n_configs = (n),                                                                           \
                 .streams = 1,                                                                               \
                 .order = TIMELINE_RANDOM,                                                                   \
                 .shortest_ns = (from_us)*1e3,                                                               \
                 .longest_ns = (to_us)*1e3,                                                                  \
                 .gap_ns = 1500,                                                                             \
                 .duration_spread = 0.04,                                                                    \
                 .alone = 0.2,                                                                               \
                 .pause_ns = 2e6,                                                                            \
                 .seconds = (seconds_)}
#define STREAMS(n, count, apart_, longer_, from_us, to_us, seconds_)                                         \
    .timeline = {.n_configs = (n),                                                                           \
                 .streams = (count),                                                                         \
                 .order = TIMELINE_RANDOM,                                                                   \
                 .shortest_ns = (from_us)*1e3,                                                               \
                 .longest_ns = (to_us)*1e3,                                                                  \
                 .gap_ns = 3000,                                                                             \
                 .duration_spread = 0.08,                                                                    \
                 .apart = (apart_),                                                                          \
                 .longer = (longer_),                                                                        \
                 .seconds = (seconds_)}
#define FIXED(n, from_us, to_us, gap_us, spread_, seconds_)                                                  \
    .timeline = {.n_configs = (n),                                                                           \
                 .streams = 1,                                                                               \
                 .order = TIMELINE_FIXED,                                                                    \
                 .shortest_ns = (from_us)*1e3,                                                               \
                 .longest_ns = (to_us)*1e3,                                                                  \
                 .gap_ns = 1500,                                                                             \
                 .graph_gap_ns = (gap_us)*1e3,                                                               \
                 .duration_spread = (spread_),                                                               \
                 .seconds = (seconds_)}
/* Graphs that share their configurations. */
#define GRAPHS(n, graphs_, nodes_, node_spread_, seconds_)                                                   \
    .timeline = {.n_configs = (n),                                                                           \
                 .streams = 1,                                                                               \
                 .order = TIMELINE_FIXED,                                                                    \
                 .graphs = (graphs_),                                                                        \
                 .nodes = (nodes_),                                                                          \
                 .node_spread = (node_spread_),                                                              \
                 .shortest_ns = 6e3,                                                                         \
                 .longest_ns = 6e4,                                                                          \
                 .gap_ns = 1500,                                                                             \
                 .graph_gap_ns = 2e4,                                                                        \
                 .duration_spread = 0.03,                                                                    \
                 .seconds = (seconds_)}
#define PHASES(n, from_us, to_us, seconds_)                                                                  \
    .timeline = {.n_configs = (n),                                                                           \
                 .streams = 1,                                                                               \
                 .order = TIMELINE_PHASES,                                                                   \
                 .shortest_ns = (from_us)*1e3,                                                               \
                 .longest_ns = (to_us)*1e3,                                                                  \
                 .gap_ns = 1500,                                                                             \
                 .idle_ns = 3e7,                                                                             \
                 .busy_ns = 1e8,                                                                             \
                 .duration_spread = 0.05,                                                                    \
                 .seconds = (seconds_)}

/* Variations: spread, stragglers, context, drift, steps. */
#define VARIES(spread_, stragglers_, context_, drift_, steps_)                                               \
    .variation = {.spread = (spread_),                                                                       \
                  .stragglers = (stragglers_),                                                               \
                  .context = (context_),                                                                     \
                  .drift = (drift_),                                                                         \
                  .steps = (steps_)}
#define CALM  VARIES(0.02, 0, 0, 0, 0)
#define USUAL VARIES(0.12, 0.01, 0.02, 0.03, 0.02)
#define WILD  VARIES(0.2, 0.03, 0.08, 0.15, 0.05)
#define NODES_DIFFER(nodes_)                                                                                 \
    .variation = {.spread = 0.12,                                                                            \
                  .stragglers = 0.01,                                                                        \
                  .context = 0.02,                                                                           \
                  .drift = 0.03,                                                                             \
                  .steps = 0.02,                                                                             \
                  .nodes = (nodes_)}
#define CHANGES(...) .variation = {.spread = 0.08, .stragglers = 0.005, __VA_ARGS__}

/* Sampling every 1 ms, with one burst, and with bad clocks. */
#define SAMPLED(burst_s)                                                                                     \
    .sampling = {.interval_ns = 1e6,                                                                         \
                 .burst_at_s = (burst_s),                                                                    \
                 .noise = 0.01,                                                                              \
                 .edge_jitter_ns = 200,                                                                      \
                 .missing = 0.005,                                                                           \
                 .rotated = true,                                                                            \
                 .offset_ns = 9000,                                                                          \
                 .ppm = 1,                                                                                   \
                 .wander_ns = 500,                                                                           \
                 .record_jitter_ns = 250,                                                                    \
                 .tick_ns = 32}
#define DRIFTING(burst_s, ppm_)                                                                              \
    .sampling = {.interval_ns = 1e6,                                                                         \
                 .burst_at_s = (burst_s),                                                                    \
                 .noise = 0.01,                                                                              \
                 .edge_jitter_ns = 200,                                                                      \
                 .missing = 0.005,                                                                           \
                 .rotated = true,                                                                            \
                 .offset_ns = 16000,                                                                         \
                 .ppm = (ppm_),                                                                              \
                 .wander_ns = 500,                                                                           \
                 .record_jitter_ns = 250,                                                                    \
                 .tick_ns = 32}
#define BADLY_SAMPLED(burst_s)                                                                               \
    .sampling = {.interval_ns = 1e6,                                                                         \
                 .burst_at_s = (burst_s),                                                                    \
                 .noise = 0.02,                                                                              \
                 .edge_jitter_ns = 2000,                                                                     \
                 .missing = 0.1,                                                                             \
                 .rotated = true,                                                                            \
                 .offset_ns = -28000,                                                                        \
                 .ppm = 8,                                                                                   \
                 .wander_ns = 4000,                                                                          \
                 .record_jitter_ns = 500,                                                                    \
                 .jump_ns = 25000,                                                                           \
                 .frequency_drop = 0.3,                                                                      \
                 .tick_ns = 1000}

#define WORLD(name_, kind_, quick_, ...)                                                                     \
    {                                                                                                        \
        .name = (name_), .kind = WORLDS_##kind_, .quick = (quick_), .world = { __VA_ARGS__ }                 \
    }
#define OTHERS(...) .others = {__VA_ARGS__}

static const struct worlds_entry worlds[] = {
    /* recorded */
    WORLD("alexnet", ORDINARY, false, RECORDED("alexnet", 33, 0.04, 20), USUAL, SAMPLED(6)),
    WORLD("v100-calm", ORDINARY, false, V100(0.03, 30), CALM, SAMPLED(8)),
    WORLD("v100", ORDINARY, false, V100(0.05, 30), USUAL, SAMPLED(8)),
    WORLD("v100-no-burst", COLLINEAR, false, V100(0.05, 30), USUAL, SAMPLED(0)),
    WORLD("v100-wild", ORDINARY, false, V100(0.1, 30), WILD, SAMPLED(8)),
    WORLD("v100-clock", ORDINARY, false, V100(0.05, 30), USUAL, BADLY_SAMPLED(8)),
    WORLD("v100-idle", ORDINARY, false, IDLE(0.4), USUAL, SAMPLED(8)),
    WORLD("a100-calm", ORDINARY, false, A100(0.03, 30), CALM, SAMPLED(8)),
    WORLD("a100", ORDINARY, false, A100(0.05, 30), USUAL, SAMPLED(8)),
    /* made up */
    WORLD("one", ORDINARY, false, RANDOM(1, 30, 60, 10), USUAL, SAMPLED(0)),
    WORLD("random-12", ORDINARY, false, RANDOM(12, 8, 250, 10), USUAL, SAMPLED(0)),
    WORLD("random-12-clock", ORDINARY, true, RANDOM(12, 8, 250, 12), USUAL, BADLY_SAMPLED(0)),
    WORLD("random-100", ORDINARY, true, RANDOM(100, 6, 400, 12), USUAL, SAMPLED(0)),
    WORLD("random-500", ORDINARY, false, RANDOM(500, 6, 400, 30), USUAL, SAMPLED(0)),
    WORLD("phases-100", ORDINARY, false, PHASES(100, 6, 400, 30), USUAL, SAMPLED(0)),
    WORLD("drift-100", ORDINARY, false, RANDOM(100, 6, 400, 20), WILD, SAMPLED(0)),
    WORLD("short", ORDINARY, false, RANDOM(20, 2, 8, 8), USUAL, SAMPLED(0)),
    WORLD("long", ORDINARY, false, RANDOM(8, 2500, 20000, 12), USUAL, SAMPLED(0)),
    WORLD("two-streams", ORDINARY, true, STREAMS(24, 2, false, 0, 10, 300, 12), USUAL, SAMPLED(0)),
    WORLD("four-streams", ORDINARY, false, STREAMS(24, 4, false, 0, 10, 300, 12), USUAL, SAMPLED(0)),
    WORLD("communication", ORDINARY, false, STREAMS(40, 2, true, 30, 10, 200, 12), USUAL, SAMPLED(0)),
    WORLD("persistent", ORDINARY, true, RANDOM(2, 2e7, 6e7, 200), USUAL, SAMPLED(0)),
    /* made up, in fixed order */
    WORLD("step-100", COLLINEAR, false, FIXED(100, 6, 400, 60, 0.04, 20), USUAL, SAMPLED(6)),
    WORLD("step-500", COLLINEAR, false, FIXED(500, 6, 400, 60, 0.04, 30), USUAL, SAMPLED(8)),
    WORLD("graph-12", COLLINEAR, true, FIXED(12, 20, 80, 8, 0.02, 10), USUAL, SAMPLED(4)),
    WORLD("pair", COLLINEAR, false, FIXED(2, 100, 900, 0, 0.02, 10), USUAL, SAMPLED(4)),
    /* graphs with several nodes of each configuration, alike and different */
    WORLD("graph-58-nodes", COLLINEAR, true, GRAPHS(16, 1, 58, 0, 12), USUAL, SAMPLED(4)),
    WORLD("graph-400-nodes", COLLINEAR, false, GRAPHS(30, 1, 400, 0, 16), USUAL, SAMPLED(6)),
    WORLD("graphs-1600-nodes", COLLINEAR, false, GRAPHS(30, 4, 400, 0, 16), USUAL, SAMPLED(6)),
    WORLD("graphs-9600-nodes", COLLINEAR, false, GRAPHS(30, 24, 400, 0, 16), USUAL, SAMPLED(0)),
    WORLD("graph-58-differ", COLLINEAR, true, GRAPHS(16, 1, 58, 0.1, 12), NODES_DIFFER(0.2), SAMPLED(4)),
    WORLD("graph-400-differ", COLLINEAR, false, GRAPHS(30, 1, 400, 0.1, 16), NODES_DIFFER(0.2), SAMPLED(6)),
    WORLD("graphs-1600-differ", COLLINEAR, false, GRAPHS(30, 4, 400, 0.1, 16), NODES_DIFFER(0.2), SAMPLED(6)),
    WORLD("graphs-1600-apart", HARD, false, GRAPHS(30, 4, 400, 0.3, 16), NODES_DIFFER(0.5), SAMPLED(6)),
    /* offset and drift of real clocks */
    WORLD("v100-40ppm", ORDINARY, false, V100(0.05, 30), USUAL, DRIFTING(8, 40)),
    WORLD("a100-15ppm", ORDINARY, false, A100(0.05, 30), USUAL, DRIFTING(8, 15)),
    WORLD("random-100-50ppm", ORDINARY, false, RANDOM(100, 6, 400, 12), USUAL, DRIFTING(0, -50)),
    /* fills and copies of different sizes, with and without records */
    WORLD("memory-v100", HARD, false, V100(0.05, 30), USUAL, OTHERS(.memory = 12), SAMPLED(8)),
    WORLD("memory-random", HARD, true, RANDOM(100, 6, 400, 12), USUAL, OTHERS(.memory = 12), SAMPLED(0)),
    WORLD("memory-untraced", HARD, false, RANDOM(100, 6, 400, 12), USUAL,
          OTHERS(.memory = 12, .memory_untraced = true), SAMPLED(0)),
    WORLD("memory-background", HARD, false, RANDOM(100, 6, 400, 12), USUAL,
          OTHERS(.memory = 12, .constant = 0.1), SAMPLED(0)),
    WORLD("memory-bursty", HARD, false, V100(0.05, 20), USUAL, OTHERS(.memory = 12, .bursty = 0.2),
          SAMPLED(6)),
    WORLD("memory-lost-10", HARD, false, V100(0.05, 20), USUAL, OTHERS(.memory = 12, .lost = 0.1),
          SAMPLED(6)),
    /* changing occupancy */
    WORLD("change-30", CHANGING, false, RANDOM(30, 8, 300, 80), CHANGES(.change_s = 60), SAMPLED(0)),
    WORLD("change-v100", CHANGING, false, V100(0.05, 60), CHANGES(.change_s = 40), SAMPLED(44)),
    WORLD("halves", CHANGING, false, V100(0.05, 60), CHANGES(.change_s = 30), SAMPLED(8)),
    WORLD("burst-then-change", CHANGING, false, V100(0.05, 30), CHANGES(.change_s = 15), SAMPLED(8)),
    WORLD("change-in-burst", CHANGING, false, V100(0.05, 30), CHANGES(.change_s = 9), SAMPLED(8)),
    WORLD("halves-a100", CHANGING, false, A100(0.05, 30), CHANGES(.change_s = 15), SAMPLED(8)),
    WORLD("phases-7s", CHANGING, false, V100(0.05, 60), CHANGES(.phase_s = 7), SAMPLED(8)),
    WORLD("phases-15s", CHANGING, false, V100(0.05, 60), CHANGES(.phase_s = 15), SAMPLED(8)),
    WORLD("phases-25s", CHANGING, false, V100(0.05, 60), CHANGES(.phase_s = 25), SAMPLED(8)),
    WORLD("phases-15s-100", CHANGING, false, RANDOM(100, 6, 400, 60), CHANGES(.phase_s = 15), SAMPLED(0)),
    WORLD("sticky-0.4", CHANGING, false, V100(0.05, 30), CHANGES(.sticky = 0.4), SAMPLED(8)),
    WORLD("sticky-0.7", CHANGING, false, V100(0.05, 30), CHANGES(.sticky = 0.7), SAMPLED(8)),
    WORLD("isolated-0.4", CHANGING, false, ALONE(40, 20, 600, 20), CHANGES(.alone = 0.4), SAMPLED(0)),
    WORLD("isolated-0.7", CHANGING, false, ALONE(40, 20, 600, 20), CHANGES(.alone = 0.7), SAMPLED(0)),
    WORLD("bimodal-0.4", CHANGING, false, V100(0.05, 30), CHANGES(.bimodal = 0.4), SAMPLED(8)),
    WORLD("bimodal-0.7", CHANGING, false, V100(0.05, 30), CHANGES(.bimodal = 0.7), SAMPLED(8)),
    /* incomplete data */
    WORLD("many-3000", HARD, false, RANDOM(3000, 50, 3000, 30), USUAL, SAMPLED(0)),
    WORLD("persistent-v100", HARD, false, PERSISTENT(20), USUAL, SAMPLED(8)),
    WORLD("background", HARD, false, V100(0.05, 20), USUAL, OTHERS(.constant = 0.1), SAMPLED(6)),
    WORLD("background-long", HARD, false, RANDOM(20, 500, 8000, 16), USUAL, OTHERS(.constant = 0.1),
          SAMPLED(0)),
    WORLD("background-idle", HARD, false, IDLE(0.4), USUAL, OTHERS(.constant = 0.1), SAMPLED(8)),
    WORLD("bursty", HARD, false, RANDOM(30, 10, 6000, 16), USUAL, OTHERS(.bursty = 0.2), SAMPLED(0)),
    WORLD("bursty-v100", HARD, false, V100(0.05, 20), USUAL, OTHERS(.bursty = 0.2), SAMPLED(6)),
    WORLD("slices", HARD, false, STREAMS(60, 2, true, 0, 10, 3000, 16), USUAL,
          OTHERS(.neighbour = WORLD_SLICES), SAMPLED(0)),
    WORLD("slices-untraced", HARD, false, STREAMS(60, 2, true, 0, 10, 3000, 16), USUAL,
          OTHERS(.neighbour = WORLD_SLICES, .untraced = true), SAMPLED(0)),
    WORLD("mps", HARD, true, STREAMS(60, 2, true, 0, 10, 400, 16), USUAL, OTHERS(.neighbour = WORLD_MPS),
          SAMPLED(0)),
    WORLD("mps-untraced", HARD, false, STREAMS(60, 2, true, 0, 10, 400, 16), USUAL,
          OTHERS(.neighbour = WORLD_MPS, .untraced = true), SAMPLED(0)),
    WORLD("lost-1-v100", HARD, false, V100(0.05, 30), USUAL, OTHERS(.lost = 0.01), SAMPLED(8)),
    WORLD("lost-1-a100", HARD, false, A100(0.05, 30), USUAL, OTHERS(.lost = 0.01), SAMPLED(8)),
    WORLD("lost-10", HARD, false, V100(0.05, 20), USUAL, OTHERS(.lost = 0.1), SAMPLED(6)),
    WORLD("lost-30-v100", HARD, false, V100(0.05, 20), USUAL, OTHERS(.lost = 0.3), SAMPLED(6)),
    WORLD("lost-30", HARD, true, RANDOM(100, 6, 400, 16), USUAL, OTHERS(.lost = 0.3), SAMPLED(0)),
};

size_t worlds_count(void)
{
    return sizeof worlds / sizeof *worlds;
}

/* Returns MiB: 4 for 20 configurations (with up to 450 nodes of graphs), 40 for 500; 9 more with a burst, as
 * its samples wait for launch records. */
static double memory_limit(uint32_t configs, bool burst)
{
    return 4 + (configs > 20 ? (configs - 20) * 36.0 / 480 : 0) + (burst ? 9 : 0);
}

struct worlds_entry worlds_get(size_t i, const char *recordings, char *path, size_t path_size)
{
    struct worlds_entry world = worlds[i];
    struct timeline_options *timeline = &world.world.timeline;
    if (timeline->recording) {
        (void)snprintf(path, path_size, "%s/%s.timeline", recordings, timeline->recording);
        timeline->recording = path;
    }
    world.judge.seconds = timeline->seconds;
    uint32_t nodes = timeline->graphs * timeline->nodes;
    world.memory_mib =
        memory_limit(timeline->n_configs + (nodes < 450 ? nodes : 450), world.world.sampling.burst_at_s > 0);
    return world;
}
