/*
 * Answers Kubernetes' admission requests for pods: reads an AdmissionReview (admission.k8s.io/v1) piece by
 * piece and writes the answer, which always allows the pod and may carry a JSON patch (RFC 6902). The patch
 * adds to each container CUDA_INJECTION64_PATH, OCCTRACE_SOCKET unless the container sets it, and two
 * read-only mounts of directories of the node. The parser keeps only the values that decide about the patch:
 * memory is bounded, except for one text, which the caller bounds with the body's size.
 *
 * An object belongs to one thread at a time; there is no global state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "support/cleanup.h"
#include "support/error.h"

#define OCC_ADMISSION_CONTAINERS_MAX 256
#define OCC_ADMISSION_DEPTH_MAX      100 /* nested objects and arrays of a request */

/* Paths of the directories in a container. The second has the daemon's socket. */
#define OCC_ADMISSION_LIBRARY_DIRECTORY "/usr/lib/occtrace"
#define OCC_ADMISSION_RUN_DIRECTORY     "/run/occtrace"
#define OCC_ADMISSION_LIBRARY           OCC_ADMISSION_LIBRARY_DIRECTORY "/libocctrace.so"
#define OCC_ADMISSION_SOCKET            OCC_ADMISSION_RUN_DIRECTORY "/occtraced.sock"

/* The node's directories that containers mount; both must outlive the admission. */
struct occ_admission_options {
    const char *library_directory;
    const char *run_directory;
    /* The namespace forbids volumes of type hostPath: the patch only adds an annotation with this reason. */
    bool forbids_host_paths;
};

struct occ_admission;

struct occ_admission *occ_admission_new(const struct occ_admission_options *options); /* NULL: no memory */
void occ_admission_free(struct occ_admission *admission);
OCC_CLEANUP(occ_admission, occ_admission_free)

/* Reads the next bytes of the request. Returns OCC_E_INVALID if it is no AdmissionReview of version v1 for a
 * pod, or exceeds a limit; all further calls return the same error. */
int occ_admission_feed(struct occ_admission *admission, const void *bytes, size_t n, struct occ_error *err);

/* Ends the request and writes the answer. Nothing is written for an invalid or incomplete request. */
int occ_admission_answer(struct occ_admission *admission, FILE *out, struct occ_error *err);

/* Returns the outcome in words for the log, as in the pod's annotation. Valid after occ_admission_answer().
 */
const char *occ_admission_outcome(const struct occ_admission *admission);
