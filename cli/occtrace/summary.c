/* The summary; see summary.h. One thread. */
#include "summary.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/text.h"
#include "trace.h"

enum { SHOWN_RUNS = 8 };

/* The newest runs, in the order of their starts. */
static const char runs_sql[] =
    "SELECT * FROM (SELECT run_id, coalesce(program, '?'), pid, launches, kernels, gpu_time_ns, "
    "coalesce(devices, ''), simulated, lost, coalesce(lost_causes, ''), overhead_ratio, coalesce(level, "
    "'unknown'), coalesce(level_reason, ''), coalesce(recording_periods, ''), iif(cupti_note GLOB "
    "'OCCTRACE_*', cupti_note, ''), end_ns IS NULL, strftime('%H:%M:%S', coalesce(end_ns, last_start_ns, "
    "start_ns) / 1000000000, 'unixepoch', 'localtime'), start_ns FROM run WHERE session_id = ? ORDER BY "
    "start_ns DESC, run_id DESC LIMIT ?) ORDER BY start_ns, run_id";

enum column {
    RUN_ID,
    PROGRAM,
    PID,
    LAUNCHES,
    KERNELS,
    GPU_TIME,
    DEVICES,
    SIMULATED,
    LOST,
    LOST_CAUSES,
    OVERHEAD,
    LEVEL,
    LEVEL_REASON,
    PERIODS,
    NOTE,
    IS_OPEN,
    KNOWN_UNTIL
};

static const char *text(sqlite3_stmt *row, enum column column)
{
    return (const char *)sqlite3_column_text(row, (int)column);
}

static int64_t number(sqlite3_stmt *row, enum column column)
{
    return sqlite3_column_int64(row, (int)column);
}

static void print_recorded(sqlite3_stmt *row)
{
    char duration[32];
    const char *devices = text(row, DEVICES);
    int64_t launches = number(row, LAUNCHES), kernels = number(row, KERNELS);
    bool needs_mark = number(row, SIMULATED) && !strstr(devices, "simulated");
    trace_note("%.60s (pid %" PRId64 "): %" PRId64 " launch%s of %" PRId64 " kernel%s, %s on %.100s%s",
               text(row, PROGRAM), number(row, PID), launches, launches == 1 ? "" : "es", kernels,
               kernels == 1 ? "" : "s", occ_format_duration(number(row, GPU_TIME), duration, sizeof duration),
               devices[0] ? devices : "no device", needs_mark ? " - simulated" : "");
}

bool summary_is_alive(int64_t pid)
{
    return pid <= 0 || pid > INT32_MAX || kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

/* Text of a run's losses. A run without an end and without a living process has lost its daemon, or the
 * history cannot be written. Records that CUPTI held when a signal ended the program (at most one flush
 * interval) are not counted. */
static const char *format_lost(sqlite3_stmt *row, bool was_killed, char *buffer, size_t size)
{
    const char *causes = text(row, LOST_CAUSES);
    bool is_known = sqlite3_column_type(row, LOST) != SQLITE_NULL;
    bool is_cut = strncmp(text(row, LEVEL_REASON), OCC_STORE_CUT, strlen(OCC_STORE_CUT)) == 0;
    if (!is_known && number(row, IS_OPEN) && summary_is_alive(number(row, PID)))
        return "none so far";
    if (is_known || is_cut)
        (void)snprintf(buffer, size, "%s%" PRId64 "%s%.150s%s%s",
                       was_killed || strstr(causes, "unknown") ? "at least " : "", number(row, LOST),
                       causes[0] ? " (" : "", causes, causes[0] ? ")" : "",
                       was_killed ? " (killed: up to 1 s of launches)" : "");
    else
        (void)snprintf(buffer, size, "unknown, launches after %s are missing", text(row, KNOWN_UNTIL));
    return buffer;
}

static void print_losses(sqlite3_stmt *row, bool was_killed)
{
    char overhead[64] = "not measured", lost[256];
    if (sqlite3_column_type(row, OVERHEAD) != SQLITE_NULL)
        (void)snprintf(overhead, sizeof overhead, "%.2f%% of the program's CPU time",
                       100 * sqlite3_column_double(row, OVERHEAD));
    trace_note("  lost: %s; overhead: %s", format_lost(row, was_killed, lost, sizeof lost), overhead);
}

/* The meaning of a level, for a run without a reason. Keys are the values of run.level. */
static const char *level_text(const char *level)
{
    static const struct {
        const char *level, *text;
    } levels[] = {
        {"full", "launches, times and hardware counters"},
        {"gpm", "launches, times and device-level counters"},
        {"trace", "launches and times; occupancy is the model's"},
        {"configs", "launch configurations only"},
    };
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(levels[i].level, level) == 0)
            return levels[i].text;
    return "";
}

static void print_run(sqlite3_stmt *row, bool was_killed)
{
    const char *level = text(row, LEVEL), *reason = text(row, LEVEL_REASON);
    if (number(row, LAUNCHES) == 0 && number(row, LOST) == 0 && strcmp(level, "nothing") == 0 && reason[0]) {
        trace_note("%.60s (pid %" PRId64 "): nothing was recorded: %.300s", text(row, PROGRAM),
                   number(row, PID), reason);
        return;
    }
    print_recorded(row);
    print_losses(row, was_killed);
    const char *why = reason[0] ? reason : level_text(level);
    trace_note("  level: %s%s%.300s", level, why[0] ? ": " : "", why);
    if (text(row, PERIODS)[0])
        trace_note("  less recorded: %.500s", text(row, PERIODS));
    if (text(row, NOTE)[0])
        trace_note("  note: %.300s", text(row, NOTE));
}

/* Prints the next steps. The hint names a single run, to exclude earlier runs from the answer. */
static void print_hints(uint64_t runs, int64_t run_id, bool has_launches, const char *db)
{
    char run[32] = "";
    const char *option = db[0] ? " -d " : "";
    _cleanup_(occ_freep) char *quoted = db[0] ? occ_text_quote(db) : NULL;
    db = quoted ? quoted : db;
    if (runs > SHOWN_RUNS)
        trace_note("and %" PRIu64 " more processes: occq runs%s%s", runs - SHOWN_RUNS, option, db);
    if (runs == 1)
        (void)snprintf(run, sizeof run, " --run %" PRId64, run_id);
    if (has_launches)
        trace_note("next: occq top%s%s%s", run, option, db);
}

static int prepare(sqlite3 *db, const char *sql, const char *session, sqlite3_stmt **ret_statement,
                   struct occ_error *err)
{
    if (sqlite3_prepare_v2(db, sql, -1, ret_statement, NULL) != SQLITE_OK ||
        sqlite3_bind_text(*ret_statement, 1, session, -1, SQLITE_STATIC) != SQLITE_OK)
        return occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    return 0;
}

int summary_count(struct occ_store *store, const char *session, uint64_t *ret_runs, uint64_t *ret_open,
                  struct occ_error *err)
{
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = occ_store_sqlite(store);
    int status = prepare(db, "SELECT count(*), count(*) - count(end_ns) FROM run WHERE session_id = ?",
                         session, &statement, err);
    if (status == 0 && sqlite3_step(statement) != SQLITE_ROW)
        status = occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    if (status == 0) {
        *ret_runs = (uint64_t)sqlite3_column_int64(statement, 0);
        *ret_open = (uint64_t)sqlite3_column_int64(statement, 1);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

int summary_print(struct occ_store *store, const char *session, const char *db, bool was_killed,
                  struct occ_error *err)
{
    sqlite3_stmt *row = NULL;
    uint64_t runs = 0, open_runs = 0;
    int64_t run_id = 0;
    bool has_launches = false;
    int status = summary_count(store, session, &runs, &open_runs, err);
    if (status == 0)
        status = prepare(occ_store_sqlite(store), runs_sql, session, &row, err);
    if (status == 0)
        (void)sqlite3_bind_int(row, 2, SHOWN_RUNS);
    while (status == 0 && sqlite3_step(row) == SQLITE_ROW) {
        print_run(row, was_killed);
        run_id = number(row, RUN_ID);
        has_launches = has_launches || number(row, LAUNCHES) > 0;
    }
    (void)sqlite3_finalize(row);
    if (status == 0)
        print_hints(runs, run_id, has_launches, db);
    return status;
}
