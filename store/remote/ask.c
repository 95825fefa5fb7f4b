/* From the warehouse's answers to a history in memory: see remote.h. */
#include "load.h"

static int (*const loads[])(struct occ_load *l) = {[OCC_REMOTE_LAUNCHES] = occ_load_launches,
                                                   [OCC_REMOTE_RUNS] = occ_load_runs,
                                                   [OCC_REMOTE_RANKS] = occ_load_ranks,
                                                   [OCC_REMOTE_IDLE] = occ_load_idle};

int occ_remote_ask(struct occ_warehouse *w, const struct occ_remote_question *question,
                   struct occ_store **ret_store, struct occ_error *err)
{
    struct occ_store *store = NULL;
    int rc = occ_store_open_memory(&store, err);
    if (rc != 0)
        return rc;
    struct occ_load l = {
        .w = w, .question = question, .store = store, .db = occ_store_sqlite(store), .err = err};
    rc = loads[question->kind](&l);
    if (rc == 0)
        *ret_store = store;
    else
        occ_store_close(store);
    return rc;
}
