/* See probe.h. */
#include "probe.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sampling/counters/competing_profilers.h"
#include "sampling/counters/gpus.h"
#include "cupti/driver_text.h"
#include "cupti/library.h"

static void print_libraries(FILE *out)
{
    const char *given = secure_getenv("OCCTRACE_CUPTI"), *first = ", first choice";
    struct occ_cupti_search search = {.configured = given ? given : ""};
    struct occ_cupti cupti;
    bool found = true;
    while (found) {
        char reason[OCC_CUPTI_REASON_BYTES] = "";
        found = occ_cupti_find(&search, &cupti, reason);
        if (reason[0])
            (void)fprintf(out, "refused\t%s\n", reason);
        if (found)
            (void)fprintf(out, "cupti\t%s (version %u%s)\n", cupti.path, cupti.version, first);
        first = found ? "" : first;
    }
}

/* Prints no line on a machine without libcuda. */
static void print_driver(FILE *out)
{
    struct occ_driver_answer answer;
    char text[OCC_DRIVER_TEXT_BYTES];
    if (!occ_gpus_ask_driver(&answer))
        return;
    (void)fprintf(out, "cuda\tCUDA %d.%d, %d GPU%s\n", answer.version / 1000, answer.version % 1000 / 10,
                  answer.gpus, answer.gpus == 1 ? "" : "s");
    occ_driver_text(answer.result, text);
    if (text[0])
        (void)fprintf(out, "fault\t%s\n", text);
}

void occ_probe(FILE *out, const char *root)
{
    char proc[PATH_MAX];
    print_libraries(out);
    print_driver(out);
    (void)snprintf(proc, sizeof proc, "%s/proc", root);
    const char *profiler = occ_competing_profiler_text(occ_competing_profilers(proc, 0, NULL), 0);
    if (profiler)
        (void)fprintf(out, "profiler\t%s\n", profiler);
}
