/* Filters and the history's file; see history.h. One thread. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "cli/usage.h"
#include "support/cleanup.h"
#include "support/paths.h"

bool cli_start_history(const struct cli_command *command, char **argv, struct history_args *args,
                       struct cli_selection *ret_selection, int *ret_status)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_filter *filter = &args->filter;
    if (!cli_start_list(command, argv, &args->list, ret_selection, ret_status))
        return false;
    if (filter->since_ns == 0 || filter->until_ns == 0 || filter->until_ns > filter->since_ns)
        return true;
    (void)occ_fail(&err, OCC_E_INVALID, "--until is not after --since");
    *ret_status = cli_usage_error(command, &err);
    return false;
}

int cli_open_history(const struct cli_args *args, enum occ_store_mode mode, struct occ_store **ret_store,
                     struct occ_error *err)
{
    _cleanup_(occ_freep) char *own = NULL;
    const struct occ_store_options options = {.mode = mode};
    int status = args->db ? 0 : occ_path_own_history(&own, err);
    const char *path = args->db ? args->db : own;
    if (status == 0 && mode == OCC_STORE_READ && access(path, F_OK) != 0 && errno == ENOENT)
        return occ_fail(err, OCC_E_NOT_FOUND, "there is no history at %s (\"occtrace PROGRAM\" makes one)",
                        path);
    return status == 0 ? occ_store_open(path, &options, ret_store, err) : status;
}

void cli_store_closep(struct occ_store **store)
{
    occ_store_close(*store);
}

void cli_note_unknown_times(const struct cli_command *command, struct occ_store *store,
                            const struct occ_filter *filter)
{
    uint64_t n = 0;
    if ((filter->since_ns <= 0 && filter->until_ns <= 0) ||
        occ_store_count_unknown_time_base(store, &n, NULL) != 0 || n == 0)
        return;
    cli_note(command,
             "--since and --until ignore %" PRIu64 " imported run%s: the recordings have no absolute times",
             n, n == 1 ? "" : "s");
}
