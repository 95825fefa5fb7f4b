/*
 * occq import: recordings of other tools into the history. One row per file on stdout; progress and what is wrong on
 * stderr. Each file has a store handle of its own: after a failure it is closed, and nothing of the file stays. One
 * thread.
 */
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "import/import.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/paths.h"
#include "support/text.h"

#define PROGRESS_NS INT64_C(200000000)
#define BAR_WIDTH   30

struct import_args {
    struct cli_args common;
    struct cli_output output;
    const char *label, *gpu;
    bool again, progress;
};

struct import_row {
    const char *path;
    struct occ_import_result result;
    char skips[256]; /* "bad_times 3, no_device 1"; "" */
};

/* ---- columns ---- */

#define GETTER(name, set, expression)                                                                        \
    static void get_##name(const struct cli_column *column, const void *row_pointer,                         \
                           struct cli_value *value)                                                          \
    {                                                                                                        \
        (void)column;                                                                                        \
        const struct import_row *row = row_pointer;                                                          \
        set(value, expression);                                                                              \
    }

static uint64_t skipped(const struct occ_import_result *result)
{
    uint64_t sum = 0;
    for (int i = 0; i < OCC_IMPORT_SKIP_COUNT; i++)
        sum += result->skipped[i];
    return sum;
}

GETTER(file, cli_set_string, row->path)
GETTER(source, cli_set_string, row->result.source)
GETTER(run, cli_set_integer, row->result.run)
GETTER(state, cli_set_string, row->result.known ? "known" : "imported")
GETTER(launches, cli_set_unsigned, row->result.launches)
GETTER(kernels, cli_set_unsigned, row->result.kernels)
GETTER(shapes, cli_set_unsigned, row->result.shapes)
GETTER(devices, cli_set_unsigned, row->result.devices)
GETTER(skipped, cli_set_unsigned, skipped(&row->result))
GETTER(why, cli_set_string, row->skips[0] ? row->skips : NULL)
GETTER(times, cli_set_string, row->result.known ? NULL : row->result.timeless ? "unknown" : "epoch")

static const struct cli_column columns[] = {
    {"file", "file", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, "as it was given", get_file, 0},
    {"source", "source", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "the tool that recorded it: nsys or kineto",
     get_source, 0},
    {"state", "state", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "imported, or known: it was there already",
     get_state, 0},
    {"run", "run_id", CLI_PLAIN, CLI_DEFAULT, "the run's number, for --run", get_run, 0},
    {"launches", "launches", CLI_PLAIN, CLI_DEFAULT, "launches imported now", get_launches, 0},
    {"kernels", "kernels", CLI_PLAIN, CLI_DEFAULT, "different kernels", get_kernels, 0},
    {"shapes", "shapes", CLI_PLAIN, CLI_DEFAULT, "different launch configurations", get_shapes, 0},
    {"devices", "devices", CLI_PLAIN, CLI_DEFAULT, "devices with launches", get_devices, 0},
    {"skipped", "skipped", CLI_PLAIN, CLI_DEFAULT, "launches that could not be imported", get_skipped, 0},
    {"why", "skipped_causes", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, "the same by cause", get_why, 0},
    {"times", "time_base", CLI_PLAIN, CLI_LEFT,
     "epoch; unknown: they do not count from 1970, --since passes it over", get_times, 0},
    {NULL, NULL, CLI_PLAIN, 0, NULL, NULL, 0},
};

/* ---- progress ---- */

struct progress {
    const char *path;
    int64_t shown_ns;
    bool shown;
};

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    static const char bar[] = "##############################";
    struct progress *p = context;
    int64_t now_ns = occ_monotonic_ns();
    if (total == 0 || now_ns - p->shown_ns < PROGRESS_NS)
        return;
    double share = done < total ? (double)done / (double)total : 1;
    char name[64];
    const char *slash = strrchr(p->path, '/');
    (void)snprintf(name, sizeof name, "%s", slash && slash[1] ? slash + 1 : p->path);
    occ_text_sanitise(name);
    p->shown_ns = now_ns;
    p->shown = true;
    (void)fprintf(stderr, "\r%-30.30s [%-*.*s] %3.0f%%", name, BAR_WIDTH, (int)(share * BAR_WIDTH), bar,
                  share * 100);
}

static void clear_progress(const struct progress *p)
{
    if (p->shown)
        (void)fprintf(stderr, "\r%*s\r", 30 + BAR_WIDTH + 9, "");
}

/* ---- files ---- */

static int open_for_writing(const struct cli_args *args, struct occ_store **ret_store, struct occ_error *err)
{
    _cleanup_(occ_freep) char *own = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    int status = args->db ? 0 : occ_path_default_history(&own, err);
    return status == 0 ? occ_store_open(args->db ? args->db : own, &options, ret_store, err) : status;
}

static void list_skips(struct import_row *row)
{
    size_t used = 0;
    for (int i = 0; i < OCC_IMPORT_SKIP_COUNT; i++)
        if (row->result.skipped[i] && used < sizeof row->skips)
            used += (size_t)snprintf(row->skips + used, sizeof row->skips - used, "%s%s %" PRIu64,
                                     used ? ", " : "", occ_import_skip_word((enum occ_import_skip)i),
                                     row->result.skipped[i]);
}

static int import_one(const struct import_args *args, const char *path, struct import_row *row,
                      struct occ_error *err)
{
    _cleanup_(cli_store_closep) struct occ_store *store = NULL;
    struct progress progress = {.path = path};
    bool show = args->progress || isatty(STDERR_FILENO);
    const struct occ_import_options options = {.label = args->label,
                                               .gpu = args->gpu,
                                               .again = args->again,
                                               .progress = show ? show_progress : NULL,
                                               .context = &progress};
    *row = (struct import_row){.path = path};
    int status = open_for_writing(&args->common, &store, err);
    if (status == 0)
        status = occ_import_file(store, path, &options, &row->result, err);
    clear_progress(&progress);
    if (status == 0)
        list_skips(row);
    return status;
}

static void say_notes(const struct cli_command *command, const struct import_row *row)
{
    if (row->result.known)
        (void)fprintf(stderr,
                      "%s %s: %s: is in the history already, as run %" PRId64
                      " (--again imports it once more)\n",
                      command->program, command->name, row->path, row->result.run);
    else if (row->result.timeless)
        (void)fprintf(
            stderr,
            "%s %s: %s: its times count from an origin that it does not name; --since and --until pass run "
            "%" PRId64 " over\n",
            command->program, command->name, row->path, row->result.run);
}

static int import_all(const struct cli_command *command, const struct import_args *args,
                      struct cli_table *table)
{
    int exit_status = CLI_EXIT_OK;
    for (int i = 0; i < args->common.operand_count; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        struct import_row row;
        int status = import_one(args, args->common.operands[i], &row, &err);
        if (status == 0) {
            say_notes(command, &row);
            status = cli_table_add(table, &row, &err);
        }
        if (status != 0)
            exit_status = cli_failure(command, &err);
    }
    return exit_status;
}

static int run(const struct cli_command *command, char **argv)
{
    struct import_args args = {0};
    struct cli_selection selection;
    enum cli_format format;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (cli_output_choose(&args.output, columns, &format, &selection, &err) != 0)
        return cli_usage_error(command, &err);
    if (cli_table_new(format, stdout, "imports", &selection, &table, &err) != 0)
        return cli_failure(command, &err);
    status = import_all(command, &args, table);
    return cli_table_finish(table, &err) == 0 ? status : cli_failure(command, &err);
}

static const struct cli_option options[] = {
    {'d', "db", CLI_TEXT, offsetof(struct cli_args, db), "FILE",
     "the history to import into (default: $XDG_STATE_HOME/occtrace/history.db)", NULL, NULL, 0, 0},
    {0, "label", CLI_TEXT, offsetof(struct import_args, label), "TEXT",
     "a text kept with the runs, to find them again", NULL, NULL, 0, 0},
    {0, "gpu", CLI_TEXT, offsetof(struct import_args, gpu), "NAME",
     "the GPU of recordings that do not describe it ('occq gpus' lists names)", NULL, NULL, 0, 0},
    {0, "again", CLI_FLAG, offsetof(struct import_args, again), NULL,
     "import files that are in the history already", NULL, NULL, 0, 0},
    {0, "progress", CLI_FLAG, offsetof(struct import_args, progress), NULL,
     "show progress also when stderr is no terminal", NULL, NULL, 0, 0},
    CLI_OPTION_COLUMNS(struct import_args),
    CLI_OPTION_JSON(struct import_args),
    CLI_OPTION_CSV(struct import_args),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq import report.sqlite", "what 'nsys export --type sqlite' made"},
    {"occq import trace.json.gz --label resnet", "what the PyTorch profiler wrote"},
    {"occq top --run 7", "then ask as of any other run"},
    {NULL, NULL},
};

const struct cli_command cli_import = {
    .program = "occq",
    .name = "import",
    .operands = "FILE...",
    .min_operands = 1,
    .max_operands = INT32_MAX,
    .summary = "take recordings of Nsight Systems and PyTorch into the history",
    .description = "Each FILE becomes a run: an Nsight Systems report exported with 'nsys export --type "
                   "sqlite', or a trace of the "
                   "PyTorch profiler (Kineto, Chrome-trace JSON), plain or gzip; which it is, its content "
                   "says. Its launches are "
                   "analysed like any other.\n\n"
                   "A file that is broken leaves the history as it was. A file that was imported before is "
                   "noticed. Launches "
                   "that could not be imported are counted with their causes: no_configuration (no grid, "
                   "block or registers), "
                   "bad_times, bad_value, no_device, no_name.\n\n"
                   "What a recording does not say stays unknown. Kineto gives shared memory as one sum, "
                   "which is enough for "
                   "theoretical occupancy. Its own \"est. achieved occupancy %\" is kept as its claim; 'occq "
                   "show' prints it beside "
                   "ours, with the reason when they differ.",
    .options = options,
    .columns = columns,
    .examples = examples,
    .run = run,
};
