/*
 * User names from the system's name services (getpwuid_r, getpwnam_r), looked up in a thread: a directory
 * server that does not answer blocks the thread, never a caller. Answers are kept for ten minutes, negative
 * answers for one. The thread ends when all lookups are done. Any thread may call.
 */
#pragma once

#include <stdint.h>

#include "support/error.h"

#define OCC_USER_NAME_BYTES 256 /* LOGIN_NAME_MAX */

enum occ_name_state {
    OCC_NAME_WAITS, /* not resolved yet */
    OCC_NAME_KNOWN,
    OCC_NAME_NONE, /* no such user, or the service has failed */
};

struct occ_name_service;

int occ_name_service_new(struct occ_name_service **ret_service, struct occ_error *err);
/* Does not wait for a running lookup: the thread frees the remaining memory. NULL is allowed. */
void occ_name_service_free(struct occ_name_service *service);

/* The name of a user. The first call starts the lookup. */
enum occ_name_state occ_name_service_name(struct occ_name_service *service, uint32_t uid,
                                          char name[OCC_USER_NAME_BYTES]);
/* The number of a user. The first call starts the lookup. */
enum occ_name_state occ_name_service_uid(struct occ_name_service *service, const char *name,
                                         uint32_t *ret_uid);
