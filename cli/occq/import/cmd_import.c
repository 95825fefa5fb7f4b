/* occq import: imports recordings of other tools into the history. One row per file on stdout; progress and
 * errors on stderr. Each file has its own store handle, which is closed after a failure, so that no part of
 * the file remains. One thread. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/history/history.h"
#include "import/import.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/paths.h"
#include "support/text.h"

#define PROGRESS_NS INT64_C(200000000)
#define BAR_WIDTH   30

struct import_args {
    struct cli_list_args list;
    const char *label, *gpu;
    bool again, progress;
};

struct import_row {
    const char *path, *state, *time_base;
    struct occ_import_result result;
    uint64_t skipped;
    char skipped_causes[OCC_IMPORT_SKIPS_BYTES]; /* "bad_times 3, no_device 1"; "" */
};

/* ---- columns ---- */

#define FIELD(name, key, flags, member, help)                                                                \
    CLI_FIELD(name, key, CLI_PLAIN, flags, struct import_row, member, help)

static const struct cli_column columns[] = {
    FIELD("file", "file", CLI_DEFAULT | CLI_LEFT | CLI_CUTS, path, "as it was given"),
    FIELD("source", "source", CLI_DEFAULT | CLI_LEFT | CLI_SPARE(4), result.source,
          "the tool that recorded it: nsys, kineto or ncu"),
    FIELD("state", "state", CLI_DEFAULT | CLI_LEFT, state, "imported; known: it is in the history already"),
    FIELD("run", "run_id", CLI_DEFAULT, result.run, "the run's number, for --run"),
    FIELD("launches", "launches", CLI_DEFAULT, result.launches, "number of launches imported now"),
    FIELD("kernels", "kernels", CLI_DEFAULT | CLI_SPARE(3), result.kernels, "number of kernels"),
    FIELD("configs", "configs", CLI_DEFAULT | CLI_SPARE(5), result.configs,
          "number of launch configurations"),
    FIELD("devices", "devices", CLI_DEFAULT | CLI_SPARE(6), result.devices,
          "number of devices with launches"),
    FIELD("skipped", "skipped", CLI_DEFAULT, skipped, "number of launches that could not be imported"),
    FIELD("why", "skipped_causes", CLI_DEFAULT | CLI_LEFT | CLI_CUTS, skipped_causes, "the same by cause"),
    FIELD("times", "time_base", CLI_LEFT, time_base,
          "epoch; unknown: times do not count from 1970, and --since ignores the run"),
    CLI_COLUMN_END,
};

/* ---- one file ---- */

struct job {
    const struct import_args *args;
    const char *path;
    struct occ_store *store;
    int64_t shown_ns; /* time of the last progress line */
    bool shown;
};

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    static const char bar[] = "##############################";
    struct job *p = context;
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

static void clear_progress(const struct job *p)
{
    if (p->shown)
        (void)fprintf(stderr, "\r%*s\r", 30 + BAR_WIDTH + 9, "");
}

static int open_history(void *context, struct occ_store **ret_store, struct occ_error *err)
{
    struct job *job = context;
    int status = cli_open_history(&job->args->list.common, OCC_STORE_WRITE, &job->store, err);
    *ret_store = job->store;
    return status;
}

static void fill_row(struct import_row *row)
{
    const struct occ_import_result *result = &row->result;
    row->state = result->known ? "known" : "imported";
    row->time_base = result->known ? NULL : result->time_base_unknown ? "unknown" : "epoch";
    for (int i = 0; i < OCC_IMPORT_SKIP_COUNT; i++)
        row->skipped += result->skipped[i];
    (void)occ_import_skips_text(result->skipped, row->skipped_causes);
}

static int import_one(const struct import_args *args, const char *path, struct import_row *row,
                      struct occ_error *err)
{
    struct job job = {.args = args, .path = path};
    bool show = args->progress || isatty(STDERR_FILENO);
    const struct occ_import_options options = {.label = args->label,
                                               .gpu = args->gpu,
                                               .again = args->again,
                                               .progress = show ? show_progress : NULL,
                                               .open = open_history,
                                               .context = &job};
    *row = (struct import_row){.path = path};
    int status = 0;
    if (cli_has_history(&args->list.common))
        status = open_history(&job, &job.store, err);
    else if (args->list.common.db)
        status = occ_path_check_parent(args->list.common.db, err);
    if (status == 0)
        status = occ_import_file(job.store, path, &options, &row->result, err);
    occ_store_close(job.store);
    clear_progress(&job);
    if (status == 0)
        fill_row(row);
    return status;
}

static void note_result(const struct cli_command *command, const struct import_row *row)
{
    if (row->result.repaired)
        cli_note(command, "%s: not strict JSON (control characters, backslashes, NaN): read all the same",
                 row->path);
    if (row->result.known)
        cli_note(command,
                 "%s: is in the history already, as run %" PRId64 "%s (--again imports it once more)",
                 row->path, row->result.run, row->result.relabelled ? ", and has the new label now" : "");
    else if (row->result.time_base_unknown)
        cli_note(command, "%s: it has no absolute times; --since and --until ignore run %" PRId64, row->path,
                 row->result.run);
}

static int import_and_report(const struct cli_command *command, const struct import_args *args,
                             const char *path, struct cli_table *table)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct import_row row;
    int status = import_one(args, path, &row, &err);
    if (status == 0) {
        note_result(command, &row);
        status = cli_table_add(table, &row, &err);
    }
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

static int is_recording(const struct dirent *entry)
{
    static const char *const suffixes[] = {
        ".json",    ".json.gz",    ".json.zst",    ".sqlite", ".sqlite.gz", ".sqlite.zst", ".nsys-rep",
        ".ncu-rep", ".ncu-rep.gz", ".ncu-rep.zst", ".csv",    ".csv.gz",    ".csv.zst"};
    size_t length = strlen(entry->d_name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t suffix = strlen(suffixes[i]);
        if (length > suffix && strcmp(entry->d_name + length - suffix, suffixes[i]) == 0)
            return 1;
    }
    return 0;
}

/* True if the file is not a regular file: a FIFO or a device would make the import wait or read without end.
 * The import itself reports files without status. */
static bool is_special(const struct cli_command *command, const char *path)
{
    struct stat status;
    bool skips = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    if (skips)
        cli_note(command, "%s: skipped, it is not a regular file", path);
    return skips;
}

/* Imports the recordings of a directory, one for each rank of a job, in the order of their names: "rank_9"
 * before "rank_10". */
static int import_directory(const struct cli_command *command, const struct import_args *args,
                            const char *directory, struct cli_table *table)
{
    struct dirent **entries = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    int exit_status = CLI_EXIT_OK, n = scandir(directory, &entries, is_recording, versionsort), n_read = 0;
    for (int i = 0; i < n; i++) {
        _cleanup_(occ_freep) char *path = NULL;
        int status = CLI_EXIT_OK;
        if (occ_format_text(&path, &err, "%s/%s", directory, entries[i]->d_name) != 0) {
            status = cli_failure(command, &err);
        } else if (!is_special(command, path)) {
            status = import_and_report(command, args, path, table);
            n_read++;
        }
        exit_status = status == CLI_EXIT_OK ? exit_status : status;
        free(entries[i]);
    }
    free(entries);
    if (n_read > 0 || exit_status != CLI_EXIT_OK)
        return exit_status;
    (void)(n < 0
               ? occ_fail_errno(&err, errno, "%s", directory)
               : occ_fail(&err, OCC_E_INVALID,
                          "%s: no recording in this directory (directories in it are not read)", directory));
    return cli_failure(command, &err);
}

static int import_all(const struct cli_command *command, const struct import_args *args,
                      struct cli_table *table)
{
    int exit_status = CLI_EXIT_OK;
    for (int i = 0; i < args->list.common.operand_count; i++) {
        const char *path = args->list.common.operands[i];
        struct stat file;
        bool is_directory = stat(path, &file) == 0 && S_ISDIR(file.st_mode);
        int status = (is_directory ? import_directory : import_and_report)(command, args, path, table);
        exit_status = status == CLI_EXIT_OK ? exit_status : status;
    }
    return exit_status;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct import_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    if (cli_table_new(stdout, "imports", &args->list.selection, &table, &err) != 0)
        return cli_failure(command, &err);
    int status = import_all(command, args, table);
    return cli_table_finish(table, &err) == 0 ? status : cli_failure(command, &err);
}

static const struct cli_option options[] = {
    CLI_OPTION('d', "db", CLI_TEXT, struct cli_args, db, "FILE",
               "the history to import into (default: $XDG_STATE_HOME/occtrace/history.db)"),
    CLI_OPTION(
        0, "label", CLI_TEXT, struct import_args, label, "TEXT",
        "a text kept with the runs, to find them again; a file that is in the history already gets it, too"),
    CLI_OPTION(0, "gpu", CLI_TEXT, struct import_args, gpu, "NAME",
               "the model of GPUs that the recording does not describe ('occq calc --list' names them)"),
    CLI_OPTION(0, "again", CLI_FLAG, struct import_args, again, NULL,
               "import files that are in the history already"),
    CLI_OPTION(0, "progress", CLI_FLAG, struct import_args, progress, NULL,
               "show progress also when stderr is no terminal"),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_import = {
    .name = "import",
    .group = "Maintain",
    .operands = "FILE...",
    .min_operands = 1,
    .max_operands = INT32_MAX,
    .summary = "take recordings of Nsight Systems, Nsight Compute and PyTorch into the history",
    .description =
        "Each FILE becomes a run. It is an Nsight Systems report (.nsys-rep, where 'nsys' is installed) or "
        "its export by 'nsys export --type sqlite'; an Nsight Compute report (.ncu-rep), or the output of "
        "ncu with or without --csv (page details or raw); or a trace of the PyTorch profiler (Kineto) or of "
        "the XLA profiler (JAX): Chrome-trace JSON, also if it is not strict JSON. Every FILE may come from "
        "a pipe (- is standard input) or be compressed with gzip or zstd. A directory stands for the regular "
        "files in it that have a recording's suffix, such as one for each rank. The content decides the "
        "format. Launches are analysed like any others. The number of kernels and launch configurations has "
        "no limit.\n\n"
        "A damaged file leaves the history as it was: the whole file is read first and then written in one "
        "transaction, for which other writers of the history wait (about a second for three million "
        "launches). A file that was imported before is recognised. Launches that cannot be imported are "
        "counted by cause: no_configuration (no grid, block or registers), bad_times, bad_value, no_device, "
        "no_name. A trace of an AMD or Intel GPU alone is refused: the occupancy model covers NVIDIA "
        "GPUs.\n\n"
        "--gpu names the model of the GPUs of a recording that does not describe them. Each GPU that "
        "launches mention stays a device of its own.\n\n"
        "Values that a recording does not contain stay unknown. Kineto has one sum for shared memory, which "
        "is enough for theoretical occupancy. Its own \"est. achieved occupancy %\" is kept; 'occq show' "
        "prints it beside the value of occtrace, with the reason if they differ.\n\n"
        "Each result of Nsight Compute is a launch. Its achieved occupancy is measured, with measured_source "
        "ncu: the kernel ran alone and was replayed, with caches flushed and clocks locked unless ncu was "
        "told otherwise. Elapsed occupancy is achieved x active / elapsed cycles of the SMs. 'occq show' "
        "prints ncu's values beside the values of occtrace; the table ncu_metric ('occq sql') has ncu's "
        "values of occupancy, throughput and stalls. A report has the second in which each result was made: "
        "launches of one second follow one another. Printed results have no times (time_base unknown), and "
        "only the page raw has the name of the GPU. A size that ncu rounded for print becomes the roundest "
        "number with the same printed text. Without --csv, most versions do not print the number of SMs "
        "either: it is computed from the waves where only one number fits, else --gpu names the GPU. Numbers "
        "that were printed in another locale are read from CSV and refused without --csv. Lines that begin "
        "with a rank ('[rank0]:', '[1,0]<stdout>:', '0:', as torchrun, mpirun and 'srun -l' print them) are "
        "read without it, rank by rank, at most 64 ranks; the run gets the rank if there is one. A duration "
        "that was not collected is 0. Results of ranges and of whole graphs are no launches, and count as "
        "no_configuration. A report that was cut exactly between two results cannot be distinguished from a "
        "shorter one, since the format has neither a count nor an end.",
    .options = options,
    .columns = columns,
    .examples = {{"occq import report.sqlite", "a report of 'nsys export --type sqlite'"},
                 {"occq import trace.json.gz --label resnet", "a trace of the PyTorch profiler"},
                 {"occq import report.ncu-rep", "a report of Nsight Compute"},
                 {"occq import ncu.txt", "the output of ncu, with or without --csv"},
                 {"occq import traces/ --label '8 ranks'", "a trace for each rank"},
                 {"occq top --run 7", "then query it like any other run"}},
    CLI_ARGS(struct import_args, ),
    .run = run,
};
