/* From the warehouse's answers to a history in memory: see remote.h. */
#include "load.h"

int occ_remote_ask(struct occ_warehouse *w, const struct occ_remote_question *question,
                   struct occ_store **ret_store, struct occ_error *err)
{
    struct occ_store *store = NULL;
    int rc = occ_store_open_memory(&store, err);
    if (rc != 0)
        return rc;
    struct occ_load l = {.w = w, .question = question, .db = occ_store_sqlite(store), .err = err};
    rc = question->runs ? occ_load_runs(&l) : occ_load_launches(&l);
    if (rc == 0)
        *ret_store = store;
    else
        occ_store_close(store);
    return rc;
}
