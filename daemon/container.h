/*
 * The container of a process, from its control groups: Docker, containerd, CRI-O and Podman name the group by
 * the container's id, 64 lower-case hexadecimal digits (/docker/ID, .../cri-containerd-ID.scope). No global
 * state; one thread.
 */
#ifndef OCC_DAEMON_CONTAINER_H
#define OCC_DAEMON_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>

#define OCC_CONTAINER_ID_DIGITS 64

/* The last id in the text of a /proc/PID/cgroup file; false: there is none. */
bool occ_container_find(const char *cgroups, char id[OCC_CONTAINER_ID_DIGITS + 1]);

/* The id of a process's container, malloc'ed; NULL: none, or unknown (pid 0, or the process has ended). */
char *occ_container_of(int32_t pid);

#endif
