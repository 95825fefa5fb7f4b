/* occq top --by rank and --by allocation, of a cluster: answers that only a cluster has: ranks side by side,
 * and GPUs that wait. One thread. */
#include "top_forms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/history/cluster.h"
#include "cli/history/sql_table.h"

#define COLUMN(name, key, flags, help)     SQL_COLUMN(name, key, CLI_PLAIN, flags, NULL, help)
#define UNIT(name, key, unit, flags, help) SQL_COLUMN(name, key, unit, flags, NULL, help)
#define TEXT                               (CLI_LEFT | CLI_CUTS)

#define COMMON_COLUMNS                                                                                       \
    COLUMN("rank", "rank", CLI_DEFAULT, "rank in the job"),                                                  \
        COLUMN("node", "node", CLI_DEFAULT | TEXT, "the machine"),                                           \
        COLUMN("gpu", "gpu", CLI_DEFAULT | TEXT | CLI_SPARE(2), "the GPU's UUID"),                           \
        COLUMN("program", "program", CLI_DEFAULT | TEXT | CLI_SPARE(3), "file name of the executable"),      \
        COLUMN("user", "user", CLI_DEFAULT | CLI_LEFT | CLI_SPARE(4), "user name"),                          \
        COLUMN("job", "job", CLI_DEFAULT | TEXT | CLI_SPARE(5), "the job's name in the warehouse"),          \
        COLUMN("run", "run", CLI_LEFT, "identity of the run")

static const struct cli_column rank_columns[] = {
    UNIT("busy", "busy_ns", CLI_DURATION, CLI_DEFAULT, "sum of its launches' durations"),
    SQL_COLUMN("of_mean", "busy_of_mean", CLI_FACTOR, CLI_DEFAULT,
               "1.0 * busy_ns / avg(busy_ns) OVER (PARTITION BY job)",
               "busy time / mean busy time of the job's ranks"),
    UNIT("waste", "wasted_warp_s", CLI_AMOUNT, CLI_DEFAULT, "wasted warp-seconds"),
    SQL_COLUMN("wasted", "waste_ratio", CLI_RATIO, CLI_DEFAULT | CLI_SPARE(1),
               "wasted_warp_s / capacity_warp_s", "wasted warp-seconds / capacity of its GPU in that time"),
    COLUMN("launches", "launches", CLI_DEFAULT | CLI_SPARE(6), "number of launches"),
    COMMON_COLUMNS,
    UNIT("first", "first_ns", CLI_TIME, CLI_LEFT, "minute of its first launch"),
    UNIT("last", "last_ns", CLI_TIME, CLI_LEFT, "minute of its last launch"),
    CLI_COLUMN_END,
};

static const struct cli_column idle_columns[] = {
    UNIT("idle", "idle_ns", CLI_DURATION, CLI_DEFAULT, "since when nothing was launched, to the minute"),
    COLUMN("lost", "lost", CLI_DEFAULT | CLI_RARE | CLI_NONZERO,
           "launches of the program that were lost: it may have run them in that time"),
    COMMON_COLUMNS,
    UNIT("last", "last_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT | CLI_SPARE(1),
         "minute of its last launch; - never"),
    UNIT("allocated", "allocated_ns", CLI_TIME, CLI_LEFT,
         "of a GPU without such a program: since when it is the job's, at least"),
    CLI_COLUMN_END,
};

struct ranks_args {
    struct history_args history;
    int64_t idle_ns;
    const char *by;
};

bool top_asks_cluster(char *const *argv)
{
    const char *url = secure_getenv("OCCTRACE_CLUSTER");
    bool has_history = false;
    for (; *argv; argv++) {
        if (strcmp(*argv, "--cluster") == 0 || strncmp(*argv, "--cluster=", strlen("--cluster=")) == 0)
            return true;
        has_history = has_history || strncmp(*argv, "-d", 2) == 0 || strncmp(*argv, "--db", 4) == 0 ||
                      strncmp(*argv, "--all-users", strlen("--all-users")) == 0;
    }
    return url && url[0] && !has_history;
}

static void note_more(const struct cli_command *command, struct occ_store *store, const struct sql_list *list)
{
    (void)store;
    cli_footer(command, list->selection, "only the first %" PRId64 " rows; -n shows more", list->number);
}

static int list_table(const struct cli_command *command, const struct ranks_args *args,
                      struct occ_remote_question *question, struct sql_list *list)
{
    const struct history_args *history = &args->history;
    static const struct occ_filter any;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    list->selection = &history->list.selection;
    list->filter = &any; /* the warehouse has applied the filter */
    list->number = history->number;
    list->note_more = note_more;
    if (cluster_ask(command, history, question, &store, &err) != 0)
        return cli_failure(command, &err);
    return sql_list(command, store, list);
}

static int run_stragglers(const struct cli_command *command, const void *args)
{
    struct occ_remote_question question = {.kind = OCC_REMOTE_RANKS};
    struct sql_list list = {.name = "ranks",
                            .table = rank_columns,
                            .from = "rank",
                            .order = "busy_ns DESC, node, run, gpu",
                            .nothing = "no launches match these filters"};
    return list_table(command, args, &question, &list);
}

static int run_idle(const struct cli_command *command, const void *arguments)
{
    const struct ranks_args *args = arguments;
    struct occ_remote_question question = {.kind = OCC_REMOTE_IDLE, .idle_ns = args->idle_ns};
    struct sql_list list = {.name = "idle",
                            .table = idle_columns,
                            .from = "idle",
                            .order = "idle_ns DESC, node, run, gpu",
                            .nothing = "no program that goes on and no allocated GPU has been idle for "
                                       "that long"};
    return list_table(command, args, &question, &list);
}

static int check(void *arguments, struct occ_error *err)
{
    struct history_args *args = arguments;
    int status = cli_check_history(args, err);
    if (status == 0 && !cluster_url(args))
        return occ_fail(err, OCC_E_INVALID, "--cluster URL is missing: only a cluster's warehouse knows");
    return status == 0 ? cluster_check(args, CLUSTER_SUMS, err) : status;
}

#define OPTIONS_WHOSE                                                                                        \
    CLI_OPTION(0, "user", CLI_TEXT, struct history_args, filter.user, "NAME", "only runs of this user"),     \
        CLI_OPTION(0, "job", CLI_TEXT, struct history_args, filter.job, "ID",                                \
                   "only this Slurm job or Kubernetes pod")

static const char *const rank_words[] = {"rank", NULL}, *const allocation_words[] = {"allocation", NULL};

static const struct cli_option straggler_options[] = {
    CLI_OPTION(0, "by", CLI_WORD, struct ranks_args, by, "rank", "a row for each rank of the cluster's jobs",
               .words = rank_words),
    CLI_OPTIONS_CLUSTER,
    CLI_OPTIONS_PERIOD,
    OPTIONS_WHOSE,
    CLI_OPTION_NUMBER("at most N rows (default 50)"),
    CLI_OPTIONS_LIST,
};

static const struct cli_option idle_options[] = {
    CLI_OPTION(0, "by", CLI_WORD, struct ranks_args, by, "allocation",
               "a row for each GPU that a program or a job holds without a launch",
               .words = allocation_words),
    CLI_OPTIONS_CLUSTER,
    CLI_OPTION(0, "for", CLI_SPAN, struct ranks_args, idle_ns, "TIME", "at least so long (default 30m)",
               .min = INT64_C(60000000000), .max = INT64_C(86400000000000) * 365),
    OPTIONS_WHOSE,
    CLI_OPTION_NUMBER("at most N rows (default 50)"),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_top_ranks = {
    .name = "top",
    .form = "--by rank --cluster URL",
    .is_paged = true,
    .summary = "ranks of a cluster's jobs by busy time",
    .description =
        "Lists ranks of jobs, a row for each of their GPUs, the busiest first: where ranks "
        "wait for each other, the busiest is the one that the others wait for. Its waste says whether it is "
        "slow because its launches leave the GPU empty. From the cluster's warehouse, by whole minutes.",
    .options = straggler_options,
    .columns = rank_columns,
    .examples = {{"occq top --by rank --cluster https://clickhouse:8443 --job 4711 --since 10m",
                  "which rank keeps the others waiting"}},
    CLI_ARGS(struct ranks_args, .history = {.number = 50}),
    .check = check,
    .run = run_stragglers,
};

const struct cli_command cli_top_allocations = {
    .name = "top",
    .form = "--by allocation",
    .is_paged = true,
    .summary = "who holds a cluster's GPUs and launches nothing",
    .description = "Lists programs that go on and have launched nothing for a while, a row for each GPU that "
                   "they launched on; and GPUs that the scheduler has given to a job, on which nothing was "
                   "launched since, also without any program, if the node has the directory with the "
                   "scheduler's assignments (identity.dcgm_job_dir). The longest idle come first. The rows "
                   "are from the cluster's warehouse; a node that reports nothing has no rows.",
    .options = idle_options,
    .columns = idle_columns,
    .examples = {{"occq top --by allocation --cluster https://clickhouse:8443 --for 1h",
                  "programs that hold a GPU and launch nothing"}},
    CLI_ARGS(struct ranks_args, .history = {.number = 50}, .idle_ns = INT64_C(1800000000000)),
    .check = check,
    .run = run_idle,
};
