/* Filters and the history's file; see history.h. One thread. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/paths.h"
#include "support/text.h"

const char *const cli_run_words[] = {"last", NULL};

int cli_check_rank(const char *text, struct occ_error *err)
{
    uint64_t rank;
    return occ_parse_u64(text, 0, INT64_MAX, &rank, err);
}

int cli_check_kernel(const char *text, struct occ_error *err)
{
    return text[0] ? 0 : occ_fail(err, OCC_E_INVALID, "KERNEL: the value is empty");
}

int cli_check_history(void *arguments, struct occ_error *err)
{
    struct history_args *args = arguments;
    const struct occ_filter *filter = &args->filter;
    args->list.output.merge.number = args->number;
    if (filter->since_ns != 0 && filter->until_ns != 0 && filter->until_ns <= filter->since_ns)
        return occ_fail(err, OCC_E_INVALID, "--until is not after --since");
    if (filter->rank && cli_check_rank(filter->rank, err) != 0)
        return occ_error_prefix(err, "--rank");
    return 0;
}

/* SQLite's busy handler: waits up to 10 s, and prints a message after 1 s. */
static int wait_for_lock(void *unused, int tries)
{
    enum { STEP_MS = 50, TRIES = 200, TRIES_SILENT = 20 };
    (void)unused;
    if (tries == TRIES_SILENT)
        (void)fputs("occq: waits for another program that writes the history\n", stderr);
    return tries < TRIES && usleep(STEP_MS * 1000) == 0;
}

/* Opens a new file with signals blocked, since an incomplete file is not a history. */
static int open_new(const char *path, const struct occ_store_options *options, struct occ_store **ret_store,
                    struct occ_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    int status = occ_store_open(path, options, ret_store, err);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

bool cli_has_history(const struct cli_args *args)
{
    _cleanup_(occ_freep) char *own = NULL;
    const char *path = args->db ? args->db : occ_path_own_history(&own, NULL) == 0 ? own : NULL;
    return path && access(path, F_OK) == 0;
}

int cli_open_history(const struct cli_args *args, enum occ_store_mode mode, struct occ_store **ret_store,
                     struct occ_error *err)
{
    _cleanup_(occ_freep) char *own = NULL;
    const struct occ_store_options options = {.mode = mode, .busy_timeout_ms = args->busy_timeout_ms};
    int status = args->db ? 0 : occ_path_own_history(&own, err);
    const char *path = args->db ? args->db : own;
    if (status == 0 && mode == OCC_STORE_READ && access(path, F_OK) != 0 && errno == ENOENT)
        return occ_fail(
            err, OCC_E_NOT_FOUND,
            "there is no history at %s. \"occtrace ./app\" records a CUDA program, \"occq import FILE\" "
            "takes a recording of nsys, ncu or PyTorch, --db and OCCTRACE_DB name another history",
            path);
    bool exists = status == 0 && access(path, F_OK) == 0;
    if (exists && access(path, mode == OCC_STORE_READ ? R_OK : R_OK | W_OK) != 0)
        return occ_fail(err, OCC_E_IO, "%s: cannot open: %s", path, strerror(errno));
    if (status == 0 && args->db)
        status = occ_path_check_parent(path, err);
    if (status == 0)
        status =
            (exists || mode == OCC_STORE_READ ? occ_store_open : open_new)(path, &options, ret_store, err);
    if (status == 0 && mode == OCC_STORE_WRITE)
        (void)sqlite3_busy_handler(occ_store_sqlite(*ret_store), wait_for_lock, NULL);
    return status;
}

const char *cli_history_path(struct occ_store *store)
{
    return sqlite3_db_filename(occ_store_sqlite(store), "main");
}

int64_t cli_history_bytes(struct occ_store *store)
{
    struct stat file;
    return stat(cli_history_path(store), &file) == 0 ? file.st_size : 0;
}

static void note_newer_runs(const struct cli_command *command, struct occ_store *store)
{
    static const char sql[] =
        "SELECT last, count(*) FROM run, (SELECT " OCC_FILTER_RUN_LAST " AS last) WHERE run_id > last";
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int64(stmt, 1) > 0) {
        long long n = sqlite3_column_int64(stmt, 1);
        cli_note(command, "last is run %lld; %lld newer run%s no launches", sqlite3_column_int64(stmt, 0), n,
                 n == 1 ? " has" : "s have");
    }
    (void)sqlite3_finalize(stmt);
}

void cli_note_filter(const struct cli_command *command, struct occ_store *store,
                     const struct occ_filter *filter)
{
    uint64_t n = 0;
    if (filter->run == OCC_RUN_LAST)
        note_newer_runs(command, store);
    if ((filter->since_ns <= 0 && filter->until_ns <= 0) ||
        occ_store_count_unknown_time_base(store, &n, NULL) != 0 || n == 0)
        return;
    cli_note(command,
             "--since and --until ignore %" PRIu64 " imported run%s: the recordings have no absolute times",
             n, n == 1 ? "" : "s");
}
