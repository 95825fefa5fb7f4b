/* The directory of an owner's history: its access control list, and its removal (histories.h). Any thread.
 * Logs. */
#pragma once

#include <stdint.h>

#include "support/error.h"

/* Makes the directory of `file` and lets its owner and the shipper read it; uid <= 0: the shipper only. */
int occ_owner_directory_make(const char *file, int64_t uid, struct occ_error *err);

/* Checks that all users may pass the directories of `path`, so that owners can read histories next to it.
 * OCC_E_DENIED: a directory is closed to other users. Missing directories are made when histories are
 * opened. */
int occ_owner_directory_check_path(const char *path, struct occ_error *err);

/* Lets the shipper list the directory of the file `path` to find histories, if it is the service's directory:
 * other directories may have other uses. */
int occ_owner_directory_let_shipper_list(const char *path, struct occ_error *err);

/* Records that the history at `path` is in use: sets the time of the file `used` next to it. A failure (disk
 * full) is ignored. */
#define OCC_OWNER_USED_FILE "used"
void occ_owner_directory_note_use(const char *path);

/* Removes the files of a closed history, and the owner's directory if it is empty then. `why` completes the
 * log line "... is removed". */
void occ_owner_directory_remove(const char *path, const char *why);
