/*
 * The names of users as they leave a node (settings ship.users and ship.users_key_file). A hash is keyed
 * (HMAC-SHA-256, 64 bits of it): without the key nobody can try names. The same key on all nodes of a cluster
 * gives a user one hash. For our own processes; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define OCC_PSEUDONYM_KEY_MIN  32 /* characters, such as 16 bytes in hexadecimal */
#define OCC_PSEUDONYM_KEY_MAX  256
#define OCC_PSEUDONYM_BYTES    22 /* "hash:", 16 digits, NUL */
#define OCC_PSEUDONYM_FORM_MAX OCC_PSEUDONYM_BYTES
#define OCC_PSEUDONYM_FILE     "users-key" /* the service's credential */

/* As the setting's words. */
enum occ_users { OCC_USERS_NAME, OCC_USERS_HASH, OCC_USERS_NONE };

/* Zero-initialised: names. */
struct occ_pseudonym {
    enum occ_users users;
    size_t key_bytes;
    char key[OCC_PSEUDONYM_KEY_MAX];
};

/* Reads the key for hashes: the first line of `key_file`, or, if that is "", of the service's credential.
 * OCC_E_INVALID: no key, a short or long one, or a file that every user may read. */
int occ_pseudonym_open(enum occ_users users, const char *key_file, struct occ_pseudonym *ret_pseudonym,
                       struct occ_error *err);

/* The user as it leaves the node: `user`, the hash in `hash`, or "". An unknown user ("") stays "". */
const char *occ_pseudonym_of(const struct occ_pseudonym *pseudonym, const char *user,
                             char hash[OCC_PSEUDONYM_BYTES]);

/* Writes a word for the form: "name", "none" or "hash:" with digits that differ for other keys. */
void occ_pseudonym_form(const struct occ_pseudonym *pseudonym, char form[OCC_PSEUDONYM_FORM_MAX]);
