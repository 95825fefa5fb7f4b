/*
 * The current level of recording and its cause: the one place that switches recording off and on and reports
 * it. Each change is a STATE record; the daemon makes periods of these records
 * (daemon/collect/log_records.c). Causes and their sources:
 *
 *   another CUPTI client in the program     takeover.h
 *   a pause by the program's owner          the ring's header, `paused` (occq runs pause)
 *   a window                                $OCCTRACE_DELAY_MS, _DURATION_MS, _LAUNCHES
 *   the budget                              governor.h
 *   a CUPTI that returns no times           watch.h
 *
 * Switching off is cuptiActivityDisable, never cuptiFinalize: CUPTI still delivers the records it has.
 * Threads: start by the one that initialises CUDA, the rest by the helper.
 */
#pragma once

#include "governor.h"
#include "takeover.h"
#include "watch.h"

struct occ_guest;

struct occ_recording {
    struct occ_takeover takeover;
    struct occ_governor governor;
    struct occ_watch watch;
    bool is_gone;              /* CUPTI must not be called any more */
    uint64_t began_ns;         /* monotonic: start of the windows' time */
    uint64_t elapsed_ns;       /* from began_ns to the start of this round */
    uint64_t round_ns;         /* start of this round (CLOCK_REALTIME), from which its changes hold */
    uint64_t rounds;           /* number of rounds, one per second */
    uint32_t flush_failures;   /* in a row */
    uint64_t off_requested;    /* number of buffers requested when recording was to stop */
    unsigned int cause;        /* cause reported last: enum cause of recording.c */
    uint64_t reported_from_ns; /* start of that cause */
    bool is_enabled;           /* CUPTI records kernels for the guest */
    bool is_refused;           /* the state TAKEN is CUPTI's refusal to enable the kind, not a session */
    bool must_reclaim;         /* another client's session took the buffers that CUPTI had */
};

/* Starts recording now, or later if a window starts later. Call it after occ_tracing_start(). */
void occ_recording_start(struct occ_guest *guest);

/* Call it once a second, after the flush. */
void occ_recording_round(struct occ_guest *guest);
/* Writes a STATE record if the cause changed. Also call it after the last flush, whose records may reach
 * --launches. */
void occ_recording_report(struct occ_guest *guest);

/* false: buffers and counters belong to another client, or CUPTI must not be called any more. */
static inline bool occ_recording_has_cupti(const struct occ_recording *recording)
{
    return !recording->is_gone && recording->takeover.state != OCC_TAKEOVER_TAKEN;
}

/* true: nothing reduces the recording. */
bool occ_recording_is_full(const struct occ_recording *recording);

/* Reports a result of cuptiActivityFlushAll; several failures in a row are a sign of another client's
 * session. */
void occ_recording_flushed(struct occ_recording *recording, uint32_t result);

/* Time until the next start or end of a window; UINT64_MAX: none. `now_ns` is monotonic. */
uint64_t occ_recording_wait_ns(const struct occ_guest *guest, uint64_t now_ns);
