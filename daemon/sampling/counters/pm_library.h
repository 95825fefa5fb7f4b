/* libcupti for PM sampling: loading and binding it, mapping its errors to states of a source, and configuring
 * a counter set for a chip. Threads: one per struct. */
#pragma once

#include "counter_sets.h"
#include "cupti/host.h"

struct occ_pm_library {
    struct occ_cupti cupti;
    struct occ_cupti_host_calls host;
    struct occ_cupti_pm pm;
};

/* `path` NULL: $OCCTRACE_CUPTI, else the search of cupti/library.h including the `offered` path (NULL: none).
 * The library stays open. */
enum occ_source_state occ_pm_bind(const char *path, const char *offered, struct occ_pm_library *library,
                                  struct occ_error *err);

/* The state for a CUPTI result; `err` gets `what` and the library's text. */
enum occ_source_state occ_pm_fail(const struct occ_pm_library *library, uint32_t result, const char *what,
                                  struct occ_error *err);

/* Calls cuptiProfilerInitialize() in one thread at a time: CUPTI does not promise that several may. Returns a
 * CUPTI result. */
uint32_t occ_pm_initialize(const struct occ_pm_library *library);

/* NOT_SUPPORTED, with the reason, if CUPTI reports that it cannot sample this GPU as configured. If CUPTI
 * does not know, OK: the calls that follow will fail. */
enum occ_source_state occ_pm_check_support(const struct occ_pm_library *library, uint32_t ordinal,
                                           struct occ_error *err);

/* Configures `set` for `chip` in *host; occ_cupti_host_close() closes it. `availability` may be empty. A set
 * that needs more than one pass is NOT_SUPPORTED. */
enum occ_source_state occ_pm_configure(const struct occ_pm_library *library, const char *chip,
                                       const struct occ_cupti_image *availability,
                                       const struct occ_counter_set *set, struct occ_cupti_host *host,
                                       struct occ_error *err);
