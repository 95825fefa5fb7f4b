/* occq export: writes launches as a timeline for other viewers. One thread. */
#include <sqlite3.h>
#include <string.h>

#include "cli/file.h"
#include "lanes.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "cli/history/node.h"
#include "cli/history/sql_table.h"
#include "timeline.h"
#include "support/cleanup.h"

enum { NUMBER_FOR_VIEWERS = 2000000 };

struct export_args {
    struct history_args history;
    const char *format, *output;
    bool csv;
};

static const struct export_format *const known_formats[] = {&export_chrome, &export_perfetto, &export_csv,
                                                            &export_jsonl};

static const struct {
    const char *end;
    const struct export_format *format;
} endings[] = {
    {".json", &export_chrome}, {".pftrace", &export_perfetto}, {".perfetto-trace", &export_perfetto},
    {".csv", &export_csv},     {".jsonl", &export_jsonl},      {".ndjson", &export_jsonl}};

static const struct export_format *format_of(const struct export_args *args)
{
    size_t i = 0;
    while (strcmp(known_formats[i]->name, args->format) != 0)
        i++;
    return known_formats[i];
}

/* Returns the format of the output's name; NULL: unknown. */
static const char *format_by_ending(const char *output)
{
    for (size_t i = 0; output && i < sizeof endings / sizeof *endings; i++)
        if (cli_file_ends_in(output, endings[i].end))
            return endings[i].format->name;
    return NULL;
}

/* True if the output's name has the ending of an unsupported format. */
static bool has_other_ending(const char *output)
{
    static const char *const others[] = {".parquet", ".arrow", ".feather", ".html", ".svg", ".txt"};
    for (size_t i = 0; output && i < sizeof others / sizeof *others; i++)
        if (cli_file_ends_in(output, others[i]))
            return true;
    return false;
}

static int check(void *arguments, struct occ_error *err)
{
    struct export_args *args = arguments;
    const char *by_ending = format_by_ending(args->output);
    if (args->csv && args->format && strcmp(args->format, export_csv.name) != 0)
        return occ_fail(err, OCC_E_INVALID, "--csv and --format %s exclude each other", args->format);
    if (!args->csv && !args->format && has_other_ending(args->output))
        return occ_fail(err, OCC_E_INVALID,
                        "the name of %s is that of no format: --format chrome, perfetto, csv or jsonl",
                        args->output);
    args->format = args->csv      ? export_csv.name
                   : args->format ? args->format
                   : by_ending    ? by_ending
                                  : export_chrome.name;
    if (by_ending && strcmp(by_ending, args->format) != 0)
        return occ_fail(err, OCC_E_INVALID, "the name of %s is that of format %s, not of %s", args->output,
                        by_ending, args->format);
    return node_check(&args->history, err);
}

/* Returns the maximum number of launches: the number that viewers can draw, or all launches in formats with
 * one line per launch. */
static int64_t number_of(const struct export_args *args)
{
    return args->history.number       ? args->history.number
           : format_of(args)->is_flat ? INT64_MAX - 1
                                      : NUMBER_FOR_VIEWERS;
}

static int write_file(const char *path, struct timeline_request *request, struct timeline_counts *ret_counts,
                      struct occ_error *err)
{
    struct cli_file output;
    int status = cli_file_open(path, &output, err);
    if (status != 0)
        return status;
    request->out = output.out;
    status = timeline_write(request, ret_counts, err);
    if (status == 0)
        return cli_file_finish(&output, err);
    cli_file_abandon(&output);
    return status;
}

static int export_launches(const struct cli_command *command, const struct export_args *args,
                           struct occ_store *store, sqlite3_stmt *statement)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct timeline_counts counts = {0};
    struct timeline_request request = {
        .store = store, .statement = statement, .format = format_of(args), .number = number_of(args)};
    if (write_file(args->output, &request, &counts, &err) != 0)
        return cli_failure(command, &err);
    if (counts.more)
        cli_note(command, "only the first %llu launches; --since, --run and --kernel choose others, -n more",
                 (unsigned long long)counts.launches);
    if (counts.left_out)
        cli_note(command, "%llu launches are left out: more than %d of a stream overlap",
                 (unsigned long long)counts.left_out, EXPORT_LANES_MAX);
    return CLI_EXIT_OK;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct export_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_filter filter = args->history.filter;
    _cleanup_(kernel_names_freep) struct kernel_names *names = NULL;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    sqlite3_stmt *statement = NULL;
    const struct sql_list list = {.table = timeline_columns,
                                  .from = "launch",
                                  .order = "start_ns",
                                  .since = SQL_LAUNCH_SINCE,
                                  .until = SQL_LAUNCH_UNTIL,
                                  .has_launches = true,
                                  .below = SQL_LAUNCH_BELOW,
                                  .filter = &filter,
                                  .number = number_of(args)};
    if (args->history.node)
        return node_run(command, args->history.node);
    if (cli_open_history(&args->history.list.common, OCC_STORE_READ, &store, &err) != 0 ||
        kernel_names_load(store, args->history.name, &names, &err) != 0 ||
        kernel_names_add_function(names, occ_store_sqlite(store), &err) != 0)
        return cli_failure(command, &err);
    sql_leave_unknown_times_out(command, store, &filter);
    int status = sql_prepare_list(store, &list, &statement, &err);
    int step = status == 0 ? sqlite3_step(statement) : SQLITE_ERROR;
    if (status == 0 && step != SQLITE_ROW && step != SQLITE_DONE)
        status = occ_fail(&err, OCC_E_IO, "%s", sqlite3_errmsg(occ_store_sqlite(store)));
    cli_note_filter(command, store, &args->history.filter);
    int result = status != 0 ? cli_failure(command, &err)
                 : step == SQLITE_ROW
                     ? export_launches(command, args, store, statement)
                     : sql_no_launches(command, store, &filter, "no launches match these filters");
    (void)sqlite3_finalize(statement);
    return result;
}

static const char *const formats[] = {"chrome", "perfetto", "csv", "jsonl", NULL};

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION_NODE,
    CLI_OPTION('o', "output", CLI_TEXT, struct export_args, output, "FILE",
               "write there instead of to stdout, compressed if FILE ends in .gz or .zst"),
    CLI_OPTION(0, "format", CLI_WORD, struct export_args, format, "FORMAT",
               "chrome (JSON, for Perfetto, chrome://tracing and others), perfetto (native: smaller, and "
               "times are exact), csv or jsonl (a line for each launch, for other programs); default: by the "
               "end of FILE (.json, .pftrace, .csv, .jsonl), else chrome",
               .words = formats),
    CLI_OPTION(0, "csv", CLI_FLAG, struct export_args, csv, NULL, "the same as --format csv"),
    CLI_OPTION_LOW_OCCUPANCY("launches"),
    CLI_OPTIONS_FILTER("gpu"),
    CLI_OPTION_NUMBER("at most N launches, the first (default 2000000; csv and jsonl: all)"),
    CLI_OPTION_NAME,
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

const struct cli_command cli_export = {
    .name = "export",
    .group = "Publish",
    .summary = "launches as a timeline for Perfetto or chrome://tracing, as CSV or JSON lines",
    .description =
        "Writes launches as slices, by GPU, run and stream, with launch configuration, occupancies and "
        "causes as arguments, the GPU's counters as tracks where they were recorded, and a track of layers "
        "beside each stream with ranges. Overlapping kernels of a stream are in several lanes, since viewers "
        "drop overlapping slices.\n\n"
        "Format perfetto is for Perfetto's GPU compute view (version 55 or newer): launches have its names "
        "of arguments (occupancy_limit_*, waves_per_multiprocessor and others), besides them the expected "
        "range, the causes, and the first change by the model alone with its predicted saving. The counter "
        "sm__warps_active.avg.pct_of_peak_sustained_active is the achieved occupancy of the launch that "
        "starts there; launches that overlap another one of their GPU have it only as an argument, "
        "achieved.\n\n"
        "CSV and JSON lines have the same of each launch, in the columns that 'occq sql' knows; counters are "
        "not in them.",
    .options = options,
    .examples = {{"occq export --run last -o timeline.json.gz", "the newest run, for ui.perfetto.dev"},
                 {"occq export --since 5m -o timeline.pftrace", "the last minutes, Perfetto's own format"},
                 {"occq export --csv | duckdb -c \"COPY(FROM read_csv('/dev/stdin'))TO'l.parquet'\"",
                  "all launches as Parquet"}},
    CLI_ARGS(struct export_args, ),
    .check = check,
    .run = run,
};
