/*
 * occtrace: runs a program under observation. occtrace does not collect data: it finds or starts a daemon,
 * starts the program with the library preloaded, waits, and prints a summary of the history. If occtrace
 * fails, the program runs all the same, and its exit status or signal becomes occtrace's.
 *
 * One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complete.h"
#include "cli/usage.h"
#include "support/cleanup.h"
#include "support/text.h"
#include "support/clock.h"
#include "support/log.h"
#include "trace.h"

/* The exit statuses of env(1), nohup(1) and shells. */
enum { EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

enum { DAEMON_PATIENCE_MS = 5000, MS_NS = 1000000 };

/* Opens descriptors 0, 1 and 2 if the caller closed them, so that later files do not get these numbers. */
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

/* ---- the program ---- */

/* The number as the value of an environment variable; NULL for 0, which means not given. */
static const char *print_number(int64_t number, char text[32])
{
    (void)snprintf(text, 32, "%" PRId64, number);
    return number ? text : NULL;
}

static int start_observed(struct trace *trace, char *const *argv, struct occ_error *err)
{
    bool preloads = trace->preload && trace->executable.takes_preload;
    _cleanup_(occ_freep) char *list = NULL;
    const char *old = getenv("LD_PRELOAD");
    const struct trace_options *options = trace->options;
    char delay[32], duration[32], launches[32];
    const char *all = options->preload && strcmp(options->preload, "all") == 0 ? "1" : NULL;
    const char *library = preloads || getenv("CUDA_INJECTION64_PATH") ? NULL : trace->library;
    /* last in the list, since some libraries must be first */
    if (preloads &&
        occ_format_text(&list, err, "%s%s%s", old ? old : "", old && old[0] ? ":" : "", trace->preload) != 0)
        return OCC_E_NO_MEMORY;
    const struct child_variable variables[] = {
        {"LD_PRELOAD", list},
        {"CUDA_INJECTION64_PATH", library},
        {"OCCTRACE_SOCKET", trace->socket},
        {"OCCTRACE_SESSION", trace->session},
        {"OCCTRACE_PRELOAD_ALL", all},
        {"OCCTRACE_EXACT", options->exact ? "1" : NULL},
        {"OCCTRACE_NVTX", trace->nvtx ? "1" : NULL},
        {"NVTX_INJECTION64_PATH", getenv("NVTX_INJECTION64_PATH") ? NULL : trace->nvtx},
        {"OCCTRACE_LABEL", options->label},
        {"OCCTRACE_DELAY_MS", print_number(options->delay_ns / MS_NS, delay)},
        {"OCCTRACE_DURATION_MS", print_number(options->duration_ns / MS_NS, duration)},
        {"OCCTRACE_LAUNCHES", print_number(options->launches, launches)},
        {NULL, NULL},
    };
    return child_start(&trace->signals, argv, variables, &trace->program, err);
}

static int start_plain(struct trace *trace, char *const *argv, struct occ_error *err)
{
    const struct child_variable none[] = {{NULL, NULL}};
    return child_start(&trace->signals, argv, none, &trace->program, err);
}

/* The exit status of a shell: 127 for a missing file, else 126; 125 for a failure of occtrace itself. */
static int exec_failure(const char *name, int status, const struct occ_error *err)
{
    if (status < 0) {
        trace_note("%s", err->message);
        return EXIT_OWN_FAILURE;
    }
    trace_note("%.200s: %s", name, strerror(status));
    return status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static void on_other_end(pid_t pid, void *trace_pointer)
{
    struct trace *trace = trace_pointer;
    if (trace->is_private && pid == trace->daemon.pid)
        private_daemon_restart(&trace->daemon, &trace->signals);
}

static void trace_release(struct trace *trace)
{
    private_daemon_destroy(&trace->daemon);
    free(trace->library);
    free(trace->nvtx);
    free(trace->preload);
    free(trace->socket);
    free(trace->db);
}

/* Returns the program's wait status, or -1 with the exit status in *ret_exit. */
static int run(struct trace *trace, char **argv, int *ret_exit)
{
    struct occ_error err = OCC_ERROR_INIT;
    child_signals_take(&trace->signals);
    bool is_observed = trace_prepare(trace, &err) == 0;
    program_inspect(argv[0], trace->library, &trace->executable); /* while the daemon starts */
    is_observed = is_observed && trace_await_daemon(trace, &err) == 0;
    if (is_observed && trace->nvtx && getenv("NVTX_INJECTION64_PATH"))
        trace_note("--nvtx: NVTX_INJECTION64_PATH is set: another tool gets the ranges");
    if (is_observed && trace->options->exact && !trace->options->quiet)
        trace_note("--exact: kernels run one after the other; their times are not those of a normal run");
    if (!is_observed)
        trace_note("%s; the program runs without being observed", err.message);
    trace->start_ns = occ_now_ns();
    int status = is_observed ? start_observed(trace, argv, &err) : start_plain(trace, argv, &err);
    if (status != 0) {
        *ret_exit = exec_failure(argv[0], status, &err);
        if (trace->is_private)
            (void)private_daemon_release(&trace->daemon, DAEMON_PATIENCE_MS);
        return -1;
    }
    int wait_status = child_wait(&trace->signals, trace->program, on_other_end, trace);
    trace->end_ns = occ_now_ns();
    if (is_observed)
        trace_conclude(trace, argv, wait_status);
    return wait_status;
}

int main(int argc, char **argv)
{
    struct trace_options options = {0};
    struct occ_error err = OCC_ERROR_INIT;
    int exit_status = EXIT_OWN_FAILURE;
    occupy_standard_descriptors();
    occ_log_init("occtrace");
    if (argc > 1 && strcmp(argv[1], "--complete") == 0) {
        cli_complete(stdout, &cli_occtrace, NULL, argv + 2, NULL);
        return cli_close_stdout("occtrace", CLI_EXIT_OK);
    }
    if (trace_options_parse(argc > 0 ? argv + 1 : argv, &options, &err) != 0)
        return cli_usage_error(&cli_occtrace, &err);
    if (options.common.help || options.common.version) {
        if (options.common.help)
            cli_print_help(stdout, &cli_occtrace, NULL);
        else
            (void)fputs("occtrace " OCC_VERSION "\n" OCC_VERSION_DETAILS, stdout);
        return cli_close_stdout("occtrace", CLI_EXIT_OK);
    }
    _cleanup_(trace_release) struct trace trace = {.options = &options, .daemon = PRIVATE_DAEMON_INIT};
    int wait_status = run(&trace, options.common.operands, &exit_status);
    if (wait_status >= 0)
        child_end_like(wait_status);
    return exit_status;
}
