/* See tracing.h. */
#include <stdio.h>
#include <string.h>

#include "plugin.h"
#include "guest.h"
#include "guest_log.h"

/* A library may lack the functions from this index on. */
#define REQUIRED (offsetof(struct occ_cupti_activity, get_dropped) / sizeof(void (*)(void)))

static bool bind_functions(struct occ_tracing *t, char reason[OCC_REASON_BYTES])
{
    static const char *const names[] = {OCC_CUPTI_ACTIVITY(OCC_CUPTI_NAME)};
    size_t missing = occ_library_bind(t->cupti.handle, names, sizeof names / sizeof names[0], &t->call);
    if (missing < REQUIRED)
        (void)snprintf(reason, OCC_REASON_BYTES, "%.150s lacks %s", t->cupti.path, names[missing]);
    return missing >= REQUIRED;
}

/* A device buffer takes 3.2 MB of GPU memory and holds about 100,000 launches; the limit of buffers is about
 * 100 MB. If buffers leak (see enable_copies()), this limit would only be reached sooner: then CUPTI's own
 * default applies. */
#define POOL_LIMIT          32
#define POOL_LIMIT_OF_CUPTI 250

/* Optional attributes: a library without one works without it. Some device buffers are allocated ahead, so
 * that no launch waits for one. Per-thread buffers are the default since 13.0. */
static const struct {
    uint32_t attribute;
    size_t bytes;
    uint64_t value;
    bool is_sign; /* only the end of another client's session, or cuptiFinalize, changes it */
} attributes[] = {
    {OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_PRE_ALLOCATE, sizeof(size_t), 4, false},
    {OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT, sizeof(size_t), POOL_LIMIT, false},
    {OCC_CUPTI_ATTRIBUTE_PER_THREAD_BUFFER, 1, 1, true},
    {OCC_CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER, 1, 1, true}, /* must be the last row: see set_attributes() */
};
enum { ATTRIBUTES = sizeof attributes / sizeof attributes[0] };

/* true if the attribute can be read and equals (as_set) or differs from (!as_set) the value set. */
static bool reads(const struct occ_tracing *t, size_t i, bool as_set)
{
    uint64_t value = 0;
    size_t bytes = attributes[i].bytes;
    return t->call.get_attribute(attributes[i].attribute, &bytes, &value) == OCC_CUPTI_SUCCESS &&
           (value == attributes[i].value) == as_set;
}

/* true: CUPTI accepts that the guest zeroes the buffers. */
static bool set_attributes(struct occ_tracing *t)
{
    uint32_t result = OCC_CUPTI_ERROR_UNKNOWN;
    t->signs = 0;
    for (size_t i = 0; t->call.set_attribute && i < ATTRIBUTES; i++) {
        uint64_t value = attributes[i].value;
        size_t bytes = attributes[i].bytes;
        result = t->call.set_attribute(attributes[i].attribute, &bytes, &value);
        if (result != OCC_CUPTI_SUCCESS)
            occ_guest_log("CUPTI attribute %u: error %u", attributes[i].attribute, result);
        else if (attributes[i].is_sign && t->call.get_attribute && reads(t, i, true))
            t->signs |= 1u << i;
    }
    return result == OCC_CUPTI_SUCCESS; /* result of the last row */
}

bool occ_tracing_is_reset(const struct occ_tracing *tracing)
{
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if ((tracing->signs & (1u << i)) && reads(tracing, i, false))
            return true;
    return false;
}

static void leave_pool_unlimited(struct occ_tracing *t)
{
    uint64_t value = POOL_LIMIT_OF_CUPTI;
    size_t bytes = sizeof(size_t);
    if (t->call.set_attribute)
        (void)t->call.set_attribute(OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT, &bytes, &value);
}

/* Before 13.3 libcupti leaks device memory with CUDA graphs that have memcpy or memset nodes, "even when
 * these activities were not enabled" (release notes of 13.3), until launches have no times
 * (parca-dev/parcagpu#23). If these nodes are recorded, they free their entries; the drain passes on those
 * that ran on SMs, for the attribution of hardware counters. */
static void enable_copies(struct occ_tracing *t, bool on)
{
    uint32_t (*set)(uint32_t kind) = on ? t->call.enable : t->call.disable;
    uint32_t copies = set(OCC_CUPTI_KIND_MEMCPY), fills = set(OCC_CUPTI_KIND_MEMSET);
    bool is_avoided = copies == OCC_CUPTI_SUCCESS && fills == OCC_CUPTI_SUCCESS;
    if (on && !is_avoided)
        leave_pool_unlimited(t);
    t->note =
        is_avoided
            ? "memory copies and fills are traced, not kept: libcupti before 13.3 otherwise leaks GPU "
              "memory with CUDA graphs"
            : "libcupti before 13.3 leaks up to 0.8 GB of GPU memory with CUDA graphs, until launches have "
              "no times, and refuses to trace memory copies and fills, which avoids it";
}

void occ_tracing_record_calls(struct occ_tracing *tracing, bool on)
{
    struct occ_tracing *t = tracing;
    static const uint32_t launches[] = {
#define CALL(name, number) number,
        OCC_CUPTI_LAUNCH_CALLS(CALL)};
    if (!t->nvtx || t->records_calls == on)
        return;
    t->records_calls = on;
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++)
        (void)t->external.enable_driver_api(launches[i], on);
    t->nvtx->attach(on ? &t->external : NULL);
}

/* External ids are written only next to records of API calls. */
static void enable_ranges(struct occ_tracing *t, bool on)
{
    if (t->nvtx)
        (void)(on ? t->call.enable : t->call.disable)(OCC_CUPTI_KIND_EXTERNAL);
    occ_tracing_record_calls(t, on);
}

bool occ_tracing_add_ranges(struct occ_tracing *tracing, const char *self, char reason[OCC_REASON_BYTES])
{
    struct occ_tracing *t = tracing;
    static const char *const names[] = {OCC_CUPTI_EXTERNAL(OCC_CUPTI_NAME)};
    size_t missing = occ_library_bind(t->cupti.handle, names, sizeof names / sizeof names[0], &t->external);
    if (missing < sizeof names / sizeof names[0])
        (void)snprintf(reason, OCC_REASON_BYTES, "no ranges: libcupti lacks %s", names[missing]);
    else
        t->nvtx =
            occ_plugin_open(self, "libocctrace-nvtx.so", "occ_nvtx_library", OCC_NVTX_ABI, "ranges", reason);
    enable_ranges(t, true);
    return t->nvtx != NULL;
}

uint32_t occ_tracing_enable(struct occ_tracing *tracing, bool on)
{
    uint32_t result = on ? tracing->call.enable(OCC_CUPTI_KIND_CONCURRENT_KERNEL)
                         : tracing->call.disable(OCC_CUPTI_KIND_CONCURRENT_KERNEL);
    tracing->note = "";
    if (result == OCC_CUPTI_SUCCESS && tracing->cupti.version < OCC_CUPTI_VERSION_13_3)
        enable_copies(tracing, on);
    enable_ranges(tracing, on);
    return result;
}

static uint32_t start(struct occ_tracing *t, bool *ret_zeroed, char reason[OCC_REASON_BYTES])
{
    const char *what = "its callbacks";
    *ret_zeroed = set_attributes(t);
    uint32_t result = t->call.register_callbacks(occ_callback_requested, occ_callback_completed);
    if (result == OCC_CUPTI_SUCCESS) {
        what = "kernel records";
        result = occ_tracing_enable(t, true);
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
    static struct occ_cupti_search search; /* large for a stack of the program's; one thread initialises */
    memset(&search, 0, sizeof search);
    search.configured = configured;
    while (occ_cupti_find(&search, &tracing->cupti, reason)) {
        char why[OCC_REASON_BYTES];
        occ_guest_log("libcupti: %s", tracing->cupti.path);
        uint32_t result =
            bind_functions(tracing, why) ? start(tracing, ret_zeroed, why) : OCC_CUPTI_ERROR_NOT_COMPATIBLE;
        tracing->is_refused &= result != OCC_CUPTI_SUCCESS;
        if (result == OCC_CUPTI_SUCCESS)
            return true;
        occ_guest_log("%s", why);
        bool is_last = result == OCC_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS;
        if (is_last) {
            memcpy(reason, why, sizeof why);
            return false;
        }
        tracing->is_refused |= result != OCC_CUPTI_ERROR_NOT_COMPATIBLE;
        occ_cupti_refuse(reason, "%s", why);
    }
    if (reason[0] == '\0')
        (void)snprintf(
            reason, OCC_REASON_BYTES,
            "no libcupti was found: no CUDA toolkit and no Python package has one here (set OCCTRACE_CUPTI)");
    return false;
}

bool occ_tracing_resume(struct occ_tracing *tracing)
{
    char reason[OCC_REASON_BYTES] = "";
    bool is_zeroed;
    return start(tracing, &is_zeroed, reason) == OCC_CUPTI_SUCCESS;
}
