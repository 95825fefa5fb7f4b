/* The daemon's metrics, each with its name, type, audience and help in one table, and their text: Prometheus'
 * format 0.0.4, or OpenMetrics 1.0. Labels follow dcgm-exporter. No state; any thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* X(ID, name, type, audience, help). IDENTITY: the labels name users, jobs, pods, runs or kernels. */
#define OCC_METRICS(X)                                                                                       \
    X(GPU_LAUNCHES, "occtrace_gpu_launches_total", COUNTER, ALL, "Kernel launches recorded")                 \
    X(GPU_BUSY, "occtrace_gpu_busy_seconds_total", COUNTER, ALL,                                             \
      "Sum of the durations of the launches, including concurrent launches")                                 \
    X(GPU_CAPACITY, "occtrace_gpu_capacity_warp_seconds_total", COUNTER, ALL,                                \
      "Warps that the GPU can hold, over the durations of the launches")                                     \
    X(GPU_WASTED, "occtrace_gpu_wasted_warp_seconds_total", COUNTER, ALL,                                    \
      "The part of the capacity that, by the model, the launches left empty")                                \
    X(GPU_CAUSE, "occtrace_gpu_wasted_warp_seconds_by_cause_total", COUNTER, ALL,                            \
      "The wasted warp-seconds by cause; the causes add up to the total")                                    \
    X(GPU_OCCUPANCY, "occtrace_gpu_occupancy_ratio", GAUGE, ALL,                                             \
      "Mean of the launches of the last one to two minutes, by the model: the limit of their resources "     \
      "(theoretical), and the reach of a balanced grid (expected_low, expected_high)")                       \
    X(GPU_LAST, "occtrace_gpu_last_launch_timestamp_seconds", GAUGE, ALL,                                    \
      "When the launch that ended last did so")                                                              \
    X(RUN_INFO, "occtrace_run_info", GAUGE, IDENTITY,                                                        \
      "1 for each program that launched, until 5 minutes after its end")                                     \
    X(RUN_GPU, "occtrace_run_gpu_info", GAUGE, IDENTITY,                                                     \
      "1 for each GPU that the program has used, if it has used several")                                    \
    X(RUN_WASTED, "occtrace_run_wasted_warp_seconds_total", COUNTER, IDENTITY,                               \
      "The program's part of the wasted warp-seconds")                                                       \
    X(KERNEL_WASTED, "occtrace_kernel_wasted_warp_seconds_total", COUNTER, IDENTITY,                         \
      "Wasted warp-seconds of the 20 worst kernels, chosen anew each hour, and of all others")               \
    X(JOB_LAUNCHES, "occtrace_job_launches_total", COUNTER, IDENTITY, "Kernel launches recorded, by job")    \
    X(JOB_BUSY, "occtrace_job_busy_seconds_total", COUNTER, IDENTITY,                                        \
      "Sum of the durations of the job's launches, including concurrent launches")                           \
    X(JOB_CAPACITY, "occtrace_job_capacity_warp_seconds_total", COUNTER, IDENTITY,                           \
      "Warps that the GPUs can hold, over the durations of the job's launches")                              \
    X(JOB_WASTED, "occtrace_job_wasted_warp_seconds_total", COUNTER, IDENTITY,                               \
      "The part of that capacity that, by the model, the launches left empty")                               \
    X(JOB_HELD, "occtrace_job_held_seconds_total", COUNTER, IDENTITY,                                        \
      "Time in which the job's programs hold GPUs, divided among programs that hold one GPU at the same "    \
      "time, by the GPU's model and by part: idle, waiting for launches, communication, and by the model "   \
      "lost and used")                                                                                       \
    X(JOB_KERNEL_WASTED, "occtrace_job_kernel_wasted_warp_seconds_total", COUNTER, IDENTITY,                 \
      "The same by kernel, for the kernels of occtrace_kernel_wasted_warp_seconds_total")                    \
    X(GPU_JOB, "occtrace_gpu_job_info", GAUGE, IDENTITY,                                                     \
      "1 for each job that the scheduler gives the GPU, also while it lies idle")                            \
    X(COVERAGE_HELD, "occtrace_coverage_gpu_seconds_total", COUNTER, ALL,                                    \
      "Time during which processes hold a GPU, divided equally between them, by whether and why not they "   \
      "are recorded")                                                                                        \
    X(COVERAGE_PROCESSES, "occtrace_coverage_processes", GAUGE, ALL,                                         \
      "Processes that hold a GPU, once for each GPU, by the same reasons; recorded: also processes that "    \
      "launches that are missing in NVML's list")                                                            \
    X(COVERAGE_SCAN, "occtrace_coverage_last_scan_timestamp_seconds", GAUGE, ALL,                            \
      "When the processes of the GPUs were last listed; none if that failed")                                \
    X(LOST, "occtrace_launches_lost_total", COUNTER, ALL, "Launches that programs could not record")         \
    X(STALLED, "occtrace_store_stalled", GAUGE, ALL, "1: a history cannot be written at the moment")         \
    X(STATES, "occtrace_store_states", GAUGE, ALL,                                                           \
      "Open histories by whether they can be written, or why not")                                           \
    X(FAILURES, "occtrace_store_failures_total", COUNTER, ALL, "Writes to histories that failed")            \
    X(COMMIT, "occtrace_store_commit_seconds", GAUGE, ALL, "The longest of the histories' last commits")     \
    X(BYTES, "occtrace_store_bytes", GAUGE, ALL, "Files of the open histories, without their logs")          \
    X(QUOTA, "occtrace_store_quota_bytes", GAUGE, ALL, "Their quotas; 0: there are none")                    \
    X(TOTAL, "occtrace_store_all_bytes", GAUGE, ALL,                                                         \
      "Files and logs of all owners' histories at the last census; none without database.max_total_size")    \
    X(TOTAL_QUOTA, "occtrace_store_all_quota_bytes", GAUGE, ALL, "database.max_total_size")                  \
    X(OLDEST, "occtrace_store_oldest_launch_timestamp_seconds", GAUGE, ALL,                                  \
      "The oldest launches in the open histories")                                                           \
    X(EVICTED, "occtrace_store_evicted_chunks_total", COUNTER, ALL,                                          \
      "Chunks of launches and samples evicted to keep below a quota")                                        \
    X(HISTORIES, "occtrace_histories", GAUGE, ALL, "Open histories")                                         \
    X(PROGRAMS, "occtrace_programs", GAUGE, ALL, "Programs that report")                                     \
    X(CLIENTS, "occtrace_clients", GAUGE, ALL, "Connections to the control socket")                          \
    X(QUARANTINED, "occtrace_programs_quarantined_total", COUNTER, ALL, "Programs with a broken ring")       \
    X(REFUSED, "occtrace_programs_refused_total", COUNTER, ALL, "Connections and programs refused")          \
    X(CERTIFICATE, "occtrace_tls_certificate_not_after_timestamp_seconds", GAUGE, ALL,                       \
      "When the first certificate of each file expires that /metrics over TLS uses")                         \
    X(SAMPLER_STATE, "occtrace_sampler_state", GAUGE, ALL, "1 for the state of each GPU's counters")         \
    X(SAMPLER_PAUSED, "occtrace_sampler_paused", GAUGE, ALL, "1: hardware counters are paused")              \
    X(GPU_ENERGY, "occtrace_gpu_energy_joules_total", COUNTER, ALL,                                          \
      "Energy of the GPU by NVML while programs use the GPU, read once a second; times of more than 10 s "   \
      "without a reading are left out; none without NVML's counter")                                         \
    X(INJECTOR_CPU, "occtrace_injector_cpu_seconds_total", COUNTER, ALL,                                     \
      "CPU time of recording inside the programs, as the programs report it")                                \
    X(CPU, "occtrace_process_cpu_seconds_total", COUNTER, ALL, "CPU time of occtraced")                      \
    X(MEMORY, "occtrace_process_resident_memory_bytes", GAUGE, ALL, "Resident memory of occtraced")

#define OCC_METRIC_ENUMERATOR(id, name, type, audience, help) OCC_METRIC_##id,
enum occ_metric { OCC_METRICS(OCC_METRIC_ENUMERATOR) OCC_METRIC_COUNT };

struct occ_exposition {
    FILE *out;
    const char *hostname; /* label of every series */
    bool has_identity;    /* also write metrics of the audience IDENTITY */
    bool is_openmetrics;
};

/* Writes HELP and TYPE; the metric's series follow. false: not for this audience. */
bool occ_exposition_begin(const struct occ_exposition *exposition, enum occ_metric metric);

/* Name and value of a label; a label with an empty value is omitted. */
struct occ_label {
    const char *name, *value;
};

/* Writes one series of the metric begun last; `labels` ends with a NULL name, and may be NULL. */
void occ_exposition_put(const struct occ_exposition *exposition, enum occ_metric metric,
                        const struct occ_label *labels, double value);

/* Writes a metric with one series. */
void occ_exposition_one(const struct occ_exposition *exposition, enum occ_metric metric, double value);

/* Writes the end marker of OpenMetrics. */
void occ_exposition_end(const struct occ_exposition *exposition);
