/*
 * Streams that are being captured. A capture ends with its stream's cuStreamEndCapture, or with the
 * destruction of its stream. The default stream of a thread has the same handle in all threads and contexts,
 * so thread and context identify it; its capture also ends with its context, and with its thread, since no
 * other thread can name the stream.
 *
 * CUPTI tells the thread's current context, and another stream may belong to another one. So its capture
 * outlives every context: in doubt nothing is measured any more, rather than a capture of the program broken.
 *
 * CUDA reuses handles, and callbacks of two threads may arrive in another order than their calls. A call that
 * ends a capture therefore asks for the capture's serial before the driver's work; a capture that begins
 * meanwhile has another serial.
 *
 * Threads: the caller holds the lock of the run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OCC_CAPTURES_MAX 64u

/* The serial of captures without an entry: the table was full, or the stream is unknown. */
#define OCC_CAPTURE_UNNAMED UINT64_MAX

/* All members NULL: unknown. */
struct occ_capture_stream {
    const void *stream;  /* NULL: the default stream of `thread` */
    const void *thread;  /* NULL: not a default stream */
    const void *context; /* current in the thread of the call */
};

struct occ_capture {
    struct occ_capture_stream of;
    uint64_t serial;  /* 0: not begun */
    uint32_t entered; /* calls that begin a capture and have not returned */
    bool is_used;
};

struct occ_captures {
    struct occ_capture entries[OCC_CAPTURES_MAX];
    uint32_t n; /* captures in progress or about to begin, with the unnamed ones */
    uint32_t unnamed;
    uint64_t serials; /* last serial given to a capture */
};

/* Counts a capture that is about to begin. Returns false if its stream was counted already. */
bool occ_captures_enter(struct occ_captures *captures, const struct occ_capture_stream *of);
/* Handles the return of the call. */
void occ_captures_begin(struct occ_captures *captures, const struct occ_capture_stream *of, bool has_begun);
/* Returns the serial of the stream's capture; 0: none. may_be_unnamed: the call can only name a stream that
 * is captured. */
uint64_t occ_captures_find(struct occ_captures *captures, const struct occ_capture_stream *of,
                           bool may_be_unnamed);
void occ_captures_end(struct occ_captures *captures, uint64_t serial);
/* End the captures of default streams: those of a destroyed context, and of an ended thread. */
void occ_captures_end_context(struct occ_captures *captures, const void *context);
void occ_captures_end_thread(struct occ_captures *captures, const void *thread);
