/* See pseudonym.h. */
#include "pseudonym.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "paths.h"
#include "sha256.h"
#include "text.h"

#define HASH_BYTES 8
#define PREFIX     "hash:"
/* Hashed in place of a name: no user has a name with a line's end. */
#define FORM_OF "\nform\n"

static int read_key(const char *path, struct occ_pseudonym *pseudonym, struct occ_error *err)
{
    struct stat status;
    _cleanup_(occ_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char line[OCC_PSEUDONYM_KEY_MAX + 1];
    if (fd < 0 || fstat(fd, &status) != 0)
        return occ_fail_errno(err, errno, "cannot read the key in %s", path);
    if (status.st_mode & S_IRWXO)
        return occ_fail(err, OCC_E_INVALID, "%s: a key that every user may read is not used: chmod o= it",
                        path);
    ssize_t n = read(fd, line, sizeof line);
    if (n < 0)
        return occ_fail_errno(err, errno, "cannot read the key in %s", path);
    const char *end = memchr(line, '\n', (size_t)n);
    pseudonym->key_bytes = end ? (size_t)(end - line) : (size_t)n;
    if (pseudonym->key_bytes < OCC_PSEUDONYM_KEY_MIN || pseudonym->key_bytes > OCC_PSEUDONYM_KEY_MAX)
        return occ_fail(err, OCC_E_INVALID, "%s: the key is the first line, of %d to %d characters", path,
                        OCC_PSEUDONYM_KEY_MIN, OCC_PSEUDONYM_KEY_MAX);
    memcpy(pseudonym->key, line, pseudonym->key_bytes);
    return 0;
}

int occ_pseudonym_open(enum occ_users users, const char *key_file, struct occ_pseudonym *ret_pseudonym,
                       struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    *ret_pseudonym = (struct occ_pseudonym){.users = users};
    int rc = users == OCC_USERS_HASH ? occ_path_secret(key_file, OCC_PSEUDONYM_FILE, &path, err) : 0;
    if (rc != 0 || users != OCC_USERS_HASH)
        return rc;
    rc = path ? read_key(path, ret_pseudonym, err)
              : occ_fail(err, OCC_E_INVALID,
                         "a key is needed: ship.users_key_file, the same on all nodes of the cluster");
    return rc == 0 ? 0 : occ_error_prefix(err, "ship.users: hash");
}

static void put_hash(const struct occ_pseudonym *pseudonym, const char *text, char hash[OCC_PSEUDONYM_BYTES])
{
    uint8_t bytes[OCC_SHA256_BYTES];
    occ_hmac_sha256(pseudonym->key, pseudonym->key_bytes, text, strlen(text), bytes);
    memcpy(hash, PREFIX, strlen(PREFIX));
    occ_hex_encode(bytes, HASH_BYTES, hash + strlen(PREFIX));
}

const char *occ_pseudonym_of(const struct occ_pseudonym *pseudonym, const char *user,
                             char hash[OCC_PSEUDONYM_BYTES])
{
    if (pseudonym->users == OCC_USERS_NAME || user[0] == '\0')
        return user;
    if (pseudonym->users == OCC_USERS_NONE)
        return "";
    put_hash(pseudonym, user, hash);
    return hash;
}

void occ_pseudonym_form(const struct occ_pseudonym *pseudonym, char form[OCC_PSEUDONYM_FORM_MAX])
{
    if (pseudonym->users == OCC_USERS_HASH)
        put_hash(pseudonym, FORM_OF, form);
    else
        (void)snprintf(form, OCC_PSEUDONYM_FORM_MAX, "%s",
                       pseudonym->users == OCC_USERS_NAME ? "name" : "none");
}
