/*
 * Users of the machine: their names, and the user to whom a subordinate uid belongs.
 *
 * /etc/passwd and /etc/subuid are read once, and again after a change (file, size or time of change).
 * Accounts from a directory service are resolved by name_service.h in a thread, so no function here waits for
 * a server. Ranges of subordinate uids from a name service (`subid:` in nsswitch.conf) are not supported. One
 * thread. Logs.
 */
#pragma once

#include <stdint.h>

#include "name_service.h"
#include "support/error.h"

struct occ_accounts;

/* `root` is "" or the directory used in place of "/" (tests); the caller keeps it allocated. */
int occ_accounts_new(const char *root, struct occ_accounts **ret_accounts, struct occ_error *err);
/* NULL is allowed. */
void occ_accounts_free(struct occ_accounts *accounts);

const char *occ_accounts_root(const struct occ_accounts *accounts);

/* The user to whom /etc/subuid assigns `uid`; `uid` itself if it is no subordinate uid. Until the user's name
 * is resolved, the first uid of the range is returned, so that a range has one owner at any time. */
uint32_t occ_accounts_owner_uid(struct occ_accounts *accounts, uint32_t uid);

/* Copies the user's name to `name` if it is known. */
enum occ_name_state occ_accounts_name(struct occ_accounts *accounts, uint32_t uid,
                                      char name[OCC_USER_NAME_BYTES]);
