/* See pm_session.h. */
#include "pm_session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Held for writing while a session ends. Waiting writers have priority over threads that read samples. */
static pthread_rwlock_t calls = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static uint64_t ends;            /* number of sessions ended so far; guarded by `calls` */
static atomic_uint running;      /* number of running sessions */
static atomic_bool end_ends_all; /* the end of one session ended another one (see pm_session.h) */

void occ_pm_session_enter(void)
{
    (void)pthread_rwlock_rdlock(&calls);
}

void occ_pm_session_leave(void)
{
    (void)pthread_rwlock_unlock(&calls);
}

bool occ_pm_session_may_end(void)
{
    return !atomic_load(&end_ends_all) || atomic_load(&running) < 2;
}

/* ---- end ---- */

static void forget(struct occ_pm_session *s)
{
    atomic_fetch_sub(&running, s->object ? 1 : 0);
    s->object = NULL;
    s->is_started = false;
}

void occ_pm_session_end(struct occ_pm_session *s)
{
    struct occ_params_object p = {.size = sizeof p, .object = s->object};
    if (!s->object)
        return;
    (void)pthread_rwlock_wrlock(&calls);
    if (s->is_started)
        (void)s->library->pm.stop(&p);
    (void)s->library->pm.disable(&p);
    ends++;
    (void)pthread_rwlock_unlock(&calls);
    forget(s);
}

void occ_pm_session_free(struct occ_pm_session *s)
{
    occ_pm_session_end(s);
    occ_cupti_image_free(&s->image);
    occ_cupti_image_free(&s->empty);
}

/* ---- begin ---- */

static uint32_t enable(struct occ_pm_session *s, const struct occ_pm_plan *plan)
{
    struct occ_params_enable p = {.size = sizeof p, .subject = plan->device};
    uint32_t result = occ_pm_initialize(s->library);
    if (result == OCC_CUPTI_SUCCESS)
        result = s->library->pm.enable(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    s->object = p.object;
    s->ends_before = ends;
    atomic_fetch_add(&running, 1);
    return OCC_CUPTI_SUCCESS;
}

static uint32_t configure(struct occ_pm_session *s, const struct occ_pm_plan *plan)
{
    struct occ_params_pm_config p = {
        .size = sizeof p,
        .object = s->object,
        .config = plan->host->config,
        .buffer_bytes = plan->buffer_bytes,
        .interval = (uint64_t)plan->interval_ns,
        .trigger = plan->by_system_clock ? OCC_PM_TRIGGER_SYSTEM_CLOCK : OCC_PM_TRIGGER_TIME,
        .append_mode = plan->keep_oldest ? OCC_PM_KEEP_OLDEST : OCC_PM_KEEP_LATEST};
    return s->library->pm.set_config(&p);
}

static bool make_room(struct occ_cupti_image *image, size_t bytes)
{
    if (image->size >= bytes)
        return true;
    occ_cupti_image_free(image);
    return occ_cupti_image_new(image, bytes);
}

static uint32_t make_images(struct occ_pm_session *s, const struct occ_pm_plan *plan)
{
    struct occ_params_pm_data_size p = {.size = sizeof p,
                                        .object = s->object,
                                        .metrics = plan->host->metrics,
                                        .max_samples = plan->image_samples};
    uint32_t result = s->library->pm.data_size(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    s->image_bytes = p.data_size;
    if (!make_room(&s->image, p.data_size) || !make_room(&s->empty, p.data_size))
        return OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    struct occ_params_data empty = {
        .size = sizeof empty, .object = s->object, .data = {s->image_bytes, s->empty.bytes}};
    return s->library->pm.data(&empty);
}

static enum occ_source_state begin(struct occ_pm_session *s, const struct occ_pm_plan *plan,
                                   struct occ_error *err)
{
    struct occ_params_object start = {.size = sizeof start};
    const char *what = "enabling PM sampling";
    uint32_t result = enable(s, plan);
    if (result == OCC_CUPTI_SUCCESS) {
        what = "configuring PM sampling";
        result = configure(s, plan);
    }
    if (result == OCC_CUPTI_SUCCESS) {
        what = "starting PM sampling";
        result = make_images(s, plan);
    }
    start.object = s->object;
    if (result == OCC_CUPTI_SUCCESS)
        result = s->library->pm.start(&start);
    s->is_started = result == OCC_CUPTI_SUCCESS;
    return s->is_started ? OCC_SOURCE_OK : occ_pm_fail(s->library, result, what, err);
}

enum occ_source_state occ_pm_session_begin(struct occ_pm_session *session, const struct occ_pm_plan *plan,
                                           struct occ_error *err)
{
    occ_pm_session_enter();
    enum occ_source_state state = begin(session, plan, err);
    occ_pm_session_leave();
    if (state != OCC_SOURCE_OK)
        occ_pm_session_end(session);
    return state;
}

/* CUPTI refuses a second Enable of an object that is still enabled; such an object was not ended by another
 * session. */
bool occ_pm_session_renew(struct occ_pm_session *session, const struct occ_pm_plan *plan)
{
    struct occ_pm_session next = {
        .library = session->library, .image = session->image, .empty = session->empty};
    occ_pm_session_enter();
    bool may_be_ended = session->object && ends > session->ends_before;
    bool is_begun = may_be_ended && begin(&next, plan, NULL) == OCC_SOURCE_OK;
    occ_pm_session_leave();
    if (!is_begun) {
        session->image = next.image;
        session->empty = next.empty;
        if (next.object) /* Enable succeeded: the old object had ended */
            forget(session);
        occ_pm_session_end(&next);
        return false;
    }
    atomic_store(&end_ends_all, true);
    forget(session);
    *session = next;
    return true;
}
