/*
 * libcupti, opened at run time: one search, one version gate and one way to bind, for the guest and for the
 * daemon.
 *
 * Candidates, in this order:
 *   1. a library that the process has mapped already (CUPTI is not made for a second copy in one process)
 *   2. the configured path ($OCCTRACE_CUPTI); if there is one, later candidates are not tried
 *   3. the library of the program's Python packages: on the RPATH of a mapped libtorch, and nvidia/cu13/lib
 *      and nvidia/cuda_cupti/lib beside mapped packages. A later `import torch` binds the mapped
 *      libcupti.so.13 or .12, whatever its path, so other libraries of the same major version are skipped
 *   4. LD_LIBRARY_PATH, the loader's other directories, and below $CUDA_HOME, $CUDA_PATH and /usr/local/cuda
 *      extras/CUPTI/lib64, lib64, lib (pip's layout)
 *   5. the library that another process uses and offers
 *   6. the library in the packages of Python installations (python.h): nvidia/cu13/lib, nvidia/cuda_cupti/lib
 * Candidates of 5 and 6 are opened only if root or this process's user alone can have written them
 * (trusted.h). Within 3, 4 and 6 the newest first: by major version, then by the release in the name of the
 * real file (libcupti.so.13 is a link to libcupti.so.2025.3.1). A file without a release in its name, as in
 * pip's packages, comes after files with a release, in the order above. Refused releases are recognized by
 * that name and not opened: a library that was opened stays, since several versions crash in dlclose.
 *
 * Accepted: 12.2 and newer, except 13.0 GA, which crashes and hangs (fixed in update 1). A newer major
 * version than the listed ones is accepted: its records begin like the known records.
 *
 * Uses libc only, prints nothing; maps memory during a call, and allocates none. Threads: any, one for each
 * struct.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_CUPTI_REASON_BYTES 240

struct occ_cupti {
    void *handle;     /* handle of dlopen(3); NULL: no library */
    uint32_t version; /* cuptiGetVersion() */
    const char *path; /* path of the library's file; lives as long as the handle */
    uint32_t (*result_string)(uint32_t result, const char **text); /* NULL: missing in this version */
};

struct occ_cupti_search {
    const char *configured; /* absolute path or "" */
    const char *offered;    /* absolute path, not checked; NULL: no offer */
    uint64_t rank;          /* rank of the last candidate tried, the best first; 0 at first */
    void *tried[8];         /* handles of tried libraries: a library may have several names */
    char name[PATH_MAX];    /* name of the last candidate tried */
    char path[PATH_MAX]; /* the same as passed to dlopen(3), without symbolic links if it had to be trusted */
};

/* Opens the next candidate that the version gate accepts. False: no candidate is left. Each refused candidate
 * is added to `reason` with its cause. */
bool occ_cupti_find(struct occ_cupti_search *search, struct occ_cupti *cupti,
                    char reason[OCC_CUPTI_REASON_BYTES]);

/* Appends a cause to the reasons; "..." replaces text beyond the buffer. */
void occ_cupti_refuse(char reason[OCC_CUPTI_REASON_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The version gate alone: NULL or the reason for refusal. */
const char *occ_cupti_version_problem(uint32_t version);

/* Fills `calls`, a struct of n function pointers, with the functions of these names in an open library (any
 * library, not only libcupti); NULL: missing in the library. Returns the index of the first missing function,
 * or n. */
size_t occ_library_bind(void *handle, const char *const *names, size_t n, void *calls);

/* The library's text for a result code, never NULL. */
const char *occ_cupti_result_text(const struct occ_cupti *cupti, uint32_t result);
