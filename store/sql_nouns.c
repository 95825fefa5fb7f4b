/* SQL as an interface: the nouns and their columns. Constants. */
#include "sql_nouns.h"

#include <stddef.h>

#include "occupancy/occupancy.h"

#define END                                                                                                  \
    {                                                                                                        \
        NULL, NULL, NULL, NULL, NULL                                                                         \
    }

/* ---- launch, launch_config ---- */

#define LAUNCH_COLUMN(NAME, column, type, unit, help) {column, type, NULL, unit, help},
static const struct occ_sql_column launch[] = {OCC_SQL_LAUNCH(LAUNCH_COLUMN) END};

#define CONFIG_COLUMN(column, type, expression, unit, help) {column, type, expression, unit, help},
static const struct occ_sql_column config[] = {OCC_SQL_CONFIG(CONFIG_COLUMN) END};

static const struct occ_sql_column config_ids[] = {
    {"config_id", "INTEGER", "c.config_id", "", "number of the launch configuration on its device"},
    {"kernel_id", "INTEGER", "c.kernel_id", "", "its kernel, see kernel"},
    {"device_id", "INTEGER", "c.device_id", "", "its device, see device"},
    END,
};

#define BLOCK_LIMIT(name, id, text) {"limit_" id, "INTEGER", "c.limit_" id, "blocks", "block limit: " text},

/* X(id, help) */
#define CAUSES(X)                                                                                            \
    X("registers", "registers")                                                                              \
    X("shared_memory", "shared memory")                                                                      \
    X("carveout", "carve-out")                                                                               \
    X("barriers", "barriers")                                                                                \
    X("cluster", "cluster size")                                                                             \
    X("blocks", "maximum blocks per SM")                                                                     \
    X("block_size", "warps per block do not divide the SM's warps")                                          \
    X("small_grid", "less than one full wave") X("tail", "partial last wave")
#define CAUSE(id, text)                                                                                      \
    {"cause_" id, "REAL", "c.cause_" id, "ratio", "part of 1 - expected_elapsed_low: " text},

/* A cause at the high end of expected_elapsed; a cause by the grid is smaller there. */
#define OCC_SQL_LOW_CAUSE(cause, is_of_grid)                                                                 \
    "c." cause " - iif(" is_of_grid ", c.expected_elapsed_high - c.expected_elapsed_low, 0)"

static const struct occ_sql_column config_details[] = {
    {"wave_blocks", "INTEGER", "c.wave_blocks", "blocks", "blocks that fill the device once"},
    {"warps_per_block", "INTEGER", "c.warps_per_block", "warps", "warps per block"},
    {"warps_per_sm", "INTEGER", "c.warps_per_sm", "warps", "active warps per SM"},
    {"max_warps_per_sm", "INTEGER", "c.max_warps_per_sm", "warps", "maximum warps per SM"},
    {"shared_per_block_bytes", "INTEGER", "c.shared_per_block_bytes", "bytes",
     "shared memory allocated to a block, with the reserved part"},
    OCC_LIMITS(BLOCK_LIMIT) CAUSES(CAUSE) /* */
    {"cause_tail_low", "REAL", OCC_SQL_LOW_CAUSE("cause_tail", "c.full_waves > 0"), "ratio",
     "part of 1 - expected_elapsed_high: partial last wave"},
    {"cause_small_grid_low", "REAL", OCC_SQL_LOW_CAUSE("cause_small_grid", "c.full_waves = 0"), "ratio",
     "part of 1 - expected_elapsed_high: too few blocks for one full wave; the other causes are the same"},
    {"cause_partial_warp", "REAL", "c.cause_partial_warp", "ratio",
     "share of the resident threads that each block's last warp lacks; no part of 1 - expected_elapsed_low"},
    {"by_design", "TEXT",
     "nullif(trim(iif(c.by_design_bits & 1, 'persistent ', '') || iif(c.by_design_bits & 2, "
     "'one_block_shared_memory ', '') || iif(c.by_design_bits & 4, 'cluster', '')), '')",
     "", "why a low occupancy is intended: persistent, one_block_shared_memory, cluster"},
    {"refused", "TEXT", "c.refused", "", "why the model gives no answer; NULL: it does"},
    {"model_version", "INTEGER", "c.model_version", "", "version of the model that answered"},
    END,
};

/* ---- kernel, device, run ---- */

static const struct occ_sql_column kernel[] = {
    {"kernel_id", "INTEGER", "kernel_id", "", "number of the kernel"},
    {"kernel", "TEXT", "short", "", "short name, without namespaces, template arguments and parameters"},
    {"kernel_demangled", "TEXT", "demangled", "", "full name"},
    {"kernel_mangled", "TEXT", "mangled", "", "name as the driver has it"},
    END,
};

static const struct occ_sql_column device[] = {
    {"device_id", "INTEGER", "device_id", "", "number of the device; two GPUs of one model have two"},
    {"device", "TEXT", "name", "", "name of the GPU"},
    {"uuid", "TEXT", "lower(hex(uuid))", "", "its UUID, hexadecimal"},
    {"simulated", "INTEGER", "simulated", "", "1: a simulated device"},
    {"compute_capability", "TEXT", "(cc / 10) || '.' || (cc % 10)", "", "compute capability"},
    {"sm_count", "INTEGER", "sm_count", "", "number of SMs"},
    {"max_warps_per_sm", "INTEGER", "max_threads_per_sm / warp_size", "warps", "maximum warps per SM"},
    {"max_blocks_per_sm", "INTEGER", "max_blocks_per_sm", "blocks", "maximum blocks per SM"},
    {"registers_per_sm", "INTEGER", "registers_per_sm", "", "registers per SM"},
    {"shared_per_sm_bytes", "INTEGER", "shared_per_sm_bytes", "bytes", "maximum shared memory per SM"},
    {"shared_per_block_optin_bytes", "INTEGER", "shared_per_block_optin_bytes", "bytes",
     "maximum shared memory per block, after opting in"},
    {"max_cluster_size", "INTEGER", "max_cluster_size", "blocks", "maximum cluster size; 1: no clusters"},
    {"clock_khz", "INTEGER", "clock_khz", "kHz", "maximum SM clock"},
    {"memory_bytes", "INTEGER", "memory_bytes", "bytes", "device memory"},
    {"driver_version", "INTEGER", "driver_version", "", "last CUDA version seen: 1000 x major + 10 x minor"},
    END,
};

/* The file name at the end of a path. */
#define BASENAME(path) "substr(" path ", length(rtrim(" path ", replace(" path ", '/', ''))) + 1)"
#define CLOCK(ns)      "strftime('%H:%M:%S', " ns " / 1000000000, 'unixepoch', 'localtime')"
#define PERIOD_CLOCKS                                                                                        \
    CLOCK("p.from_ns")                                                                                       \
    " || '-' || coalesce(" CLOCK("nullif(coalesce(p.until_ns, r.end_ns), p.from_ns)") ", '')"
#define OVERHEAD(quantity)                                                                                   \
    "(SELECT nullif(o.total, 0) FROM stored_overhead AS o WHERE o.run_id = r.run_id AND o.quantity = "       \
    "'" quantity "')"

static const struct occ_sql_column run[] = {
    {"run_id", "INTEGER", "r.run_id", "", "number of the run, for --run"},
    {"uuid", "TEXT", "lower(hex(r.uuid))", "", "its identity, hexadecimal"},
    {"hostname", "TEXT", "n.hostname", "", "the machine"},
    {"pid", "INTEGER", "r.pid", "", "process id"},
    {"uid", "INTEGER", "r.uid", "", "user id"},
    {"user", "TEXT", "r.user", "", "user name"},
    {"program", "TEXT", "coalesce(" BASENAME("r.exe") ", r.source_file)", "", "its executable or recording"},
    {"exe", "TEXT", "r.exe", "", "path of the executable"},
    {"command_line", "TEXT", "r.command_line", "", "its command line"},
    {"cwd", "TEXT", "r.cwd", "", "its working directory"},
    {"label", "TEXT", "r.label", "", "occtrace --label"},
    {"session_id", "TEXT", "r.session_id", "", "the call of occtrace that it belongs to"},
    {"slurm_job", "TEXT", "r.slurm_job", "", "Slurm job"},
    {"slurm_step", "TEXT", "r.slurm_step", "", "Slurm step"},
    {"slurm_account", "TEXT", "r.slurm_account", "",
     "account of the Slurm job; like the next four from the program's environment, NULL if that is of "
     "another job"},
    {"slurm_partition", "TEXT", "r.slurm_partition", "", "partition of the Slurm job"},
    {"slurm_qos", "TEXT", "r.slurm_qos", "", "quality of service of the Slurm job"},
    {"slurm_array_job", "TEXT", "r.slurm_array_job", "", "Slurm job array that the job is a part of"},
    {"slurm_array_task", "TEXT", "r.slurm_array_task", "", "index of the job in that array"},
    {"k8s_pod", "TEXT", "r.k8s_pod", "", "Kubernetes pod"},
    {"k8s_namespace", "TEXT", "r.k8s_namespace", "", "Kubernetes namespace"},
    {"k8s_pod_uid", "TEXT", "r.k8s_pod_uid", "", "uid of the Kubernetes pod, by its control group"},
    {"container", "TEXT", "r.container", "", "container id, by its control group"},
    {"job_trust", "TEXT", "r.job_trust", "",
     "kernel: job, step, pod and namespace follow from the process's control group; scheduler: the job is "
     "one of its GPU's (identity.dcgm_job_dir); claimed: its environment alone says so"},
    {"claims", "TEXT", "r.claims", "", "job variables of the program's environment: NAME=value ..."},
    {"rank", "TEXT", "r.rank", "", "rank in a distributed job"},
    {"source", "TEXT", "r.source", "", "trace, or the tool whose recording was imported: nsys, kineto, ncu"},
    {"source_version", "TEXT", "r.source_version", "", "that tool's version"},
    {"source_file", "TEXT", "r.source_file", "", "path of the recording"},
    {"time_base", "TEXT", "coalesce(r.time_base, 'epoch')", "",
     "epoch; unknown: times count from an unknown origin"},
    {"missing_fields", "TEXT", "r.missing_fields", "", "values that the recording does not contain"},
    {"level", "TEXT", "r.level", "", "how much is observed: full, gpm, trace, ..., nothing"},
    {"level_reason", "TEXT", "r.level_reason", "", "why not more"},
    {"cupti_version", "INTEGER", "r.cupti_version", "", "CUPTI's version"},
    {"cupti_path", "TEXT", "r.cupti_path", "", "path of the libcupti that recorded it"},
    {"cupti_note", "TEXT", "r.cupti_note", "",
     "variables OCCTRACE_ that are not valid; how that library was used otherwise than usual, and why"},
    {"simulated", "INTEGER", "r.simulated", "", "1: on a simulated device"},
    {"start_ns", "INTEGER", "r.start_ns", OCC_SQL_EPOCH, "when observation began"},
    {"end_ns", "INTEGER", "r.end_ns", OCC_SQL_EPOCH, "when it ended; NULL while it goes on"},
    {"duration_ns", "INTEGER", "iif(r.end_ns >= r.start_ns, r.end_ns - r.start_ns, NULL)", "ns",
     "from start to end"},
    {"last_start_ns", "INTEGER", "r.last_start_ns", OCC_SQL_EPOCH, "start of its last launch"},
    {"launches", "INTEGER", "r.launches", "", "launches recorded"},
    {"kernels", "INTEGER",
     "(SELECT count(DISTINCT c.kernel_id) FROM stored_run_config AS x JOIN stored_launch_config AS c "
     "ON c.config_id = x.config_id WHERE x.run_id = r.run_id)",
     "", "different kernels"},
    {"configs", "INTEGER", "(SELECT count(*) FROM stored_run_config AS x WHERE x.run_id = r.run_id)", "",
     "different launch configurations"},
    {"gpu_time_ns", "INTEGER", "r.gpu_time_ns", "ns", "sum of the launches' durations"},
    {"lost", "INTEGER",
     "coalesce(" OCC_SQL_LOST ", iif(r.end_ns IS NULL OR " OCC_SQL_LOST_UNKNOWN ", NULL, 0))", "",
     "launches that are known to be lost; NULL: none are, but the run has no end yet, a period of level "
     "unknown, or ended before its last records were delivered"},
    {"lost_causes", "TEXT", OCC_SQL_LOST_CAUSES, "",
     "the same by cause; unknown: an unknown number of further launches"},
    {"overhead_ratio", "REAL", "1.0 * " OVERHEAD("helper_cpu_ns") " / " OVERHEAD("process_cpu_ns"), "ratio",
     "CPU time of our thread / CPU time of the process"},
    {"helper_cpu_ns", "INTEGER", OVERHEAD("helper_cpu_ns"), "ns", "CPU time of our thread"},
    {"process_cpu_ns", "INTEGER", OVERHEAD("process_cpu_ns"), "ns", "CPU time of the process"},
    {"recording_periods", "TEXT",
     "(SELECT group_concat(p.level || ' ' || " PERIOD_CLOCKS " || ': ' || p.reason, '; ') FROM stored_period "
     "AS p WHERE p.run_id = r.run_id)",
     "", "its rows of recording_period, in local time"},
    {"devices", "TEXT",
     "(SELECT group_concat(name, ', ') FROM (SELECT DISTINCT d.name AS name FROM stored_run_config AS x "
     "JOIN stored_launch_config AS c ON c.config_id = x.config_id JOIN stored_device AS d "
     "ON d.device_id = c.device_id WHERE x.run_id = r.run_id ORDER BY d.device_id))",
     "", "names of the GPUs it used, each model once"},
    {"device_ids", "TEXT",
     "(SELECT group_concat(device_id, ', ') FROM (SELECT DISTINCT c.device_id AS device_id FROM "
     "stored_run_config AS x JOIN stored_launch_config AS c ON c.config_id = x.config_id "
     "WHERE x.run_id = r.run_id ORDER BY 1))",
     "", "numbers of the GPUs it used, see device"},
    END,
};

static const struct occ_sql_column range[] = {
    {"run_id", "INTEGER", "run_id", "", "the run, see run"},
    {"range_id", "INTEGER", "range_id", "", "its number in that run"},
    {"range", "TEXT", "path", "",
     "the ranges that were open when the launch was made (NVTX, PyTorch's operators, modules and "
     "annotations), outermost first, joined by /; digits of NVTX's and annotations' names are #"},
    {"phase", "TEXT", "nullif(phase, '')", "",
     "backward: launched by autograd for the operator of that range"},
    END,
};

static const struct occ_sql_column loss[] = {
    {"run_id", "INTEGER", "run_id", "", "the run, see run"},
    {"cause", "TEXT", "cause", "", "why: ring_full, log_full, bad_times, cupti_dropped, no_buffer, ..."},
    {"launches", "INTEGER", "launches", "", "launches not recorded because of this cause"},
    END,
};

static const struct occ_sql_column recording_period[] = {
    {"run_id", "INTEGER", "p.run_id", "", "the run, see run"},
    {"from_ns", "INTEGER", "p.from_ns", OCC_SQL_EPOCH, "when it began, at the earliest"},
    {"until_ns", "INTEGER", "coalesce(p.until_ns, r.end_ns)", OCC_SQL_EPOCH,
     "when it ended; NULL: it goes on"},
    {"level", "TEXT", "p.level", "",
     "level of recording in the period: nothing, configs (a sample), trace; unknown: nothing from then on, "
     "though "
     "the program may have launched more"},
    {"reason", "TEXT", "p.reason", "", "why not more"},
    END,
};

static const struct occ_sql_column overhead[] = {
    {"run_id", "INTEGER", "run_id", "", "the run, see run"},
    {"quantity", "TEXT", "quantity", "", "kind of cost: helper_cpu_ns, callback_ns, buffers, ..."},
    {"total", "INTEGER", "total", "", "how much, in the unit of its name"},
    END,
};

/* ---- minute, hour, measured_minute, measured_hour, measured_config ---- */

/* Conditions on the number can use the table's order; conditions on start_ns cannot. */
#define START_COLUMNS(table, unit, ns)                                                                       \
    {"start_ns", "INTEGER", table "." unit " * " ns, OCC_SQL_EPOCH, "start of the " unit},                   \
    {                                                                                                        \
        unit, "INTEGER", table "." unit, unit "s since 1970",                                                \
            "its number; conditions on it are the fast ones"                                                 \
    }

#define OF_ONE(name) "e." name

/* Measured values of a row of minutes or hours. */
#define MEASURED_OF(unit, value)                                                                             \
    "(SELECT " value " FROM stored_measured_" unit " AS e WHERE e.config_id = m.config_id AND e." unit       \
    " = m." unit " AND e.run_id = m.run_id)"

#define TOTAL "m.total_duration_ns"
#define ELAPSED                                                                                              \
    "iif((" OCC_SQL_WITHHELD(OF_ONE, TOTAL) ") IS NULL, e.elapsed_sum / nullif(e.elapsed_ns, 0), NULL)"
#define ELAPSED_ERROR                                                                                        \
    "coalesce(e.elapsed_error_sum / nullif(e.elapsed_error_ns, 0), 0) * " OCC_SQL_PART_OF_ERROR(OF_ONE)
#define ELAPSED_REST                                                                                         \
    "max(0, 1 - e.elapsed_ns / " OCC_SQL_ALL_NS(OF_ONE, TOTAL) ") * " OCC_SQL_REST_SPREAD(                   \
        OF_ONE) " * e.elapsed_sum / nullif(e.elapsed_ns, 0)"
#define ELAPSED_CI95                                                                                         \
    "iif((" OCC_SQL_WITHHELD(OF_ONE, TOTAL) ") IS NULL, 1.96 * nullif(" OCC_SQL_WIDENED(                     \
        ELAPSED_ERROR, ELAPSED_REST) ", 0), NULL)"

/* The difference that measured launches (occ_measured_own()) make to the expected elapsed occupancy. */
#define ABOVE_EXPECTED                                                                                       \
    "(e.elapsed_sum - e.elapsed_ns * c.expected_elapsed_low) / max(m.total_duration_ns, e.elapsed_ns + "     \
    "e.group_elapsed_ns)"

#define ROLLUP_COLUMNS(unit, ns)                                                                             \
    START_COLUMNS("m", unit, ns), {"run_id", "INTEGER", "m.run_id", "", "the run, see run"},                 \
        {"config_id", "INTEGER", "m.config_id", "", "the launch configuration, see launch_config"},          \
        {"kernel_id", "INTEGER", "c.kernel_id", "", "its kernel"},                                           \
        {"device_id", "INTEGER", "c.device_id", "", "its device"},                                           \
        {"kernel", "TEXT", "k.short", "", "the kernel's short name"},                                        \
        {"launches", "INTEGER", "m.launches", "", "launches that start in it"},                              \
        {"total_duration_ns", "INTEGER", "m.total_duration_ns", "ns", "sum of their durations"},             \
        {"min_duration_ns", "INTEGER", "m.min_duration_ns", "ns", "shortest duration"},                      \
        {"max_duration_ns", "INTEGER", "m.max_duration_ns", "ns", "longest duration"},                       \
        {"first_start_ns", "INTEGER", "m." unit " * " ns " + m.first_start_offset_ns", OCC_SQL_EPOCH,        \
         "first start"},                                                                                     \
        {"last_start_ns", "INTEGER", "m." unit " * " ns " + m.last_start_offset_ns", OCC_SQL_EPOCH,          \
         "last start"},                                                                                      \
        {"theoretical", "REAL", "c.theoretical", "ratio", "theoretical occupancy"},                          \
        {"expected_elapsed_low", "REAL", "c.expected_elapsed_low", "ratio",                                  \
         "model: occupancy of a balanced grid, over the elapsed cycles of all SMs, see launch_config"},      \
        {"expected_elapsed_high", "REAL", "c.expected_elapsed_high", "ratio", "the other end of its range"}, \
        {"elapsed", "REAL", MEASURED_OF(unit, ELAPSED), "ratio",                                             \
         "measured: warp-cycles / (elapsed cycles of all SMs x maximum warps per SM), mean by time"},        \
        {"elapsed_ci95", "REAL", MEASURED_OF(unit, ELAPSED_CI95), "ratio", "of elapsed: " OCC_SQL_CI95},     \
        {"measured_ratio", "REAL",                                                                           \
         "coalesce(" MEASURED_OF(unit, OCC_SQL_MEASURED_RATIO(OF_ONE, TOTAL)) ", 0)", "ratio",               \
         OCC_SQL_RATIO_HELP},                                                                                \
        {"waste_warp_seconds", "REAL",                                                                       \
         "m.total_duration_ns * 1e-9 * d.sm_count * c.max_warps_per_sm * max(0, 1 - c.expected_elapsed_low " \
         "- coalesce(" MEASURED_OF(unit, ABOVE_EXPECTED) ", 0))",                                            \
         "warp-seconds",                                                                                     \
         "total duration x SMs x maximum warps per SM x (1 - elapsed), with expected_elapsed_low for "       \
         "launches that were not measured"},                                                                 \
        END

/* Measured values of a row, with the time of all launches and the reason for withholding. */
#define MEASURED_ROW(name) "s." name
#define MEASURED(rows, total)                                                                                \
    "(SELECT s.*, " OCC_SQL_ALL_NS(MEASURED_ROW, total) " AS all_ns, " OCC_SQL_WITHHELD(                     \
        MEASURED_ROW, total) " AS withheld FROM " rows ")"
#define OF_UNIT(unit)                                                                                        \
    MEASURED("stored_measured_" unit " AS s LEFT JOIN stored_" unit " AS t ON t." unit " = s." unit          \
             " AND t.run_id = s.run_id AND t.config_id = s.config_id",                                       \
             "t.total_duration_ns")

/* The same by configuration and run, over all hours. */
#define SUM_COUNT(name, text) ", sum(" #name ") AS " #name
#define SUM_VALUE(name)       ", sum(" #name "_sum) AS " #name "_sum, sum(" #name "_ns) AS " #name "_ns"
#define SUM_ONE(name)         ", sum(" #name ") AS " #name
#define OF_HOURS                                                                                             \
    MEASURED("(SELECT config_id, run_id, sum(overlapped) AS overlapped" OCC_MEASURED_SOURCES(SUM_COUNT)      \
                 OCC_MEASURED_VALUES(SUM_VALUE) OCC_MEASURED_EVIDENCE(                                       \
                     SUM_ONE) " FROM stored_measured_hour GROUP BY config_id, run_id) AS s LEFT JOIN "       \
                              "(SELECT config_id, "                                                          \
                              "run_id, sum(total_duration_ns) AS total_duration_ns FROM stored_hour GROUP "  \
                              "BY config_id, "                                                               \
                              "run_id) AS t ON t.config_id = s.config_id AND t.run_id = s.run_id",           \
             "t.total_duration_ns")

#define ROLLUP(table)                                                                                        \
    table " AS m LEFT JOIN stored_launch_config AS c ON c.config_id = m.config_id "                          \
          "LEFT JOIN stored_kernel AS k ON k.kernel_id = c.kernel_id "                                       \
          "LEFT JOIN stored_device AS d ON d.device_id = c.device_id"

static const struct occ_sql_column minute[] = {ROLLUP_COLUMNS("minute", "60000000000")};
static const struct occ_sql_column hour[] = {ROLLUP_COLUMNS("hour", "3600000000000")};
static const struct occ_sql_column measured_minute[] = {START_COLUMNS("m", "minute", "60000000000"), END};
static const struct occ_sql_column measured_hour[] = {START_COLUMNS("m", "hour", "3600000000000"), END};

static const struct occ_sql_column ncu_metric[] = {
    {"run_id", "INTEGER", "m.run_id", "", "the imported report, see run"},
    {"config_id", "INTEGER", "m.config_id", "", "the launch configuration, see launch_config"},
    {"kernel", "TEXT", "k.short", "", "the kernel's short name"},
    {"correlation_id", "INTEGER", "m.correlation_id", "", "the launch's: the result's number, from 1"},
    {"metric", "TEXT", "m.metric", "", "Nsight Compute's name of the value"},
    {"value", "REAL", "m.value", "", "as Nsight Compute has it: percent is 0 ... 100"},
    {"unit", "TEXT", "m.unit", "", "of the value: %, cycles, ns, blocks, ..."},
    END,
};

static const struct occ_sql_column advice_outcome[] = {
    {"outcome_id", "INTEGER", "o.outcome_id", "", "number of the outcome"},
    {"config_before_id", "INTEGER", "o.config_before_id", "",
     "the launch configuration that had the advice; NULL: removed since"},
    {"config_after_id", "INTEGER", "o.config_after_id", "", "the changed one; NULL: removed since"},
    {"kernel", "TEXT", "k.short", "", "the short name of the kernel before"},
    {"device", "TEXT", "d.name", "", "name of the GPU"},
    {"compared_ns", "INTEGER", "o.compared_ns", OCC_SQL_EPOCH, "when occq diff last compared them"},
    {"change", "TEXT", "o.change", "", "the advice that the change followed"},
    {"is_promised", "INTEGER", "o.is_promised", "", "1: the prediction was a promised gain"},
    {"predicted_ratio", "REAL", "o.predicted_ratio", "ratio",
     "predicted time after / before, of the change as it was made"},
    {"predicted_low", "REAL", "o.predicted_low", "ratio", "lower end of its 80 % interval"},
    {"predicted_high", "REAL", "o.predicted_high", "ratio", "upper end of it"},
    {"measured_ratio", "REAL", "o.measured_ratio", "ratio", "measured time of a launch after / before"},
    {"measured_low", "REAL", "o.measured_low", "ratio", "lower end of its 95 % confidence interval"},
    {"measured_high", "REAL", "o.measured_high", "ratio", "upper end of it"},
    END,
};

/* ---- device_sample, device_second ---- */

#define SAMPLE_COLUMN(name, scale, unit, help) {#name, "REAL", NULL, unit, help},
static const struct occ_sql_column device_sample[] = {
    {"start_ns", "INTEGER", NULL, OCC_SQL_EPOCH, "start of the interval"},
    {"end_ns", "INTEGER", NULL, OCC_SQL_EPOCH, "its end"},
    {"device_id", "INTEGER", NULL, "", "the device, see device"},
    OCC_SQL_COUNTERS(SAMPLE_COLUMN) END,
};

#define SECOND_COLUMN(name, scale, unit, help)                                                               \
    {#name "_min", "REAL", "t." #name "_min_e" #scale " / 1e" #scale, unit, "smallest: " help},              \
        {#name "_mean", "REAL", "t." #name "_mean_e" #scale " / 1e" #scale, unit, "mean by time: " help},    \
        {#name "_max", "REAL", "t." #name "_max_e" #scale " / 1e" #scale, unit, "largest: " help},
static const struct occ_sql_column device_second[] = {
    START_COLUMNS("t", "second", "1000000000"),
    {"device_id", "INTEGER", "t.device_id", "", "the device, see device"},
    {"device", "TEXT", "d.name", "", "name of the GPU"},
    {"simulated", "INTEGER", "d.simulated", "", "1: a simulated device"},
    {"samples", "INTEGER", "t.samples", "", "samples that start in it"},
    {"covered_ns", "INTEGER", "t.covered_ns", "ns", "sum of their durations"},
    OCC_SQL_COUNTERS(SECOND_COLUMN){"unexplained", "REAL", "t.unexplained_e4 / 1e4", "ratio",
                                    "elapsed occupancy that no traced kernel explains; below 0: noise"},
    {"energy_j", "REAL", "t.energy_mj / 1e3", "J",
     "energy of the GPU in the energy_ns that end with the second; NULL: not measured"},
    {"energy_ns", "INTEGER", "t.energy_ns", "ns",
     "time of energy_j: a second, or more after a time without readings"},
    END,
};

/* ---- nouns ---- */

/* LEFT JOIN: SQLite then omits tables whose columns a statement does not use. */
#define CONFIG                                                                                               \
    "stored_launch_config AS c LEFT JOIN stored_kernel AS k ON k.kernel_id = c.kernel_id "                   \
    "LEFT JOIN stored_device AS d ON d.device_id = c.device_id"

const struct occ_sql_noun occ_sql_nouns[] = {
    {"launch",
     NULL,
     "every launch; stored packed, read through the extension occtrace_sqlite",
     {launch, config}},
    {"launch_config",
     CONFIG,
     "launch configurations: kernel, device, grid, block and resources, and the results of the model",
     {config_ids, config, config_details}},
    {"kernel", "stored_kernel", "kernels by name", {kernel}},
    {"run",
     "stored_run AS r LEFT JOIN stored_node AS n ON n.node_id = r.node_id",
     "programs that were observed, and imported recordings",
     {run}},
    {"range",
     "stored_range",
     "where in their programs launches were made: launch JOIN range USING (run_id, range_id)",
     {range}},
    {"device", "stored_device", "GPUs", {device}},
    {"minute", ROLLUP("stored_minute"), "launches by minute, run and configuration", {minute}},
    {"hour", ROLLUP("stored_hour"), "the same by hour", {hour}},
    {"measured_minute",
     ROLLUP(OF_UNIT("minute")),
     "sums of measured values by configuration, run and minute",
     {measured_minute, occ_sql_measured}},
    {"measured_hour",
     ROLLUP(OF_UNIT("hour")),
     "the same by hour, also where minutes were evicted",
     {measured_hour, occ_sql_measured}},
    {"measured_config", ROLLUP(OF_HOURS), "the same by configuration and run", {occ_sql_measured}},
    {"ncu_metric", ROLLUP("stored_ncu_metric"), "values of Nsight Compute's reports", {ncu_metric}},
    {"advice_outcome",
     "stored_advice_outcome AS o LEFT JOIN stored_launch_config AS c ON c.config_id = o.config_before_id "
     "LEFT JOIN stored_kernel AS k ON k.kernel_id = c.kernel_id "
     "LEFT JOIN stored_device AS d ON d.device_id = c.device_id",
     "changes that advice had named, with prediction and result, by occq diff",
     {advice_outcome}},
    {"device_sample", NULL, "counters of a GPU at full rate; read through the extension", {device_sample}},
    {"device_second",
     "stored_device_second AS t LEFT JOIN stored_device AS d ON d.device_id = t.device_id",
     "counters of a GPU by second",
     {device_second}},
    {"loss", "stored_loss", "launches that could not be recorded, by run and cause", {loss}},
    {"recording_period",
     "stored_period AS p JOIN stored_run AS r ON r.run_id = p.run_id",
     "periods of reduced recording in a run",
     {recording_period}},
    {"overhead", "stored_overhead", "cost of recording a run", {overhead}},
    {NULL, NULL, NULL, {NULL}},
};
