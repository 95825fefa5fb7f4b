/*
 * Who a program is, by what the kernel has of its process: its user, and from its control groups
 * (/proc/PID/cgroup) the container, the pod and the Slurm job it runs in. Nothing here comes from the
 * program.
 *
 * Sources of the paths: Slurm's task/cgroup plugin (v1 and v2), Kubernetes' systemd and cgroupfs drivers, and
 * docker, podman, containerd and CRI-O, which name a control group by the container's 64 hexadecimal digits.
 * No global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts.h"

#define OCC_CONTAINER_ID_DIGITS 64

/* Empty texts: none. */
struct occ_identity {
    uint32_t uid;          /* of the process, in the daemon's user namespace */
    uint32_t owner_uid;    /* the same, or the user to whom /etc/subuid gives that uid */
    bool is_rootless;      /* the control group lies in the owner's login slice, or owner_uid is not uid */
    bool is_uncertain;     /* the process was ending, and its control groups are not kept until its end */
    int64_t start_boot_ns; /* of the process (occ_boot_ns); -1: unknown */
    char container[OCC_CONTAINER_ID_DIGITS + 1];
    char pod[37];                          /* uid of the Kubernetes pod */
    char pod_name[254], pod_namespace[64]; /* by root's directories of logs; "": unknown */
    char slurm_job[16], slurm_step[16];
};

/* Who owns a program, or the history that its launches go into. */
struct occ_owner {
    char name[80]; /* "u1000", "pod-UID", "container-ID", "ns-NAMESPACE"; the name of a directory */
    int64_t uid;   /* who may read it; -1: root alone, since uids of a container mean nothing outside */
};

/* Finds what it can in the text of /proc/PID/cgroup. */
void occ_identity_parse_cgroups(const char *text, struct occ_identity *identity);

/* Whether the control groups of this text are kept while the process ends: all are of hierarchies of version
 * 2. In those of version 1 the kernel shows a process that ends in the root (kernel/cgroup/cgroup.c,
 * proc_cgroup_show()), as if it were in no container. */
bool occ_identity_outlasts_process(const char *cgroups);

/* Of a process; pid <= 0: of an unknown one. */
void occ_identity_read(struct occ_accounts *accounts, int32_t pid, uint32_t uid,
                       struct occ_identity *ret_identity);

/* The pod or container; for a process outside one, or in one without privileges, its user. */
void occ_identity_owner(const struct occ_identity *identity, struct occ_owner *ret_owner);

/* The owner of the history: a pod's namespace where that is known, else as occ_identity_owner(). */
void occ_identity_history(const struct occ_identity *identity, struct occ_owner *ret_owner);

/* The owner of this name. false: it is no owner's. */
bool occ_identity_parse_owner(const char *name, struct occ_owner *ret_owner);
