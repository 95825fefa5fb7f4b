/* See accounts.h. */
#include "accounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account_files.h"
#include "support/file_signature.h"
#include "support/log.h"
#include "support/paths.h"
#include "support/text.h"

#define FILE_BYTES_MAX (64 << 20) /* a million lines */

struct occ_accounts {
    const char *root;
    struct occ_name_service *service;
    struct occ_file_signature passwd_seen, subuid_seen;
    struct occ_local_accounts local;
    struct occ_subuids subuids;
};

int occ_accounts_new(const char *root, struct occ_accounts **ret_accounts, struct occ_error *err)
{
    struct occ_accounts *a = calloc(1, sizeof *a);
    if (!a)
        return occ_no_memory(err);
    a->root = root;
    int status = occ_name_service_new(&a->service, err);
    if (status != 0) {
        free(a);
        return status;
    }
    *ret_accounts = a;
    return 0;
}

void occ_accounts_free(struct occ_accounts *accounts)
{
    if (!accounts)
        return;
    occ_name_service_free(accounts->service);
    occ_local_accounts_free(&accounts->local);
    occ_subuids_free(&accounts->subuids);
    free(accounts);
}

const char *occ_accounts_root(const struct occ_accounts *accounts)
{
    return accounts->root;
}

/* ---- files ---- */

/* The whole text of a file that has changed since *seen; "" if the file is gone. NULL: unchanged. The
 * signature is taken before the text is read, so a change in between is found by the next call. malloc'ed. */
static char *read_change(const struct occ_accounts *a, const char *path, struct occ_file_signature *seen)
{
    char whole[4096], *text = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    size_t n = 0;
    (void)snprintf(whole, sizeof whole, "%s%s", a->root, path);
    struct occ_file_signature now = occ_file_signature_of(whole);
    if (occ_file_signature_is_same(&now, seen))
        return NULL;
    *seen = now;
    if (now.ino == 0)
        return strdup("");
    if (now.size > FILE_BYTES_MAX)
        occ_log(OCC_LOG_ERROR, "%s has more than %d MiB: the rest is not read", whole, FILE_BYTES_MAX >> 20);
    if (occ_path_read(whole, now.size < FILE_BYTES_MAX ? (size_t)now.size : FILE_BYTES_MAX, &text, &n,
                      &err) != 0)
        occ_log(OCC_LOG_ERROR, "%s", err.message);
    return text;
}

static void update_local(struct occ_accounts *a)
{
    char *text = read_change(a, "/etc/passwd", &a->passwd_seen);
    struct occ_local_accounts fresh;
    if (!text || occ_local_accounts_parse(text, &fresh, NULL) != 0)
        return;
    occ_local_accounts_free(&a->local);
    a->local = fresh;
}

static void update_subuids(struct occ_accounts *a)
{
    char *text = read_change(a, "/etc/subuid", &a->subuid_seen);
    struct occ_subuids fresh;
    if (!text || occ_subuids_parse(text, &fresh, NULL) != 0)
        return;
    occ_subuids_free(&a->subuids);
    a->subuids = fresh;
}

/* ---- questions ---- */

static enum occ_name_state uid_of(struct occ_accounts *a, const char *user, uint32_t *ret_uid)
{
    uint64_t number = 0;
    if (occ_parse_u64(user, 0, UINT32_MAX - 1, &number, NULL) == 0) {
        *ret_uid = (uint32_t)number;
        return OCC_NAME_KNOWN;
    }
    if (occ_local_accounts_uid(&a->local, user, ret_uid))
        return OCC_NAME_KNOWN;
    return occ_name_service_uid(a->service, user, ret_uid);
}

uint32_t occ_accounts_owner_uid(struct occ_accounts *accounts, uint32_t uid)
{
    const struct occ_subuid_range *range;
    size_t at = 0;
    update_local(accounts);
    update_subuids(accounts);
    while ((range = occ_subuids_find(&accounts->subuids, uid, &at))) {
        uint32_t owner = 0;
        enum occ_name_state state = uid_of(accounts, range->user, &owner);
        if (state == OCC_NAME_WAITS)
            return range->first;
        /* uids of root's containers belong to no user of the host */
        if (state == OCC_NAME_KNOWN && owner != 0)
            return owner;
    }
    return uid;
}

enum occ_name_state occ_accounts_name(struct occ_accounts *accounts, uint32_t uid,
                                      char name[OCC_USER_NAME_BYTES])
{
    update_local(accounts);
    const char *local = occ_local_accounts_name(&accounts->local, uid);
    if (!local || strlen(local) >= OCC_USER_NAME_BYTES)
        return occ_name_service_name(accounts->service, uid, name);
    (void)snprintf(name, OCC_USER_NAME_BYTES, "%s", local);
    return OCC_NAME_KNOWN;
}
