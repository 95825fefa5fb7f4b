/*
 * Users of the machine: their names, and the user to whom subordinate uids belong.
 *
 * /etc/passwd and /etc/subuid are read once, and again after a change (file, size or time of change).
 * Accounts that only a name service knows come from name_service.h, so nothing here waits for a server.
 * Ranges of subordinate uids that a name service has (`subid:` in nsswitch.conf) are not known. One thread.
 * Logs.
 */
#pragma once

#include <stdint.h>

#include "name_service.h"
#include "support/error.h"

struct occ_accounts;

/* `root` is "" or the directory that stands for "/" (tests); it stays where it is. */
int occ_accounts_new(const char *root, struct occ_accounts **ret_accounts, struct occ_error *err);
/* NULL is fine. */
void occ_accounts_free(struct occ_accounts *accounts);

const char *occ_accounts_root(const struct occ_accounts *accounts);

/* The user to whom /etc/subuid gives `uid`; `uid` itself if it is no subordinate uid. Until the user's name
 * is resolved, the first uid of the range stands for the user: then the range is still one owner, not many.
 */
uint32_t occ_accounts_owner_uid(struct occ_accounts *accounts, uint32_t uid);

/* The user's name. */
enum occ_name_state occ_accounts_name(struct occ_accounts *accounts, uint32_t uid,
                                      char name[OCC_USER_NAME_BYTES]);
