/*
 * Detects that another CUPTI client of the program has taken over the activity buffers. CUPTI has no function
 * that tells; PyTorch's profiler (Kineto) registers its own buffer callbacks at the start of a session, and
 * at its end disables the kinds, flushes by force and resets an attribute. Hence the states:
 *
 *   suspected CUPTI keeps buffers over several flushes and requests none, and there is a sign of another
 *             client (its library, or a busy CUPTI worker that delivers no record to the guest). A kernel
 *             that runs for long looks the same, so the suspicion is dropped with the next buffer. With
 *             --exact there is no suspicion: records without an end stay in CUPTI's buffers.
 *   taken     an attribute set by the guest has changed, or CUPTI refuses to flush: a session has ended. Its
 *             start is unknown: at the earliest when every buffer requested before had been delivered.
 *   back      the guest registers again after a few rounds in which CUPTI's worker rested and the program
 *             worked: a program that waits launches nothing, and its next session rests too; each further
 *             session doubles this number, since the program's own profiler has priority. A suspicion ends in
 *             this way after a minute: a session with all its records in one of the guest's buffers resets
 *             nothing.
 *
 * Pure; threads: the helper.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum occ_takeover_state { OCC_TAKEOVER_NONE, OCC_TAKEOVER_SUSPECTED, OCC_TAKEOVER_TAKEN };

/* Observations of the helper, once a second; totals since the start. */
struct occ_takeover_signs {
    uint64_t now_ns; /* CLOCK_REALTIME */
    uint64_t requested, delivered;
    uint64_t worker_cpu_ns;  /* 0: unknown */
    uint64_t program_cpu_ns; /* of the process without the guest's helper and CUPTI's worker */
    bool has_other_library;  /* needed only if occ_takeover_is_silent() */
    bool keeps_records;      /* CUPTI keeps records in buffers that are not full (--exact): no silence */
    bool is_reset;           /* an attribute differs from the guest's setting, or CUPTI refuses to flush */
};

struct occ_takeover {
    enum occ_takeover_state state;
    bool suspicion_was_unfounded; /* the last suspicion was unfounded */
    uint64_t from_ns;             /* earliest time of the takeover, unless NONE */
    uint64_t began_ns;            /* registration of the guest's callbacks */
    uint64_t cleared_ns, mark_ns, mark_requested;
    uint64_t requested, delivered, worker_cpu_ns, program_cpu_ns; /* of the last round */
    uint32_t silent_rounds, rest_rounds;
    uint32_t rest_rounds_needed; /* rounds of rest before the guest registers again */
};

void occ_takeover_init(struct occ_takeover *takeover, uint64_t now_ns);

/* true: the next round's result depends on has_other_library. */
bool occ_takeover_is_silent(const struct occ_takeover *takeover);

/* Updates `state`. true: it is time to register again; if that succeeds, call
 * occ_takeover_registered_again(). */
bool occ_takeover_round(struct occ_takeover *takeover, const struct occ_takeover_signs *signs);
void occ_takeover_registered_again(struct occ_takeover *takeover, const struct occ_takeover_signs *signs);
