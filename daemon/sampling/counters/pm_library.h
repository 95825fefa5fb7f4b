/* libcupti as PM sampling uses it: opened and bound, its errors as states of a source, and a counter set
 * configured for a chip. Threads: one for each struct. */
#pragma once

#include "counter_sets.h"
#include "cupti/host.h"

struct occ_pm_library {
    struct occ_cupti cupti;
    struct occ_cupti_host_calls host;
    struct occ_cupti_pm pm;
};

/* `path` NULL: $OCCTRACE_CUPTI, else the search of cupti/library.h with what was `offered` (NULL: nothing).
 * The library stays open. */
enum occ_source_state occ_pm_bind(const char *path, const char *offered, struct occ_pm_library *library,
                                  struct occ_error *err);

/* The state for a result code of CUPTI; `err` gets `what` was tried and the library's text. */
enum occ_source_state occ_pm_fail(const struct occ_pm_library *library, uint32_t result, const char *what,
                                  struct occ_error *err);

/* cuptiProfilerInitialize(), by one thread at a time: CUPTI does not promise more. A result of CUPTI. */
uint32_t occ_pm_initialize(const struct occ_pm_library *library);

/* NOT_SUPPORTED, with the reason, where CUPTI says that it cannot sample this GPU as it is set up; where
 * CUPTI does not know, the calls that follow will tell. */
enum occ_source_state occ_pm_check_support(const struct occ_pm_library *library, uint32_t ordinal,
                                           struct occ_error *err);

/* Configures `set` for `chip` in *host, to be closed with occ_cupti_host_close(); `availability` may be none.
 * A set that needs more than one pass is refused as NOT_SUPPORTED. */
enum occ_source_state occ_pm_configure(const struct occ_pm_library *library, const char *chip,
                                       const struct occ_cupti_image *availability,
                                       const struct occ_counter_set *set, struct occ_cupti_host *host,
                                       struct occ_error *err);
