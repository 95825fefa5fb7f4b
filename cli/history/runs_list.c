/* The list of runs; see lists.h. */
#include <inttypes.h>

#include "cli/usage.h"
#include "lists.h"
#include "run_use.h"

#define COLUMN(name, key, flags, help)     SQL_COLUMN(name, key, CLI_PLAIN, flags, NULL, help)
#define UNIT(name, key, unit, flags, help) SQL_COLUMN(name, key, unit, flags, NULL, help)
#define TEXT                               (CLI_LEFT | CLI_CUTS)

/* A column of run_use.h. */
#define USE(name, key, unit, flags, getter, index, help)                                                     \
    {                                                                                                        \
        name, key, unit, flags, help, getter, index, "run_id", NULL                                          \
    }

const struct cli_column runs_columns[] = {
    COLUMN("run", "run_id", CLI_DEFAULT, "the run's number, for --run"),
    USE("busy", "busy", CLI_PLAIN, CLI_DEFAULT | CLI_TEXT_ONLY | CLI_RARE, run_use_busy_text, 0,
        "part of the recorded time of the GPUs in which kernels ran, as in 'occq top --run N'; ~ from some "
        "of "
        "the launches, <= if it is not known how kernels overlapped, >= if launches were lost, whose times "
        "are not known"),
    USE("busy_ratio", "busy_ratio", CLI_RATIO, 0, run_use_number, RUN_USE_BUSY, "the same"),
    USE("used", "used_ratio", CLI_RATIO, CLI_DEFAULT | CLI_RARE, run_use_number, RUN_USE_USED,
        "part of that time that kernels used: without empty warp slots, communication, and kernels without a "
        "model"),
    COLUMN("label", "label", CLI_DEFAULT | TEXT | CLI_RARE, "the text of occtrace --label"),
    COLUMN("program", "program", CLI_DEFAULT | TEXT, "file name of the executable, or of the recording"),
    SQL_COLUMN("time", "time", CLI_DURATION, CLI_DEFAULT | CLI_TEXT_ONLY | CLI_ADDS, "gpu_time_ns",
               "sum of the launches' durations"),
    COLUMN("devices", "devices", CLI_DEFAULT | TEXT | CLI_RARE | CLI_SPARE(3), "names of the GPUs it used"),
    COLUMN("launches", "launches", CLI_DEFAULT | CLI_ADDS, "number of launches recorded"),
    COLUMN("lost", "lost", CLI_DEFAULT | CLI_ADDS | CLI_RARE | CLI_NONZERO,
           "number of lost launches; -: none yet, or unknown; shown by default if a run lost any"),
    COLUMN("lost_causes", "lost_causes", CLI_DEFAULT | TEXT | CLI_RARE | CLI_SPARE(2), "the same by cause"),
    UNIT("start", "start_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT | CLI_SPARE(1),
         "when observation of the process began"),
    UNIT("duration", "duration_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE(5),
         "time until its end; - during the run"),
    UNIT("end", "end_ns", CLI_TIME, CLI_LEFT, "end of the run; - during the run"),
    COLUMN("pid", "pid", CLI_DEFAULT | CLI_SPARE(8), "process id"),
    COLUMN("kernels", "kernels", CLI_DEFAULT | CLI_SPARE(9), "number of kernels"),
    COLUMN("configs", "configs", 0, "number of launch configurations"),
    UNIT("gpu_time", "gpu_time_ns", CLI_DURATION, CLI_ADDS, "sum of the launches' durations"),
    UNIT("overhead", "overhead_ratio", CLI_RATIO, CLI_DEFAULT | CLI_RARE | CLI_SPARE(6),
         "CPU time of our thread / CPU time of the process"),
    UNIT("helper_cpu", "helper_cpu_ns", CLI_DURATION, CLI_ADDS, "CPU time of our thread"),
    UNIT("process_cpu", "process_cpu_ns", CLI_DURATION, CLI_ADDS, "CPU time of the process"),
    COLUMN("level", "level", CLI_DEFAULT | CLI_LEFT | CLI_SPARE(4), "full, gpm, trace, configs or nothing"),
    COLUMN("reason", "level_reason", CLI_DEFAULT | TEXT | CLI_RARE | CLI_SPARE(7),
           "reason for a level below full"),
    USE("busy_is_maximum", "busy_is_maximum", CLI_PLAIN, CLI_LEFT, run_use_is_maximum, 0,
        "whether busy is an upper bound, since it is not known how kernels overlapped"),
    USE("busy_is_minimum", "busy_is_minimum", CLI_PLAIN, CLI_LEFT, run_use_is_minimum, 0,
        "whether busy is a lower bound, since launches were lost: their times are not known"),
    USE("read", "read_ratio", CLI_RATIO, 0, run_use_number, RUN_USE_READ,
        "part of the launches that was read for busy"),
    COLUMN("exe", "exe", TEXT, "path of the executable"),
    COLUMN("command_line", "command_line", TEXT, "its command line"),
    COLUMN("cwd", "cwd", TEXT, "its working directory"),
    COLUMN("user", "user", CLI_LEFT, "user name"),
    COLUMN("uid", "uid", 0, "user id"),
    COLUMN("host", "hostname", CLI_LEFT, "the machine"),
    COLUMN("session", "session_id", CLI_LEFT, "the call of occtrace that it belongs to"),
    COLUMN("source", "source", CLI_LEFT, "trace, or the tool of the imported recording"),
    COLUMN("source_version", "source_version", CLI_LEFT, "version of that tool"),
    COLUMN("source_file", "source_file", TEXT, "path of the recording"),
    COLUMN("time_base", "time_base", CLI_LEFT,
           "epoch; unknown: times do not count from 1970, and --since ignores the run"),
    COLUMN("missing", "missing_fields", TEXT, "fields that the recording does not contain"),
    COLUMN("rank", "rank", 0, "rank in a distributed job"),
    COLUMN("cupti", "cupti_version", 0, "CUPTI's version number"),
    COLUMN("cupti_path", "cupti_path", TEXT, "path of the libcupti that recorded it"),
    COLUMN("cupti_note", "cupti_note", TEXT,
           "invalid OCCTRACE_ variables; unusual use of that library, with the reason"),
    COLUMN("slurm_job", "slurm_job", CLI_LEFT, "Slurm job"),
    COLUMN("slurm_step", "slurm_step", CLI_LEFT, "Slurm step"),
    COLUMN("account", "slurm_account", CLI_LEFT, "account of the Slurm job, by the program's environment"),
    COLUMN("partition", "slurm_partition", CLI_LEFT, "partition of the Slurm job, likewise"),
    COLUMN("qos", "slurm_qos", CLI_LEFT, "quality of service of the Slurm job, likewise"),
    COLUMN("array_job", "slurm_array_job", CLI_LEFT, "Slurm job array of the job, likewise"),
    COLUMN("array_task", "slurm_array_task", CLI_LEFT, "index of the job in that array, likewise"),
    COLUMN("k8s_pod", "k8s_pod", CLI_LEFT, "Kubernetes pod"),
    COLUMN("k8s_namespace", "k8s_namespace", CLI_LEFT, "Kubernetes namespace"),
    COLUMN("k8s_pod_uid", "k8s_pod_uid", CLI_LEFT, "uid of the Kubernetes pod"),
    COLUMN("container", "container", CLI_LEFT, "container id"),
    COLUMN("job_trust", "job_trust", CLI_LEFT,
           "source of job and pod: kernel, scheduler, or claimed by the program"),
    COLUMN("claims", "claims", TEXT, "job according to the program's environment"),
    COLUMN("uuid", "uuid", CLI_LEFT, "identity of the run"),
    SQL_FLAG("simulated", "simulated", CLI_LEFT, "whether its device is a simulated one"),
    COLUMN("periods", "recording_periods", CLI_LEFT, "periods with less recording, with the reason"),
    SQL_COLUMN("notes", "notes", CLI_PLAIN, CLI_DEFAULT | TEXT | CLI_TEXT_ONLY | CLI_RARE | CLI_SPARE(10),
               "nullif(rtrim(iif(cupti_note GLOB 'OCCTRACE_*', cupti_note || '; ', '') || "
               "coalesce(recording_periods, ''), '; '), '')",
               "invalid variables; periods with less recording"),
    SQL_COLUMN("marks", "marks", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY | CLI_MARKS | CLI_RARE,
               "nullif(iif(simulated, 's', '') || iif(lost_causes GLOB '*unknown*', 'l', ''), '')",
               "letters: s simulated; l an unknown number of its last launches is lost"),
    CLI_COLUMN_END,
};

static void note_more(const struct cli_command *command, struct occ_store *store, const struct sql_list *list)
{
    (void)store;
    cli_footer(command, list->selection, "the newest %" PRId64 "; -n shows more", list->number);
}

const struct sql_list runs_list = {.name = "runs",
                                   .table = runs_columns,
                                   .from = "run",
                                   .order = "start_ns DESC, run_id DESC",
                                   .since = SQL_RUN_SINCE,
                                   .until = SQL_RUN_UNTIL,
                                   .nothing = "no runs match these filters",
                                   .note_more = note_more};
