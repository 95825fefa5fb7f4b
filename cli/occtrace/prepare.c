/* Before the program starts: its session, the libraries for it, a daemon; see trace.h. One thread. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/paths.h"
#include "support/text.h"
#include "trace.h"

enum { PING_PATIENCE_MS = 500 };

static int make_session(struct trace *trace, struct occ_error *err)
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return occ_fail_errno(err, errno, "no random numbers");
    occ_hex_encode(bytes, sizeof bytes, trace->session);
    return 0;
}

/* A file in ../lib/occtrace beside bin; the build tree has the same layout as an installation. */
static int find_library(const char *self, const char *name, char **ret_path, struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    if (occ_format_text(&path, err, "%s/../lib/occtrace/%s", self, name) != 0)
        return OCC_E_NO_MEMORY;
    *ret_path = realpath(path, NULL);
    if (!*ret_path || access(*ret_path, R_OK) != 0)
        return occ_fail_errno(err, errno, "cannot find %s", path);
    return 0;
}

/* LD_PRELOAD is split at blanks and colons, so a file in a directory with such a name cannot be preloaded. */
static int find_libraries(struct trace *trace, const char *self, struct occ_error *err)
{
    const char *mode = trace->options->preload;
    int status = find_library(self, "libocctrace.so", &trace->library, err);
    if (status == 0 && trace->options->nvtx)
        status = find_library(self, "libocctrace-nvtx.so", &trace->nvtx, err);
    if (status == 0 && !strpbrk(trace->library, " :\t\n") && !(mode && strcmp(mode, "none") == 0))
        status = find_library(self, "libocctrace-preload.so", &trace->preload, err);
    return status;
}

static int absolute_path(const char *path, char **ret_path, struct occ_error *err)
{
    _cleanup_(occ_freep) char *directory = path[0] == '/' ? NULL : getcwd(NULL, 0);
    if (path[0] != '/' && !directory)
        return occ_fail_errno(err, errno, "the current directory is not known");
    return occ_format_text(ret_path, err, "%s%s%s", directory ? directory : "", directory ? "/" : "", path);
}

static bool try_daemon(struct trace *trace, const char *socket)
{
    char answer[128];
    struct occ_error err = OCC_ERROR_INIT;
    trace->socket = strdup(socket);
    if (trace->socket &&
        trace_ask_daemon(trace, "ping", PING_PATIENCE_MS, answer, sizeof answer, &err) == 0) {
        trace->db = trace_daemon_value(trace, "database");
        return true;
    }
    if (err.code == OCC_E_DENIED)
        trace_note("%s", err.message);
    free(trace->socket);
    trace->socket = NULL;
    return false;
}

/* Uses a running daemon if one answers: the user's own, else the system's service. */
static bool find_daemon(struct trace *trace)
{
    _cleanup_(occ_freep) char *own = NULL;
    if (occ_path_default_socket(&own, NULL) != 0)
        return false;
    return try_daemon(trace, own) || try_daemon(trace, OCC_PATH_SYSTEM_SOCKET);
}

static int start_private_daemon(struct trace *trace, const char *self, struct occ_error *err)
{
    _cleanup_(occ_freep) char *program = NULL;
    const char *db = trace->options->common.db;
    /* with --exact the program itself uses the counters */
    trace->daemon.counters = trace->options->exact ? "none" : trace->options->counters;
    if ((db ? absolute_path(db, &trace->db, err) : occ_path_default_history(&trace->db, err)) != 0 ||
        occ_path_make_parents(trace->db, err) != 0 ||
        occ_format_text(&program, err, "%s/occtraced", self) != 0 ||
        private_daemon_start(&trace->daemon, &trace->signals, program, trace->db, err) != 0)
        return err->code;
    trace->is_private = true;
    return occ_format_text(&trace->socket, err, "%s", trace->daemon.socket);
}

/* Bytes of a Unix socket's path (unix(7)). The guest uses no longer path, and no other daemon instead. */
#define SOCKET_PATH_MAX_BYTES 107

/* The daemon of --socket may start later, since the program keeps trying. The program gets an absolute path,
 * because it may change its directory. */
static int use_given_daemon(struct trace *trace, const char *given, struct occ_error *err)
{
    char here[PATH_MAX] = "";
    _cleanup_(occ_freep) char *socket = NULL;
    if (given[0] != '/' && !getcwd(here, sizeof here))
        return occ_fail_errno(err, errno, "--socket: cannot find the current directory");
    int status = occ_format_text(&socket, err, "%s%s%s", here, here[0] ? "/" : "", given);
    if (status != 0)
        return status;
    if (strlen(socket) > SOCKET_PATH_MAX_BYTES)
        return occ_fail(err, OCC_E_INVALID, "--socket: longer than %d bytes: %s", SOCKET_PATH_MAX_BYTES,
                        socket);
    if (try_daemon(trace, socket))
        return 0;
    trace_note("no daemon answers at %s yet: the program reports as soon as one does", socket);
    return occ_format_text(&trace->socket, err, "%s", socket);
}

int trace_await_daemon(struct trace *trace, struct occ_error *err)
{
    int status = trace->is_private ? private_daemon_await(&trace->daemon, err) : 0;
    trace->is_private &= status == 0;
    return status;
}

int trace_prepare(struct trace *trace, struct occ_error *err)
{
    _cleanup_(occ_freep) char *self = NULL;
    if (occ_path_of_self(&self, err) != 0 || make_session(trace, err) != 0 ||
        find_libraries(trace, self, err) != 0)
        return err->code;
    if (trace->options->socket)
        return use_given_daemon(trace, trace->options->socket, err);
    if (!trace->options->common.db && find_daemon(trace))
        return 0;
    return start_private_daemon(trace, self, err);
}
