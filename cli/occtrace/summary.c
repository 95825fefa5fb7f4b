/* The summary; see summary.h. One thread. */
#include "summary.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/text.h"
#include "trace.h"
#include "verdict.h"

enum { SHOWN_RUNS = 8 };

/* The window in which the guest compares its overhead with the budget (injector/governor.h). */
#define BUDGET_WINDOW_NS INT64_C(10000000000)

/* The newest runs, in the order of their starts. */
static const char runs_sql[] =
    "SELECT * FROM (SELECT run_id, coalesce(program, '?'), pid, launches, lost, coalesce(lost_causes, ''), "
    "helper_cpu_ns, process_cpu_ns, coalesce(duration_ns, 0), coalesce(level, 'unknown'), "
    "coalesce(level_reason, ''), coalesce(recording_periods, ''), iif(cupti_note GLOB 'OCCTRACE_*', "
    "cupti_note, ''), end_ns IS NULL, strftime('%H:%M:%S', coalesce(end_ns, last_start_ns, start_ns) / "
    "1000000000, 'unixepoch', 'localtime'), start_ns FROM run WHERE session_id = ? ORDER BY start_ns DESC, "
    "run_id DESC LIMIT ?) ORDER BY start_ns, run_id";

enum column {
    RUN_ID,
    PROGRAM,
    PID,
    LAUNCHES,
    LOST,
    LOST_CAUSES,
    HELPER_CPU,
    PROCESS_CPU,
    DURATION,
    LEVEL,
    LEVEL_REASON,
    PERIODS,
    NOTE,
    IS_OPEN,
    KNOWN_UNTIL
};

/* Sums over the printed runs. */
struct session {
    int64_t run_id; /* of the last run */
    bool has_launches, is_short;
    double helper_ns, process_ns;
    char unmeasured[256]; /* the first reason for missing counters */
};

static const char *text(sqlite3_stmt *row, enum column column)
{
    return (const char *)sqlite3_column_text(row, (int)column);
}

static int64_t number(sqlite3_stmt *row, enum column column)
{
    return sqlite3_column_int64(row, (int)column);
}

bool summary_is_alive(int64_t pid)
{
    return pid <= 0 || pid > INT32_MAX || kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

static bool is_cut(sqlite3_stmt *row)
{
    return strncmp(text(row, LEVEL_REASON), OCC_STORE_CUT, strlen(OCC_STORE_CUT)) == 0;
}

/* Prints an unknown number of losses. Records that CUPTI held when the program was killed (at most one flush
 * interval) are not counted. */
static void format_unknown(sqlite3_stmt *row, bool was_killed, char *buffer, size_t size)
{
    const char *why = was_killed    ? "; killed, so that up to the last second is missing"
                      : is_cut(row) ? "; it ended before its last records were delivered"
                                    : "";
    if (number(row, LOST) > 0)
        (void)snprintf(buffer, size, "at least %" PRId64 " lost (%.150s)%s", number(row, LOST),
                       text(row, LOST_CAUSES), why);
    else
        (void)snprintf(buffer, size, "lost: unknown%s", why);
}

/* Prints a run's losses. A run without an end and without a living process has lost its daemon, or the
 * history cannot be written. */
static const char *format_lost(sqlite3_stmt *row, bool was_killed, char *buffer, size_t size)
{
    bool is_known = sqlite3_column_type(row, LOST) != SQLITE_NULL;
    if (!is_known && number(row, IS_OPEN) && summary_is_alive(number(row, PID)))
        return "none lost so far";
    if (!is_known && !is_cut(row))
        (void)snprintf(buffer, size, "lost: unknown, launches after %s are missing", text(row, KNOWN_UNTIL));
    else if (was_killed || !is_known || strstr(text(row, LOST_CAUSES), "unknown"))
        format_unknown(row, was_killed, buffer, size);
    else if (number(row, LOST) > 0)
        (void)snprintf(buffer, size, "%" PRId64 " lost (%.150s)", number(row, LOST), text(row, LOST_CAUSES));
    else
        return "none lost";
    return buffer;
}

/* The meaning of a level below the full one. Keys are the values of run.level. */
static const char *level_text(const char *level)
{
    static const struct {
        const char *level, *text;
    } levels[] = {
        {"full", "launches, times and hardware counters"},
        {"gpm", "launches, times and device-level counters"},
        {"trace", "launches and times"},
        {"configs", "launch configurations only"},
        {"nothing", "nothing"},
    };
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(levels[i].level, level) == 0)
            return levels[i].text;
    return level;
}

/* Returns the reason without the part that format_lost() prints. */
static const char *reason_of(sqlite3_stmt *row)
{
    const char *reason = text(row, LEVEL_REASON);
    if (!is_cut(row))
        return reason;
    reason += strcspn(reason, ";");
    return reason + strspn(reason, "; ");
}

/* Takes a reason for missing counters: "achieved occupancy is not measured: REASON: details". Returns false
 * for another reason. */
static bool take_unmeasured(const char *reason, struct session *session)
{
    static const char *const beginnings[] = {"achieved occupancy is not measured: ",
                                             "achieved occupancy is no longer measured: "};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        size_t n = strlen(beginnings[i]);
        if (strncmp(reason, beginnings[i], n) != 0)
            continue;
        const char *details = strstr(reason + n, ": ");
        if (!session->unmeasured[0])
            (void)snprintf(session->unmeasured, sizeof session->unmeasured, "%.*s",
                           details ? (int)(details - reason - (ptrdiff_t)n) : INT32_MAX, reason + n);
        return true;
    }
    return false;
}

static void print_level(sqlite3_stmt *row, struct session *session)
{
    const char *level = text(row, LEVEL), *reason = reason_of(row);
    bool is_usual = strcmp(level, "full") == 0 || strcmp(level, "trace") == 0;
    if (take_unmeasured(reason, session) || (is_usual && !reason[0]))
        return;
    summary_line("  recorded: %s%s%.300s", level_text(level), reason[0] ? "; " : "", reason);
}

static void add_run(sqlite3_stmt *row, struct session *session)
{
    session->run_id = number(row, RUN_ID);
    session->has_launches |= number(row, LAUNCHES) > 0;
    session->is_short &= number(row, DURATION) < BUDGET_WINDOW_NS;
    if (sqlite3_column_type(row, HELPER_CPU) != SQLITE_NULL && number(row, PROCESS_CPU) > 0) {
        session->helper_ns += (double)number(row, HELPER_CPU);
        session->process_ns += (double)number(row, PROCESS_CPU);
    }
}

static void print_run(sqlite3_stmt *row, bool was_killed, struct session *session)
{
    const char *reason = text(row, LEVEL_REASON);
    char lost[256];
    int64_t launches = number(row, LAUNCHES);
    add_run(row, session);
    if (launches == 0 && number(row, LOST) == 0 && strcmp(text(row, LEVEL), "nothing") == 0 && reason[0]) {
        summary_line("occtrace: %.60s (pid %" PRId64 "): nothing was recorded: %.300s", text(row, PROGRAM),
                     number(row, PID), reason);
        return;
    }
    summary_line("occtrace: run %" PRId64 ", %.60s (pid %" PRId64 "): %" PRId64 " launch%s, %s",
                 number(row, RUN_ID), text(row, PROGRAM), number(row, PID), launches,
                 launches == 1 ? "" : "es", format_lost(row, was_killed, lost, sizeof lost));
    print_level(row, session);
    if (text(row, PERIODS)[0])
        summary_line("  less recorded: %.500s", text(row, PERIODS));
    if (text(row, NOTE)[0])
        summary_line("  note: %.300s", text(row, NOTE));
}

static void print_more(uint64_t runs, const char *db)
{
    _cleanup_(occ_freep) char *quoted = db[0] ? occ_text_quote(db) : NULL;
    if (runs > SHOWN_RUNS)
        summary_line("  and %" PRIu64 " more processes: occq runs%s%s", runs - SHOWN_RUNS,
                     quoted ? " -d " : "", quoted ? quoted : "");
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

int summary_print(struct occ_store *store, const char *session_id, const char *db, bool was_killed,
                  struct occ_error *err)
{
    sqlite3_stmt *row = NULL;
    uint64_t runs = 0, open_runs = 0;
    struct session session = {.is_short = true};
    int status = summary_count(store, session_id, &runs, &open_runs, err);
    if (status == 0)
        status = prepare(occ_store_sqlite(store), runs_sql, session_id, &row, err);
    if (status == 0)
        (void)sqlite3_bind_int(row, 2, SHOWN_RUNS);
    while (status == 0 && sqlite3_step(row) == SQLITE_ROW)
        print_run(row, was_killed, &session);
    (void)sqlite3_finalize(row);
    if (status == 0)
        print_more(runs, db);
    if (status != 0 || (!session.has_launches && runs <= SHOWN_RUNS))
        return status; /* runs that are not printed may have launches */
    return verdict_print(store,
                         &(struct verdict_runs){.session = session_id,
                                                .run = runs == 1 ? session.run_id : 0,
                                                .db = db,
                                                .unmeasured = session.unmeasured,
                                                .overhead = session.helper_ns / session.process_ns,
                                                .is_short = session.is_short},
                         err);
}
