/* Reads the state of the cluster's data: see remote.h. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote.h"
#include "support/text.h"

#define CLUSTERS_MAX 1000
#define TEXT_BYTES   (2 * OCC_REMOTE_TEXT_MAX + 3) /* a quoted text; each byte may be escaped */

static const char sums[] =
    "SELECT count(*), total(silent), coalesce(min(iif(silent, NULL, until)), max(until), 0), total(lost), "
    "coalesce(substr(group_concat(iif(silent, node, NULL), ', '), 1, 200), '') FROM (SELECT node, lost + 0 "
    "AS lost, "
    "until + 0 AS until, until + 0 < oldest + 0 AS silent FROM watermarks ORDER BY node)";

static void read_sums(sqlite3 *db, struct occ_remote_state *state)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sums, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *names = (const char *)sqlite3_column_text(stmt, 4);
        state->nodes = (uint64_t)sqlite3_column_int64(stmt, 0);
        state->silent = (uint64_t)sqlite3_column_int64(stmt, 1);
        state->complete_until_ns = (sqlite3_column_int64(stmt, 2) & UINT32_MAX) * INT64_C(1000000000);
        state->lost_minutes = (uint64_t)sqlite3_column_int64(stmt, 3);
        (void)snprintf(state->silent_names, sizeof state->silent_names, "%s", names ? names : "");
    }
    (void)sqlite3_finalize(stmt);
}

int occ_remote_get_state(struct occ_warehouse *w, const char *cluster, struct occ_remote_state *ret_state,
                         struct occ_error *err)
{
    sqlite3 *db = NULL;
    char quoted[TEXT_BYTES] = "cluster";
    if (cluster)
        occ_warehouse_quote(cluster, quoted, sizeof quoted);
    char *sql = sqlite3_mprintf(
        "SELECT toUInt32(complete_until) AS until, node, lost, toUInt32(now()) - %d AS oldest "
        "FROM %s.watermark FINAL WHERE cluster = %s",
        OCC_REMOTE_SILENT_S, w->options.database, quoted);
    *ret_state = (struct occ_remote_state){0};
    int rc = sql && sqlite3_open(":memory:", &db) == SQLITE_OK
                 ? occ_remote_fetch(w, db, "watermarks", "until, node, lost, oldest", sql, err)
                 : occ_no_memory(err);
    if (rc == 0)
        read_sums(db, ret_state);
    sqlite3_free(sql);
    (void)sqlite3_close(db);
    return rc;
}

/* ---- clusters ---- */

/* n: 1 for a cluster with runs that the account sees, else 0: only its nodes are known. The wanted cluster is
 * first, since a node can send rows of any number of clusters; NULL: none is wanted. */
static int fetch_clusters(struct occ_warehouse *w, sqlite3 *db, const char *wanted, struct occ_error *err)
{
    const char *database = w->options.database;
    char quoted[TEXT_BYTES];
    occ_warehouse_quote(wanted ? wanted : "", quoted, sizeof quoted);
    char *sql = sqlite3_mprintf("SELECT max(has_runs) AS n, cluster FROM (SELECT DISTINCT 1 AS has_runs, "
                                "cluster FROM %s.run UNION ALL "
                                "SELECT DISTINCT 0 AS has_runs, cluster FROM %s.watermark) GROUP BY cluster "
                                "ORDER BY cluster = %s DESC, n DESC, cluster LIMIT %d",
                                database, database, quoted, CLUSTERS_MAX);
    int rc = sql ? occ_remote_fetch(w, db, "clusters", "n, cluster", sql, err) : occ_no_memory(err);
    sqlite3_free(sql);
    return rc;
}

/* Fails with the names of the clusters, as many as fit. */
static int fail_choice(const struct occ_warehouse *w, sqlite3 *db, const char *wanted, struct occ_error *err)
{
    char names[256] = "";
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, "SELECT coalesce(nullif(cluster, ''), '''''') FROM clusters", -1, &stmt,
                           NULL) == SQLITE_OK)
        while (sqlite3_step(stmt) == SQLITE_ROW)
            occ_text_append(names, sizeof names, ", ", "%.100s", (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    occ_text_sanitise(names);
    if (wanted && names[0] == '\0')
        return occ_fail(
            err, OCC_E_USAGE,
            "--cluster-name: the warehouse has no rows of cluster '%.100s' that this account sees, "
            "and none of another cluster",
            wanted);
    return wanted ? occ_fail(err, OCC_E_USAGE,
                             "--cluster-name: the warehouse has no rows of cluster '%.100s'; it has: %s",
                             wanted, names)
                  : occ_fail(err, OCC_E_USAGE,
                             "%s has rows of several clusters, which are never added up: --cluster-name NAME "
                             "chooses one: %s",
                             w->options.http.url, names);
}

static int choose_cluster(const struct occ_warehouse *w, sqlite3 *db, const char *wanted, char **ret_name,
                          struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int n = 0,
        code =
            sqlite3_prepare_v2(db,
                               "SELECT coalesce(cluster, '') FROM clusters WHERE iif(?1 IS NULL, n = (SELECT "
                               "max(n) FROM clusters), cluster = ?1)",
                               -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(stmt, 1, wanted, -1, SQLITE_STATIC);
    for (; code == SQLITE_OK && n < 2 && sqlite3_step(stmt) == SQLITE_ROW; n++)
        if (n == 0 && occ_format_text(ret_name, err, "%s", (const char *)sqlite3_column_text(stmt, 0)) != 0)
            code = SQLITE_NOMEM;
    (void)sqlite3_finalize(stmt);
    if (code != SQLITE_OK)
        return occ_no_memory(err);
    if (n == 1 || (n == 0 && !wanted))
        return 0;
    free(*ret_name);
    *ret_name = NULL;
    return fail_choice(w, db, wanted, err);
}

int occ_remote_choose_cluster(struct occ_warehouse *w, const char *wanted, char **ret_name,
                              struct occ_error *err)
{
    sqlite3 *db = NULL;
    *ret_name = NULL;
    int rc =
        sqlite3_open(":memory:", &db) == SQLITE_OK ? fetch_clusters(w, db, wanted, err) : occ_no_memory(err);
    if (rc == 0)
        rc = choose_cluster(w, db, wanted, ret_name, err);
    (void)sqlite3_close(db);
    return rc;
}
