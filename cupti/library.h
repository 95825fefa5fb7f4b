/*
 * libcupti, opened at run time: one search, one version gate and one way to bind, for the guest and for the
 * daemon.
 *
 * Candidates, in this order:
 *   1. one that the process has mapped already (CUPTI is not made for a second copy in one process)
 *   2. the configured path ($OCCTRACE_CUPTI); when it is given, nothing after it is tried
 *   3. that of the program's Python packages: on the RPATH of a mapped libtorch, and nvidia/cu13/lib and
 *      nvidia/cuda_cupti/lib beside mapped packages. A later `import torch` binds the libcupti.so.13 or .12
 * that is mapped by then, whatever its path, so others of the same major version are passed over
 *   4. LD_LIBRARY_PATH, what else the loader finds, and below $CUDA_HOME, $CUDA_PATH and /usr/local/cuda
 *      extras/CUPTI/lib64, lib64, lib (pip's layout)
 *   5. the one that was offered: by another process, which uses it
 *   6. that of the packages of Python's installations (python.h): nvidia/cu13/lib, nvidia/cuda_cupti/lib
 * Those of 5 and 6 are opened only if nobody but root and this process's user can have written them
 * (trusted.h). Within 3, 4 and 6 the newest first: by major version, then by the release in the name of the
 * real file (libcupti.so.13 is a link to libcupti.so.2025.3.1). A file without it, as in pip's packages,
 * comes after those with one, in the order above. Releases that are refused are known by that name and not
 * opened: a library that was opened stays, since several versions crash in dlclose.
 *
 * Accepted: 12.2 and newer but for 13.0 GA, whose crashes and hangs its update 1 fixed. A newer major version
 * than those in the list above is accepted: its records begin as the known ones do.
 *
 * Uses libc only, allocates nothing, prints nothing. Threads: any, one for each struct.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_CUPTI_REASON_BYTES 240

struct occ_cupti {
    void *handle;                                                  /* of dlopen(3); NULL: none */
    uint32_t version;                                              /* cuptiGetVersion() */
    const char *path;                                              /* of its file; lives as long as it does */
    uint32_t (*result_string)(uint32_t result, const char **text); /* NULL: this version has none */
};

struct occ_cupti_search {
    const char *configured; /* absolute path or "" */
    const char *offered;    /* absolute path, not checked; NULL: none */
    uint64_t rank;          /* of the candidate tried last, the best first; 0 at first */
    void *tried[8];         /* libraries: one may have several names */
    char name[PATH_MAX];    /* of the candidate tried last, as dlopen(3) got it */
};

/* Opens the next candidate that the version gate accepts. False: there is no further one. `reason` gets each
 * candidate that was refused meanwhile, and why. */
bool occ_cupti_find(struct occ_cupti_search *search, struct occ_cupti *cupti,
                    char reason[OCC_CUPTI_REASON_BYTES]);

/* Appends to the reasons; what does not fit is "...". */
void occ_cupti_refuse(char reason[OCC_CUPTI_REASON_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The version gate alone: NULL or the reason for refusal. */
const char *occ_cupti_version_problem(uint32_t version);

/* Fills `calls`, a struct of n function pointers, with the functions of these names in an open library (any,
 * not only libcupti); NULL where it lacks one. Returns the index of the first that is missing, or n. */
size_t occ_library_bind(void *handle, const char *const *names, size_t n, void *calls);

/* The library's text for a result code, never NULL. */
const char *occ_cupti_result_text(const struct occ_cupti *cupti, uint32_t result);
