/* Groups of the file /etc/group, read without a directory service, which may not answer. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The number of the group with this name in the file at `path`. false: it is not there. */
bool occ_group_find(const char *path, const char *name, uint32_t *ret_gid);

/* The same, in /etc/group. */
bool occ_group_is_local(const char *name, uint32_t *ret_gid);
