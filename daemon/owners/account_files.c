/* See account_files.h. */
#include "account_files.h"

#include <stdlib.h>
#include <string.h>

#include "support/array.h"
#include "support/text.h"

#define MAX_FIELDS 7 /* of a line of /etc/passwd */

/* Terminates the line at *at, splits it at colons (the last field keeps further colons) and moves *at to the
 * next line. Returns the number of fields. */
static size_t split_line(char **at, char *fields[MAX_FIELDS])
{
    char *line = *at;
    size_t length = strcspn(line, "\n"), n = 0;
    *at = line + length + (line[length] == '\n');
    line[length] = '\0';
    for (char *field = line; field && n < MAX_FIELDS; n++) {
        fields[n] = field;
        field = strchr(field, ':');
        if (field && n + 1 < MAX_FIELDS)
            *field++ = '\0';
    }
    return n;
}

static bool number(const char *text, uint32_t max, uint32_t *ret_number)
{
    uint64_t value = 0;
    if (occ_parse_u64(text, 0, max, &value, NULL) != 0)
        return false;
    *ret_number = (uint32_t)value;
    return true;
}

int occ_subuids_parse(char *text, struct occ_subuids *ret_subuids, struct occ_error *err)
{
    struct occ_subuids *s = ret_subuids;
    char *fields[MAX_FIELDS];
    *s = (struct occ_subuids){.text = text};
    for (char *at = text; *at;) {
        struct occ_subuid_range range = {0};
        size_t n = split_line(&at, fields);
        if (n != 3 || !fields[0][0] || !number(fields[1], UINT32_MAX, &range.first) ||
            !number(fields[2], UINT32_MAX, &range.count))
            continue;
        if (!occ_grow((void **)&s->ranges, &s->allocated, s->n, SIZE_MAX, sizeof *s->ranges)) {
            occ_subuids_free(s);
            return occ_no_memory(err);
        }
        range.user = fields[0];
        s->ranges[s->n++] = range;
    }
    return 0;
}

void occ_subuids_free(struct occ_subuids *subuids)
{
    free(subuids->ranges);
    free(subuids->text);
    *subuids = (struct occ_subuids){0};
}

const struct occ_subuid_range *occ_subuids_find(const struct occ_subuids *subuids, uint32_t uid, size_t *at)
{
    while (*at < subuids->n) {
        const struct occ_subuid_range *range = &subuids->ranges[(*at)++];
        if (uid >= range->first && uid - range->first < range->count)
            return range;
    }
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    const struct occ_local_account *x = a, *y = b;
    return strcmp(x->name, y->name);
}

int occ_local_accounts_parse(char *text, struct occ_local_accounts *ret_accounts, struct occ_error *err)
{
    struct occ_local_accounts *a = ret_accounts;
    char *fields[MAX_FIELDS];
    *a = (struct occ_local_accounts){.text = text};
    for (char *at = text; *at;) {
        struct occ_local_account account = {0};
        size_t n = split_line(&at, fields);
        bool is_account =
            n >= 3 && fields[0][0] && !strchr("+-#", fields[0][0]); /* "+" and "-" lines refer to NIS */
        if (!is_account || !number(fields[2], UINT32_MAX - 1, &account.uid))
            continue;
        if (!occ_grow((void **)&a->by_name, &a->allocated, a->n, SIZE_MAX, sizeof *a->by_name)) {
            occ_local_accounts_free(a);
            return occ_no_memory(err);
        }
        account.name = fields[0];
        a->by_name[a->n++] = account;
    }
    if (a->n > 1)
        qsort(a->by_name, a->n, sizeof *a->by_name, by_name);
    return 0;
}

void occ_local_accounts_free(struct occ_local_accounts *accounts)
{
    free(accounts->by_name);
    free(accounts->text);
    *accounts = (struct occ_local_accounts){0};
}

bool occ_local_accounts_uid(const struct occ_local_accounts *accounts, const char *name, uint32_t *ret_uid)
{
    const struct occ_local_account key = {.name = name};
    const struct occ_local_account *found =
        accounts->n ? bsearch(&key, accounts->by_name, accounts->n, sizeof key, by_name) : NULL;
    if (found)
        *ret_uid = found->uid;
    return found != NULL;
}

const char *occ_local_accounts_name(const struct occ_local_accounts *accounts, uint32_t uid)
{
    for (size_t i = 0; i < accounts->n; i++)
        if (accounts->by_name[i].uid == uid)
            return accounts->by_name[i].name;
    return NULL;
}
