/*
 * Parsers of /etc/subuid and /etc/passwd: local files, read without a directory service. They keep the text
 * and point into it. Lines that are not valid are left out. No global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

struct occ_subuid_range {
    const char *user; /* name or number, as the file has it */
    uint32_t first, count;
};

/* Zeroed: no range. */
struct occ_subuids {
    char *text;
    struct occ_subuid_range *ranges; /* in the file's order */
    size_t n, allocated;
};

struct occ_local_account {
    const char *name;
    uint32_t uid;
};

/* Zeroed: no account. */
struct occ_local_accounts {
    char *text;
    struct occ_local_account *by_name; /* sorted */
    size_t n, allocated;
};

/* Takes the malloc'ed text (on failure too) and changes it. */
int occ_subuids_parse(char *text, struct occ_subuids *ret_subuids, struct occ_error *err);
void occ_subuids_free(struct occ_subuids *subuids);

/* The first range that holds `uid`, from *at on; *at is then the next one to look at. NULL: none. */
const struct occ_subuid_range *occ_subuids_find(const struct occ_subuids *subuids, uint32_t uid, size_t *at);

/* Takes the malloc'ed text (on failure too) and changes it. */
int occ_local_accounts_parse(char *text, struct occ_local_accounts *ret_accounts, struct occ_error *err);
void occ_local_accounts_free(struct occ_local_accounts *accounts);

bool occ_local_accounts_uid(const struct occ_local_accounts *accounts, const char *name, uint32_t *ret_uid);
/* NULL: the file has no account with this number. */
const char *occ_local_accounts_name(const struct occ_local_accounts *accounts, uint32_t uid);
