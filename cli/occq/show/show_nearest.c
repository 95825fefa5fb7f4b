/* `occq show --with ncu`: if no report of Nsight Compute has a launch configuration, finds the nearest
 * configuration of the same kernel in the reports, and the differences; see show_text.h. One thread. */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"
#include "show_text.h"

/* Fields that identify a configuration; `occq show` matches reports by the same fields. X(name in the
 * statement, text) */
#define FIELDS(X)                                                                                            \
    X(grid, "grid")                                                                                          \
    X(block, "block")                                                                                        \
    X(registers, "registers")                                                                                \
    X(shared_bytes, "bytes of shared memory")                                                                \
    X(cluster, "cluster")                                                                                    \
    X(sm_count, "SMs")                                                                                       \
    X(compute_capability, "compute capability")
#define DIFFERS(name, text) " + (c." #name " IS NOT o." #name ")"
#define DIFFERENCE(name, text)                                                                               \
    " || iif(c." #name " IS o." #name ", '', ', " text " ' || coalesce(o." #name ", '?') || ' here, ' || "   \
    "coalesce(c." #name ", '?') || ' in the report')"
#define SIZES(name) ", max(" name "_x, 1) || 'x' || max(" name "_y, 1) || 'x' || max(" name "_z, 1) AS " name
#define ALL_SIZES   SIZES("grid") SIZES("block") SIZES("cluster")
#define DISTANCE    FIELDS(DIFFERS)
#define DIFFERENCES FIELDS(DIFFERENCE)

static const char statement[] =
    "WITH config AS (SELECT config_id, kernel_id, kernel, kernel_mangled, registers_per_thread AS registers, "
    "static_shared_bytes + dynamic_shared_bytes AS shared_bytes, sm_count, compute_capability" ALL_SIZES
    " FROM launch_config JOIN device USING(device_id)) "
    "SELECT 'run ' || run_id || ': ' || substr(''" DIFFERENCES ", 3) "
    "FROM config AS o JOIN config AS c ON c.kernel_id = o.kernel_id "
    "OR (c.kernel_mangled NOT LIKE '\\_Z%' ESCAPE '\\' AND c.kernel = o.kernel) "
    "JOIN (SELECT DISTINCT run_id, config_id FROM ncu_metric) AS r ON r.config_id = c.config_id "
    "WHERE o.config_id = ? ORDER BY 0" DISTANCE ", run_id DESC LIMIT 1";

/* Finds the nearest configuration. The caller frees *ret_text; NULL: no report has the kernel. */
static int find(sqlite3 *db, int64_t config, char **ret_text, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int step = sqlite3_prepare_v2(db, statement, -1, &stmt, NULL);
    if (step == SQLITE_OK && sqlite3_bind_int64(stmt, 1, config) == SQLITE_OK)
        step = sqlite3_step(stmt);
    const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    *ret_text = text ? strdup(text) : NULL;
    bool no_memory = step == SQLITE_ROW && !*ret_text;
    (void)sqlite3_finalize(stmt);
    return no_memory                                   ? occ_no_memory(err)
           : step == SQLITE_ROW || step == SQLITE_DONE ? 0
                                                       : occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
}

int show_find_nearest(struct occ_store *store, struct show_group *group, bool *found, struct occ_error *err)
{
    int status = 0;
    group->nearest = calloc(group->shown + 1, sizeof *group->nearest);
    if (!group->nearest)
        return occ_no_memory(err);
    for (size_t i = 0; i < group->shown && status == 0; i++) {
        bool is_same = group->configs[i].ncu.launches > 0;
        if (!is_same)
            status = find(occ_store_sqlite(store), group->configs[i].id, &group->nearest[i], err);
        *found |= is_same || group->nearest[i];
    }
    return status;
}

void show_nearest(const struct show_group *group, size_t i)
{
    if (!group->nearest || group->configs[i].ncu.launches > 0)
        return;
    cli_print("\n    NSIGHT COMPUTE\n    no report has this launch configuration%s%s\n",
              group->nearest[i] ? "; the nearest of this kernel, " : ", nor any other of this kernel",
              group->nearest[i] ? group->nearest[i] : "");
}
