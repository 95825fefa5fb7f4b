/* occq live: the kernels that waste most now. One thread, and on a terminal a second thread (query.h). */
#include <errno.h>
#include <time.h>

#include "cli/history/names.h"
#include "cli/json.h"
#include "cli/table.h"
#include "live.h"

#define SECOND_NS INT64_C(1000000000)
enum { BUSY_TIMEOUT_MS = 500 }; /* short: live repeats its queries, and cannot exit while an open waits */

/* ---- without a terminal ---- */

static void print_line(const char *line)
{
    if (line[0])
        (void)puts(line);
}

static int print_text(const struct live_args *args, const struct live_sample *sample, struct occ_error *err)
{
    static const struct live_model no_filter;
    struct cli_selection columns;
    char line[LIVE_LINE_BYTES], time[32];
    live_head_text(sample, line);
    (void)printf("%s  %s\n", cli_time_text(sample->at_ns, time, sizeof time), line);
    for (size_t i = 0; i < sample->gpus.n; i++) {
        live_gpu_text(sample, i, live_is_ascii(args), line);
        print_line(line);
    }
    live_causes_text(sample, line);
    print_line(line);
    live_owners_text(sample, line);
    print_line(line);
    live_layers_text(sample, live_is_ascii(args), line);
    print_line(line);
    print_line(sample->daemon);
    if (sample->kernels.n == 0) {
        live_nothing_text(sample, &no_filter, line);
        (void)printf("%s\n", line);
    }
    int status = live_choose_columns(args, sample, &columns, err);
    return status != 0 ? status
                       : cli_table_print("kernels", &columns, sample->lines, sample->kernels.n,
                                         sizeof *sample->lines, err);
}

/* Prints rows like `occq top --json`, with the columns of `by`. */
static void put_rows(struct occ_json *json, const char *key, enum occ_top_by by, const struct top_line *lines,
                     size_t n)
{
    struct cli_column columns[TOP_COLUMNS_MAX];
    top_copy_columns(by, columns);
    top_name_rows(by, columns);
    occ_json_array(json, key, false);
    for (size_t i = 0; i < n; i++) {
        occ_json_object(json, NULL, true);
        for (const struct cli_column *c = columns; c->name; c++)
            if (!(c->flags & CLI_TEXT_ONLY))
                cli_json_value(json, c->key, c->get(c, &lines[i]));
        occ_json_close(json);
    }
    occ_json_close(json);
}

static void put_uses(struct occ_json *json, const struct live_sample *sample)
{
    occ_json_array(json, "gpu_use", false);
    for (size_t i = 0; i < sample->gpus.n; i++) {
        const struct live_use *use = live_use_of(sample, i);
        occ_json_object(json, NULL, true);
        occ_json_integer(json, "device_id", sample->gpus.rows[i].kernel.id);
        occ_json_real(json, "busy_ratio", use ? use->busy : (double)NAN);
        occ_json_bool(json, "busy_is_minimum", use && use->is_least);
        occ_json_real(json, "used_ratio", use ? use->used : (double)NAN);
        occ_json_close(json);
    }
    occ_json_close(json);
}

static void put_layers(struct occ_json *json, const struct occ_layers *tree)
{
    occ_json_array(json, "layers", false);
    for (size_t i = 0; i < tree->n; i++) {
        const struct occ_layer *layer = &tree->layers[i];
        occ_json_object(json, NULL, true);
        occ_json_string(json, "layer", layer->name);
        occ_json_unsigned(json, "depth", layer->depth);
        occ_json_unsigned(json, "layers", layer->count);
        occ_json_string(json, "phase", layer->is_backward ? "backward" : NULL);
        occ_json_real(json, "time_ratio", layer->share);
        occ_json_real(json, "effective_elapsed", layer->used);
        occ_json_close(json);
    }
    occ_json_close(json);
}

static int print_json(const struct live_sample *sample, struct occ_error *err)
{
    struct top_sums sums;
    _cleanup_(occ_freep) struct top_line *gpus = top_make_lines(&sample->gpus, sample->gpus.n, NULL, &sums);
    _cleanup_(occ_freep) struct top_line *causes =
        top_make_lines(&sample->causes, sample->causes.n, NULL, &sums);
    struct occ_json json;
    if (!gpus || !causes)
        return occ_no_memory(err);
    cli_json_begin(&json, stdout);
    occ_json_integer(&json, "at_ns", sample->at_ns);
    occ_json_integer(&json, "window_ns", sample->window_ns);
    occ_json_integer(&json, "complete_ns", sample->complete_ns);
    cli_json_value(&json, "newest_start_ns",
                   sample->newest_ns ? cli_integer(sample->newest_ns) : cli_string(NULL));
    occ_json_integer(&json, "runs", sample->runs);
    occ_json_integer(&json, "lost", sample->lost);
    occ_json_real(&json, "overhead_ratio", sample->overhead);
    cli_json_value(&json, "daemon", cli_string(sample->daemon[0] ? sample->daemon : NULL));
    put_rows(&json, "gpus", OCC_TOP_BY_GPU, gpus, sample->gpus.n);
    put_uses(&json, sample);
    put_layers(&json, &sample->layers.tree);
    put_rows(&json, "causes", OCC_TOP_BY_CAUSE, causes, sample->causes.n);
    put_rows(&json, "kernels", OCC_TOP_BY_KERNEL, sample->lines, sample->kernels.n);
    cli_json_end(&json);
    return 0;
}

static int print_sample(const struct live_args *args, const struct live_sample *sample, struct occ_error *err)
{
    int status = args->history.list.output.json ? print_json(sample, err) : print_text(args, sample, err);
    if (fflush(stdout) != 0 && status == 0)
        status = occ_fail_errno(err, errno, "cannot write");
    return status;
}

/* Prints one sample after the other. Without --wait the first sample needs a history, since a script with a
 * wrong path would wait for ever. Later a history may be absent while it is replaced or upgraded; the exit
 * status is that of the last sample. */
static int print_batches(const struct cli_command *command, const struct live_args *args,
                         struct live_reader *reader)
{
    const struct timespec interval = {args->interval_ns / SECOND_NS, args->interval_ns % SECOND_NS};
    int result = CLI_EXIT_OK;
    for (int64_t i = 0; args->history.number == 0 || i < args->history.number; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        if (i)
            (void)nanosleep(&interval, NULL);
        if (i && !args->history.list.output.json)
            (void)putchar('\n');
        _cleanup_(live_sample_freep) struct live_sample *sample = live_read(reader, args->window_ns);
        if (sample && sample->err.code == 0 && print_sample(args, sample, &err) != 0)
            return ferror(stdout) ? CLI_EXIT_FAILURE : cli_failure(command, &err);
        result = !sample                  ? CLI_EXIT_FAILURE
                 : sample->err.code != 0  ? cli_failure(command, &sample->err)
                 : sample->kernels.n == 0 ? CLI_EXIT_NOTHING
                                          : CLI_EXIT_OK;
        bool has_failed = result == CLI_EXIT_FAILURE || result == CLI_EXIT_USAGE;
        if (i == 0 && has_failed && !args->wait)
            return result;
    }
    return result;
}

/* ---- the command ---- */

static int run(const struct cli_command *command, const void *arguments)
{
    const struct live_args *args = arguments;
    struct live_reader reader;
    if (!args->batch)
        return live_run(command, args);
    live_reader_init(&reader, &args->history);
    int result = print_batches(command, args, &reader);
    live_reader_release(&reader);
    return result;
}

static int check(void *arguments, struct occ_error *err)
{
    struct live_args *args = arguments;
    struct cli_selection columns;
    args->batch |= args->history.list.output.json;
    if (!args->batch && args->wait)
        return occ_fail(err, OCC_E_INVALID, "--wait is for batches (-b, --json); on a terminal live waits");
    if (!args->batch && args->history.number != 0)
        return occ_fail(err, OCC_E_INVALID, "-n is for batches (-b, --json)");
    if (args->history.list.common.all_users && !(args->batch && args->history.number == 1))
        return occ_fail(err, OCC_E_INVALID, "--all-users is for a single batch (-b -n 1)");
    if (args->history.list.output.json && args->history.list.output.columns)
        return occ_fail(err, OCC_E_INVALID, "--json prints all columns");
    int status = cli_check_history(arguments, err);
    return status == 0 ? live_choose_columns(args, NULL, &columns, err) : status;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION_EACH_USER,
    CLI_OPTION('w', "window", CLI_SPAN, struct live_args, window_ns, "DURATION",
               "launches of the last DURATION (default 5s; 1s to 1h)", .min = SECOND_NS,
               .max = 3600 * SECOND_NS),
    CLI_OPTION('i', "interval", CLI_SPAN, struct live_args, interval_ns, "DURATION",
               "from one answer to the next (default 1s; 100ms to 1h)", .min = SECOND_NS / 10,
               .max = 3600 * SECOND_NS),
    CLI_OPTION('b', "batch", CLI_FLAG, struct live_args, batch, NULL,
               "print plain text, one answer after the other, without a terminal"),
    CLI_OPTION(0, "wait", CLI_FLAG, struct live_args, wait, NULL,
               "with -b or --json: wait for a history that does not exist yet"),
    CLI_OPTION_NUMBER("with -b or --json: N answers (default: until interrupted)"),
    CLI_OPTION(0, "ascii", CLI_FLAG, struct live_args, ascii, NULL,
               "no blocks in trends, for consoles that lack them"),
    CLI_OPTIONS_RUN,
    CLI_OPTION_KERNEL,
    CLI_OPTION_EXCLUDE,
    CLI_OPTION_DEVICE("gpu"),
    CLI_OPTION_NAME,
    CLI_OPTION('o', "columns", CLI_TEXT, struct cli_list_args, output.columns, "LIST",
               "columns to show, separated by commas; +LIST adds to the default ones"),
    CLI_OPTION(0, "json", CLI_FLAG, struct cli_list_args, output.json, NULL,
               "as -b, with a JSON document for each answer, with all columns"),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

const struct cli_command cli_live = {
    .name = "live",
    .group = "Publish",
    .summary = "how busy the GPUs are now, and the kernels that lose most",
    .description =
        "Asks a growing history again and again and shows GPUs, causes, owners, layers and kernels of the "
        "last seconds, the largest loss first, with the last ten values of each kernel. Columns without a "
        "value are left out. Keys order, filter and pause, and open 'occq show' for a kernel; h lists "
        "them.\n\n"
        "The first line has the window, the age of a newer launch, the runs in progress with their lost "
        "launches and "
        "occtrace's share of their CPU time. A line for each GPU has a bar of the window: the used part, the "
        "empty warp slots of kernels, and the idle part. busy is the time in which kernels ran / window, "
        "used "
        "the same without empty warp slots (measured, else of the model) and communication; with options "
        "that choose kernels "
        "busy is the sum of durations / window, and exceeds 100 % if kernels overlap. SHARE is the part "
        "of the GPUs' time in the window. Layers are the innermost ranges of 'occq top --by layer'. The last "
        "line above the table is the state of the daemon that writes the history.\n\n"
        "A launch is in the history up to three seconds after its end (later below 20 launches per second). "
        "So the window ends where the launches of all runs in progress are complete: at the newest launch of "
        "the run that is farthest behind, three seconds ago at most. The first line tells where (up to N s "
        "ago), complete_ns in JSON. A window counts the launches that began in it. An answer that takes long "
        "is asked less often, so that it takes about 1 % of a processor. On a "
        "terminal "
        "a history that does not exist yet is waited for; -b and --json end with an error, unless there is "
        "--wait. One that is replaced or upgraded meanwhile is always waited for.\n\n"
        "Works from 60 x 12 characters, without colours (NO_COLOR) and without UTF-8. -b prints for scripts.",
    .options = options,
    .columns = top_columns,
    .examples = {{"occq live", "the largest loss now"},
                 {"occq live --window 30s --kernel gemm", "some kernels, of the last half minute"},
                 {"occq live --json -n 1", "one answer, for a program"}},
    CLI_ARGS(struct live_args, .history.list.common.busy_timeout_ms = BUSY_TIMEOUT_MS,
             .window_ns = 5 * SECOND_NS, .interval_ns = SECOND_NS),
    .check = check,
    .run = run,
};
