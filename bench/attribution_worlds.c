/* See attribution_worlds.h. */
#include "attribution_worlds.h"

#include <stdio.h>

#define CHANGE_WINDOW_S 10 /* within which values have to be right again after a change */

/* Of timelines; times in us and s. */
#define RECORDED(file, spread_, seconds_)                                                                    \
    .timeline = {.recording = (file), .duration_spread = (spread_), .seconds = (seconds_)}
#define RANDOM(n, from_us, to_us, seconds_)                                                                  \
    .timeline = {.n_configs = (n),                                                                           \
                 .streams = 1,                                                                               \
                 .order = TIMELINE_RANDOM,                                                                   \
                 .shortest_ns = (from_us)*1e3,                                                               \
                 .longest_ns = (to_us)*1e3,                                                                  \
                 .gap_ns = 1500,                                                                             \
                 .duration_spread = 0.04,                                                                    \
                 .seconds = (seconds_)}
#define STREAMS(n, count, from_us, to_us, spread_, seconds_)                                                 \
    .timeline = {.n_configs = (n),                                                                           \
                 .streams = (count),                                                                         \
                 .order = TIMELINE_RANDOM,                                                                   \
                 .shortest_ns = (from_us)*1e3,                                                               \
                 .longest_ns = (to_us)*1e3,                                                                  \
                 .gap_ns = 3000,                                                                             \
                 .duration_spread = (spread_),                                                               \
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

/* Of variation: calm, usual, wild. */
#define CALM           .variation = {.spread = 0.02}
#define USUAL          .variation = {.spread = 0.12, .stragglers = 0.01, .drift = 0.03, .steps = 0.02}
#define WILD           .variation = {.spread = 0.2, .stragglers = 0.03, .drift = 0.15, .steps = 0.05}
#define CHANGING(at_s) .variation = {.spread = 0.08, .stragglers = 0.005, .change_s = (at_s)}

/* Of sampling: 1 ms, with one burst, and with bad clocks. */
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
                 .tick_ns = 1000}

#define WORLD(name_, kind_, quick_, memory_mib_, ...)                                                        \
    {                                                                                                        \
        .name = (name_), .kind = (kind_), .quick = (quick_), .memory_mib = (memory_mib_), .world = {         \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

static const struct worlds_entry worlds[] = {
    /* recorded */
    WORLD("alexnet", WORLDS_ORDINARY, true, 6, RECORDED("alexnet", 0.04, 20), USUAL, SAMPLED(0)),
    WORLD("v100-calm", WORLDS_ORDINARY, true, 0, RECORDED("v100", 0.03, 24), CALM, SAMPLED(8)),
    WORLD("v100", WORLDS_ORDINARY, false, 0, RECORDED("v100", 0.05, 24), USUAL, SAMPLED(8)),
    WORLD("v100-no-burst", WORLDS_ORDINARY, false, 40, RECORDED("v100", 0.05, 24), USUAL, SAMPLED(0)),
    WORLD("v100-wild", WORLDS_ORDINARY, false, 0, RECORDED("v100", 0.1, 24), WILD, SAMPLED(8)),
    WORLD("v100-clock", WORLDS_ORDINARY, false, 0, RECORDED("v100", 0.05, 24), USUAL, BADLY_SAMPLED(8)),
    WORLD("a100-calm", WORLDS_ORDINARY, false, 0, RECORDED("a100", 0.03, 24), CALM, SAMPLED(8)),
    WORLD("a100", WORLDS_ORDINARY, false, 0, RECORDED("a100", 0.05, 24), USUAL, SAMPLED(8)),
    /* made up */
    WORLD("one", WORLDS_ORDINARY, false, 4, RANDOM(1, 30, 60, 10), USUAL, SAMPLED(0)),
    WORLD("random-12", WORLDS_ORDINARY, true, 4, RANDOM(12, 8, 250, 10), USUAL, SAMPLED(0)),
    WORLD("random-12-clock", WORLDS_ORDINARY, false, 4, RANDOM(12, 8, 250, 12), USUAL, BADLY_SAMPLED(0)),
    WORLD("random-100", WORLDS_ORDINARY, true, 12, RANDOM(100, 6, 400, 12), USUAL, SAMPLED(0)),
    WORLD("random-500", WORLDS_ORDINARY, false, 40, RANDOM(500, 6, 400, 20), USUAL, SAMPLED(0)),
    WORLD("phases-100", WORLDS_ORDINARY, false, 12, PHASES(100, 6, 400, 24), USUAL, SAMPLED(0)),
    WORLD("drift-100", WORLDS_ORDINARY, false, 12, RANDOM(100, 6, 400, 20), WILD, SAMPLED(0)),
    WORLD("short", WORLDS_ORDINARY, false, 4, RANDOM(20, 2, 8, 6), USUAL, SAMPLED(0)),
    WORLD("long", WORLDS_ORDINARY, false, 4, RANDOM(8, 2500, 20000, 12), USUAL, SAMPLED(0)),
    WORLD("two-streams", WORLDS_ORDINARY, false, 0, STREAMS(24, 2, 10, 300, 0.05, 12), USUAL, SAMPLED(0)),
    WORLD("four-streams", WORLDS_ORDINARY, false, 0, STREAMS(24, 4, 10, 300, 0.05, 12), USUAL, SAMPLED(0)),
    WORLD("persistent", WORLDS_ORDINARY, false, 4, RANDOM(2, 2e7, 4e7, 130), USUAL, SAMPLED(0)),
    WORLD("change-30", WORLDS_ORDINARY, true, 8, RANDOM(30, 8, 300, 30), CHANGING(10), SAMPLED(0)),
    WORLD("change-v100", WORLDS_ORDINARY, false, 0, RECORDED("v100", 0.05, 40), CHANGING(20), SAMPLED(6)),
    /* made up, in fixed order */
    WORLD("step-100", WORLDS_COLLINEAR, false, 0, FIXED(100, 6, 400, 60, 0.04, 16), USUAL, SAMPLED(6)),
    WORLD("step-500", WORLDS_COLLINEAR, false, 0, FIXED(500, 6, 400, 60, 0.04, 24), USUAL, SAMPLED(8)),
    WORLD("graph-12", WORLDS_COLLINEAR, true, 0, FIXED(12, 20, 80, 8, 0.02, 10), USUAL, SAMPLED(4)),
    WORLD("pair", WORLDS_COLLINEAR, false, 0, FIXED(2, 100, 900, 0, 0.02, 10), USUAL, SAMPLED(4)),
    /* not all is known */
    WORLD("background", WORLDS_HARD, false, 0, RECORDED("v100", 0.05, 20), USUAL, .others = {.constant = 0.1},
          SAMPLED(6)),
    WORLD("background-long", WORLDS_HARD, false, 0, RANDOM(20, 500, 8000, 16), USUAL,
          .others = {.constant = 0.1}, SAMPLED(0)),
    WORLD("bursty", WORLDS_HARD, true, 0, RANDOM(30, 10, 6000, 16), USUAL, .others = {.bursty = 0.2},
          SAMPLED(0)),
    WORLD("bursty-v100", WORLDS_HARD, false, 0, RECORDED("v100", 0.05, 20), USUAL, .others = {.bursty = 0.2},
          SAMPLED(6)),
    WORLD("slices", WORLDS_HARD, false, 0, STREAMS(60, 2, 10, 3000, 0.05, 16), USUAL,
          .others = {.neighbour = WORLD_SLICES}, SAMPLED(0)),
    WORLD("slices-untraced", WORLDS_HARD, false, 0, STREAMS(60, 2, 10, 3000, 0.05, 16), USUAL,
          .others = {.neighbour = WORLD_SLICES, .untraced = true}, SAMPLED(0)),
    WORLD("mps", WORLDS_HARD, false, 0, STREAMS(60, 2, 10, 400, 0.2, 16), USUAL,
          .others = {.neighbour = WORLD_MPS}, SAMPLED(0)),
    WORLD("mps-untraced", WORLDS_HARD, false, 0, STREAMS(60, 2, 10, 400, 0.2, 16), USUAL,
          .others = {.neighbour = WORLD_MPS, .untraced = true}, SAMPLED(0)),
    WORLD("lost-10", WORLDS_HARD, false, 0, RECORDED("v100", 0.05, 20), USUAL, .others = {.lost = 0.1},
          SAMPLED(6)),
    WORLD("lost-30", WORLDS_HARD, false, 0, RANDOM(100, 6, 400, 16), USUAL, .others = {.lost = 0.3},
          SAMPLED(0)),
};

size_t worlds_count(void)
{
    return sizeof worlds / sizeof *worlds;
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
    if (world.world.variation.change_s > 0) {
        world.judge.window_s = CHANGE_WINDOW_S;
        world.judge.ignored_s = world.world.variation.change_s;
        world.judge.ignored_for = CHANGE_WINDOW_S;
    }
    return world;
}
