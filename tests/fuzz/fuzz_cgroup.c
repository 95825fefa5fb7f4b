/* Fuzzes /proc/PID/cgroup: names have a bounded length and occur in the text, and a login needs a path that
 * begins with the login slice. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/owners/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_texts(const char *text, const struct occ_identity *id)
{
    const char *const words[] = {id->container, id->slurm_job, id->slurm_step};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(text, words[i]) || strpbrk(words[i], "/\n"))
            abort();
    if ((id->container[0] && strlen(id->container) != OCC_CONTAINER_ID_DIGITS) ||
        (id->pod[0] && strlen(id->pod) != 36) || strpbrk(id->pod, "/\n"))
        abort();
}

/* true if a path of the text begins with the login slice; "/.." may come before the slice, as a daemon in a
 * control group of its own reads paths. */
static bool names_login(const char *text)
{
    static const char slice[] = "/user.slice/user-1000.slice/";
    for (const char *at = text; (at = strstr(at, slice)); at++)
        if (at > text && (at[-1] == ':' || (at - text > 3 && memcmp(at - 3, "/..", 3) == 0)))
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct occ_identity id = {.uid = 1000, .owner_uid = 1000};
    struct occ_owner owner, again;
    char *text = calloc(1, size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    occ_identity_parse_cgroups(text, &id);
    check_texts(text, &id);
    if (id.is_rootless && !names_login(text))
        abort();
    occ_identity_owner(&id, &owner);
    if (!occ_identity_parse_owner(owner.name, &again) || again.uid != owner.uid)
        abort();
    if ((id.container[0] || id.pod[0]) && !id.is_rootless && owner.uid != -1)
        abort();
    free(text);
    return 0;
}
