/* Statements of write/collect.c, in the form of sql.h. SPENT_RUNS and UNUSED_...: ids from ?1 (exclusive) to
 * ?2. */
#pragma once

/* clang-format off: SQL is laid out by hand */
#define OCC_SQL_COLLECT_STATEMENTS(X)                                                                        \
    X(NAME_BYTES, "SELECT name_bytes FROM stored_retention")                                                 \
    X(LAST_RUN, "SELECT max(run_id) FROM stored_run")                                                        \
    X(SPENT_RUNS,                                                                                            \
      "SELECT run_id FROM stored_run r WHERE run_id > ?1 AND run_id <= ?2 "                                  \
      "AND end_ns IS NOT NULL AND source_hash IS NULL "                                                      \
      "AND NOT EXISTS(SELECT 1 FROM stored_chunk c WHERE c.run_id = r.run_id) AND (last_start_ns IS NULL "   \
      "OR "                                                                                                  \
      "(last_start_ns / 3600000000000 < coalesce((SELECT min(hour) FROM stored_hour), 9223372036854775807) " \
      "AND "                                                                                                 \
      "last_start_ns / 60000000000 < coalesce((SELECT min(minute) FROM stored_minute), "                     \
      "9223372036854775807)))")                                                                              \
    X(DROP_RUN_RING, "DELETE FROM stored_ring WHERE uuid = (SELECT uuid FROM stored_run WHERE run_id = ?)")  \
    X(DROP_RUN_CONFIGS, "DELETE FROM stored_run_config WHERE run_id = ?")                                    \
    X(DROP_RUN_LOSSES, "DELETE FROM stored_loss WHERE run_id = ?")                                           \
    X(DROP_RUN_OVERHEAD, "DELETE FROM stored_overhead WHERE run_id = ?")                                     \
    X(DROP_RUN_PERIODS, "DELETE FROM stored_period WHERE run_id = ?")                                        \
    X(ADD_MINUTE_CHANGE, "INSERT OR REPLACE INTO stored_minute_change(minute, run_id) VALUES(?, ?)")         \
    X(DROP_MINUTE_CHANGES, "DELETE FROM stored_minute_change WHERE minute >= 0 AND minute < ?1 - 10080")     \
    X(DROP_RUN_CHANGE, "DELETE FROM stored_minute_change WHERE minute = -1 AND run_id = ?")                  \
    X(DROP_REMOVED_MINUTES, "DELETE FROM stored_removed_minute WHERE minute < ?")                            \
    X(DROP_REMOVED_RUNS, "DELETE FROM stored_removed_run WHERE last_minute < ? - 10080")                     \
    X(DROP_RUN_RANGES, "DELETE FROM stored_range WHERE run_id = ?")                                          \
    X(DROP_RUN, "DELETE FROM stored_run WHERE run_id = ?")                                                   \
    X(LAST_CONFIG, "SELECT max(config_id) FROM stored_launch_config")                                        \
    X(UNUSED_CONFIGS,                                                                                        \
      "SELECT config_id FROM stored_launch_config s WHERE config_id > ?1 AND config_id <= ?2 "               \
      "AND config_id < (SELECT max(config_id) FROM stored_launch_config) "                                   \
      "AND NOT EXISTS(SELECT 1 FROM stored_run_config x WHERE x.config_id = s.config_id) "                   \
      "AND NOT EXISTS(SELECT 1 FROM stored_removed_minute x WHERE x.config_id = s.config_id)")               \
    X(DROP_CONFIG, "DELETE FROM stored_launch_config WHERE config_id = ?")                                   \
    X(LAST_KERNEL, "SELECT max(kernel_id) FROM stored_kernel")                                               \
    X(UNUSED_KERNELS,                                                                                        \
      "SELECT kernel_id FROM stored_kernel k WHERE kernel_id > ?1 AND kernel_id <= ?2 "                      \
      "AND kernel_id < (SELECT max(kernel_id) FROM stored_kernel) "                                          \
      "AND NOT EXISTS(SELECT 1 FROM stored_launch_config s WHERE s.kernel_id = k.kernel_id)")                \
    X(DROP_KERNEL, "DELETE FROM stored_kernel WHERE kernel_id = ?")
/* clang-format on */
