/* occq runs: observed programs, newest first, with level, losses and overhead; recording of one paused and
 * resumed. One thread. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/usage.h"
#include "cli/history/cluster.h"
#include "cli/daemon.h"
#include "cli/history/history.h"
#include "cli/history/lists.h"
#include "support/cleanup.h"
#include "support/control.h"
#include "support/refusals.h"
#include "support/text.h"

struct runs_args {
    struct history_args history; /* the first member */
    const char *socket;
};

enum { PATIENCE_MS = 5000 };

/* ---- pause PID, resume PID ---- */

static int send_pause(const struct cli_command *command, const struct runs_args *args)
{
    static const char *const actions[] = {"pause", "resume", NULL};
    char *const *operands = args->history.list.common.operands;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_closep) int fd = -1;
    char text[64], answer[OCC_CONTROL_BYTES + 1];
    uint64_t pid = 0;
    size_t i = 0;
    while (actions[i] && strcmp(actions[i], operands[0]) != 0)
        i++;
    if (!actions[i])
        (void)cli_fail_unknown("action", "", operands[0], strlen(operands[0]), actions, &err);
    else if (!operands[1])
        (void)occ_fail(&err, OCC_E_INVALID, "%s needs a process id", actions[i]);
    else if (occ_parse_u64(operands[1], 1, INT32_MAX, &pid, &err) == 0) {
        (void)snprintf(text, sizeof text, "%s_run %" PRIu64, actions[i], pid);
        _cleanup_(occ_freep) char *own = args->socket ? NULL : socket_of_process((int32_t)pid);
        if (connect_daemon(args->socket ? args->socket : own, &fd, &err) != 0 ||
            occ_control_request(fd, text, PATIENCE_MS, answer, sizeof answer, &err) != 0)
            return cli_failure(command, &err);
        cli_note(command, "process %" PRIu64 ": recording %s within a second", pid,
                 i == 0 ? "stops" : "goes on");
        return CLI_EXIT_OK;
    }
    return cli_usage_error(command, &err);
}

/* ---- programs without a row ---- */

static const struct {
    const char *key, *text;
} refusals[] = {
#define REFUSAL(name, word, text) {"refused_" word, text},
    OCC_REFUSALS(REFUSAL)
#undef REFUSAL
};

/* The answer to `status` of the daemon that writes this history; false: none does. */
static bool ask_writer(struct occ_store *store, const char *socket, char *answer, size_t size)
{
    _cleanup_(occ_closep) int fd = -1;
    if (connect_daemon(socket, &fd, NULL) != 0 ||
        occ_control_request(fd, "status", PATIENCE_MS, answer, size, NULL) != 0)
        return false;
    _cleanup_(occ_freep) char *path = occ_control_value(answer, "database");
    struct stat its, ours;
    return path && stat(path, &its) == 0 && stat(cli_history_path(store), &ours) == 0 &&
           its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

/* What the daemon refused is in no history: it may not know whose it was. */
static void note_refused(const struct cli_command *command, const struct cli_selection *selection,
                         struct occ_store *store, const char *socket)
{
    char answer[OCC_CONTROL_BYTES + 1];
    if (!ask_writer(store, socket, answer, sizeof answer))
        return;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        _cleanup_(occ_freep) char *value = occ_control_value(answer, refusals[i].key);
        uint64_t n = 0;
        if (value && occ_parse_u64(value, 0, UINT64_MAX, &n, NULL) == 0 && n > 0)
            cli_footer(command, selection,
                       "refused since the daemon began, without a row: %" PRIu64 " that %s", n,
                       refusals[i].text);
    }
}

/* ---- the command ---- */

static int run(const struct cli_command *command, const void *arguments)
{
    const struct runs_args *runs = arguments;
    const struct history_args *args = &runs->history;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    struct sql_list list = runs_list;
    list.selection = &args->list.selection;
    list.filter = &args->filter;
    list.number = args->number;
    if (args->list.common.operand_count > 0)
        return send_pause(command, runs);
    if (cluster_open(command, args, CLUSTER_RUNS, OCC_TOP_BY_KERNEL, &store, &err) != 0)
        return cli_failure(command, &err);
    int status = sql_list(command, store, &list);
    if (!cluster_url(args) && status != CLI_EXIT_FAILURE)
        note_refused(command, list.selection, store, runs->socket);
    return status;
}

static int check(void *args, struct occ_error *err)
{
    struct runs_args *runs = args;
    struct cli_list_args *list = &runs->history.list;
    if (list->common.all_users && list->common.operand_count > 0)
        return occ_fail(err, OCC_E_INVALID, "--all-users lists runs; pause and resume are of one process");
    int status = cli_check_history(args, err);
    if (status == 0)
        status = cluster_check(&runs->history, CLUSTER_RUNS, err);
    return status == 0 && cluster_url(&runs->history) && !list->output.columns &&
                   list->selection.format == CLI_FORMAT_TEXT
               ? cli_select_list(runs_columns, "+host,slurm_job,user", &list->selection, err)
               : status;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTIONS_CLUSTER,
    CLI_OPTION_ALL_USERS,
    CLI_OPTIONS_PERIOD,
    CLI_OPTIONS_RUN,
    CLI_OPTION(0, "session", CLI_TEXT, struct history_args, filter.session, "ID",
               "only runs of this occtrace call"),
    CLI_OPTION_NUMBER("at most N rows (default 50)"),
    OPTION_SOCKET(struct runs_args),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_runs = {
    .name = "runs",
    .operands = "[pause|resume PID]",
    .max_operands = 2,
    .merges_owners = true,
    .is_paged = true,
    .summary = "observed programs, newest first",
    .description =
        "Lists the observed processes: what was recorded and at which level, what was lost, and the "
        "overhead. A program of which nothing could be recorded has a row too, with the reason. "
        "Programs that the daemon refused have none: lines below the table count them by cause, for root "
        "those of "
        "all users.\n\n--since "
        "and --until choose runs that were going on in that period; their numbers are those of the whole "
        "run.\n\n"
        "pause stops the recording of a running process, resume continues it; both are for its owner and "
        "root. The daemon is the one that occtrace gave to the process, else the user's own or the service. "
        "Column periods, and recording_period in SQL, list the periods in which less was recorded, and why.",
    .options = options,
    .columns = runs_columns,
    .examples = {{"occq runs -n 1", "the last observed program"},
                 {"occq runs --label 'nightly*'", "those that were given such a label"},
                 {"occq runs -o +lost_causes,devices,command_line", "with more about each"},
                 {"occq runs pause 4711", "record nothing more of that process for now"}},
    CLI_ARGS(struct runs_args, .history = {.list.output.merge.keys = {"start_ns"}, .number = 50}),
    .check = check,
    .run = run,
};
