/*
 * What is recorded at the moment, and why not all of it: the one place that switches recording off and on,
 * and that reports it. Each change is a STATE record; the daemon makes periods of them
 * (daemon/collect/log_records.c).
 *
 *   another CUPTI client in the program     takeover.h
 *   the owner's wish                        the ring's header, `paused` (occq runs pause)
 *   a window                                $OCCTRACE_DELAY_MS, _DURATION_MS, _LAUNCHES
 *   the budget                              governor.h
 *   a CUPTI that gives no times             watch.h
 *
 * Switching off is cuptiActivityDisable, never cuptiFinalize: what CUPTI has is still delivered.
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
    bool is_gone;              /* CUPTI is not called any more */
    uint64_t began_ns;         /* monotonic: windows count from here */
    uint64_t rounds;           /* seconds */
    uint32_t flush_failures;   /* in a row */
    uint64_t off_requested;    /* buffers requested when recording was to stop */
    unsigned int cause;        /* that was reported last: enum cause of recording.c */
    uint64_t reported_from_ns; /* of that report */
    bool is_enabled;           /* CUPTI records kernels for us */
    bool must_reclaim;         /* another client's session took the buffers that were out */
};

/* Records begin now, unless a window begins later. After occ_tracing_start(). */
void occ_recording_start(struct occ_guest *guest);

/* Once a second, after the flush. */
void occ_recording_round(struct occ_guest *guest);
/* Writes a STATE record if the cause changed; also after the last flush, whose records may reach --launches.
 */
void occ_recording_report(struct occ_guest *guest);

/* False: its buffers and counts are another client's, or it is not called any more. */
static inline bool occ_recording_has_cupti(const struct occ_recording *recording)
{
    return !recording->is_gone && recording->takeover.state != OCC_TAKEOVER_TAKEN;
}

/* True: all is recorded. */
bool occ_recording_is_full(const struct occ_recording *recording);

/* cuptiActivityFlushAll's result; several failures in a row are a sign that another client was here. */
void occ_recording_flushed(struct occ_recording *recording, uint32_t result);

/* Until the next edge of a window; UINT64_MAX: there is none. `now_ns` is monotonic. */
uint64_t occ_recording_wait_ns(const struct occ_guest *guest, uint64_t now_ns);
