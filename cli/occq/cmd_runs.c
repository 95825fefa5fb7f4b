/* occq runs: programs that were observed, newest first, with level, losses and own cost. One thread. */
#include "commands.h"
#include "history.h"
#include "cli/usage.h"

#include <math.h>
#include <string.h>

#include "support/cleanup.h"

struct runs_args {
    struct cli_args common;
    struct cli_filter filter;
    struct cli_output output;
    const char *session;
    int64_t number;
};

#define GETTER(name, set, expression)                                                                        \
    static void get_##name(const struct cli_column *column, const void *row_pointer,                         \
                           struct cli_value *value)                                                          \
    {                                                                                                        \
        (void)column;                                                                                        \
        const struct occ_run_row *row = row_pointer;                                                         \
        set(value, expression);                                                                              \
    }

/* Empty texts are unknown ones. */
static const char *known(const char *text)
{
    return text && text[0] ? text : NULL;
}

static const char *program_of(const struct occ_run_row *row)
{
    const char *slash = row->exe ? strrchr(row->exe, '/') : NULL;
    return slash ? slash + 1 : known(row->exe) ? row->exe : known(row->source_file);
}

static double cost_of(const struct occ_run_row *row)
{
    return row->process_cpu_ns ? (double)row->helper_cpu_ns / (double)row->process_cpu_ns : NAN;
}

static double or_none(uint64_t number)
{
    return number ? (double)number : NAN;
}

static double duration_of(const struct occ_run_row *row)
{
    return row->end_ns >= row->start_ns && row->end_ns ? (double)(row->end_ns - row->start_ns) : NAN;
}

GETTER(id, cli_set_integer, row->id)
GETTER(start, cli_set_integer, row->start_ns)
GETTER(duration, cli_set_real, duration_of(row))
GETTER(program, cli_set_string, program_of(row))
static void get_pid(const struct cli_column *column, const void *row_pointer, struct cli_value *value)
{
    (void)column;
    const struct occ_run_row *row = row_pointer;
    if (row->pid)
        cli_set_integer(value, row->pid);
}

GETTER(launches, cli_set_unsigned, row->launches)
GETTER(kernels, cli_set_unsigned, row->kernels)
GETTER(shapes, cli_set_unsigned, row->shapes)
GETTER(gpu_time, cli_set_unsigned, row->gpu_ns)
GETTER(lost, cli_set_unsigned, row->lost)
GETTER(lost_causes, cli_set_string, known(row->lost_text))
GETTER(cost, cli_set_real, cost_of(row))
GETTER(helper_cpu, cli_set_real, or_none(row->helper_cpu_ns))
GETTER(process_cpu, cli_set_real, or_none(row->process_cpu_ns))
GETTER(level, cli_set_string, known(row->level))
GETTER(reason, cli_set_string, known(row->level_reason))
GETTER(label, cli_set_string, known(row->label))
GETTER(devices, cli_set_string, known(row->devices))
GETTER(exe, cli_set_string, known(row->exe))
GETTER(cmdline, cli_set_string, known(row->cmdline))
GETTER(user, cli_set_string, known(row->user))
GETTER(uid, cli_set_unsigned, row->uid)
GETTER(host, cli_set_string, known(row->hostname))
GETTER(session, cli_set_string, known(row->session))
GETTER(source, cli_set_string, known(row->source))
GETTER(source_version, cli_set_string, known(row->source_version))
GETTER(source_file, cli_set_string, known(row->source_file))
GETTER(time_base, cli_set_string, known(row->time_base) ? row->time_base : "epoch")
GETTER(lacks, cli_set_string, known(row->lacks))
GETTER(rank, cli_set_string, known(row->rank))
GETTER(slurm_job, cli_set_string, known(row->slurm_job))
GETTER(k8s_pod, cli_set_string, known(row->k8s_pod))
GETTER(uuid, cli_set_string, row->uuid)
GETTER(simulated, cli_set_bool, row->simulated)

static void get_end(const struct cli_column *column, const void *row_pointer, struct cli_value *value)
{
    (void)column;
    const struct occ_run_row *row = row_pointer;
    if (row->end_ns)
        cli_set_integer(value, row->end_ns);
}

static void get_cupti(const struct cli_column *column, const void *row_pointer, struct cli_value *value)
{
    (void)column;
    const struct occ_run_row *row = row_pointer;
    if (row->cupti_version)
        cli_set_unsigned(value, row->cupti_version);
}

static void get_notes(const struct cli_column *column, const void *row_pointer, struct cli_value *value)
{
    (void)column;
    const struct occ_run_row *row = row_pointer;
    cli_set_string(value, row->simulated ? "simulated" : "");
}

#define LEFT_TEXT (CLI_LEFT | CLI_CUTS)

static const struct cli_column columns[] = {
    {"run", "run_id", CLI_PLAIN, CLI_DEFAULT, "the run's number, for --run", get_id, 0},
    {"start", "start_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT, "when observation of the process began",
     get_start, 0},
    {"duration", "duration_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE, "until its end; - while it goes on",
     get_duration, 0},
    {"end", "end_ns", CLI_TIME, CLI_LEFT, "when it ended; - while it goes on", get_end, 0},
    {"program", "program", CLI_PLAIN, CLI_DEFAULT | LEFT_TEXT,
     "file name of the executable, or of the recording", get_program, 0},
    {"pid", "pid", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE, "process id", get_pid, 0},
    {"launches", "launches", CLI_PLAIN, CLI_DEFAULT, "launches recorded", get_launches, 0},
    {"kernels", "kernels", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE, "different kernels", get_kernels, 0},
    {"shapes", "shapes", CLI_PLAIN, 0, "different launch configurations", get_shapes, 0},
    {"gpu_time", "gpu_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE, "sum of the launches' durations",
     get_gpu_time, 0},
    {"lost", "lost", CLI_PLAIN, CLI_DEFAULT, "launches that could not be recorded", get_lost, 0},
    {"lost_causes", "lost_causes", CLI_PLAIN, LEFT_TEXT, "the same by cause", get_lost_causes, 0},
    {"cost", "cost_ratio", CLI_RATIO, CLI_DEFAULT, "CPU of our thread / CPU of the process", get_cost, 0},
    {"helper_cpu", "helper_cpu_ns", CLI_DURATION, 0, "CPU time of our thread", get_helper_cpu, 0},
    {"process_cpu", "process_cpu_ns", CLI_DURATION, 0, "CPU time of the process", get_process_cpu, 0},
    {"level", "level", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "full, gpm, trace, shapes or nothing", get_level,
     0},
    {"reason", "level_reason", CLI_PLAIN, CLI_DEFAULT | LEFT_TEXT, "why not more", get_reason, 0},
    {"label", "label", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE | LEFT_TEXT, "what was given with occtrace --label",
     get_label, 0},
    {"devices", "devices", CLI_PLAIN, LEFT_TEXT, "devices it used", get_devices, 0},
    {"exe", "exe", CLI_PLAIN, LEFT_TEXT, "path of the executable", get_exe, 0},
    {"cmdline", "cmdline", CLI_PLAIN, LEFT_TEXT, "its command line", get_cmdline, 0},
    {"user", "user", CLI_PLAIN, CLI_LEFT, "who ran it", get_user, 0},
    {"uid", "uid", CLI_PLAIN, 0, "the user's number", get_uid, 0},
    {"host", "hostname", CLI_PLAIN, CLI_LEFT, "where", get_host, 0},
    {"session", "session", CLI_PLAIN, CLI_LEFT, "the occtrace call it belongs to", get_session, 0},
    {"source", "source", CLI_PLAIN, CLI_LEFT, "trace, or the tool it was imported from", get_source, 0},
    {"source_version", "source_version", CLI_PLAIN, CLI_LEFT, "version of that tool", get_source_version, 0},
    {"source_file", "source_file", CLI_PLAIN, LEFT_TEXT, "file that was imported", get_source_file, 0},
    {"time_base", "time_base", CLI_PLAIN, CLI_LEFT,
     "epoch; unknown: its times do not count from 1970, --since passes it over", get_time_base, 0},
    {"lacks", "lacks", CLI_PLAIN, LEFT_TEXT, "what the recording never says", get_lacks, 0},
    {"rank", "rank", CLI_PLAIN, 0, "rank in a distributed job, where the recording says it", get_rank, 0},
    {"cupti", "cupti_version", CLI_PLAIN, 0, "CUPTI's version number", get_cupti, 0},
    {"slurm_job", "slurm_job", CLI_PLAIN, CLI_LEFT, "Slurm job", get_slurm_job, 0},
    {"k8s_pod", "k8s_pod", CLI_PLAIN, CLI_LEFT, "Kubernetes pod", get_k8s_pod, 0},
    {"uuid", "uuid", CLI_PLAIN, CLI_LEFT, "identity of the run", get_uuid, 0},
    {"simulated", "simulated", CLI_PLAIN, CLI_LEFT, "whether its device was a simulated one", get_simulated,
     0},
    {"notes", "notes", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY, "simulated", get_notes, 0},
    {NULL, NULL, CLI_PLAIN, 0, NULL, NULL, 0},
};

static int print(const struct occ_runs *runs, size_t shown, const struct cli_selection *selection,
                 struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = cli_table_new(stdout, "runs", selection, &table, err);
    for (size_t i = 0; i < shown && status == 0; i++)
        status = cli_table_add(table, &runs->rows[i], err);
    return status == 0 ? cli_table_finish(table, err) : status;
}

static bool any_simulated(const struct occ_runs *runs, size_t shown)
{
    for (size_t i = 0; i < shown; i++)
        if (runs->rows[i].simulated)
            return true;
    return false;
}

static int ask(const struct cli_command *command, const struct runs_args *args,
               const struct cli_selection *selection)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_store_closep) struct occ_store *store = NULL;
    struct occ_filter filter = cli_filter_store(&args->filter);
    struct occ_runs runs = {0};
    filter.session = args->session;
    if (cli_open_history(&args->common, &store, &err) != 0 ||
        occ_store_runs(store, &filter, &runs, &err) != 0)
        return cli_failure(command, &err);
    cli_note_unknown_times(command, store, &args->filter);
    size_t shown = runs.n < (size_t)args->number ? runs.n : (size_t)args->number;
    int status = print(&runs, shown, selection, &err) == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
    if (status == CLI_EXIT_OK && any_simulated(&runs, shown))
        cli_note_simulated(command);
    if (status == CLI_EXIT_OK && shown == 0)
        status = cli_nothing(command, "no runs fit");
    occ_runs_free(&runs);
    return status;
}

static int run(const struct cli_command *command, char **argv)
{
    struct runs_args args = {.number = 50};
    struct cli_selection selection;
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (cli_filter_check(&args.filter, &err) != 0 ||
        cli_output_choose(&args.output, columns, &selection, &err) != 0)
        return cli_usage_error(command, &err);
    return ask(command, &args, &selection);
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTIONS_PERIOD(struct runs_args),
    CLI_OPTION_RUN(struct runs_args),
    {0, "session", CLI_TEXT, offsetof(struct runs_args, session), "ID", "only runs of this occtrace call",
     NULL, NULL, 0, 0},
    {'n', "number", CLI_NUMBER, offsetof(struct runs_args, number), "N", "at most N rows (default 50)", NULL,
     NULL, 1, 1000000000},
    CLI_OPTION_COLUMNS(struct runs_args),
    CLI_OPTION_JSON(struct runs_args),
    CLI_OPTION_CSV(struct runs_args),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq runs -n 1", "the last program observed"},
    {"occq runs -o +lost_causes,devices,cmdline", "with more about each"},
    {NULL, NULL},
};

const struct cli_command cli_runs = {
    .program = "occq",
    .name = "runs",
    .operands = "",
    .summary = "programs that were observed, newest first",
    .description =
        "Lists the processes that were observed: what was recorded and at which level, what was lost, and "
        "what "
        "observing cost. A program of which nothing could be recorded has a row too, with the reason.\n\n"
        "--since and --until choose runs that were going on in that period; their numbers are those of the "
        "whole "
        "run.",
    .options = options,
    .columns = columns,
    .examples = examples,
    .run = run,
};
