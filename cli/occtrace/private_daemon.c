/* The daemon of one run; see private_daemon.h. One thread. */
#include "private_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/text.h"
#include "trace.h"

enum { READY_PATIENCE_MS = 5000, LOG_SHOWN_BYTES = 4096 };

/* ---- the socket's directory ---- */

/* A long XDG_RUNTIME_DIR is not used, since sun_path is short. */
static int make_directory(struct private_daemon *daemon, struct occ_error *err)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    const char *bases[] = {runtime && runtime[0] == '/' && strlen(runtime) < 60 ? runtime : "/tmp", "/tmp"};
    for (size_t i = 0; i < 2; i++) {
        _cleanup_(occ_freep) char *name = NULL;
        if (occ_format_text(&name, err, "%s/occtrace-XXXXXX", bases[i]) != 0)
            return OCC_E_NO_MEMORY;
        if (mkdtemp(name)) {
            daemon->directory = occ_take(name);
            return 0;
        }
    }
    return occ_fail_errno(err, errno, "cannot make a directory in /tmp");
}

static int name_parts(struct private_daemon *daemon, const char *program, const char *db,
                      struct occ_error *err)
{
    int status = occ_format_text(&daemon->program, err, "%s", program);
    if (status == 0)
        status = occ_format_text(&daemon->db, err, "%s", db);
    return status == 0 ? occ_format_text(&daemon->socket, err, "%s/socket", daemon->directory) : status;
}

static void remove_directory(const struct private_daemon *daemon)
{
    if (daemon->socket)
        (void)unlink(daemon->socket);
    if (daemon->directory)
        (void)rmdir(daemon->directory);
}

/* ---- starting ---- */

/* Closes the descriptors that occtrace inherited, since they belong to the program: the daemon must not keep
 * a pipe open while another process waits for its end. */
static void become_daemon(const struct private_daemon *daemon, const struct child_signals *signals,
                          char *const *environment, int pair_end)
{
    enum { PAIR_FD = 3 };
    int log_fd = fcntl(daemon->log_fd, F_DUPFD, PAIR_FD + 1);
    bool moved = pair_end == PAIR_FD ? fcntl(pair_end, F_SETFD, 0) == 0 : dup2(pair_end, PAIR_FD) == PAIR_FD;
    /* opened after dup2(), which may have replaced this number */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (!moved || log_fd < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(log_fd, STDERR_FILENO) < 0)
        _exit(1);
    (void)close_range(PAIR_FD + 1, UINT_MAX, 0);
    (void)setsid();
    child_signals_give_back(signals);
    (void)execle(daemon->program, daemon->program, "--private", "3", "--db", daemon->db, "--socket",
                 daemon->socket, "--counters", daemon->counters ? daemon->counters : "auto", (char *)NULL,
                 environment);
    (void)dprintf(STDERR_FILENO, "cannot start %s: %s\n", daemon->program, strerror(errno));
    _exit(1);
}

static int spawn(struct private_daemon *daemon, const struct child_signals *signals, struct occ_error *err)
{
    /* libraries injected into the program must not be loaded into the daemon */
    static const char *const injected[] = {"LD_PRELOAD", "CUDA_INJECTION64_PATH", NULL};
    static const struct child_variable none[] = {{NULL, NULL}};
    int pair[2];
    _cleanup_(child_environment_freep) char **environment = child_environment(none, injected);
    if (!environment)
        return occ_no_memory(err);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return occ_fail_errno(err, errno, "cannot make a socket pair");
    pid_t pid = vfork();
    if (pid == 0)
        become_daemon(daemon, signals, environment, pair[1]);
    int why = errno;
    (void)close(pair[1]);
    if (pid < 0) {
        (void)close(pair[0]);
        return occ_fail_errno(err, why, "cannot start a process");
    }
    daemon->pid = pid;
    daemon->alive_fd = pair[0];
    return 0;
}

/* The last line of the daemon's log without the daemon's prefix, for an error message of occtrace. */
static void last_line(const struct private_daemon *daemon, char *buffer, size_t size)
{
    off_t end = lseek(daemon->log_fd, 0, SEEK_END);
    off_t from = end > (off_t)size - 1 ? end - (off_t)size + 1 : 0;
    ssize_t n = pread(daemon->log_fd, buffer, size - 1, from);
    buffer[n > 0 ? n : 0] = '\0';
    while (n > 0 && buffer[n - 1] == '\n')
        buffer[--n] = '\0';
    char *line = strrchr(buffer, '\n');
    if (line)
        memmove(buffer, line + 1, strlen(line + 1) + 1);
    static const char prefix[] = "occtraced: error: ";
    if (strncmp(buffer, prefix, sizeof prefix - 1) == 0)
        memmove(buffer, buffer + sizeof prefix - 1, strlen(buffer) - sizeof prefix + 2);
    occ_text_sanitise(buffer);
}

static int wait_ready(struct private_daemon *daemon, struct occ_error *err)
{
    char byte, line[300];
    struct pollfd ready = {.fd = daemon->alive_fd, .events = POLLIN};
    int n = poll(&ready, 1, READY_PATIENCE_MS);
    if (n == 0)
        return occ_fail(err, OCC_E_BUSY, "occtraced was not ready within %d s", READY_PATIENCE_MS / 1000);
    if (n > 0 && read(daemon->alive_fd, &byte, 1) == 1)
        return 0;
    last_line(daemon, line, sizeof line);
    return occ_fail(err, OCC_E_IO, "%s", line[0] ? line : "occtraced ended at once");
}

static void abandon(struct private_daemon *daemon)
{
    if (daemon->pid > 0) {
        (void)kill(daemon->pid, SIGKILL);
        (void)waitpid(daemon->pid, NULL, 0);
        daemon->pid = 0;
    }
    remove_directory(daemon);
    private_daemon_destroy(daemon);
}

int private_daemon_start(struct private_daemon *daemon, const struct child_signals *signals,
                         const char *program, const char *db, struct occ_error *err)
{
    int status = make_directory(daemon, err);
    if (status == 0)
        status = name_parts(daemon, program, db, err);
    if (status == 0 && (daemon->log_fd = memfd_create("occtraced-stderr", MFD_CLOEXEC)) < 0)
        status = occ_fail_errno(err, errno, "cannot make a memory file");
    if (status == 0)
        status = spawn(daemon, signals, err);
    if (status != 0)
        abandon(daemon);
    return status;
}

int private_daemon_await(struct private_daemon *daemon, struct occ_error *err)
{
    int status = wait_ready(daemon, err);
    if (status != 0)
        abandon(daemon);
    return status;
}

void private_daemon_restart(struct private_daemon *daemon, const struct child_signals *signals)
{
    daemon->pid = 0;
    (void)close(daemon->alive_fd);
    daemon->alive_fd = -1;
    if (daemon->restarts++ < PRIVATE_DAEMON_RESTARTS) {
        (void)spawn(daemon, signals, NULL);
        return;
    }
    char line[300];
    last_line(daemon, line, sizeof line);
    trace_note("%s; the program is no longer observed", line[0] ? line : "occtraced ended");
}

/* ---- ending ---- */

/* Returns true if the process has ended within the time; reaps it. */
static bool wait_end(pid_t pid, int patience_ms)
{
    if (waitpid(pid, NULL, WNOHANG) == pid)
        return true;
    _cleanup_(occ_closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    if (fd >= 0)
        (void)poll(&ended, 1, patience_ms);
    return waitpid(pid, NULL, WNOHANG) == pid;
}

bool private_daemon_release(struct private_daemon *daemon, int patience_ms)
{
    occ_close_fd(&daemon->alive_fd);
    if (daemon->pid > 0 && !wait_end(daemon->pid, patience_ms))
        return false;
    daemon->pid = 0;
    remove_directory(daemon);
    return true;
}

void private_daemon_show_log(const struct private_daemon *daemon)
{
    char text[LOG_SHOWN_BYTES + 1];
    ssize_t n = daemon->log_fd >= 0 ? pread(daemon->log_fd, text, sizeof text - 1, 0) : 0;
    for (ssize_t at = 0, length; at < n; at += length + 1) {
        char *line = text + at;
        length = 0;
        while (at + length < n && line[length] != '\n')
            length++;
        line[length] = '\0';
        occ_text_sanitise(line);
        (void)fprintf(stderr, "%s\n", line);
    }
}

void private_daemon_destroy(struct private_daemon *daemon)
{
    occ_close_fd(&daemon->alive_fd);
    occ_close_fd(&daemon->log_fd);
    free(daemon->directory);
    free(daemon->socket);
    free(daemon->db);
    free(daemon->program);
    *daemon = (struct private_daemon)PRIVATE_DAEMON_INIT;
}
