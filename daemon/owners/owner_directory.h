/* The directory of an owner's history: its access control list, and its removal (histories.h). Any thread.
 * Logs. */
#pragma once

#include <stdint.h>

#include "support/error.h"

/* Makes the directory of `file`, in which its owner may read everything, and the shipper; uid <= 0: only the
 * shipper. */
int occ_owner_directory_make(const char *file, int64_t uid, struct occ_error *err);

/* Histories of several owners beside `path` are of use where all users may enter its directories.
 * OCC_E_DENIED: a directory keeps others out. Missing directories are made when histories are opened. */
int occ_owner_directory_check_path(const char *path, struct occ_error *err);

/* The shipper finds histories by listing the directory of the file `path`. Another directory than the
 * service's is not only ours. */
int occ_owner_directory_let_shipper_list(const char *path, struct occ_error *err);

/* The history at `path` is in use: the file `used` beside it keeps the time. A full disk loses the time. */
#define OCC_OWNER_USED_FILE "used"
void occ_owner_directory_note_use(const char *path);

/* Removes the files of a history that is closed, and the owner's directory if nothing else is in it. `why`
 * follows "is removed" in the log. */
void occ_owner_directory_remove(const char *path, const char *why);
