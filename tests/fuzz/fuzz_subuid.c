/* Fuzzes /etc/subuid and /etc/passwd: any bytes give ranges and accounts without faults. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/owners/account_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    return text;
}

static void check_subuids(const struct occ_subuids *subuids)
{
    for (size_t i = 0; i < subuids->n; i++) {
        const struct occ_subuid_range *range = &subuids->ranges[i];
        size_t at = 0;
        if (!range->user[0] || strpbrk(range->user, ":\n"))
            abort();
        if (range->count > 0 && !occ_subuids_find(subuids, range->first, &at))
            abort();
    }
}

static void check_accounts(const struct occ_local_accounts *accounts)
{
    for (size_t i = 0; i < accounts->n; i++) {
        const struct occ_local_account *account = &accounts->by_name[i];
        uint32_t uid;
        if (!account->name[0] || strpbrk(account->name, ":\n"))
            abort();
        if (!occ_local_accounts_uid(accounts, account->name, &uid) ||
            !occ_local_accounts_name(accounts, account->uid))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_subuids subuids;
    struct occ_local_accounts accounts;
    if (occ_subuids_parse(text_of(data, size), &subuids, NULL) == 0) {
        check_subuids(&subuids);
        occ_subuids_free(&subuids);
    }
    if (occ_local_accounts_parse(text_of(data, size), &accounts, NULL) == 0) {
        check_accounts(&accounts);
        occ_local_accounts_free(&accounts);
    }
    return 0;
}
