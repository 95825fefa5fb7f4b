/* Turns the warehouse's answers into a history in memory: see remote.h. */
#include <string.h>

#include "load.h"
#include "support/text.h"

static int (*const loads[])(struct occ_load *l) = {[OCC_REMOTE_LAUNCHES] = occ_load_launches,
                                                   [OCC_REMOTE_RUNS] = occ_load_runs,
                                                   [OCC_REMOTE_RANKS] = occ_load_ranks,
                                                   [OCC_REMOTE_IDLE] = occ_load_idle};

/* Adds the rows that the answer excludes to the state. */
static void read_left_out(sqlite3 *db, struct occ_remote_state *state)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(
            db,
            "SELECT node, sum(n) FROM temp.left_out GROUP BY node HAVING sum(n) > 0 ORDER BY 2 "
            "DESC, 1",
            -1, &stmt, NULL) == SQLITE_OK)
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            long long n = (long long)sqlite3_column_int64(stmt, 1);
            state->left_out_rows += (uint64_t)n;
            occ_text_append(state->left_out, sizeof state->left_out, ", ", "%.100s %lld",
                            (const char *)sqlite3_column_text(stmt, 0), n);
        }
    (void)sqlite3_finalize(stmt);
}

static int check_texts(const struct occ_remote_question *question, struct occ_error *err)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"cluster", question->cluster}, {"user", question->user},
                 {"job", question->job},         {"node", question->node},
                 {"account", question->account}, {"partition", question->partition}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text && strlen(texts[i].text) > OCC_REMOTE_TEXT_MAX)
            return occ_fail(err, OCC_E_INVALID, "the %s has %zu bytes: the warehouse is asked for at most %d",
                            texts[i].name, strlen(texts[i].text), OCC_REMOTE_TEXT_MAX);
    return 0;
}

static int check_columns(const struct occ_warehouse *w, const struct occ_remote_question *question,
                         struct occ_error *err)
{
    bool is_asked = question->account || question->partition || question->by == OCC_TOP_BY_ACCOUNT ||
                    question->by == OCC_TOP_BY_PARTITION;
    unsigned int needed = OCC_SHIP_JOB_ADDED_slurm_partition + 1;
    return is_asked && (w->added.minute < needed || w->added.run < needed)
               ? occ_fail(err, OCC_E_INVALID,
                          "%s: the tables of database %s have no accounts and partitions yet: occtrace-ship "
                          "--init adds them",
                          w->options.http.url, w->options.database)
               : 0;
}

int occ_remote_ask(struct occ_warehouse *w, const struct occ_remote_question *question,
                   struct occ_remote_state *state, struct occ_store **ret_store, struct occ_error *err)
{
    struct occ_store *store = NULL;
    int rc = check_texts(question, err);
    if (rc == 0)
        rc = check_columns(w, question, err);
    if (rc == 0)
        rc = occ_store_open_memory(&store, err);
    if (rc != 0)
        return rc;
    struct occ_load l = {
        .w = w, .question = question, .store = store, .db = occ_store_sqlite(store), .err = err};
    rc = occ_load_run(&l, sqlite3_mprintf("CREATE TEMP TABLE left_out(node, n)"));
    if (rc == 0)
        rc = loads[question->kind](&l);
    if (rc == 0) {
        read_left_out(l.db, state);
        *ret_store = store;
    } else
        occ_store_close(store);
    return rc;
}
