/* The table of occtrace's options. No state. */
#include "trace_options.h"

#include <string.h>

static const char *const counters_modes[] = {"auto", "pm", "gpm", "none", "exact", NULL};

static const char *const preload_modes[] = {"auto", "all", "none", NULL};

/* Limits of values that the guest accepts (injector/env.h). */
#define MS_NS   INT64_C(1000000)
#define YEAR_NS (31536000000 * MS_NS)

static const struct cli_option options[] = {
    CLI_OPTION('d', "db", CLI_TEXT, struct cli_args, db, "FILE",
               "record into this history (default: the daemon's if one listens, else "
               "$XDG_STATE_HOME/occtrace/history.db)"),
    CLI_OPTION(0, "socket", CLI_TEXT, struct trace_options, socket, "PATH",
               "report to the daemon that listens there, and start none"),
    CLI_OPTION(0, "label", CLI_TEXT, struct trace_options, label, "TEXT",
               "a text kept with the run, to find it again ('occq runs')"),
    CLI_OPTION(
        0, "counters", CLI_WORD, struct trace_options, counters, "MODE",
        "which hardware counters a private daemon may use for achieved occupancy: auto (default: pm, else "
        "gpm), pm, gpm, none, or exact (as --exact); a daemon that runs already has its own setting",
        .words = counters_modes),
    CLI_OPTION(0, "exact", CLI_FLAG, struct trace_options, exact, NULL,
               "measure the achieved occupancy of each launch by itself (the same as --counters=exact), kept "
               "as the mean of each launch configuration and minute; kernels then run one after the other"),
    CLI_OPTION(0, "nvtx", CLI_FLAG, struct trace_options, nvtx, NULL,
               "record with each launch the NVTX push/pop ranges that its thread had open, for 'occq top "
               "--by range'"),
    CLI_OPTION(0, "preload", CLI_WORD, struct trace_options, preload, "MODE",
               "auto (default: a file in LD_PRELOAD sets CUDA_INJECTION64_PATH and takes itself out), all "
               "(it stays, for programs that reduce their environment), none (the variable only)",
               .words = preload_modes),
    CLI_OPTION(0, "delay", CLI_SPAN, struct trace_options, delay_ns, "DURATION",
               "record nothing for so long (30s, 5m) after the program has initialised CUDA", .min = MS_NS,
               .max = YEAR_NS),
    CLI_OPTION(0, "duration", CLI_SPAN, struct trace_options, duration_ns, "DURATION",
               "stop recording after so long; the program runs on", .min = MS_NS, .max = YEAR_NS),
    CLI_OPTION(0, "launches", CLI_NUMBER, struct trace_options, launches, "N",
               "record N launches of each process", .min = 1, .max = INT64_MAX),
    CLI_OPTION('q', "quiet", CLI_FLAG, struct trace_options, quiet, NULL, "no summary at the end"),
    CLI_OPTION_HELP,
    CLI_OPTION_VERSION,
    CLI_OPTION_END,
};

const struct cli_command cli_occtrace = {
    .program = "occtrace",
    .name = NULL,
    .operands = "PROGRAM [ARGUMENT...]",
    .min_operands = 1,
    .stops_at_operand = true,
    .description =
        "Runs PROGRAM, unmodified, and records every kernel launch of PROGRAM and its children into the "
        "history that occq queries. If an occtraced listens, the program reports to it; else a private one "
        "is started for the run. Input and output of the program, its exit status and its signals are as "
        "they are without occtrace. The program runs even if recording fails. A child that first uses CUDA "
        "after occtrace has ended is recorded only by a daemon that still listens.\n\n"
        "With --exact, CUPTI's range profiler counts around every launch, in one pass, so that no kernel "
        "runs twice. It is off by default, and no GPU has confirmed its values yet. It costs the program's "
        "own timing: kernels that could overlap run one after the other, threads that launch take turns, in "
        "which a launch waits 1.5 s at worst, and the device is idle while a session of launches ends. A "
        "program with kernels that wait for each other hangs. The slowdown of a program has not been "
        "measured. The governor's budget does not apply.\n\n"
        "It measures nothing in launches of CUDA graphs, while a stream is captured, in sessions with "
        "overlapping calls or with another number of ranges than of completed launches, if the counters need "
        "more than one pass, without the permission for hardware counters, and with a libcupti older than "
        "CUDA 13.0. In the last three cases launches are recorded as without it. Where CUPTI returns no "
        "times during a session (CUPTI 13.0.1 on an H100 does not), a launch starts when it was called and "
        "lasts as long as the counter gpu__time_duration says; a launch of a session without values is then "
        "lost, and counted. If the program is killed, the launches of the session that runs are unknown. The "
        "run reports how many launches were measured, how many ranges were dropped, and why there are no "
        "values. Values are kept as the mean of each launch configuration and minute, which each of its "
        "launches then shows (measured_source exact). A profiler of the program that comes later "
        "(torch.profiler) records nothing: CUPTI has one subscriber. CUPTI's own kernel, WaitNs of one "
        "thread, is left out.\n\n"
        "Nothing is recorded of a program in which another tool holds CUDA_INJECTION64_PATH, of 32-bit, "
        "statically linked and set-user-ID programs, of one that has fewer than 16 free descriptors when it "
        "initialises CUDA, of one with a thread sanitizer, and of one with a seccomp filter that kills at "
        "system calls of the library. They run as without occtrace.\n\n"
        "A summary at the end, on stderr, reports the recorded launches, the losses, the overhead, and the "
        "reason for missing launches.",
    .options = options,
    .examples = {{"occtrace ./app --its-option", "observe a program"},
                 {"occtrace -d run.db --label 'batch 64' -- python train.py",
                  "into a file of its own, with a label"},
                 {"occq top", "query the history"}},
};

int trace_options_parse(char **argv, struct trace_options *args, struct occ_error *err)
{
    int status = cli_parse(&cli_occtrace, argv, &args->common, err);
    if (status == 0 && args->exact && args->counters && strcmp(args->counters, "exact") != 0)
        return occ_fail(err, OCC_E_INVALID, "--exact and --counters=%s exclude each other", args->counters);
    if (status == 0 && args->counters && strcmp(args->counters, "exact") == 0)
        args->exact = true;
    if (status == 0 && args->exact && (args->delay_ns || args->duration_ns || args->launches))
        return occ_fail(err, OCC_E_INVALID, "--exact excludes --delay, --duration and --launches");
    if (status == 0 && args->label && strlen(args->label) > TRACE_LABEL_MAX_BYTES)
        return occ_fail(err, OCC_E_INVALID, "--label: longer than %d bytes", TRACE_LABEL_MAX_BYTES);
    if (status == 0 && args->socket && args->common.db)
        return occ_fail(err, OCC_E_INVALID,
                        "--db and --socket exclude each other: a daemon knows its own history");
    if (status == 0 && args->common.db && occ_path_check_parent(args->common.db, err) != 0)
        return occ_error_prefix(err, "--db");
    return status;
}
