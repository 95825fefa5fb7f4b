/* See ship_forget.h. */
#include "ship_forget.h"

#include <stdio.h>

#include "cluster/ask/remote.h"
#include "forget.h"
#include "support/cleanup.h"

/* Erases the user as ship.users sends it. The name beside its hash only if rows have the name: else `erased`
 * would tell whose the hash is. */
static int erase(struct occ_warehouse *w, const char *cluster, const char *user,
                 const struct occ_config *config, uint64_t *ret_rows, struct occ_error *err)
{
    struct occ_pseudonym users;
    char hash[OCC_PSEUDONYM_BYTES];
    uint64_t of_hash = 0;
    bool has_name = true;
    int rc = occ_ship_users(config, &users, err);
    if (rc == 0 && users.users == OCC_USERS_HASH)
        rc = occ_warehouse_has_user(w, cluster, user, &has_name, err);
    if (rc == 0 && users.users == OCC_USERS_HASH)
        rc = occ_warehouse_erase(w, cluster, occ_pseudonym_of(&users, user, hash), &of_hash, err);
    if (rc == 0 && has_name)
        rc = occ_warehouse_erase(w, cluster, user, ret_rows, err);
    *ret_rows += of_hash;
    return rc;
}

static int retire(struct occ_warehouse *w, const char *cluster, const char *node, struct occ_error *err)
{
    bool is_shared = false;
    int rc = occ_warehouse_retire(w, cluster, node, &is_shared, err);
    if (rc != 0)
        return rc;
    (void)printf("cluster '%s': node '%s' is retired; ", cluster, node);
    if (is_shared)
        (void)printf("another cluster has a node of this name, which uses the account `occ_node_%s`, too\n",
                     node);
    else
        (void)printf("to close its account: DROP USER IF EXISTS `occ_node_%s`\n", node);
    return 0;
}

int occ_ship_forget(const struct occ_ship_options *options, const struct occ_config *config,
                    struct occ_warehouse *w, struct occ_error *err)
{
    const char *wanted = options->cluster_name ? options->cluster_name : config->ship_cluster;
    _cleanup_(occ_freep) char *cluster = NULL;
    uint64_t rows = 0;
    int rc = occ_warehouse_check(w, OCC_FOR_MAINTENANCE, err);
    if (rc == 0)
        rc = occ_remote_choose_cluster(w, wanted[0] || options->cluster_name ? wanted : NULL, &cluster, err);
    const char *name = cluster ? cluster : "";
    if (rc == 0 && options->retire)
        return retire(w, name, options->retire, err);
    if (rc == 0)
        rc = erase(w, name, options->erase, config, &rows, err);
    if (rc == 0)
        (void)printf("cluster '%s': %llu rows of user '%s' removed\n", name, (unsigned long long)rows,
                     options->erase);
    return rc;
}
