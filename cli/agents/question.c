/* See question.h. One thread. */
#include "question.h"

#include <sqlite3.h>

enum { STEPS = 2000 }; /* of SQLite's virtual machine between two calls of the watch: about 0.1 ms */

static int is_stopped(void *context)
{
    const struct agent_watch *watch = context;
    return watch->stop(watch->context);
}

void agent_watch_store(const struct agent_question *question, struct occ_store *store)
{
    const struct agent_watch *watch = &question->place->watch;
    if (watch->stop)
        sqlite3_progress_handler(occ_store_sqlite(store), STEPS, is_stopped, (void *)(uintptr_t)watch);
}

int agent_no_launches(const struct agent_question *question, struct occ_error *err)
{
    struct occ_top top = {.n = 0};
    const struct occ_filter any = {.run = question->filter.run, .label = question->filter.label};
    int status = occ_store_top(question->store, &any, OCC_TOP_BY_RUN, &top, err);
    size_t n = top.n;
    if (status == 0)
        occ_top_free(&top);
    if (status != 0)
        return status;
    return n == 0 ? occ_fail(err, OCC_E_NOT_FOUND, "no launches of such a run")
                  : occ_fail(err, OCC_E_NOT_FOUND, "the run has launches, but none that match");
}
