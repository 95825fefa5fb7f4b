/* See closed_upkeep.h. */
#include "closed_upkeep.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/log.h"

/* Every history has its turn once a day, whatever the number of owners. */
#define CLOSED_UPKEEP_NS INT64_C(600000000000)
#define ROUND_NS         INT64_C(86400000000000)

static void plan(struct occ_histories *all, int64_t now_ns, int64_t n_owners)
{
    int64_t wait_ns = all->options->closed_upkeep_ns ? all->options->closed_upkeep_ns : CLOSED_UPKEEP_NS;
    if (n_owners > 0 && ROUND_NS / n_owners < wait_ns)
        wait_ns = ROUND_NS / n_owners;
    all->next_closed_upkeep_ns = all->options->split ? now_ns + wait_ns : INT64_MAX;
}

void occ_closed_upkeep_plan(struct occ_histories *all, int64_t now_ns)
{
    plan(all, now_ns, 0);
}

/* The owner after the last served one in order of directory names, or the first; an empty name: no owners.
 * Returns the number of owners. */
static int64_t next_owner(const struct occ_histories *all, struct occ_owner *ret_owner)
{
    int64_t n = 0;
    const char *path = all->options->path;
    struct occ_owner first = {.name = ""}, owner;
    _cleanup_(occ_freep) char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    DIR *directory = parent ? opendir(parent) : NULL;
    ret_owner->name[0] = '\0';
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!occ_identity_parse_owner(entry->d_name, &owner))
            continue;
        n++;
        struct occ_owner *least = strcmp(owner.name, all->maintained_last.name) > 0 ? ret_owner : &first;
        if (!least->name[0] || strcmp(owner.name, least->name) < 0)
            *least = owner;
    }
    if (directory)
        (void)closedir(directory);
    if (!ret_owner->name[0])
        *ret_owner = first;
    return n;
}

void occ_closed_upkeep_poll(struct occ_histories *all, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_history *h = NULL;
    struct occ_owner owner;
    _cleanup_(occ_freep) char *path = NULL;
    if (now_ns < all->next_closed_upkeep_ns)
        return;
    int64_t n_owners = next_owner(all, &owner);
    plan(all, now_ns, n_owners);
    if (n_owners == 0 || occ_histories_path(all, &owner, &path, &err) != 0)
        return;
    all->maintained_last = owner;
    if (access(path, F_OK) == 0 && occ_histories_of(all, &owner, now_ns, &h, &err) != 0)
        occ_log(OCC_LOG_WARNING, "nothing of %s is deleted by age and size: %s", path, err.message);
}
