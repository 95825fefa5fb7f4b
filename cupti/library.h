/*
 * libcupti, opened at run time: one search, one version gate and one way to bind, for the guest and for the
 * daemon.
 *
 * Candidates, in this order:
 *   1. one that the process has mapped already (CUPTI is not made for a second copy in one process)
 *   2. the configured path ($OCCTRACE_CUPTI); when it is given, nothing after it is tried
 *   3. libcupti.so.13, libcupti.so.12 where the loader finds them (LD_LIBRARY_PATH, ld.so.conf)
 *   4. $CUDA_HOME, $CUDA_PATH, /usr/local/cuda: below each extras/CUPTI/lib64, lib64, lib (pip's layout)
 *
 * Accepted: 12.2 and newer but for 13.0 GA, whose crashes and hangs its update 1 fixed. A newer major version
 * than those in the list above is accepted: its records begin as the known ones do. The library stays open:
 * several versions crash in dlclose.
 *
 * Uses libc only, allocates nothing, prints nothing. Threads: any, one for each struct.
 */
#ifndef OCC_CUPTI_LIBRARY_H
#define OCC_CUPTI_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_CUPTI_REASON_BYTES 240

struct occ_cupti {
    void *handle;                                                  /* of dlopen(3); NULL: none */
    uint32_t version;                                              /* cuptiGetVersion() */
    uint32_t (*result_string)(uint32_t result, const char **text); /* NULL: this version has none */
};

struct occ_cupti_search {
    const char *configured; /* absolute path or "" */
    unsigned int next;      /* index of the candidate to try; 0 at first */
    bool was_mapped;        /* the candidate found last was mapped already */
    char name[PATH_MAX];    /* of the candidate tried last, as dlopen(3) got it */
};

/* Opens the next candidate that the version gate accepts. False: there is no further one; `reason` then tells
 * why the last one found was refused, if any was, and is left alone otherwise. */
bool occ_cupti_find(struct occ_cupti_search *search, struct occ_cupti *cupti,
                    char reason[OCC_CUPTI_REASON_BYTES]);

/* The version gate alone: NULL or the reason for refusal. */
const char *occ_cupti_version_problem(uint32_t version);

/* Fills `calls`, a struct of n function pointers, with the functions of these names in an open library (any,
 * not only libcupti); NULL where it lacks one. Returns the index of the first that is missing, or n. */
size_t occ_library_bind(void *handle, const char *const *names, size_t n, void *calls);

/* The library's text for a result code, never NULL. */
const char *occ_cupti_result_text(const struct occ_cupti *cupti, uint32_t result);

#endif
