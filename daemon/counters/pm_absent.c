/* The PM sampling source of a build without NVIDIA's headers: says so. */
#include "source.h"

static enum occ_source_state absent_open(const struct occ_source_options *options,
                                         struct occ_source **ret_source, struct occ_error *err)
{
    (void)options;
    *ret_source = NULL;
    (void)occ_fail(err, OCC_E_VERSION, "this occtraced was built without CUPTI's headers");
    return OCC_SOURCE_NOT_SUPPORTED;
}

const struct occ_source_kind occ_source_pm = {.word = "pm", .open = absent_open};
