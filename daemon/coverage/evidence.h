/*
 * Facts about a process that computes on a GPU, from /proc, and the reason why it is not recorded.
 *
 * /proc is hostile and changes while it is read: a process chooses its name, environment and mappings, and
 * its pid may be reused. Each read is bounded, no file of the process itself is opened, and the process must
 * have the same start time before and after. No global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/coverage.h"

#define OCC_EVIDENCE_NAME_BYTES   32
#define OCC_EVIDENCE_SOCKET_BYTES 108

struct occ_evidence {
    bool exists;                        /* the pid belongs to one process throughout the reading */
    bool is_readable;                   /* environment, auxiliary vector and mappings are complete */
    int64_t start_boot_ns;              /* -1: unknown */
    uint32_t uid;                       /* real uid in the daemon's user namespace */
    char name[OCC_EVIDENCE_NAME_BYTES]; /* /proc/PID/comm, sanitised */
    struct {
        bool is_disabled; /* OCCTRACE_DISABLE */
        bool is_injected; /* CUDA_INJECTION64_PATH is set */
        bool names_guest; /* and names the guest library, or LD_PRELOAD names the preloaded stub */
        char socket[OCC_EVIDENCE_SOCKET_BYTES]; /* OCCTRACE_SOCKET; "": not set */
    } environment;
    bool is_static;                           /* no dynamic loader: AT_BASE is 0 */
    bool has_musl, has_old_glibc;             /* by names of mapped files */
    bool is_rootless;                         /* in a user namespace without the daemon's user */
    bool maps_driver, maps_guest, maps_cupti; /* libcuda, libocctrace, libcupti */
};

/* Reads only name, uid and start. `root` is "" or the directory that stands for "/" (tests). */
void occ_evidence_identify(const char *root, int32_t pid, struct occ_evidence *ret_evidence);
/* Reads everything. */
void occ_evidence_read(const char *root, int32_t pid, struct occ_evidence *ret_evidence);

/* Parts of reading: the content of /proc/PID/environ, whose `n` bytes a NUL follows, and of /proc/PID/auxv; a
 * line of /proc/PID/maps, which is changed. */
void occ_evidence_parse_environment(const char *text, size_t n, struct occ_evidence *evidence);
void occ_evidence_parse_vector(const void *bytes, size_t n, struct occ_evidence *evidence);
void occ_evidence_parse_mapping(char *line, struct occ_evidence *evidence);
/* The content of /proc/PID/uid_map, a text, and the daemon's uid. Without a valid line nothing is known. */
void occ_evidence_parse_users(const char *text, uint32_t daemon_uid, struct occ_evidence *evidence);

/* The daemon's knowledge of a process. */
struct occ_evidence_view {
    int64_t daemon_start_boot_ns;
    const char *socket; /* the daemon's */
    bool is_reporting;  /* the process offered its ring */
    bool is_quiet;      /* and reports that it records nothing */
};

enum occ_coverage_reason occ_evidence_judge(const struct occ_evidence *evidence,
                                            const struct occ_evidence_view *view);
