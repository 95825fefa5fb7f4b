/*
 * The warehouse's tables and their columns, in the order of schema/clickhouse/warehouse.sql. SQL on the
 * history's storage makes the columns of run and launch_config: X(column, expression).
 */
#pragma once

#include "store/sql_nouns.h"

enum occ_ship_table {
    OCC_SHIP_KERNEL,
    OCC_SHIP_LAUNCH_CONFIG,
    OCC_SHIP_RUN,
    OCC_SHIP_MINUTE,
    OCC_SHIP_RANK_MINUTE,
    OCC_SHIP_LAUNCH,
    OCC_SHIP_TABLE_COUNT
};

/* Over k (stored_kernel). Preceded by: kernel. */
#define OCC_SHIP_KERNEL_COLUMNS(X) X(short, "k.short") X(demangled, "k.demangled") X(mangled, "k.mangled")

/* Over c (stored_launch_config) and d (stored_device). Preceded by: config and kernel. Third: value for
 * '(other)'; NULL: the cause. */
#define OCC_SHIP_LAUNCH_CONFIG_COLUMNS(X)                                                                    \
    X(device, "d.name", "")                                                                                  \
    X(simulated, "d.simulated", "0")                                                                         \
    X(cc, "d.cc", "0")                                                                                       \
    X(sm_count, "d.sm_count", "0")                                                                           \
    X(warp_size, "d.warp_size", "0")                                                                         \
    X(max_threads_per_block, "d.max_threads_per_block", "0")                                                 \
    X(max_threads_per_sm, "d.max_threads_per_sm", "0")                                                       \
    X(max_blocks_per_sm, "d.max_blocks_per_sm", "0")                                                         \
    X(device_registers_per_block, "d.registers_per_block", "0")                                              \
    X(registers_per_sm, "d.registers_per_sm", "0")                                                           \
    X(device_shared_per_block_bytes, "d.shared_per_block_bytes", "0")                                        \
    X(shared_per_block_optin_bytes, "d.shared_per_block_optin_bytes", "0")                                   \
    X(shared_per_sm_bytes, "d.shared_per_sm_bytes", "0")                                                     \
    X(shared_reserved_per_block_bytes, "d.shared_reserved_per_block_bytes", "0")                             \
    X(max_registers_per_thread, "d.max_registers_per_thread", "0")                                           \
    X(register_unit, "d.register_unit", "0")                                                                 \
    X(warp_unit, "d.warp_unit", "0")                                                                         \
    X(sub_partitions, "d.sub_partitions", "0")                                                               \
    X(shared_unit_bytes, "d.shared_unit_bytes", "0")                                                         \
    X(max_barriers_per_sm, "d.max_barriers_per_sm", "0")                                                     \
    X(device_max_cluster_size, "d.max_cluster_size", "0")                                                    \
    X(grid_x, "c.grid_x", "0")                                                                               \
    X(grid_y, "c.grid_y", "0")                                                                               \
    X(grid_z, "c.grid_z", "0")                                                                               \
    X(block_x, "c.block_x", "0")                                                                             \
    X(block_y, "c.block_y", "0")                                                                             \
    X(block_z, "c.block_z", "0")                                                                             \
    X(cluster_x, "c.cluster_x", "0")                                                                         \
    X(cluster_y, "c.cluster_y", "0")                                                                         \
    X(cluster_z, "c.cluster_z", "0")                                                                         \
    X(registers_per_thread, "c.registers_per_thread", "0")                                                   \
    X(static_shared_bytes, "c.static_shared_bytes", "0")                                                     \
    X(dynamic_shared_bytes, "c.dynamic_shared_bytes", "0")                                                   \
    X(shared_config_bytes, "c.shared_config_bytes", "0")                                                     \
    X(carveout_percent, "c.carveout_percent", "0")                                                           \
    X(barriers, "c.barriers", "0")                                                                           \
    X(max_active_clusters, "c.max_active_clusters", "0")                                                     \
    X(shared_optin, "c.shared_optin", "\\N")                                                                 \
    X(local_bytes_per_thread, "c.local_bytes_per_thread", "0")                                               \
    X(max_cluster_size, "c.max_cluster_size", "0")                                                           \
    X(launch_type, "c.launch_type", "0")                                                                     \
    X(cache_config, "c.cache_config", "0")                                                                   \
    X(device_launched, "c.device_launched", "0")                                                             \
    X(model_version, "c.model_version", "0")                                                                 \
    X(refused, "coalesce(c.refused, '')", "")                                                                \
    X(limiters, "coalesce(c.limiters, '')", "")                                                              \
    X(main_cause, "coalesce(c.main_cause, '')", NULL)                                                        \
    X(theoretical, "c.theoretical", "\\N")                                                                   \
    X(expected_achieved_low, "c.expected_achieved_low", "\\N")                                               \
    X(expected_achieved_high, "c.expected_achieved_high", "\\N")                                             \
    X(expected_elapsed_low, "c.expected_elapsed_low", "\\N")                                                 \
    X(expected_elapsed_high, "c.expected_elapsed_high", "\\N")                                               \
    X(waves, "c.waves", "\\N")                                                                               \
    X(full_waves, "c.full_waves", "\\N")                                                                     \
    X(partial_blocks, "c.partial_blocks", "\\N")                                                             \
    X(blocks_per_sm, "c.blocks_per_sm", "\\N")                                                               \
    X(warps_per_block, "c.warps_per_block", "\\N")                                                           \
    X(max_warps_per_sm, "c.max_warps_per_sm", "\\N")                                                         \
    X(by_design_bits, "c.by_design_bits", "\\N")                                                             \
    X(cause_registers, "c.cause_registers", "\\N")                                                           \
    X(cause_shared_memory, "c.cause_shared_memory", "\\N")                                                   \
    X(cause_carveout, "c.cause_carveout", "\\N")                                                             \
    X(cause_barriers, "c.cause_barriers", "\\N")                                                             \
    X(cause_cluster, "c.cause_cluster", "\\N")                                                               \
    X(cause_blocks, "c.cause_blocks", "\\N")                                                                 \
    X(cause_block_size, "c.cause_block_size", "\\N")                                                         \
    X(cause_small_grid, "c.cause_small_grid", "\\N")                                                         \
    X(grid_blocks, "c.grid_blocks", "\\N")                                                                   \
    X(wave_blocks, "c.wave_blocks", "\\N")                                                                   \
    X(blocks_per_sm_largest_carveout, "c.blocks_per_sm_largest_carveout", "\\N")                             \
    X(warps_per_sm, "c.warps_per_sm", "\\N")                                                                 \
    X(registers_per_warp, "c.registers_per_warp", "\\N")                                                     \
    X(registers_per_block, "c.registers_per_block", "\\N")                                                   \
    X(shared_per_block_bytes, "c.shared_per_block_bytes", "\\N")                                             \
    X(used_shared_config_bytes, "c.used_shared_config_bytes", "\\N")                                         \
    X(shared_config_from_driver, "c.shared_config_from_driver", "\\N")                                       \
    X(limiter_bits, "c.limiter_bits", "\\N")                                                                 \
    X(limit_warps, "c.limit_warps", "\\N")                                                                   \
    X(limit_registers, "c.limit_registers", "\\N")                                                           \
    X(limit_shared_memory, "c.limit_shared_memory", "\\N")                                                   \
    X(limit_blocks, "c.limit_blocks", "\\N")                                                                 \
    X(limit_barriers, "c.limit_barriers", "\\N")                                                             \
    X(limit_cluster, "c.limit_cluster", "\\N")                                                               \
    X(cause_partial_warp, "c.cause_partial_warp", "\\N")                                                     \
    X(cause_tail, "c.cause_tail", "\\N")

#define OCC_SHIP_UUID(blob)                                                                                  \
    "lower(substr(hex(" blob "), 1, 8) || '-' || substr(hex(" blob "), 9, 4) || '-' || substr(hex(" blob     \
    "), 13, 4) || '-' || substr(hex(" blob "), 17, 4) || '-' || substr(hex(" blob "), 21))"
/* The name of the group of runs whose minutes are added up: the job, if there is one. */
#define OCC_SHIP_JOB                                                                                         \
    "coalesce('slurm:' || r.slurm_job, 'pod:' || r.k8s_pod_uid, 'container:' || r.container, "               \
    "'session:' || r.session_id, 'run:' || lower(hex(r.uuid)))"
/* A user without a name has a number, unless the number is a container's: that of any user there. */
#define OCC_SHIP_USER                                                                                        \
    "coalesce(r.user, CASE WHEN r.container IS NULL AND r.k8s_pod_uid IS NULL THEN r.uid END, '')"
/* SQL functions of the shipper: the user as ship.users says; the number only with names. */
#define OCC_SHIP_SENT_USER "shipped_user(" OCC_SHIP_USER ")"

#define OCC_SHIP_START "max(1000000000, min(r.start_ns / 1000000000, 4294967295))"
/* The level of a removed run. Its row keeps the key, the user (row policies) and the start (the partition);
 * readers skip the row. */
#define OCC_SHIP_REMOVED "removed"

/* Columns of the table run after run, cluster, node and history. X(name, expression over r (stored_run),
 * expression over r (stored_removed_run)) */
#define OCC_SHIP_RUN_COLUMNS(X)                                                                              \
    X(job, OCC_SHIP_JOB, "''")                                                                               \
    X(user, OCC_SHIP_SENT_USER, OCC_SHIP_SENT_USER)                                                          \
    X(uid, "shipped_uid(iif(r.uid BETWEEN 0 AND 4294967295, r.uid, NULL))", "NULL")                          \
    X(pid, "iif(r.pid BETWEEN 0 AND 4294967295, r.pid, NULL)", "NULL")                                       \
    X(program, "coalesce(replace(r.exe, rtrim(r.exe, replace(r.exe, '/', '')), ''), '')", "''")              \
    X(label, "coalesce(r.label, '')", "''")                                                                  \
    X(session, "coalesce(r.session_id, '')", "''")                                                           \
    X(slurm_job, "coalesce(r.slurm_job, '')", "''")                                                          \
    X(slurm_step, "coalesce(r.slurm_step, '')", "''")                                                        \
    X(pod, "coalesce(r.k8s_pod, '')", "''")                                                                  \
    X(namespace, "coalesce(r.k8s_namespace, '')", "''")                                                      \
    X(pod_uid, "coalesce(r.k8s_pod_uid, '')", "''")                                                          \
    X(container, "coalesce(r.container, '')", "''")                                                          \
    X(job_trust, "coalesce(r.job_trust, '')", "''")                                                          \
    X(rank, "coalesce(r.rank, '')", "''")                                                                    \
    X(level, "coalesce(r.level, '')", "'" OCC_SHIP_REMOVED "'")                                              \
    X(level_reason, "coalesce(r.level_reason, '')", "''")                                                    \
    X(simulated, "r.simulated", "0")                                                                         \
    X(start_ns, "r.start_ns", "r.start_ns")                                                                  \
    X(end_ns, "r.end_ns", "NULL")                                                                            \
    X(last_start_ns, "r.last_start_ns", "NULL")                                                              \
    X(launches, "r.launches", "0")                                                                           \
    X(gpu_time_ns, "r.gpu_time_ns", "0")                                                                     \
    X(lost, "coalesce(" OCC_SQL_LOST ", 0)", "0")                                                            \
    X(lost_causes, "coalesce(" OCC_SQL_LOST_CAUSES ", '')", "''")                                            \
    X(kernels,                                                                                               \
      "(SELECT count(DISTINCT c.kernel_id) FROM stored_run_config x JOIN "                                   \
      "stored_launch_config c USING(config_id) WHERE x.run_id = r.run_id)",                                  \
      "0")                                                                                                   \
    X(configs, "(SELECT count(*) FROM stored_run_config x WHERE x.run_id = r.run_id)", "0")                  \
    X(devices,                                                                                               \
      "coalesce((SELECT group_concat(name, ', ') FROM (SELECT DISTINCT d.name FROM "                         \
      "stored_run_config x JOIN stored_launch_config c USING(config_id) JOIN stored_device "                 \
      "d USING(device_id) WHERE x.run_id = r.run_id ORDER BY d.device_id)), '')",                            \
      "''")                                                                                                  \
    X(helper_cpu_ns,                                                                                         \
      "(SELECT nullif(o.total, 0) FROM stored_overhead o WHERE o.run_id = r.run_id AND "                     \
      "o.quantity = 'helper_cpu_ns')",                                                                       \
      "NULL")                                                                                                \
    X(process_cpu_ns,                                                                                        \
      "(SELECT nullif(o.total, 0) FROM stored_overhead o WHERE o.run_id = r.run_id AND "                     \
      "o.quantity = 'process_cpu_ns')",                                                                      \
      "NULL")                                                                                                \
    X(start, OCC_SHIP_START, OCC_SHIP_START)

/* The columns that migrations add (schema/clickhouse/migrations/), in their order, after the row's version. A
 * table has the first struct occ_warehouse_added of them: a new column is a new last row. Arguments as in
 * OCC_SHIP_RUN_COLUMNS. */
#define OCC_SHIP_RUN_ADDED_COLUMNS(X)                                                                        \
    X(slurm_account, "coalesce(r.slurm_account, '')", "''")                                                  \
    X(slurm_partition, "coalesce(r.slurm_partition, '')", "''")                                              \
    X(slurm_qos, "coalesce(r.slurm_qos, '')", "''")                                                          \
    X(slurm_array_job, "coalesce(r.slurm_array_job, '')", "''")                                              \
    X(slurm_array_task, "coalesce(r.slurm_array_task, '')", "''")
/* The same for tables with a column `job`: values of one of the job's runs. */
#define OCC_SHIP_JOB_ADDED_COLUMNS(X)                                                                        \
    X(slurm_account, "coalesce(r.slurm_account, '')", "''")                                                  \
    X(slurm_partition, "coalesce(r.slurm_partition, '')", "''")                                              \
    X(namespace, "coalesce(r.k8s_namespace, '')", "''")

/* Positions in the last list. */
#define OCC_SHIP_JOB_ADDED_ID(column, ...) OCC_SHIP_JOB_ADDED_##column,
enum { OCC_SHIP_JOB_ADDED_COLUMNS(OCC_SHIP_JOB_ADDED_ID) OCC_SHIP_JOB_ADDED_COUNT };

#define OCC_SHIP_COUNT(column, ...)                              +1
#define OCC_SHIP_NAME(column, ...)                               ", " #column
#define OCC_SHIP_EXPRESSION(column, expression, ...)             ", " expression
#define OCC_SHIP_REMOVED_EXPRESSION(column, expression, removed) ", " removed

/* evidence: ", evidence", or "" for a table that lacks the column. */
#define OCC_SHIP_MINUTE_COLUMNS(evidence)                                                                    \
    "bucket, cluster, job, user, node, history, config, ranks, launches, total_ns, min_ns, max_ns, "         \
    "hist_bin, hist_n, sources, means, shares" evidence ", wasted_warp_s, capacity_warp_s, version"

/* X(NAME, table, columns, added columns) */
#define OCC_SHIP_TABLES(X)                                                                                   \
    X(KERNEL, "kernel", "kernel" OCC_SHIP_KERNEL_COLUMNS(OCC_SHIP_NAME) ", cluster, node, version", "")      \
    X(LAUNCH_CONFIG, "launch_config",                                                                        \
      "config, kernel" OCC_SHIP_LAUNCH_CONFIG_COLUMNS(OCC_SHIP_NAME) ", cluster, node, version", "")         \
    X(RUN, "run", "run, cluster, node, history" OCC_SHIP_RUN_COLUMNS(OCC_SHIP_NAME) ", version",             \
      OCC_SHIP_RUN_ADDED_COLUMNS(OCC_SHIP_NAME))                                                             \
    X(MINUTE, "minute", OCC_SHIP_MINUTE_COLUMNS(", evidence"), OCC_SHIP_JOB_ADDED_COLUMNS(OCC_SHIP_NAME))    \
    X(RANK_MINUTE, "rank_minute",                                                                            \
      "bucket, cluster, node, history, run, gpu, user, launches, busy_ns, wasted_warp_s, capacity_warp_s, "  \
      "version",                                                                                             \
      "")                                                                                                    \
    X(LAUNCH, "launch",                                                                                      \
      "bucket, cluster, job, user, node, history, run, gpu, config, start_ns, duration_ns, stream, "         \
      "correlation, graph_node, copy, version",                                                              \
      OCC_SHIP_JOB_ADDED_COLUMNS(OCC_SHIP_NAME))
