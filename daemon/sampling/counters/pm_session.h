/*
 * CUPTI's sampling object of one GPU, from Enable to Disable, and the counter data image for decoded samples.
 *
 * An object is configured once: decoding is known to fail after a second configuration (decision 0040), so a
 * change of configuration ends the session and begins another one.
 *
 * Disable ends the sampling of a whole process on some versions of CUPTI ("disabling pm sampling object
 * finalizes all of CUPTI", XLA). So no thread is inside CUPTI's sampling while a session ends, and the owner
 * of a session that fails after another one has ended begins it again (occ_pm_session_renew).
 *
 * Threads: one per session; data shared by sessions is guarded here.
 */
#pragma once

#include "pm_library.h"

struct occ_pm_plan {
    uint32_t device;                   /* CUDA's ordinal */
    const struct occ_cupti_host *host; /* must exist until the session has ended: CUPTI keeps the pointer */
    int64_t interval_ns;
    uint64_t buffer_bytes;
    bool by_system_clock; /* of about 1 GHz: one clock per nanosecond */
    bool keep_oldest;
    uint32_t image_samples;
};

struct occ_pm_session {
    const struct occ_pm_library *library;
    void *object; /* CUPTI's object; NULL: not enabled */
    bool is_started;
    uint64_t ends_before; /* number of sessions ended in this process before this one began */
    /* buffers that sessions reuse; a decode starts from a copy of the empty image */
    struct occ_cupti_image image, empty;
    size_t image_bytes; /* image size of the session in use */
};

/* Enables, configures and starts. `session` has a library and no running session; after a failure none runs
 * either. */
enum occ_source_state occ_pm_session_begin(struct occ_pm_session *session, const struct occ_pm_plan *plan,
                                           struct occ_error *err);
/* Stops and disables; an ended session is allowed. The images are kept. */
void occ_pm_session_end(struct occ_pm_session *session);
/* Ends the session and frees the images. */
void occ_pm_session_free(struct occ_pm_session *session);

/* Call it after a failure: begins the session again if another session's end may have caused the failure.
 * false: that is not the cause, or the restart failed; `session` is unchanged or has ended. */
bool occ_pm_session_renew(struct occ_pm_session *session, const struct occ_pm_plan *plan);

/* true if no case is known in which ending this session ended other GPUs' sessions. */
bool occ_pm_session_may_end(void);

/* No session ends between these two calls. */
void occ_pm_session_enter(void);
void occ_pm_session_leave(void);
