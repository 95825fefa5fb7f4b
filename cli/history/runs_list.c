/* The list of runs; see lists.h. */
#include <inttypes.h>

#include "cli/usage.h"
#include "lists.h"

#define COLUMN(name, key, flags, help)     SQL_COLUMN(name, key, CLI_PLAIN, flags, NULL, help)
#define UNIT(name, key, unit, flags, help) SQL_COLUMN(name, key, unit, flags, NULL, help)
#define TEXT                               (CLI_LEFT | CLI_CUTS)

const struct cli_column runs_columns[] = {
    COLUMN("run", "run_id", CLI_DEFAULT, "the run's number, for --run"),
    UNIT("start", "start_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT | CLI_SPARE(1),
         "when observation of the process began"),
    UNIT("duration", "duration_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE(4),
         "time until its end; - during the run"),
    UNIT("end", "end_ns", CLI_TIME, CLI_LEFT, "end of the run; - during the run"),
    COLUMN("program", "program", CLI_DEFAULT | TEXT, "file name of the executable, or of the recording"),
    COLUMN("pid", "pid", CLI_DEFAULT | CLI_SPARE(8), "process id"),
    COLUMN("launches", "launches", CLI_DEFAULT | CLI_ADDS, "number of launches recorded"),
    COLUMN("kernels", "kernels", CLI_DEFAULT | CLI_SPARE(9), "number of kernels"),
    COLUMN("configs", "configs", 0, "number of launch configurations"),
    UNIT("gpu_time", "gpu_time_ns", CLI_DURATION, CLI_DEFAULT | CLI_ADDS | CLI_SPARE(5),
         "sum of the launches' durations"),
    COLUMN("lost", "lost", CLI_DEFAULT | CLI_ADDS | CLI_SPARE(2),
           "number of lost launches; -: none yet, or unknown"),
    COLUMN("lost_causes", "lost_causes", TEXT, "the same by cause"),
    UNIT("overhead", "overhead_ratio", CLI_RATIO, CLI_DEFAULT | CLI_SPARE(3),
         "CPU time of our thread / CPU time of the process"),
    UNIT("helper_cpu", "helper_cpu_ns", CLI_DURATION, CLI_ADDS, "CPU time of our thread"),
    UNIT("process_cpu", "process_cpu_ns", CLI_DURATION, CLI_ADDS, "CPU time of the process"),
    COLUMN("level", "level", CLI_DEFAULT | CLI_LEFT | CLI_SPARE(1), "full, gpm, trace, configs or nothing"),
    COLUMN("reason", "level_reason", CLI_DEFAULT | TEXT | CLI_SPARE(7), "reason for a level below full"),
    COLUMN("label", "label", CLI_DEFAULT | CLI_SPARE(6) | TEXT, "the text of occtrace --label"),
    COLUMN("devices", "devices", TEXT, "names of the GPUs it used"),
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
               "iif(simulated, 's', NULL)", "letters: s simulated"),
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
