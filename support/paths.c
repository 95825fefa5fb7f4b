/* Paths by the XDG base directory rules. No state; any thread. */
#include "paths.h"
#include "cleanup.h"
#include "control.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* maximum delay of the caller by a daemon that does not answer */
#define DAEMON_PATIENCE_MS 500

/* The value of an environment variable with an absolute path, else NULL: the XDG rules ignore relative
 * paths. */
static const char *absolute_env(const char *name)
{
    const char *value = secure_getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

/* $OCCTRACE_DB. *ret_path stays NULL if it is unset or empty. */
static int named_history(char **ret_path, struct occ_error *err)
{
    const char *path = secure_getenv("OCCTRACE_DB");
    if (!path || !path[0])
        return 0;
    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return occ_fail(err, OCC_E_INVALID, "OCCTRACE_DB: '%.64s' is not an absolute path", path);
    int status = occ_path_check_parent(path, err);
    return status == 0 ? occ_format_text(ret_path, err, "%s", path) : occ_error_prefix(err, "OCCTRACE_DB");
}

int occ_path_default_history(char **ret_path, struct occ_error *err)
{
    char *named = NULL;
    int failed = named_history(&named, err);
    if (failed != 0 || named) {
        *ret_path = named;
        return failed;
    }
    const char *state = absolute_env("XDG_STATE_HOME");
    const char *home = absolute_env("HOME");
    const struct passwd *user = state || home ? NULL : getpwuid(geteuid());
    if (user && user->pw_dir[0] == '/')
        home = user->pw_dir;
    if (state)
        return occ_format_text(ret_path, err, "%s/occtrace/history.db", state);
    if (home)
        return occ_format_text(ret_path, err, "%s/.local/state/occtrace/history.db", home);
    return occ_fail(err, OCC_E_NOT_FOUND,
                    "neither XDG_STATE_HOME nor HOME is set, and the user database names no home directory: "
                    "name the history with --db FILE");
}

int occ_path_daemon_history(char **ret_path, struct occ_error *err)
{
    if (geteuid() == 0 && !absolute_env("HOME") && !absolute_env("XDG_STATE_HOME"))
        return occ_format_text(ret_path, err, OCC_PATH_SERVICE_DIRECTORY "/history.db");
    return occ_path_default_history(ret_path, err);
}

/* Time of the last write to a history (file or write-ahead log); -1: no history. */
static int64_t written_ns(const char *path)
{
    static const char *const suffixes[] = {"", "-wal"};
    int64_t last_ns = -1;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char file[PATH_MAX];
        struct stat status;
        (void)snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        if (stat(file, &status) == 0 &&
            status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec > last_ns)
            last_ns = status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec;
    }
    return last_ns;
}

/* Asks the user's own daemon, else the service, for the path of the caller's history. malloc'ed; NULL: no
 * daemon answers, or the caller may not read the history. */
static char *ask_daemon(void)
{
    _cleanup_(occ_freep) char *path = NULL;
    _cleanup_(occ_closep) int fd = -1;
    char answer[OCC_CONTROL_BYTES + 1];
    if (occ_path_connect_default(&fd, NULL) != 0 ||
        occ_control_request(fd, "status", DAEMON_PATIENCE_MS, answer, sizeof answer, NULL) != 0)
        return NULL;
    path = occ_control_value(answer, "database");
    return path && access(path, R_OK) == 0 ? occ_take(path) : NULL;
}

/* Looks into the service's directory too, since the service may be stopped. */
int occ_path_own_history(char **ret_path, struct occ_error *err)
{
    const char *chosen = secure_getenv("OCCTRACE_DB");
    if (chosen && chosen[0])
        return occ_path_default_history(ret_path, err);
    _cleanup_(occ_freep) char *service = NULL;
    _cleanup_(occ_freep) char *own = NULL;
    _cleanup_(occ_freep) char *told = ask_daemon();
    char **const others[] = {&service, &told};
    char **newest = &own;
    int status =
        occ_format_text(&service, err, OCC_PATH_SERVICE_DIRECTORY "/u%u/history.db", (unsigned int)getuid());
    if (status != 0)
        return status;
    int failed = occ_path_default_history(&own, err);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (*others[i] && written_ns(*others[i]) > (*newest ? written_ns(*newest) : -1))
            newest = others[i];
    if (!*newest)
        return failed;
    *ret_path = *newest;
    *newest = NULL;
    return 0;
}

int occ_path_default_socket(char **ret_path, struct occ_error *err)
{
    const char *given = absolute_env("OCCTRACE_SOCKET");
    const char *runtime = absolute_env("XDG_RUNTIME_DIR");
    if (given)
        return occ_format_text(ret_path, err, "%s", given);
    if (runtime)
        return occ_format_text(ret_path, err, "%s/occtrace/occtraced.sock", runtime);
    if (geteuid() == 0)
        return occ_format_text(ret_path, err, OCC_PATH_SYSTEM_SOCKET);
    return occ_format_text(ret_path, err, "/tmp/occtrace-%u/occtraced.sock", (unsigned int)geteuid());
}

int occ_path_connect(const char *socket, int *ret_fd, struct occ_error *err)
{
    const char *given = absolute_env("OCCTRACE_SOCKET");
    return given && strcmp(given, socket) == 0 ? occ_control_connect(socket, ret_fd, err)
                                               : occ_control_connect_trusted(socket, ret_fd, err);
}

int occ_path_connect_default(int *ret_fd, struct occ_error *err)
{
    _cleanup_(occ_freep) char *own = NULL;
    int status = occ_path_default_socket(&own, err);
    if (status == 0)
        status = occ_path_connect(own, ret_fd, err);
    bool is_absent = status == OCC_E_NOT_FOUND || status == OCC_E_DENIED;
    return is_absent && occ_path_connect(OCC_PATH_SYSTEM_SOCKET, ret_fd, NULL) == 0 ? 0 : status;
}

int occ_path_check_parent(const char *file, struct occ_error *err)
{
    const char *slash = strrchr(file, '/');
    _cleanup_(occ_freep) char *directory = slash ? strndup(file, (size_t)(slash - file) + 1) : NULL;
    if (slash && !directory)
        return occ_no_memory(err);
    if (slash && access(directory, F_OK) != 0)
        return occ_fail(err, OCC_E_NOT_FOUND, "%s: %s", directory, strerror(errno));
    return 0;
}

/* chmod sets the mode independently of the umask */
static int make_directory(const char *path, mode_t mode, struct occ_error *err)
{
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST ? 0 : occ_fail_errno(err, errno, "cannot create the directory %s", path);
    return mode == 0700 || chmod(path, mode) == 0
               ? 0
               : occ_fail_errno(err, errno, "cannot set the mode of the directory %s", path);
}

static int make_parents(const char *file, mode_t mode, struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = strdup(file);
    int status = path ? 0 : occ_no_memory(err);
    for (char *slash = path ? strchr(path + 1, '/') : NULL; slash && status == 0;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = make_directory(path, mode, err);
        *slash = '/';
    }
    return status;
}

int occ_path_make_parents(const char *file, struct occ_error *err)
{
    return make_parents(file, 0700, err);
}

int occ_path_make_passable_parents(const char *file, struct occ_error *err)
{
    return make_parents(file, 0711, err);
}

int occ_path_of_self(char **ret_directory, struct occ_error *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return occ_fail_errno(err, errno, "cannot read /proc/self/exe");
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return occ_fail(err, OCC_E_NOT_FOUND, "the path of this program is unknown");
    *slash = '\0';
    return occ_format_text(ret_directory, err, "%s", path);
}

int occ_path_settings(char **ret_directory, struct occ_error *err)
{
    _cleanup_(occ_freep) char *self = NULL;
    int status = occ_path_of_self(&self, err);
    if (status != 0)
        return status;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    return occ_format_text(ret_directory, err, "%s/etc/occtrace", strcmp(self, "/usr") == 0 ? "" : self);
}

int occ_path_secret(const char *setting, const char *credential, char **ret_path, struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    const char *directory = secure_getenv("CREDENTIALS_DIRECTORY");
    *ret_path = NULL;
    int rc = directory ? occ_format_text(&path, err, "%s/%s", directory, credential) : 0;
    if (rc == 0 && path && access(path, F_OK) == 0)
        *ret_path = occ_take(path);
    else if (rc == 0 && setting[0])
        rc = occ_format_text(ret_path, err, "%s", setting);
    return rc;
}

int occ_path_read(const char *path, size_t max, char **ret_text, size_t *ret_bytes, struct occ_error *err)
{
    /* O_NONBLOCK: a FIFO must not hang the daemon; it is refused below */
    _cleanup_(occ_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return occ_fail_errno(err, errno, "cannot read %s", path);
    if (!S_ISREG(status.st_mode))
        return occ_fail(err, OCC_E_INVALID, "%s: not a regular file", path);
    _cleanup_(occ_freep) char *text = malloc(max + 1);
    size_t used = 0;
    ssize_t n = 0;
    if (!text)
        return occ_no_memory(err);
    while (used < max && (n = read(fd, text + used, max - used)) > 0)
        used += (size_t)n;
    if (n < 0)
        return occ_fail_errno(err, errno, "cannot read %s", path);
    text[used] = '\0';
    *ret_text = occ_take(text);
    *ret_bytes = used;
    return 0;
}
