/*
 * Parsers of /etc/subuid and /etc/passwd: local files, read without a directory service. They keep the text
 * and point into it. Invalid lines are skipped. No global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

struct occ_subuid_range {
    const char *user; /* name or number, as written in the file */
    uint32_t first, count;
};

/* Zeroed: no ranges. */
struct occ_subuids {
    char *text;
    struct occ_subuid_range *ranges; /* in the file's order */
    size_t n, allocated;
};

struct occ_local_account {
    const char *name;
    uint32_t uid;
};

/* Zeroed: no accounts. */
struct occ_local_accounts {
    char *text;
    struct occ_local_account *by_name; /* sorted by name */
    size_t n, allocated;
};

/* Takes over the malloc'ed text (on failure too) and modifies it. */
int occ_subuids_parse(char *text, struct occ_subuids *ret_subuids, struct occ_error *err);
void occ_subuids_free(struct occ_subuids *subuids);

/* The first range from index *at on that contains `uid`; *at becomes the index after it, to continue the
 * search. NULL: none. */
const struct occ_subuid_range *occ_subuids_find(const struct occ_subuids *subuids, uint32_t uid, size_t *at);

/* Takes over the malloc'ed text (on failure too) and modifies it. */
int occ_local_accounts_parse(char *text, struct occ_local_accounts *ret_accounts, struct occ_error *err);
void occ_local_accounts_free(struct occ_local_accounts *accounts);

bool occ_local_accounts_uid(const struct occ_local_accounts *accounts, const char *name, uint32_t *ret_uid);
/* NULL: no account has this number. */
const char *occ_local_accounts_name(const struct occ_local_accounts *accounts, uint32_t uid);
