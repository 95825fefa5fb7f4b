/* After the program's end: waits for the whole history, prints the summary; see trace.h. One thread. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "summary.h"
#include "support/cleanup.h"
#include "support/control.h"
#include "support/paths.h"
#include "support/text.h"
#include "trace.h"
#include "verdict.h"

enum { FLUSH_PATIENCE_MS = 10000, DAEMON_PATIENCE_MS = 5000 };

OCC_CLEANUP(occ_store, occ_store_close)

/* ---- the daemon ---- */

/* Returns true if the history has all launches of this session. */
static bool flush(const struct trace *trace)
{
    char request[64], answer[128];
    struct occ_error err = OCC_ERROR_INIT;
    (void)snprintf(request, sizeof request, "flush %s", trace->session);
    if (trace_ask_daemon(trace, request, FLUSH_PATIENCE_MS, answer, sizeof answer, &err) == 0)
        return true;
    if (!child_interrupted())
        trace_note("the history may lack the end of this run: %s", err.message);
    return false;
}

static bool has_daemon(const struct trace *trace)
{
    _cleanup_(occ_freep) char *version = trace_daemon_value(trace, "version");
    return version != NULL;
}

/* True if processes started by the program still use the private daemon; occtrace does not wait for the
 * daemon then. */
static bool has_programs_left(const struct trace *trace)
{
    _cleanup_(occ_freep) char *text = trace_daemon_value(trace, "programs");
    uint64_t n = 0;
    return text && occ_parse_u64(text, 0, UINT64_MAX, &n, NULL) == 0 && n > 0;
}

static void release_private_daemon(struct trace *trace)
{
    _cleanup_(occ_freep) char *stalled = trace_daemon_value(trace, "stalled");
    bool stays = has_programs_left(trace);
    int patience_ms = stays || child_interrupted() ? 0 : DAEMON_PATIENCE_MS;
    if (private_daemon_release(&trace->daemon, patience_ms) || !stays)
        return;
    if (stalled && strcmp(stalled, "yes") == 0)
        trace_note("launches that the history lacks are lost, unless it can be written within %d s",
                   OCC_CONTROL_PRIVATE_PATIENCE_S);
    else
        trace_note("programs that this one started still run; their launches are still recorded");
}

/* ---- runs of an ended daemon ---- */

static bool is_alive(int64_t pid, int64_t start_ns)
{
    (void)start_ns; /* processes of this session have not been replaced: the pid suffices */
    return summary_is_alive(pid);
}

/* Ends runs of this session without a daemon that could end them; their last launches are unknown. If this
 * user cannot write the history, the next daemon ends them, and the summary reports the loss. */
static void end_lost_runs(const struct trace *trace)
{
    char hostname[256] = "";
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    (void)gethostname(hostname, sizeof hostname - 1);
    if (occ_store_open(trace->db, &options, &store, NULL) == 0)
        (void)occ_store_end_lost_runs(store, hostname, trace->session, is_alive, NULL, NULL);
}

/* ---- a run without launches ---- */

/* The words of the command line, separated by blanks; NULL: out of memory. */
static char *join(char *const *argv)
{
    size_t size = 1;
    for (char *const *arg = argv; *arg; arg++)
        size += strlen(*arg) + 1;
    char *line = malloc(size), *at = line;
    for (; line && *argv; argv++)
        at += sprintf(at, "%s%s", at > line ? " " : "", *argv);
    return line;
}

static int put_run(const struct trace *trace, struct occ_store *store, char *const *argv, const char *reason,
                   struct occ_error *err)
{
    _cleanup_(occ_freep) char *cmdline = join(argv);
    _cleanup_(occ_freep) char *cwd = getcwd(NULL, 0);
    char hostname[256] = "";
    int64_t id = 0;
    const struct passwd *user = getpwuid(getuid());
    (void)gethostname(hostname, sizeof hostname - 1);
    struct occ_run run = {
        .pid = trace->program,
        .uid = getuid(),
        .start_ns = trace->start_ns,
        .end_ns = trace->end_ns,
        .hostname = hostname[0] ? hostname : NULL,
        .exe = trace->executable.path[0] ? trace->executable.path : NULL,
        .cmdline = cmdline,
        .cwd = cwd,
        .user = user ? user->pw_name : NULL,
        .label = trace->options->label,
        .session = trace->session,
        .level = "nothing",
        .level_reason = reason,
    };
    if (getrandom(run.uuid, sizeof run.uuid, 0) != (ssize_t)sizeof run.uuid)
        return occ_fail_errno(err, errno, "no random numbers");
    int status = occ_store_put_run(store, &run, &id, err);
    return status == 0 ? occ_store_commit(store, err) : status;
}

static void record_no_launches(const struct trace *trace, char *const *argv, const char *reason)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    if (occ_store_open(trace->db, &options, &store, &err) != 0 ||
        put_run(trace, store, argv, reason, &err) != 0)
        trace_note("%s", err.message);
}

/* ---- the summary ---- */

/* The history as printed in the hint: "" if occq finds it by default. */
static const char *hinted_db(const struct trace *trace)
{
    _cleanup_(occ_freep) char *own = NULL;
    if (trace->options->common.db)
        return trace->options->common.db;
    return occ_path_default_history(&own, NULL) == 0 && strcmp(own, trace->db) == 0 ? "" : trace->db;
}

/* `is_complete`: the history has all launches of this session; if false, a missing run may still arrive. */
static int summarise(const struct trace *trace, char *const *argv, bool is_complete, bool was_killed,
                     struct occ_error *err)
{
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_READ};
    bool is_quiet = trace->options->quiet;
    uint64_t runs = 0, open_runs = 0;
    if (!trace->db)
        return occ_fail(err, OCC_E_NOT_FOUND, "the daemon did not report where the history is");
    int status = occ_store_open(trace->db, &options, &store, err);
    if (status == 0)
        status = summary_count(store, trace->session, &runs, &open_runs, err);
    if (status == 0 && open_runs > 0 && (is_complete || !has_daemon(trace)))
        end_lost_runs(trace);
    if (status == 0 && runs == 0 && is_complete) {
        const char *reason = program_no_launches_reason(&trace->executable);
        if (!is_quiet)
            summary_line("occtrace: nothing was recorded: %s", reason);
        if (trace->is_private)
            record_no_launches(trace, argv, reason);
    } else if (status == 0 && !is_quiet) {
        status = summary_print(store, trace->session, hinted_db(trace), was_killed, err);
    }
    return status;
}

void trace_conclude(struct trace *trace, char *const *argv, int wait_status)
{
    child_signals_allow_interrupt(&trace->signals);
    bool is_complete = flush(trace);
    if (trace->is_private) {
        release_private_daemon(trace);
        if (!is_complete || trace->daemon.restarts > 0)
            private_daemon_show_log(&trace->daemon);
    }
    struct occ_error err = OCC_ERROR_INIT;
    if (!child_interrupted() && summarise(trace, argv, is_complete, WIFSIGNALED(wait_status), &err) != 0 &&
        !trace->options->quiet)
        trace_note("no summary: %s", err.message);
}
