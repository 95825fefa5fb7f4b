/*
 * Has another CUPTI client of the program taken the activity buffers over? There is no function that tells;
 * PyTorch's profiler (Kineto) registers its own buffer callbacks when a session starts, and when it ends it
 * disables the kinds, flushes by force and resets an attribute. So:
 *
 *   doubted   buffers stay out over several flushes, none is requested, and there is a sign of another client
 *             (its library, or CUPTI's worker that works and brings us nothing). A kernel that runs for long
 *             looks alike, so the doubt is withdrawn with the next buffer.
 *   taken     an attribute of ours has changed, or CUPTI does not know us any more: a session has ended. Its
 *             start is unknown: at the earliest when every buffer requested before had been delivered.
 *   back      after a few rounds in which CUPTI's worker rested the callbacks are ours again; each session
 *             that follows doubles these rounds, since the program's own profiler comes first. A doubt ends
 *             so after a minute: a session whose records all went into a buffer of ours resets nothing.
 *
 * Pure; threads: the helper.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum occ_takeover_state { OCC_TAKEOVER_NONE, OCC_TAKEOVER_DOUBTED, OCC_TAKEOVER_TAKEN };

/* What the helper knows once a second; totals since the start. */
struct occ_takeover_signs {
    uint64_t now_ns; /* CLOCK_REALTIME */
    uint64_t requested, delivered;
    uint64_t worker_cpu_ns; /* 0: unknown */
    bool has_other_library; /* asked for only when it matters, by occ_takeover_is_silent() */
    bool is_reset;          /* an attribute is not as we set it, or CUPTI refuses to flush */
};

struct occ_takeover {
    enum occ_takeover_state state;
    bool is_withdrawn; /* the last doubt was none */
    uint64_t from_ns;  /* the takeover's earliest time, unless NONE */
    uint64_t began_ns; /* our callbacks were registered */
    uint64_t cleared_ns, mark_ns, mark_requested;
    uint64_t requested, delivered, worker_cpu_ns; /* of the last round */
    uint32_t silent_rounds, rest_rounds;
    uint32_t patience; /* rounds of rest before we come back */
};

void occ_takeover_init(struct occ_takeover *takeover, uint64_t now_ns);

/* True: the next round's answer depends on has_other_library. */
bool occ_takeover_is_silent(const struct occ_takeover *takeover);

/* Updates `state`. True: it is time to register again; if that succeeds, call occ_takeover_came_back(). */
bool occ_takeover_round(struct occ_takeover *takeover, const struct occ_takeover_signs *signs);
void occ_takeover_came_back(struct occ_takeover *takeover, const struct occ_takeover_signs *signs);
