/*
 * The identity of a program according to the kernel: its user, and from its control groups (/proc/PID/cgroup)
 * the container, the pod and the Slurm job it runs in. The program supplies none of these values.
 *
 * Sources of the paths: Slurm's task/cgroup plugin (v1 and v2), Kubernetes' systemd and cgroupfs drivers, and
 * docker, podman, containerd and CRI-O, which name a control group by the container's 64 hexadecimal digits.
 * Names that a user or a container gives, below a login or in a control group of its own, are no evidence.
 * No global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounts.h"

#define OCC_CONTAINER_ID_DIGITS 64

/* Empty texts: unknown. */
struct occ_identity {
    uint32_t uid;       /* uid of the process in the daemon's user namespace */
    uint32_t owner_uid; /* `uid`, or the user to whom /etc/subuid assigns it */
    /* the control group lies in the owner's login slice, or owner_uid differs from uid */
    bool is_rootless;
    /* the process was ending and its control groups may already be wrong (cgroup v1) */
    bool is_uncertain;
    /* the control groups were read: without a container among them the process is in none */
    bool has_control_groups;
    /* in a pid namespace below the daemon's: in a container, also one without a control group of its own */
    bool is_nested;
    int64_t start_boot_ns; /* start of the process (occ_boot_ns); -1: unknown */
    char container[OCC_CONTAINER_ID_DIGITS + 1];
    char pod[37];                          /* uid of the Kubernetes pod */
    char pod_name[254], pod_namespace[64]; /* from kubelet's log directories */
    char slurm_job[16], slurm_step[16];
};

/* The owner of a program, or of the history that stores its launches. */
struct occ_owner {
    char name[80]; /* "u1000", "pod-UID", "container-ID", "ns-NAMESPACE"; the name of a directory */
    /* uid that may read the history; -1: root only, since uids of a container mean nothing outside */
    int64_t uid;
};

/* Fills in the fields found in the text of /proc/PID/cgroup. */
void occ_identity_parse_cgroups(const char *text, struct occ_identity *identity);

/* true if the control groups in this text stay correct while the process ends: all are of cgroup v2. In v1
 * hierarchies the kernel moves an ending process to the root (kernel/cgroup/cgroup.c, proc_cgroup_show()),
 * which looks like a process in no container. */
bool occ_identity_outlasts_process(const char *cgroups);

/* Reads the identity of a process; pid <= 0: unknown process. */
void occ_identity_read(struct occ_accounts *accounts, int32_t pid, uint32_t uid,
                       struct occ_identity *ret_identity);

/* The pod or container; the user if the process runs outside of containers or in a rootless one. */
void occ_identity_owner(const struct occ_identity *identity, struct occ_owner *ret_owner);

/* The owner of the history: the result of occ_identity_owner(), but for a pod its namespace, if known. */
void occ_identity_history(const struct occ_identity *identity, struct occ_owner *ret_owner);

/* The owner with this directory name. false: not the name of an owner. */
bool occ_identity_parse_owner(const char *name, struct occ_owner *ret_owner);
