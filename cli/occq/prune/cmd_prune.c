/* occq prune: removes runs from the history without confirmation and print them. A run in progress
 * stays, and so does a run that ended less than a minute ago, since the daemon may have more of its launches.
 * One transaction finds and deletes runs, so that no daemon resumes one in between. One thread. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/usage.h"
#include "cli/history/history.h"
#include "support/array.h"
#include "support/clock.h"
#include "support/process.h"
#include "support/text.h"

#define SETTLED_NS INT64_C(60000000000)

struct remove_args {
    struct history_args history;
    int64_t keep;
    bool dry_run;
};

struct row {
    int64_t run, start_ns, launches;
    char program[64], label[64];
    bool is_live;
};

struct rows {
    struct row *rows;
    size_t n, allocated;
};

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct row, member, help)

static const struct cli_column columns[] = {
    FIELD("run", "run_id", CLI_PLAIN, CLI_DEFAULT, run, "the number that the run had"),
    FIELD("start", "start_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT, start_ns,
          "when observation of the process began"),
    FIELD("program", "program", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, program,
          "file name of the executable, or of the recording"),
    FIELD("launches", "launches", CLI_PLAIN, CLI_DEFAULT, launches, "number of launches that it had"),
    FIELD("label", "label", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS | CLI_RARE, label, "its label"),
    CLI_COLUMN_END,
};

/* ---- which ---- */

/* ?1: a JSON array of runs, NULL: all; ?2: runs that ended before this time; ?3: number of the newest runs
 * that stay; ?4: the time one minute ago; ?5: runs of this user, by name or else number, NULL: of any. */
static const char candidates[] =
    "SELECT run_id, start_ns, launches, program, label, source = 'trace' AND (end_ns IS NULL OR end_ns > "
    "?4), iif(end_ns IS NULL AND coalesce(last_start_ns, 0) <= ?4, pid, NULL), hostname FROM run WHERE (?1 "
    "IS "
    "NULL OR run_id IN (SELECT value FROM json_each(?1))) AND (?2 = 0 OR max(coalesce(end_ns, 0), "
    "coalesce(last_start_ns, 0), start_ns) < ?2 AND time_base = 'epoch') AND run_id NOT IN (SELECT run_id "
    "FROM "
    "run ORDER BY run_id DESC LIMIT ?3) AND (?5 IS NULL OR coalesce(user, CASE WHEN container IS NULL AND "
    "k8s_pod_uid IS NULL THEN CAST(uid AS TEXT) END) = ?5) ORDER BY run_id";

/* True for a run without an end and without a process: its daemon was killed. */
static bool is_gone(sqlite3_stmt *stmt)
{
    char here[256] = "";
    const char *hostname = (const char *)sqlite3_column_text(stmt, 7);
    int64_t pid = sqlite3_column_int64(stmt, 6);
    (void)gethostname(here, sizeof here - 1);
    return pid > 0 && pid <= INT32_MAX && hostname && strcmp(hostname, here) == 0 &&
           occ_process_is_gone((int32_t)pid, sqlite3_column_int64(stmt, 1));
}

static bool add_row(struct rows *rows, sqlite3_stmt *stmt)
{
    if (!occ_grow((void **)&rows->rows, &rows->allocated, rows->n, SIZE_MAX, sizeof *rows->rows))
        return false;
    struct row *row = &rows->rows[rows->n++];
    const char *program = (const char *)sqlite3_column_text(stmt, 3);
    const char *label = (const char *)sqlite3_column_text(stmt, 4);
    *row = (struct row){.run = sqlite3_column_int64(stmt, 0),
                        .start_ns = sqlite3_column_int64(stmt, 1),
                        .launches = sqlite3_column_int64(stmt, 2),
                        .is_live = sqlite3_column_int(stmt, 5) != 0 && !is_gone(stmt)};
    (void)snprintf(row->program, sizeof row->program, "%s", program ? program : "");
    (void)snprintf(row->label, sizeof row->label, "%s", label ? label : "");
    return true;
}

static int find(struct occ_store *store, const char *ids, const struct remove_args *args, struct rows *rows,
                struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_ERROR;
    if (sqlite3_prepare_v2(occ_store_sqlite(store), candidates, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_bind_text(stmt, 1, ids, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_bind_int64(stmt, 2, args->history.filter.until_ns) == SQLITE_OK &&
        sqlite3_bind_int64(stmt, 3, args->keep) == SQLITE_OK &&
        sqlite3_bind_int64(stmt, 4, occ_now_ns() - SETTLED_NS) == SQLITE_OK &&
        sqlite3_bind_text(stmt, 5, args->history.filter.user, -1, SQLITE_STATIC) == SQLITE_OK)
        while ((step = sqlite3_step(stmt)) == SQLITE_ROW && add_row(rows, stmt))
            ;
    int status = step == SQLITE_DONE ? 0
                 : step == SQLITE_ROW
                     ? occ_no_memory(err)
                     : occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(occ_store_sqlite(store)));
    (void)sqlite3_finalize(stmt);
    return status;
}

/* ---- removing them ---- */

/* The request to remove runs, and its result. */
struct removal {
    const struct remove_args *args;
    const char *ids; /* a JSON array; NULL: all runs that the options choose */
    struct rows rows;
    int64_t *runs;    /* runs of `rows`, without live runs */
    size_t live;      /* runs that stay */
    uint64_t missing; /* a named run that does not exist; 0: none */
};

static void removal_release(struct removal *removal)
{
    free(removal->rows.rows);
    free(removal->runs);
}

/* Drops live runs. Returns their number. */
static size_t leave_live(struct rows *rows)
{
    size_t kept = 0, live = 0;
    for (size_t i = 0; i < rows->n; i++) {
        live += rows->rows[i].is_live;
        if (!rows->rows[i].is_live)
            rows->rows[kept++] = rows->rows[i];
    }
    rows->n = kept;
    return live;
}

static uint64_t missing_run(const struct cli_args *common, const struct rows *rows)
{
    for (int i = 0; i < common->operand_count; i++) {
        uint64_t run = 0;
        size_t k = 0;
        (void)occ_parse_u64(common->operands[i], 1, INT64_MAX, &run, NULL);
        while (k < rows->n && (uint64_t)rows->rows[k].run != run)
            k++;
        if (k == rows->n)
            return run;
    }
    return 0;
}

/* Chooses the runs: named runs all or none, else the runs of the options. */
static int choose(void *context, struct occ_store *store, const int64_t **ret_runs, size_t *ret_n,
                  struct occ_error *err)
{
    struct removal *removal = context;
    struct rows *rows = &removal->rows;
    int status = find(store, removal->ids, removal->args, rows, err);
    if (status != 0)
        return status;
    removal->missing = removal->ids ? missing_run(&removal->args->history.list.common, rows) : 0;
    removal->live = leave_live(rows);
    if (removal->missing > 0 || (removal->ids && removal->live > 0))
        rows->n = 0;
    removal->runs = calloc(rows->n + 1, sizeof *removal->runs);
    if (!removal->runs)
        return occ_no_memory(err);
    for (size_t i = 0; i < rows->n; i++)
        removal->runs[i] = rows->rows[i].run;
    *ret_runs = removal->runs;
    *ret_n = removal->args->dry_run ? 0 : rows->n;
    return 0;
}

static int print_removed(const struct cli_command *command, const struct removal *removal, int64_t freed)
{
    const struct cli_selection *selection = &removal->args->history.list.selection;
    const struct rows *rows = &removal->rows;
    struct occ_error err = OCC_ERROR_INIT;
    char bytes[32];
    if (cli_table_print("removed", selection, rows->rows, rows->n, sizeof *rows->rows, &err) != 0)
        return cli_failure(command, &err);
    if (rows->n == 0)
        return cli_nothing(command, "no runs to remove");
    const char *plural = rows->n == 1 ? "" : "s";
    if (removal->args->dry_run)
        cli_footer(command, selection, "without --dry-run, %zu run%s would be removed", rows->n, plural);
    else
        cli_footer(command, selection, "removed %zu run%s; the file is %s smaller", rows->n, plural,
                   occ_format_bytes(freed > 0 ? (uint64_t)freed : 0, bytes, sizeof bytes));
    return CLI_EXIT_OK;
}

/* Opens the history for writing, but does not create a missing one. */
static int open_history(const struct cli_args *args, struct occ_store **ret_store, struct occ_error *err)
{
    _cleanup_(occ_store_freep) struct occ_store *reader = NULL;
    int status = cli_open_history(args, OCC_STORE_READ, &reader, err);
    return status == 0 ? cli_open_history(args, OCC_STORE_WRITE, ret_store, err) : status;
}

/* Removes the chosen runs. *ret_freed: decrease of the file's size in bytes. */
static int remove_chosen(struct removal *removal, int64_t *ret_freed, struct occ_error *err)
{
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    const struct occ_run_chooser chooser = {choose, removal};
    const struct cli_args *common = &removal->args->history.list.common;
    const int64_t *runs;
    size_t n;
    if (removal->args->dry_run) {
        int status = cli_open_history(common, OCC_STORE_READ, &store, err);
        return status == 0 ? choose(removal, store, &runs, &n, err) : status;
    }
    int status = open_history(common, &store, err);
    if (status != 0)
        return status;
    int64_t before = cli_history_bytes(store);
    status = occ_store_remove_runs(store, &chooser, occ_now_ns(), err);
    *ret_freed = before - cli_history_bytes(store);
    return status;
}

static int run_chosen(const struct cli_command *command, const struct remove_args *args)
{
    _cleanup_(removal_release) struct removal removal = {.args = args};
    struct occ_error err = OCC_ERROR_INIT;
    int64_t freed = 0;
    if (remove_chosen(&removal, &freed, &err) != 0)
        return cli_failure(command, &err);
    size_t live = removal.live;
    int status = print_removed(command, &removal, freed);
    if (live > 0)
        cli_note(command, "%zu run%s in progress or ended less than a minute ago stay%s", live,
                 live == 1 ? " that is" : "s that are", live == 1 ? "s" : "");
    return status;
}

static int run_named(const struct cli_command *command, const struct remove_args *args)
{
    char ids[8192] = "[";
    _cleanup_(removal_release) struct removal removal = {.args = args, .ids = ids};
    const struct cli_args *common = &args->history.list.common;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t freed = 0;
    for (int i = 0; i < common->operand_count; i++) {
        uint64_t run = 0;
        size_t used = strlen(ids);
        if (occ_parse_u64(common->operands[i], 1, INT64_MAX, &run, &err) != 0 || used > sizeof ids - 32) {
            (void)occ_error_prefix(&err, "RUN is a number");
            return cli_usage_error(command, &err);
        }
        (void)snprintf(ids + used, sizeof ids - used, "%s%" PRIu64, i ? ", " : "", run);
    }
    (void)strncat(ids, "]", sizeof ids - strlen(ids) - 1);
    if (remove_chosen(&removal, &freed, &err) != 0)
        return cli_failure(command, &err);
    if (removal.missing > 0) {
        (void)occ_fail(&err, OCC_E_NOT_FOUND, "there is no run %" PRIu64 "; nothing was removed",
                       removal.missing);
        return cli_nothing(command, err.message);
    }
    if (removal.live > 0) {
        cli_note(command, "a run is in progress, or ended less than a minute ago; nothing was removed");
        return CLI_EXIT_FAILURE;
    }
    return print_removed(command, &removal, freed);
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct remove_args *args = arguments;
    return args->history.list.common.operand_count > 0 ? run_named(command, args) : run_chosen(command, args);
}

/* ---- the command ---- */

static int check(void *arguments, struct occ_error *err)
{
    const struct remove_args *args = arguments;
    bool has_options = args->history.filter.until_ns != 0 || args->keep != 0 || args->history.filter.user;
    if (!has_options && args->history.list.common.operand_count == 0)
        return occ_fail(err, OCC_E_INVALID, "RUN, --before, --keep or --user is missing");
    return has_options && args->history.list.common.operand_count > 0
               ? occ_fail(err, OCC_E_INVALID,
                          "--before, --keep and --user choose runs; RUN names them: give one or the other")
               : 0;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION(
        0, "before", CLI_MOMENT, struct history_args, filter.until_ns, "WHEN",
        "runs that ended before then, imported runs by the times in their recording: " CLI_MOMENT_HELP),
    CLI_OPTION(0, "keep", CLI_NUMBER, struct remove_args, keep, "N", "but not the newest N runs", .min = 1,
               .max = INT64_MAX),
    CLI_OPTION(0, "user", CLI_TEXT, struct history_args, filter.user, "NAME",
               "runs of this user, or of this number if its name is unknown"),
    CLI_OPTION('n', "dry-run", CLI_FLAG, struct remove_args, dry_run, NULL,
               "remove nothing, and print the runs"),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_prune = {
    .name = "prune",
    .group = "Maintain",
    .operands = "[RUN...]",
    .max_operands = 256,
    .summary = "remove runs by number, age or count",
    .description =
        "Removes runs with their launches and all measured values, without a question, and prints them: the "
        "runs named, or runs that ended before a moment, all but the newest, or runs of a user; with several "
        "options only runs that all of them choose. The age of an imported run is that of its recording: "
        "--before 30d also removes a "
        "trace "
        "from last year that was imported today; --dry-run shows what would go. A run in progress stays, and "
        "so does a run that ended less than a minute ago; if "
        "such a run is named, nothing is removed.\n\n"
        "A daemon may write the same history meanwhile: it waits during the removal. Names of kernels and "
        "launch configurations stay. The node's next occtrace-ship also removes these runs from the "
        "cluster's warehouse, except single launches and minutes that were evicted here before.",
    .options = options,
    .columns = columns,
    .examples = {{"occq prune 3 4", "two runs"},
                 {"occq prune --before 30d --dry-run", "which runs ended a month ago or earlier"},
                 {"occq prune --user ann --dry-run", "all runs of a person"},
                 {"occq prune --keep 100", "all but the newest hundred runs"}},
    CLI_ARGS(struct remove_args, ),
    .check = check,
    .run = run,
};
