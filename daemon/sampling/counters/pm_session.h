/*
 * CUPTI's sampling object of one GPU, from Enable to Disable, and the counter data image that its samples are
 * decoded into.
 *
 * An object is configured once: decoding is known to fail after a second configuration (decision 0040), so
 * whoever wants another one ends the session and begins again.
 *
 * Disable ends the sampling of a whole process on some versions of CUPTI ("disabling pm sampling object
 * finalizes all of CUPTI", XLA). So nobody is inside CUPTI's sampling while a session ends, and a session
 * that fails after another one has ended is begun anew by its owner (occ_pm_session_renew).
 *
 * Threads: one for each session; what sessions share is guarded here.
 */
#pragma once

#include "pm_library.h"

struct occ_pm_plan {
    uint32_t device;                   /* CUDA's ordinal */
    const struct occ_cupti_host *host; /* kept until the session has ended: CUPTI keeps the pointer */
    int64_t interval_ns;
    uint64_t buffer_bytes;
    bool by_system_clock; /* of about 1 GHz: as many clocks as nanoseconds */
    bool keep_oldest;
    uint32_t image_samples;
};

struct occ_pm_session {
    const struct occ_pm_library *library;
    void *object; /* CUPTI's; NULL: not enabled */
    bool is_started;
    uint64_t ends_before;                /* sessions of this process that had ended when it began */
    struct occ_cupti_image image, empty; /* room of both; a decode begins with a copy of the empty one */
    size_t image_bytes;                  /* of the session in use */
};

/* Enables, configures and starts. `session` has a library and has ended; on failure it has ended. */
enum occ_source_state occ_pm_session_begin(struct occ_pm_session *session, const struct occ_pm_plan *plan,
                                           struct occ_error *err);
/* Stops and disables; one that has ended is fine. The images are kept. */
void occ_pm_session_end(struct occ_pm_session *session);
/* Ends it and frees the images. */
void occ_pm_session_free(struct occ_pm_session *session);

/* After a failure: begins anew if another session's end may have caused it. False: that is not the cause, or
 * it does not begin; `session` is then as it was, or has ended. */
bool occ_pm_session_renew(struct occ_pm_session *session, const struct occ_pm_plan *plan);

/* Whether ending the session for another configuration leaves the other GPUs alone, as far as is known. */
bool occ_pm_session_may_end(void);

/* Between these two no session ends. */
void occ_pm_session_enter(void);
void occ_pm_session_leave(void);
