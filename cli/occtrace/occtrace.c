/*
 * occtrace: runs a program under observation. It collects nothing itself: it finds or starts a daemon, starts the
 * program with the library preloaded, waits, and tells what the history got. Whatever fails on our side, the
 * program runs, and its exit status or signal becomes ours.
 *
 * One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "no_launches_reason.h"
#include "child.h"
#include "private_daemon.h"
#include "cli/command.h"
#include "store/store.h"
#include "summary.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/control.h"
#include "support/log.h"
#include "support/paths.h"
#include "support/text.h"
#include "trace_options.h"
#include "cli/usage.h"

/* As env(1), nohup(1) and the shells have it. */
enum { EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

enum {
    PING_PATIENCE_MS = 500,
    FLUSH_PATIENCE_MS = 10000,
    DAEMON_PATIENCE_MS = 5000,
};

struct trace {
    const struct trace_options *options;
    struct child_signals signals;
    char session[33];
    char *library; /* NULL: not observed */
    char *socket;  /* where the program reports */
    char *db;      /* the history, if it is known */
    bool is_private;
    struct private_daemon daemon;
    int64_t start_ns, end_ns;
    pid_t program;
    char program_path[PATH_MAX];
};

static void store_closep(struct occ_store **store)
{
    occ_store_close(*store);
}

/* Descriptors 0, 1 and 2 that the caller closed would otherwise be taken by files of ours. */
static void occupy_standard_descriptors(void)
{
    for (;;) {
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd > STDERR_FILENO)
            (void)close(fd);
        if (fd < 0 || fd > STDERR_FILENO)
            return;
    }
}

/* ---- what is needed before the program starts ---- */

static int make_session(struct trace *trace, struct occ_error *err)
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return occ_fail_errno(err, errno, "no random numbers");
    occ_hex_encode(bytes, sizeof bytes, trace->session);
    return 0;
}

/* $OCCTRACE_LIBRARY, else ../lib/occtrace beside bin: the same in the build tree and when installed. */
static int find_library(struct trace *trace, const char *self, struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    const char *given = secure_getenv("OCCTRACE_LIBRARY");
    int n = given && given[0] ? asprintf(&path, "%s", given)
                              : asprintf(&path, "%s/../lib/occtrace/libocctrace.so", self);
    if (n < 0) {
        path = NULL;
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    }
    trace->library = realpath(path, NULL);
    if (!trace->library || access(trace->library, R_OK) != 0)
        return occ_fail_errno(err, errno, "cannot find %s", path);
    return 0;
}

static int absolute_path(const char *path, char **ret_path, struct occ_error *err)
{
    _cleanup_(occ_freep) char *directory = path[0] == '/' ? NULL : getcwd(NULL, 0);
    if (path[0] != '/' && !directory)
        return occ_fail_errno(err, errno, "the current directory is not known");
    if (asprintf(ret_path, "%s%s%s", directory ? directory : "", directory ? "/" : "", path) < 0) {
        *ret_path = NULL;
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    }
    return 0;
}

/* One request to a daemon on a connection of its own. */
static int ask_daemon(const char *socket, const char *request, int patience_ms, char *answer, size_t size,
                      struct occ_error *err)
{
    _cleanup_(occ_closep) int fd = -1;
    int status = occ_control_connect(socket, &fd, err);
    return status == 0 ? occ_control_request(fd, request, patience_ms, answer, size, err) : status;
}

/* The value of a "key value" line of the daemon's status, malloc'ed, or NULL. */
static char *status_value(const char *socket, const char *key)
{
    char answer[OCC_CONTROL_BYTES + 1];
    size_t length = strlen(key);
    if (ask_daemon(socket, "status", PING_PATIENCE_MS, answer, sizeof answer, NULL) != 0)
        return NULL;
    for (const char *line = answer; *line;) {
        size_t end = strcspn(line, "\n");
        if (end > length && strncmp(line, key, length) == 0 && line[length] == ' ')
            return strndup(line + length + 1, end - length - 1);
        line += end + (line[end] == '\n');
    }
    return NULL;
}

static bool try_daemon(struct trace *trace, const char *socket)
{
    char answer[128];
    if (!socket || ask_daemon(socket, "ping", PING_PATIENCE_MS, answer, sizeof answer, NULL) != 0)
        return false;
    trace->db = status_value(socket, "database");
    trace->socket = strdup(socket);
    return trace->socket != NULL;
}

/* A daemon that runs for everybody, if one answers: the user's own, else the system's service. */
static bool find_daemon(struct trace *trace)
{
    _cleanup_(occ_freep) char *own = NULL;
    if (trace->options->socket)
        return try_daemon(trace, trace->options->socket);
    if (occ_path_default_socket(&own, NULL) != 0)
        return false;
    return try_daemon(trace, own) || try_daemon(trace, OCC_PATH_SYSTEM_SOCKET);
}

static int start_private_daemon(struct trace *trace, const char *self, struct occ_error *err)
{
    _cleanup_(occ_freep) char *program = NULL;
    int status = trace->options->common.db ? absolute_path(trace->options->common.db, &trace->db, err)
                                           : occ_path_default_history(&trace->db, err);
    if (status == 0)
        status = occ_path_make_parents(trace->db, err);
    if (status == 0 && asprintf(&program, "%s/occtraced", self) < 0) {
        program = NULL;
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    }
    /* a daemon that samples would have the counters that the program itself is to use */
    trace->daemon.counters = trace->options->exact ? "none" : trace->options->counters;
    if (status == 0)
        status = private_daemon_start(&trace->daemon, &trace->signals, program, trace->db, err);
    if (status != 0)
        return status;
    trace->is_private = true;
    trace->socket = strdup(trace->daemon.socket);
    return trace->socket ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
}

/* A daemon asked for with --socket may also come later: the program keeps trying. */
static int use_given_daemon(struct trace *trace, struct occ_error *err)
{
    if (find_daemon(trace))
        return 0;
    summary_say("no daemon answers at %s yet: the program reports as soon as one does",
                trace->options->socket);
    trace->socket = strdup(trace->options->socket);
    return trace->socket ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
}

static int prepare(struct trace *trace, struct occ_error *err)
{
    _cleanup_(occ_freep) char *self = NULL;
    int status = occ_path_of_self(&self, err);
    if (status == 0)
        status = make_session(trace, err);
    if (status == 0)
        status = find_library(trace, self, err);
    if (status != 0)
        return status;
    if (trace->options->socket)
        return use_given_daemon(trace, err);
    if (!trace->options->common.db && find_daemon(trace))
        return 0;
    return start_private_daemon(trace, self, err);
}

/* ---- the program ---- */

/* LD_PRELOAD divides at blanks and colons: a library below such a directory cannot be preloaded. The driver's own
 * variable takes it; children that clean their environment are then not seen. */
static bool can_be_preloaded(const char *library)
{
    return !strpbrk(library, " :\t\n");
}

static bool is_preloaded(const char *list, const char *library)
{
    size_t length = strlen(library);
    for (const char *at = list; at && (at = strstr(at, library)); at += length) {
        bool starts = at == list || strchr(" :", at[-1]);
        if (starts && (at[length] == '\0' || strchr(" :", at[length])))
            return true;
    }
    return false;
}

static char *preload_list(const char *library)
{
    const char *old = getenv("LD_PRELOAD");
    char *list = NULL;
    if (is_preloaded(old, library))
        return strdup(old);
    if (asprintf(&list, "%s%s%s", library, old && old[0] ? ":" : "", old ? old : "") < 0)
        return NULL;
    return list;
}

static int start_observed(struct trace *trace, char *const *argv, struct occ_error *err)
{
    _cleanup_(occ_freep) char *preload = preload_list(trace->library);
    const char *label = trace->options->label;
    if (!preload)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    bool normal = can_be_preloaded(trace->library);
    struct child_variable variables[] = {
        {normal ? "LD_PRELOAD" : "CUDA_INJECTION64_PATH", normal ? preload : trace->library},
        {"OCCTRACE_SOCKET", trace->socket},
        {"OCCTRACE_SESSION", trace->session},
        {NULL, NULL}, /* from here on those that are asked for */
        {NULL, NULL},
        {NULL, NULL},
    };
    size_t n = 3;
    if (trace->options->exact)
        variables[n++] = (struct child_variable){"OCCTRACE_EXACT", "1"};
    if (label)
        variables[n] = (struct child_variable){"OCCTRACE_LABEL", label};
    return child_start(&trace->signals, argv, variables, &trace->program, err);
}

static int start_plain(struct trace *trace, char *const *argv, struct occ_error *err)
{
    const struct child_variable none[] = {{NULL, NULL}};
    return child_start(&trace->signals, argv, none, &trace->program, err);
}

/* As a shell: 127 if there is no such file, else 126; 125 if it is our fault. */
static int exec_failure(const char *name, int status, const struct occ_error *err)
{
    if (status < 0) {
        summary_say("%s", err->message);
        return EXIT_OWN_FAILURE;
    }
    summary_say("%.200s: %s", name, strerror(status));
    return status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static void on_other_end(pid_t pid, void *trace_pointer)
{
    struct trace *trace = trace_pointer;
    if (trace->is_private && pid == trace->daemon.pid)
        private_daemon_restart(&trace->daemon, &trace->signals);
}

/* ---- after the program ---- */

/* True if the daemon says that everything of this session is in the history. */
static bool flush(struct trace *trace)
{
    char request[64], answer[128];
    struct occ_error err = OCC_ERROR_INIT;
    (void)snprintf(request, sizeof request, "flush %s", trace->session);
    if (ask_daemon(trace->socket, request, FLUSH_PATIENCE_MS, answer, sizeof answer, &err) == 0)
        return true;
    if (!child_hurried())
        summary_say("the history may lack the end of this run: %s", err.message);
    return false;
}

/* Programs that the program left behind keep the private daemon: it is not waited for then. */
static bool has_programs_left(const struct trace *trace)
{
    _cleanup_(occ_freep) char *text = status_value(trace->socket, "programs");
    uint64_t n = 0;
    return text && occ_parse_u64(text, 0, UINT64_MAX, &n, NULL) == 0 && n > 0;
}

static void release_private_daemon(struct trace *trace)
{
    bool stays = has_programs_left(trace);
    bool gone = private_daemon_release(&trace->daemon, stays || child_hurried() ? 0 : DAEMON_PATIENCE_MS);
    if (stays && !gone)
        summary_say("programs that this one started still run; their launches are still recorded");
}

/* The history names a run by its command line as a shell would show it. */
static char *join(char *const *argv)
{
    size_t size = 1;
    for (char *const *arg = argv; *arg; arg++)
        size += strlen(*arg) + 1;
    char *line = malloc(size);
    if (!line)
        return NULL;
    char *at = line;
    for (char *const *arg = argv; *arg; arg++) {
        size_t length = strlen(*arg);
        memcpy(at, *arg, length);
        at += length;
        *at++ = ' ';
    }
    at[at > line ? -1 : 0] = '\0';
    return line;
}

static int put_absence(struct trace *trace, struct occ_store *store, char *const *argv, const char *reason,
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
        .exe = trace->program_path[0] ? trace->program_path : NULL,
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

static void record_absence(struct trace *trace, char *const *argv, const char *reason)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    _cleanup_(store_closep) struct occ_store *store = NULL;
    if (occ_store_open(trace->db, &options, &store, &err) != 0 ||
        put_absence(trace, store, argv, reason, &err) != 0)
        summary_say("%s", err.message);
}

static int read_runs(const struct trace *trace, struct occ_runs *runs, struct occ_error *err)
{
    _cleanup_(store_closep) struct occ_store *store = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_READ};
    const struct occ_filter filter = {.session = trace->session};
    int status = occ_store_open(trace->db, &options, &store, err);
    return status == 0 ? occ_store_runs(store, &filter, runs, err) : status;
}

/* What the hint names: nothing if occq finds the history without. */
static const char *hinted_db(const struct trace *trace)
{
    _cleanup_(occ_freep) char *own = NULL;
    if (trace->options->common.db)
        return trace->options->common.db;
    return occ_path_default_history(&own, NULL) == 0 && strcmp(own, trace->db) == 0 ? NULL : trace->db;
}

/* `complete`: the history has all of this session; else a run that is not there proves nothing. */
static void summarise(struct trace *trace, char *const *argv, bool complete)
{
    struct occ_runs runs = {0};
    struct occ_error err = OCC_ERROR_INIT;
    bool quiet = trace->options->quiet;
    if (!trace->db || read_runs(trace, &runs, &err) != 0) {
        if (!quiet)
            summary_say("no summary: %s", trace->db ? err.message : "no daemon said where the history is");
        return;
    }
    if (runs.n == 0 && complete) {
        const char *reason = absence_reason(trace->program_path);
        if (!quiet)
            summary_print_absence(reason);
        if (trace->is_private)
            record_absence(trace, argv, reason);
    } else if (!quiet) {
        summary_print(&runs, hinted_db(trace));
    }
    occ_runs_free(&runs);
}

static void conclude(struct trace *trace, char *const *argv)
{
    child_signals_hurry(&trace->signals);
    bool complete = flush(trace);
    if (trace->is_private) {
        release_private_daemon(trace);
        if (!complete || trace->daemon.restarts > 0)
            private_daemon_show_log(&trace->daemon);
    }
    if (!child_hurried())
        summarise(trace, argv, complete);
}

static void trace_release(struct trace *trace)
{
    private_daemon_destroy(&trace->daemon);
    free(trace->library);
    free(trace->socket);
    free(trace->db);
}

/* Returns the program's wait status; or -1, and *ret_exit is what to exit with. */
static int run(struct trace *trace, char **argv, int *ret_exit)
{
    struct occ_error err = OCC_ERROR_INIT;
    child_signals_take(&trace->signals);
    bool observed = prepare(trace, &err) == 0;
    if (observed && trace->options->exact && !trace->options->quiet)
        summary_say("--exact: kernels run one after the other; their times are not those of a normal run");
    if (!observed)
        summary_say("%s; the program runs without being observed", err.message);
    trace->start_ns = occ_now_ns();
    absence_find_program(argv[0], trace->program_path, sizeof trace->program_path);
    int status = observed ? start_observed(trace, argv, &err) : start_plain(trace, argv, &err);
    if (status != 0) {
        *ret_exit = exec_failure(argv[0], status, &err);
        if (trace->is_private)
            (void)private_daemon_release(&trace->daemon, DAEMON_PATIENCE_MS);
        return -1;
    }
    int wait_status = child_wait(&trace->signals, trace->program, on_other_end, trace);
    trace->end_ns = occ_now_ns();
    if (observed)
        conclude(trace, argv);
    return wait_status;
}

static int own_usage(const struct occ_error *err)
{
    (void)cli_usage_error(&cli_occtrace, err);
    return CLI_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct trace_options options = {0};
    struct occ_error err = OCC_ERROR_INIT;
    int exit_status = EXIT_OWN_FAILURE;
    occupy_standard_descriptors();
    occ_log_init("occtrace");
    if (trace_options_parse(argc > 0 ? argv + 1 : argv, &options, &err) != 0)
        return own_usage(&err);
    if (options.common.help) {
        cli_print_help(stdout, &cli_occtrace, NULL);
        return cli_close_stdout("occtrace", CLI_EXIT_OK);
    }
    if (options.common.version) {
        (void)printf("occtrace %s\n", OCCTRACE_VERSION);
        return cli_close_stdout("occtrace", CLI_EXIT_OK);
    }
    _cleanup_(trace_release) struct trace trace = {.options = &options, .daemon = PRIVATE_DAEMON_INIT};
    int wait_status = run(&trace, options.common.operands, &exit_status);
    if (wait_status >= 0)
        child_end_like(wait_status);
    return exit_status;
}
