/* Accounts of the warehouse, as text for an administrator to run. One thread. */
#pragma once

#include <stdio.h>

#include "cluster/ask/warehouse.h"

struct occ_accounts_options {
    enum occ_dialect dialect; /* OLD: XML for users.d; NEW: SQL */
    const char *database;
    const char *nodes; /* path of a file with a node's name a line; NULL: a placeholder stands for a node */
    const char *passwords; /* directory with a file for each node's password; NULL: placeholders */
};

/* Prints roles, row policies and users. Names and passwords in capitals are placeholders. Missing passwords
 * are made and written into private files; existing ones stay, so that a second call prints the same
 * accounts. The directory is made (0700) if it is missing. OCC_E_INVALID: the file of nodes is wrong (a line
 * is no name of a node, and the message has its number; a name is there twice; or there is none), or the
 * directory is another user's, or others may read or write it; nothing was printed or written then. */
int occ_accounts_print(const struct occ_accounts_options *options, FILE *out, struct occ_error *err);
