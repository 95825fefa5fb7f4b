/* The values of an admission request that the patch depends on: filled by request.c, read by admission.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admission.h"

#define OCC_ADMISSION_NAME_BYTES 64  /* a label of RFC 1123 */
#define OCC_ADMISSION_UID_BYTES  128 /* a UUID has 36 */

#define OCC_ADMISSION_OFF_ANNOTATION    "io.occtrace.off"
#define OCC_ADMISSION_STATUS_ANNOTATION "occtrace.io/status"
#define OCC_ADMISSION_LABEL             "occtrace.io/record"
#define OCC_ADMISSION_LABEL_OFF         "disabled"
#define OCC_ADMISSION_LIBRARY_VOLUME    "occtrace-library"
#define OCC_ADMISSION_RUN_VOLUME        "occtrace-daemon"

/* Reasons to leave a container unchanged: its environment disables occtrace or names a tool, or its mounts
 * use our paths. */
#define OCC_ADMISSION_OBSTACLES(X)                                                                           \
    X(NONE, "")                                                                                              \
    X(DISABLED, "sets OCCTRACE_DISABLE")                                                                     \
    X(INJECTION, "sets CUDA_INJECTION64_PATH")                                                               \
    X(MOUNT, "mounts " OCC_ADMISSION_LIBRARY_DIRECTORY " or " OCC_ADMISSION_RUN_DIRECTORY)
enum occ_obstacle {
#define OCC_ENUMERATOR(name, word) OCC_OBSTACLE_##name,
    OCC_ADMISSION_OBSTACLES(OCC_ENUMERATOR)
#undef OCC_ENUMERATOR
};

struct occ_admission_container {
    char name[OCC_ADMISSION_NAME_BYTES]; /* cut; not yet validated by Kubernetes */
    bool is_init;                        /* the container is in initContainers */
    size_t index;                        /* position in its array */
    bool has_environment, has_mounts;    /* the arrays exist */
    bool has_socket;                     /* the environment names a daemon */
    bool has_environment_from; /* variables of a ConfigMap or Secret, which the request does not contain */
    enum occ_obstacle obstacle;
};

struct occ_admission_request {
    char uid[OCC_ADMISSION_UID_BYTES];
    bool is_v1, is_review, is_pod, is_create, is_subresource;
    bool has_metadata, has_annotations, has_spec, has_volumes;
    bool is_opted_out, is_windows, has_own_volumes;
    size_t n_containers;
    struct occ_admission_container containers[OCC_ADMISSION_CONTAINERS_MAX];
};

/* A streaming parser, which fills *request; the request must outlive it. occ_admission_parser_new() returns
 * NULL without memory. A failure is OCC_E_INVALID, and all further calls return it, too. */
struct occ_admission_parser;
struct occ_admission_parser *occ_admission_parser_new(struct occ_admission_request *request);
void occ_admission_parser_free(struct occ_admission_parser *parser);
int occ_admission_parse(struct occ_admission_parser *parser, const void *bytes, size_t n,
                        struct occ_error *err);
int occ_admission_parse_end(struct occ_admission_parser *parser, struct occ_error *err);
