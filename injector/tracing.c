/* See tracing.h. */
#include <stdio.h>
#include <string.h>

#include "guest.h"
#include "guest_log.h"

/* A library may lack the functions from this one on. */
#define REQUIRED (offsetof(struct occ_cupti_activity, get_dropped) / sizeof(void (*)(void)))

static bool bind_functions(struct occ_tracing *t, char reason[OCC_REASON_BYTES])
{
    static const char *const names[] = {OCC_CUPTI_ACTIVITY(OCC_CUPTI_NAME)};
    size_t missing = occ_library_bind(t->cupti.handle, names, sizeof names / sizeof names[0], &t->call);
    if (missing < REQUIRED)
        (void)snprintf(reason, OCC_REASON_BYTES, "libcupti lacks %s", names[missing]);
    return missing >= REQUIRED;
}

/* Attributes are wishes: a library that does not know one goes on without it. */
static bool set_attribute(struct occ_tracing *t, enum occ_cupti_attribute attribute, void *value,
                          size_t bytes)
{
    if (!t->call.set_attribute)
        return false;
    uint32_t result = t->call.set_attribute(attribute, &bytes, value);
    if (result != OCC_CUPTI_SUCCESS)
        occ_guest_log("CUPTI attribute %d: error %u", (int)attribute, result);
    return result == OCC_CUPTI_SUCCESS;
}

static bool set_attributes(struct occ_tracing *t)
{
    uint8_t zeroed = 1;
    /* A device buffer takes 3.2 MB of GPU memory and holds about 100,000 launches. Some are allocated ahead,
     * so that no launch waits for one; the limit is about 100 MB. */
    size_t pre_allocate = 4, limit = 32;
    (void)set_attribute(t, OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_PRE_ALLOCATE, &pre_allocate,
                        sizeof pre_allocate);
    (void)set_attribute(t, OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT, &limit, sizeof limit);
    return set_attribute(t, OCC_CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER, &zeroed, sizeof zeroed);
}

static uint32_t start(struct occ_tracing *t, bool *ret_zeroed, char reason[OCC_REASON_BYTES])
{
    const char *what = "its callbacks";
    *ret_zeroed = set_attributes(t);
    uint32_t result = t->call.register_callbacks(occ_callback_requested, occ_callback_completed);
    if (result == OCC_CUPTI_SUCCESS) {
        what = "kernel records";
        result = t->call.enable(OCC_CUPTI_KIND_CONCURRENT_KERNEL);
    }
    if (result == OCC_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS)
        (void)snprintf(reason, OCC_REASON_BYTES, "another profiler uses CUPTI in this program");
    else if (result != OCC_CUPTI_SUCCESS)
        (void)snprintf(reason, OCC_REASON_BYTES, "CUPTI (version %u) refused %s: error %u, %.120s",
                       t->cupti.version, what, result, occ_cupti_result_text(&t->cupti, result));
    return result;
}

bool occ_tracing_start(struct occ_tracing *tracing, const char *configured, bool *ret_zeroed,
                       char reason[OCC_REASON_BYTES])
{
    struct occ_cupti_search search = {.configured = configured};
    while (occ_cupti_find(&search, &tracing->cupti, reason)) {
        char why[OCC_REASON_BYTES];
        occ_guest_log("libcupti: %s", tracing->cupti.path);
        uint32_t result =
            bind_functions(tracing, why) ? start(tracing, ret_zeroed, why) : OCC_CUPTI_ERROR_NOT_COMPATIBLE;
        if (result == OCC_CUPTI_SUCCESS)
            return true;
        occ_guest_log("%s", why);
        bool is_last = result == OCC_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS;
        if (is_last || reason[0] == '\0') /* else the reason of a better candidate stays */
            memcpy(reason, why, sizeof why);
        if (is_last)
            return false;
    }
    if (reason[0] == '\0')
        (void)snprintf(reason, OCC_REASON_BYTES,
                       "no libcupti was found (set OCCTRACE_CUPTI, or LD_LIBRARY_PATH)");
    return false;
}
