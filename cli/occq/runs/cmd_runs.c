/* occq runs: observed programs, newest first, with level, losses and overhead; pauses and resumes the
 * recording of one program. One thread. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runs_info.h"

#include "cli/all_users.h"
#include "cli/usage.h"
#include "cli/history/cluster.h"
#include "cli/daemon.h"
#include "cli/history/history.h"
#include "cli/history/lists.h"
#include "cli/history/run_use.h"
#include "support/cleanup.h"
#include "support/control.h"
#include "support/refusals.h"
#include "support/text.h"

struct runs_args {
    struct history_args history; /* the first member */
    const char *socket;
};

enum { PATIENCE_MS = 5000, OWNERS_MAX = 4096 /* more than a daemon keeps */ };

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

static bool is_same_file(const char *path, const char *other)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Reads the numbers by cause from a daemon's answer; an invalid number counts as 0. */
static void read_refused(const char *answer, uint64_t counts[OCC_REFUSAL_COUNT])
{
    for (size_t i = 0; i < OCC_REFUSAL_COUNT; i++) {
        _cleanup_(occ_freep) char *value = occ_control_value(answer, refusals[i].key);
        counts[i] = 0;
        if (value && occ_parse_u64(value, 0, UINT64_MAX, &counts[i], NULL) != 0)
            counts[i] = 0;
    }
}

static void put_refused(const struct cli_command *command, const struct cli_selection *selection,
                        const uint64_t counts[OCC_REFUSAL_COUNT])
{
    for (size_t i = 0; i < OCC_REFUSAL_COUNT; i++)
        if (counts[i] > 0)
            cli_footer(command, selection,
                       "refused since the daemon began, without a row: %" PRIu64 " that %s", counts[i],
                       refusals[i].text);
}

/* Notes the programs that this history's daemon refused. No history has them, since the daemon may not know
 * their owner. */
static void note_refused(const struct cli_command *command, const struct cli_selection *selection,
                         struct occ_store *store, const char *socket)
{
    char answer[OCC_CONTROL_BYTES + 1];
    uint64_t counts[OCC_REFUSAL_COUNT];
    _cleanup_(occ_closep) int fd = -1;
    if (connect_daemon(socket, &fd, NULL) != 0 ||
        occ_control_request(fd, "status", PATIENCE_MS, answer, sizeof answer, NULL) != 0)
        return;
    _cleanup_(occ_freep) char *path = occ_control_value(answer, "database");
    if (!path || !is_same_file(path, cli_history_path(store)))
        return;
    read_refused(answer, counts);
    put_refused(command, selection, counts);
}

/* True if a daemon's path of a history, DIR/OWNER/history.db, is below `directory`. Changes the path. */
static bool is_below(char *path, const char *directory)
{
    for (int component = 0; component < 2; component++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return is_same_file(path, directory);
}

/* Prints the numbers of each owner and subtracts them from `rest`. */
static void put_owners(const struct cli_command *command, const struct runs_args *runs, int fd,
                       uint64_t rest[OCC_REFUSAL_COUNT])
{
    char answer[OCC_CONTROL_BYTES + 1], request[32];
    uint64_t counts[OCC_REFUSAL_COUNT];
    for (unsigned int i = 0; i < OWNERS_MAX; i++) {
        (void)snprintf(request, sizeof request, "refusals %u", i);
        if (occ_control_request(fd, request, PATIENCE_MS, answer, sizeof answer, NULL) != 0)
            return;
        _cleanup_(occ_freep) char *owner = occ_control_value(answer, "owner");
        if (!owner)
            return;
        read_refused(answer, counts);
        cli_speak_of(&runs->history.list.output, owner);
        put_refused(command, &runs->history.list.selection, counts);
        cli_speak_of(&runs->history.list.output, NULL);
        for (size_t k = 0; k < OCC_REFUSAL_COUNT; k++)
            rest[k] -= counts[k] < rest[k] ? counts[k] : rest[k];
    }
}

/* Notes the refused programs of all owners. The daemon keeps the numbers of some hundred owners; the rest of
 * its sum belongs to further owners. */
static void note_all_refused(const struct cli_command *command, const void *arguments)
{
    const struct runs_args *runs = arguments;
    const struct cli_list_args *list = &runs->history.list;
    char answer[OCC_CONTROL_BYTES + 1];
    uint64_t rest[OCC_REFUSAL_COUNT];
    _cleanup_(occ_closep) int fd = -1;
    if (connect_daemon(runs->socket, &fd, NULL) != 0 ||
        occ_control_request(fd, "status", PATIENCE_MS, answer, sizeof answer, NULL) != 0)
        return;
    _cleanup_(occ_freep) char *path = occ_control_value(answer, "database");
    if (!path || !is_below(path, list->common.all_users))
        return;
    read_refused(answer, rest);
    put_owners(command, runs, fd, rest);
    cli_speak_of(&list->output, "others");
    put_refused(command, &list->selection, rest);
    cli_speak_of(&list->output, NULL);
}

/* ---- the command ---- */

/* Rows that fit on a screen of 24 lines with heading, legend and footers. */
enum { SCREEN_ROWS = 20 };

/* Returns the maximum number of rows: the default of text fits on a screen. */
static int64_t number_of(const struct cli_command *command, const struct history_args *args)
{
    const struct cli_output *output = &args->list.output;
    bool is_chosen = cli_is_given(command->options, &args->list.common, "number");
    return is_chosen || output->json || output->csv || output->gather ? args->number : SCREEN_ROWS;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct runs_args *runs = arguments;
    const struct history_args *args = &runs->history;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    struct sql_list list = runs_list;
    list.selection = &args->list.selection;
    list.filter = &args->filter;
    list.number = number_of(command, args);
    if (args->list.common.operand_count > 0)
        return send_pause(command, runs);
    if (cluster_open(command, args, CLUSTER_RUNS, OCC_TOP_BY_KERNEL, &store, &err) != 0)
        return cli_failure(command, &err);
    if (!cluster_url(args)) /* a warehouse has no launches of single runs */
        run_use_begin(store);
    int status = sql_list(command, store, &list);
    if (run_use_end(&err) != 0)
        return cli_failure(command, &err);
    if (!cluster_url(args) && !args->list.common.all_users && status != CLI_EXIT_FAILURE)
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
    CLI_OPTION_NUMBER("at most N rows (default 50; as text 20, which fit on a screen)"),
    OPTION_SOCKET(struct runs_args),
    CLI_OPTIONS_LIST,
};

static const struct cli_form forms[] = {{"info", NULL, NULL, &cli_runs_info}, {.option = NULL}};

const struct cli_command cli_runs = {
    .name = "runs",
    .group = "Maintain",
    .forms = forms,
    .operands = "[pause|resume PID]",
    .max_operands = 2,
    .merges_owners = true,
    .is_paged = true,
    .summary = "observed programs, newest first",
    .description =
        "Lists the observed processes: how busy their GPUs were, the used part of the GPU time, the number "
        "of recorded launches and the recording level, and the losses. Busy time and the used part are "
        "defined as in 'occq top --run N'; they are computed for the printed rows. A program that could not "
        "be recorded has a row too, with the reason. A program that the daemon refused has no row: lines "
        "below the table count refusals by cause, for root of all users, with --all-users of each owner.\n\n"
        "--since and --until choose runs that were active in that period; their numbers cover the whole "
        "run.\n\n"
        "pause stops the recording of a running process, resume continues it; both are for its owner and "
        "root. The daemon is the one that occtrace gave to the process, else the user's own or the service. "
        "Column periods, and recording_period in SQL, list the periods in which less was recorded, and why.",
    .options = options,
    .columns = runs_columns,
    .examples = {{"occq runs -n 1", "the last observed program"},
                 {"occq runs --label 'nightly*'", "the runs with a label that matches"},
                 {"occq runs -o +lost_causes,devices,command_line", "with more about each"},
                 {"occq runs pause 4711", "record nothing more of that process for now"}},
    CLI_ARGS(struct runs_args, .history = {.list.output.merge.keys = {"start_ns"}, .number = 50}),
    .check = check,
    .run = run,
    .note_all = note_all_refused,
};
