/* Which launches a question is about, and the same in SQL. Constants; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Which launches; zero-initialised means all of them. */
struct occ_filter {
    int64_t since_ns, until_ns; /* since <= start < until; 0: open */
    int64_t run;                /* 0: any; OCC_RUN_LAST: the newest */
    int64_t first_run;          /* only runs with this number and larger ones; 0: any */
    /* of the run; NULL: any. label: * and ? stand for any text and character. job: Slurm's, or the pod */
    const char *session, *label, *user, *job, *rank;
    const char *gpu; /* a device's number, or a part of its name; NULL: any */
    int64_t stream;  /* 0: any. Rollups do not know streams: evicted launches are not counted */
    const char
        *range_regex; /* the range's path or a regular expression on it; only launches know; NULL: any */
    bool graphs;      /* only launches of CUDA graphs; rollups do not know them either */
    /* a name as commands print it, in any form, or else a POSIX extended regular expression on the demangled
     * name; NULL: any */
    const char *kernel_regex;
    const char *kernel;        /* instead: a number, or as kernel_regex; NULL: any */
    const char *exclude_regex; /* as kernel_regex; not these; NULL: none */
    /* only configurations whose achieved occupancy is below this ratio: the mean measured in the filter's
     * runs and time, else the low end of the expected one; 0: any */
    double below_achieved;
};

#define OCC_RUN_LAST (-1)

/* The filter's texts about runs as conditions in SQL: X(member, before the text, after it). GLOB also has
 * sets in brackets, but in a label only * and ? are wildcards: "[[]" matches "[". */
#define OCC_FILTER_RUN_TEXTS(X)                                                                              \
    X(session, "session_id = ", "")                                                                          \
    X(label, "label GLOB replace(", ", '[', '[[]')")                                                         \
    X(user, "user = ", "") X(job, "", " IN (slurm_job, k8s_pod)") X(rank, "rank = ", "")
/* With the texts as parameters, NULL for any. */
#define OCC_FILTER_RUN_TEXT(member, before, after)                                                           \
    " AND (:" #member " IS NULL OR " before ":" #member after ")"
/* Devices that match `gpu`, a text in SQL: of a table with device_id, and its column of names. A part of a
 * name has no wildcards; ASCII case does not matter. */
#define OCC_FILTER_GPU(gpu, name)                                                                            \
    "iif(" gpu " GLOB '*[^0-9]*', instr(lower(" name "), lower(" gpu ")) > 0, "                              \
    "device_id = CAST(" gpu " AS INTEGER))"
