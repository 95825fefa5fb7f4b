/* See guest.h. The only global of the library, and functions that all its parts need. */
#include "guest.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "guest_log.h"

static struct occ_guest the_guest;

struct occ_guest *occ_guest(void)
{
    return &the_guest;
}

const char *occ_guest_path(void)
{
    static char path[PATH_MAX];
    Dl_info info;
    if (path[0] == '\0' && dladdr(path, &info) != 0 && info.dli_fname && !realpath(info.dli_fname, path))
        path[0] = '\0';
    return path;
}

/* Exact values are a yardstick for samples, so the two are not mixed; at the governor's reduced levels
 * sampling is saved. */
static bool is_unmeasured(const struct occ_guest *g)
{
    return g->exact.run || g->recording.governor.step >= OCC_STEP_NO_COUNTERS;
}

void occ_guest_report(struct occ_guest *guest, enum occ_level level, uint64_t from_ns, const char *reason)
{
#define WORD(name, word, text) word,
    static const char *const words[] = {OCC_LEVELS(WORD)};
    struct occ_record_state record = {
        .record.type = OCC_RECORD_STATE,
        .record.flags = is_unmeasured(guest) ? OCC_STATE_UNMEASURED : 0,
        .time_ns = from_ns,
        .level = level,
        .cupti_version = guest->tracing.cupti.version,
    };
    (void)snprintf(record.reason, sizeof record.reason, "%s", reason);
    (void)occ_ring_log(&guest->ring, &record.record, sizeof record, NULL, 0);
    occ_guest_log("level %s%s%s", words[level], reason[0] ? ": " : "", reason);
}

void occ_guest_close_ring(struct occ_guest *guest)
{
    uint64_t now_ns = occ_clock_ns(CLOCK_REALTIME);
    struct occ_record_closed record = {
        .record.type = OCC_RECORD_CLOSED, .time_ns = now_ns, .launches = guest->ring.head};
    (void)occ_ring_log(&guest->ring, &record.record, sizeof record, NULL, 0);
    occ_ring_heartbeat(&guest->ring, now_ns);
    occ_ring_close(&guest->ring);
}
