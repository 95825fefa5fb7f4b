/* Fuzzes the readers of Nsight Compute's reports and of ncu's output, as CSV and as text, with a real sink
 * without a history. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "import/readers.h"
#include "import/sink_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct occ_import_options options = {.gpu = "a100"};
    struct occ_import_sink *sink = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    FILE *file = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "rb") : NULL;
    if (file && occ_import_sink_new(&options, &sink, NULL) == 0)
        (void)(data[0] == 'N' ? occ_ncu_read_report(file, sink, &err) : occ_ncu_read_print(file, sink, &err));
    occ_import_sink_free(sink);
    if (file)
        (void)fclose(file);
    return 0;
}
