/*
 * The tables that rows are sent to, with the columns that are sent, in the order of
 * schema/clickhouse/warehouse.sql. The columns of run and launch_config are made by SQL on the history's
 * storage: X(column, expression).
 */
#ifndef OCC_CLUSTER_TABLES_H
#define OCC_CLUSTER_TABLES_H

enum occ_ship_table {
    OCC_SHIP_KERNEL,
    OCC_SHIP_LAUNCH_CONFIG,
    OCC_SHIP_RUN,
    OCC_SHIP_MINUTE,
    OCC_SHIP_RANK_MINUTE,
    OCC_SHIP_TABLE_COUNT
};

/* Over k (stored_kernel). Before them: kernel. */
#define OCC_SHIP_KERNEL_COLUMNS(X) X(short, "k.short") X(demangled, "k.demangled") X(mangled, "k.mangled")

/* Over c (stored_launch_config) and d (stored_device). Before them: config and kernel. Third: what '(other)'
 * has, NULL: the cause. */
#define OCC_SHIP_LAUNCH_CONFIG_COLUMNS(X)                                                                    \
    X(device, "d.name", "")                                                                                  \
    X(simulated, "d.simulated", "0")                                                                         \
    X(cc, "d.cc", "0")                                                                                       \
    X(sm_count, "d.sm_count", "0")                                                                           \
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
    X(local_bytes_per_thread, "c.local_bytes_per_thread", "0")                                               \
    X(launch_type, "c.launch_type", "0")                                                                     \
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
    X(cause_tail, "c.cause_tail", "\\N")

#define OCC_SHIP_UUID(blob)                                                                                  \
    "lower(substr(hex(" blob "), 1, 8) || '-' || substr(hex(" blob "), 9, 4) || '-' || substr(hex(" blob     \
    "), 13, 4) || '-' || substr(hex(" blob "), 17, 4) || '-' || substr(hex(" blob "), 21))"
/* Whose minutes are added up: a job's, as far as there is one. */
#define OCC_SHIP_JOB                                                                                         \
    "coalesce('slurm:' || r.slurm_job, 'pod:' || r.k8s_pod_uid, 'container:' || r.container, "               \
    "'session:' || r.session_id, 'run:' || lower(hex(r.uuid)))"
#define OCC_SHIP_USER "coalesce(r.user, r.uid, '')"

/* Over r (stored_run). Before them: run, cluster, node and history. */
#define OCC_SHIP_RUN_COLUMNS(X)                                                                              \
    X(job, OCC_SHIP_JOB)                                                                                     \
    X(user, OCC_SHIP_USER)                                                                                   \
    X(uid, "iif(r.uid BETWEEN 0 AND 4294967295, r.uid, NULL)")                                               \
    X(pid, "iif(r.pid BETWEEN 0 AND 4294967295, r.pid, NULL)")                                               \
    X(program, "coalesce(replace(r.exe, rtrim(r.exe, replace(r.exe, '/', '')), ''), '')")                    \
    X(label, "coalesce(r.label, '')")                                                                        \
    X(session, "coalesce(r.session_id, '')")                                                                 \
    X(slurm_job, "coalesce(r.slurm_job, '')")                                                                \
    X(slurm_step, "coalesce(r.slurm_step, '')")                                                              \
    X(pod, "coalesce(r.k8s_pod, '')")                                                                        \
    X(namespace, "coalesce(r.k8s_namespace, '')")                                                            \
    X(pod_uid, "coalesce(r.k8s_pod_uid, '')")                                                                \
    X(container, "coalesce(r.container, '')")                                                                \
    X(job_trust, "coalesce(r.job_trust, '')")                                                                \
    X(rank, "coalesce(r.rank, '')")                                                                          \
    X(level, "coalesce(r.level, '')")                                                                        \
    X(level_reason, "coalesce(r.level_reason, '')")                                                          \
    X(simulated, "r.simulated")                                                                              \
    X(start_ns, "r.start_ns")                                                                                \
    X(end_ns, "r.end_ns")                                                                                    \
    X(launches, "r.launches")                                                                                \
    X(gpu_time_ns, "r.gpu_time_ns")                                                                          \
    X(lost, "(SELECT coalesce(sum(l.launches), 0) FROM stored_loss l WHERE l.run_id = r.run_id)")            \
    X(lost_causes, "coalesce((SELECT group_concat(l.cause || ' ' || l.launches, ', ') FROM stored_loss l "   \
                   "WHERE l.run_id = r.run_id AND l.launches > 0), '')")                                     \
    X(start, "max(1000000000, min(r.start_ns / 1000000000, 4294967295))")

#define OCC_SHIP_COUNT(column, ...)                  +1
#define OCC_SHIP_NAME(column, ...)                   ", " #column
#define OCC_SHIP_EXPRESSION(column, expression, ...) ", " expression

/* X(NAME, table, columns) */
#define OCC_SHIP_TABLES(X)                                                                                   \
    X(KERNEL, "kernel", "kernel" OCC_SHIP_KERNEL_COLUMNS(OCC_SHIP_NAME) ", cluster, node, version")          \
    X(LAUNCH_CONFIG, "launch_config",                                                                        \
      "config, kernel" OCC_SHIP_LAUNCH_CONFIG_COLUMNS(OCC_SHIP_NAME) ", cluster, node, version")             \
    X(RUN, "run", "run, cluster, node, history" OCC_SHIP_RUN_COLUMNS(OCC_SHIP_NAME) ", version")             \
    X(MINUTE, "minute",                                                                                      \
      "bucket, cluster, job, user, node, history, config, ranks, launches, total_ns, min_ns, max_ns, "       \
      "hist_bin, hist_n, achieved_sum, achieved_ns, elapsed_sum, elapsed_ns, wasted_warp_s, "                \
      "capacity_warp_s, version")                                                                            \
    X(RANK_MINUTE, "rank_minute",                                                                            \
      "bucket, cluster, node, history, run, gpu, launches, busy_ns, wasted_warp_s, capacity_warp_s, "        \
      "version")

#endif
