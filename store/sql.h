/* The frequent SQL statements of the store, in one table, and helpers around sqlite3_step(): statements are
 * prepared once and bound in order, and SQLite's result codes become our errors. */
#pragma once

#include <math.h>
#include <sqlite3.h>
#include <stdint.h>

#include "config_columns.h"
#include "measured.h"
#include "sql_collect.h"
#include "sql_gaps.h"
#include "sql_nouns.h"
#include "sql_ranges.h"
#include "store.h"

/* Launches are counted up to 2^62, so that no program's numbers overflow a sum. */
#define OCC_SQL_PARAMETER_2(name, text) ", ?"
#define OCC_SQL_PARAMETERS(name)        ", ?, ?"
#define OCC_SQL_ADD_COUNT(name, text)   ", " #name " = min(" #name " + excluded." #name ", 4611686018427387904)"
#define OCC_SQL_ADD_SUMS(name)                                                                               \
    ", " #name "_sum = " #name "_sum + excluded." #name "_sum, " #name "_ns = " #name                        \
    "_ns + excluded." #name "_ns"
#define OCC_SQL_PARAMETER_1(name) ", ?"
#define OCC_SQL_ADD_ONE(name)     ", " #name " = " #name " + excluded." #name
#define OCC_SQL_COLUMN_ONE(name)  ", " #name
#define OCC_SQL_ADD_MEASURED(table)                                                                          \
    "INSERT INTO " table " VALUES(?, ?, ?, ?" OCC_MEASURED_SOURCES(OCC_SQL_PARAMETER_2)                      \
        OCC_MEASURED_VALUES(OCC_SQL_PARAMETERS)                                                              \
            OCC_MEASURED_EVIDENCE(OCC_SQL_PARAMETER_1) ") ON CONFLICT DO UPDATE SET run_id = "               \
                                                       "run_id" OCC_MEASURED_SOURCES(OCC_SQL_ADD_COUNT)      \
                                                           OCC_SQL_ADD_COUNT(overlapped, "")                 \
                                                               OCC_MEASURED_VALUES(OCC_SQL_ADD_SUMS)         \
                                                                   OCC_MEASURED_EVIDENCE(OCC_SQL_ADD_ONE)
#define OCC_SQL_COLUMN_COUNT(name, text) ", " #name
#define OCC_SQL_COLUMN_SUMS(name)        ", " #name "_sum, " #name "_ns"
#define OCC_SQL_MEASURED(table, unit)                                                                        \
    "SELECT run_id" OCC_MEASURED_SOURCES(OCC_SQL_COLUMN_COUNT) ", overlapped" OCC_MEASURED_VALUES(           \
        OCC_SQL_COLUMN_SUMS)                                                                                 \
        OCC_MEASURED_EVIDENCE(OCC_SQL_COLUMN_ONE) ", " unit " FROM " table " WHERE config_id = ?1 AND " unit \
                                                  " >= ?2 AND " unit " < ?3 ORDER BY " unit

#define OCC_SQL_SECOND_NAMES(name, scale, unit, help)                                                        \
    ", " #name "_min_e" #scale ", " #name "_mean_e" #scale ", " #name "_max_e" #scale
#define OCC_SQL_SECOND_PARAMETERS(name, scale, unit, help) ", ?, ?, ?"
#define OCC_SQL_SET(column)                                ", " column " = excluded." column
#define OCC_SQL_SECOND_SET(name, scale, unit, help)                                                          \
    OCC_SQL_SET(#name "_min_e" #scale)                                                                       \
    OCC_SQL_SET(#name "_mean_e" #scale)                                                                      \
    OCC_SQL_SET(#name "_max_e" #scale)

#define OCC_SQL_SECOND_ALL_NAMES      OCC_SQL_COUNTERS(OCC_SQL_SECOND_NAMES)
#define OCC_SQL_SECOND_ALL_PARAMETERS OCC_SQL_COUNTERS(OCC_SQL_SECOND_PARAMETERS)
#define OCC_SQL_SECOND_ALL_SET        OCC_SQL_COUNTERS(OCC_SQL_SECOND_SET)

/* Adds totals to the row of a unit of time, run and configuration. Sums stop at SQL's largest number. */
#define OCC_SQL_ADD_SATURATED(name)                                                                          \
    name " = iif(" name " > 9223372036854775807 - excluded." name ", 9223372036854775807, " name             \
         " + excluded." name ")"
#define OCC_SQL_ADD_TOTALS(table)                                                                            \
    "INSERT INTO " table " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "                      \
    "SET " OCC_SQL_ADD_SATURATED("launches") ", " OCC_SQL_ADD_SATURATED(                                     \
        "total_duration_ns") ", min_duration_ns = min(min_duration_ns, "                                     \
                             "excluded.min_duration_ns)"                                                     \
                             ", max_duration_ns = max(max_duration_ns, "                                     \
                             "excluded.max_duration_ns)"                                                     \
                             ", first_start_offset_ns = min(first_start_offset_ns, "                         \
                             "excluded.first_start_offset_ns)"                                               \
                             ", last_start_offset_ns = max(last_start_offset_ns, "                           \
                             "excluded.last_start_offset_ns)"                                                \
                             ", histogram = add_histograms(histogram, "                                      \
                             "excluded.histogram)"

/* Selects at most ?2 rows of units of time before ?1, except rows of imported recordings. */
#define OCC_SQL_EXPIRE(table, unit)                                                                          \
    "DELETE FROM " table " WHERE (" unit ", run_id, config_id) IN (SELECT " unit                             \
    ", run_id, config_id FROM " table " WHERE " unit                                                         \
    " < ?1 AND run_id NOT IN (SELECT run_id FROM stored_run WHERE source_hash IS NOT NULL) LIMIT ?2)"

/* The units of time of a table's oldest row, of the row ?1 rows later, and of the newest row. */
#define OCC_SQL_ENDS(table, unit)                                                                            \
    "SELECT min(" unit "), coalesce((SELECT " unit " FROM " table " ORDER BY " unit                          \
    " LIMIT 1 OFFSET ?1), 9223372036854775807), (SELECT max(" unit ") FROM " table ") FROM " table

/* Runs by a condition on their number. */
#define OCC_SQL_RUNS_OF(condition)                                                                           \
    "SELECT run_id, first_start_ns, last_start_ns, rolled_ns, evicted_ns, "                                  \
    "coalesce(exe, source_file), rank, user, label, coalesce(slurm_job, k8s_pod), (SELECT hostname FROM "    \
    "stored_node n WHERE n.node_id = stored_run.node_id), slurm_account, slurm_partition FROM stored_run "   \
    "WHERE " condition OCC_FILTER_RUNS_IN_TIME

#define OCC_SQL_ROLLUP_FROM(table, unit)                                                                     \
    "SELECT " unit ", run_id, config_id, launches, total_duration_ns, min_duration_ns, max_duration_ns, "    \
    "first_start_offset_ns, last_start_offset_ns, histogram FROM " table
#define OCC_SQL_ROLLUP(table, unit) OCC_SQL_ROLLUP_FROM(table, unit) " WHERE " unit " >= ? AND " unit " < ?"
/* A unit of one run: the table's key begins with both. */
#define OCC_SQL_ROLLUP_OF_RUN(table, unit)                                                                   \
    OCC_SQL_ROLLUP_FROM(table, unit) " WHERE " unit " = ? AND run_id = ?"

#define OCC_SQL_OF_CONFIG_2(column, field)       ", c." #column
#define OCC_SQL_OF_CONFIG_3(column, field, type) ", c." #column
#define OCC_SQL_OF_DEVICE(column, field)         ", d." #column

/* Launches to which a chunk of values can belong. */
#define OCC_SQL_LAUNCHES_OF_SERIES                                                                           \
    "SELECT 1 FROM stored_chunk c WHERE c.run_id = stored_series_chunk.run_id "                              \
    "AND c.device_id = stored_series_chunk.device_id "                                                       \
    "AND c.last_start_ns >= stored_series_chunk.first_start_ns "                                             \
    "AND c.first_start_ns <= stored_series_chunk.last_start_ns"

/* clang-format off */
/* Texts of a run: an unknown text does not erase a known text, but a level sets its own reason, or none.
 * X(column of stored_run, member of struct occ_run) */
#define OCC_SQL_KEPT_TEXTS(X) \
    X(exe, exe) X(command_line, cmdline) X(cwd, cwd) X(user, user) X(label, label) X(session_id, session) \
    X(slurm_job, job.slurm_job) X(slurm_step, job.slurm_step) X(k8s_pod, job.k8s_pod) \
    X(k8s_namespace, job.k8s_namespace) X(k8s_pod_uid, job.k8s_pod_uid) X(container, job.container) \
    X(job_trust, job.trust) X(claims, job.claims) X(source, source.tool) X(level, level) \
    X(source_version, source.version) X(source_file, source.file) X(source_hash, source.hash) \
    X(missing_fields, source.missing_fields) \
    X(rank, rank) X(time_base, source.time_base) X(cupti_path, cupti.path) X(cupti_note, cupti.note)
/* Texts of a Slurm job: another job has no texts of the former job. */
#define OCC_SQL_JOB_TEXTS(X) \
    X(slurm_account, job.slurm_account) X(slurm_partition, job.slurm_partition) X(slurm_qos, job.slurm_qos) \
    X(slurm_array_job, job.slurm_array_job) X(slurm_array_task, job.slurm_array_task)
#define OCC_SQL_RUN_TEXTS(X) OCC_SQL_KEPT_TEXTS(X) OCC_SQL_JOB_TEXTS(X) X(level_reason, level_reason)

#define OCC_SQL_KEEP(column, member) ", " #column " = coalesce(excluded." #column ", " #column ")"
#define OCC_SQL_KEEP_OF_JOB(column, member)                                                                  \
    ", " #column " = iif(coalesce(excluded.slurm_job, slurm_job) IS slurm_job, coalesce(excluded." #column   \
    ", " #column "), excluded." #column ")"
#define OCC_SQL_MARK_2(a, b)         ", ?"
#define OCC_SQL_MARK_3(a, b, c)      ", ?"

/* Values of a configuration that `top` reads. X(NAME, expression) */
#define OCC_SQL_TOP(X) \
    X(CONFIG, "c.config_id") X(KERNEL, "c.kernel_id") X(DEVICE_ID, "c.device_id") X(SHORT, "k.short") \
    X(DEMANGLED, "k.demangled") X(MANGLED, "k.mangled") X(DEVICE, "d.name") X(SIMULATED, "d.simulated") \
    X(CC, "d.cc") \
    X(REGISTERS, "c.registers_per_thread") X(BLOCK_THREADS, "c.block_x * c.block_y * c.block_z") \
    X(THEORETICAL, "c.theoretical") X(ACHIEVED_LOW, "c.expected_achieved_low") \
    X(ACHIEVED_HIGH, "c.expected_achieved_high") X(ELAPSED_LOW, "c.expected_elapsed_low") \
    X(ELAPSED_HIGH, "c.expected_elapsed_high") X(WAVES, "c.waves") X(FULL_WAVES, "c.full_waves") \
    X(LIMITERS, "c.limiter_bits") X(BY_DESIGN, "c.by_design_bits") X(WARPS_PER_BLOCK, "c.warps_per_block") \
    X(PARTIAL_BLOCKS, "c.partial_blocks") \
    X(CONFIG_TEXT, "iif(?3, k.short || ' ' || c.grid_x || 'x' || c.grid_y || 'x' || c.grid_z || '/' || " \
      "c.block_x || 'x' || c.block_y || 'x' || c.block_z, NULL)") \
    X(MAX_WARPS, "c.max_warps_per_sm") X(SMS, "d.sm_count") X(GRID_BLOCKS, "c.grid_blocks") \
    X(WAVE_BLOCKS, "c.wave_blocks") X(BLOCKS_PER_SM, "c.blocks_per_sm")
#define OCC_SQL_TOP_COLUMN(name, expression)   expression ", "
#define OCC_SQL_TOP_CAUSE(name, word, text)    ", c.cause_" word

/* X(NAME, "statement") */
#define OCC_SQL_STATEMENTS(X) \
    OCC_SQL_COLLECT_STATEMENTS(X) OCC_SQL_GAP_STATEMENTS(X) OCC_SQL_RANGE_STATEMENTS(X) \
    X(BEGIN, "BEGIN") X(BEGIN_IMMEDIATE, "BEGIN IMMEDIATE") X(COMMIT, "COMMIT") X(ROLLBACK, "ROLLBACK") \
    /* one statement, one snapshot: another process may be making this file */ \
    X(FILE_IDENTITY, "SELECT (SELECT application_id FROM pragma_application_id), " \
      "(SELECT count(*) FROM sqlite_master), (SELECT user_version FROM pragma_user_version)") \
    X(FILE_VERSION, "PRAGMA user_version") \
    X(FILE_PAGES, "PRAGMA page_count") \
    X(USE_WAL, "PRAGMA journal_mode=WAL") \
    /* AUTOINCREMENT would use up a number even if the run exists */ \
    X(PUT_RUN, "INSERT INTO stored_run(run_id, uuid, node_id, pid, uid, start_ns, cupti_version, simulated" \
      OCC_SQL_RUN_TEXTS(OCC_COLUMN_2) ") VALUES(1 + (SELECT max(last_run, coalesce((SELECT max(run_id) " \
      "FROM stored_run), 0)) FROM stored_retention), " \
      "?, (SELECT node_id FROM stored_node WHERE hostname = ?), " \
      "?, ?, ?, ?, ?" OCC_SQL_RUN_TEXTS(OCC_SQL_MARK_2) \
      ") ON CONFLICT(uuid) DO UPDATE SET node_id = coalesce(excluded.node_id, node_id), pid = " \
      "excluded.pid, " \
      "uid = excluded.uid, start_ns = excluded.start_ns, end_ns = end_ns /* see its trigger */, " \
      "cupti_version = coalesce(excluded.cupti_version, cupti_version), simulated = excluded.simulated" \
      OCC_SQL_KEPT_TEXTS(OCC_SQL_KEEP) OCC_SQL_JOB_TEXTS(OCC_SQL_KEEP_OF_JOB) \
      ", level_reason = CASE WHEN excluded.level IS NULL THEN level_reason " \
      "ELSE excluded.level_reason END RETURNING run_id") \
    X(ADD_DEVICE, "INSERT INTO stored_device(key, uuid, name, simulated, clock_khz, memory_bytes, " \
      "driver_version" \
      OCC_DEVICE_COLUMNS(OCC_COLUMN_2) ") VALUES(?, ?, ?, ?, ?, ?, ?" OCC_DEVICE_COLUMNS(OCC_SQL_MARK_2) \
      ") ON CONFLICT(key) DO UPDATE SET key = excluded.key RETURNING device_id") \
    X(DEVICE_LIMITS, "SELECT 1" OCC_DEVICE_COLUMNS(OCC_COLUMN_2) " FROM stored_device WHERE device_id = ?") \
    X(ADD_KERNEL, "INSERT INTO stored_kernel(hash, mangled, demangled, short) VALUES(?, ?, ?, ?) " \
      "ON CONFLICT(hash, mangled) DO UPDATE SET hash = excluded.hash RETURNING kernel_id") \
    /* or just added by another process: keeps its id */ \
    X(PUT_CONFIG, "INSERT INTO stored_launch_config(key, kernel_id, device_id" \
      OCC_LAUNCH_COLUMNS(OCC_COLUMN_2) ", shared_optin" OCC_CONFIG_COLUMNS(OCC_COLUMN_2) \
      ", model_version, refused, limiters, main_cause" \
      OCC_RESULT_REALS(OCC_COLUMN_2) OCC_RESULT_INTEGERS(OCC_COLUMN_3) \
      OCC_LIMITS(OCC_COLUMN_LIMIT) OCC_CAUSES(OCC_COLUMN_CAUSE) \
      ") VALUES(?, ?, ?" OCC_LAUNCH_COLUMNS(OCC_SQL_MARK_2) ", ?" OCC_CONFIG_COLUMNS(OCC_SQL_MARK_2) \
      ", ?, ?, ?, ?" \
      OCC_RESULT_REALS(OCC_SQL_MARK_2) OCC_RESULT_INTEGERS(OCC_SQL_MARK_3) \
      OCC_LIMITS(OCC_SQL_MARK_3) OCC_CAUSES(OCC_SQL_MARK_3) \
      ") ON CONFLICT(key) DO UPDATE SET key = excluded.key RETURNING config_id") \
    X(ADD_NODE, "INSERT OR IGNORE INTO stored_node(hostname) VALUES(?)") \
    X(FIND_KERNEL, "SELECT kernel_id FROM stored_kernel WHERE hash = ? AND mangled = ?") \
    X(FIND_DEVICE, "SELECT device_id FROM stored_device WHERE key = ?") \
    X(TOUCH_DEVICE, "UPDATE stored_device SET driver_version = ?2 WHERE device_id = ?1 " \
      "AND driver_version IS NOT ?2") \
    /* of the keys that begin with ?1; ?2 is larger than all of them */ \
    X(FIND_CONFIG, "SELECT config_id, model_version, key = ?1 FROM stored_launch_config " \
      "WHERE key >= ?1 AND key < ?2 ORDER BY model_version = ?3 DESC, key LIMIT 1") \
    X(RUN_RECORDED, "SELECT coalesce(end_ns, last_start_ns, start_ns) FROM stored_run WHERE uuid = ?") \
    X(RUN_WAS_ELSEWHERE, "SELECT count(*) FROM stored_period JOIN stored_run USING(run_id) WHERE uuid = ? AND " \
      "reason = '" OCC_STORE_ELSEWHERE "'") \
    X(RUN_LOSS, "SELECT stored_loss.launches FROM stored_loss JOIN stored_run USING(run_id) WHERE uuid = ? AND cause = ?") \
    X(RUN_COST, "SELECT stored_overhead.total FROM stored_overhead JOIN stored_run USING(run_id) WHERE uuid = ? AND quantity = ?") \
    X(RUN_USER, "SELECT uid FROM stored_run WHERE uuid = ?") \
    X(RUN_STATE, "SELECT launches, gpu_time_ns, coalesce(first_start_ns, 9223372036854775807), " \
      "coalesce(last_start_ns, -1), rolled_ns FROM stored_run WHERE run_id = ?") \
    X(SET_RUN_STATE, "UPDATE stored_run SET launches = ?, gpu_time_ns = ?, first_start_ns = ?, " \
      "last_start_ns = ?, rolled_ns = ? WHERE run_id = ?") \
    X(SET_RUN_END, "UPDATE stored_run SET end_ns = ? WHERE run_id = ?") \
    X(RUN_CONFIGS, "SELECT config_id FROM stored_run_config WHERE run_id = ?") \
    X(ADD_RUN_CONFIG, "INSERT OR IGNORE INTO stored_run_config VALUES(?, ?)") \
    X(SET_LOSS, "INSERT OR REPLACE INTO stored_loss VALUES(?, ?, ?)") \
    X(SET_OVERHEAD, "INSERT OR REPLACE INTO stored_overhead VALUES(?, ?, ?)") \
    X(SET_PERIOD, "INSERT OR REPLACE INTO stored_period VALUES(?, ?, nullif(?, 0), ?, ?)") \
    X(DROP_PERIOD, "DELETE FROM stored_period WHERE run_id = ? AND from_ns = ?") \
    X(ADD_REPORTED, "INSERT OR REPLACE INTO stored_reported_occupancy VALUES(?, ?, ?, ?, ?, ?)") \
    X(PUT_OUTCOME, "INSERT INTO stored_advice_outcome(config_before_id, config_after_id, compared_ns, " \
      "change, is_promised, predicted_ratio, predicted_low, predicted_high, measured_ratio, measured_low, " \
      "measured_high) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(config_before_id, " \
      "config_after_id) DO UPDATE SET compared_ns = excluded.compared_ns, change = excluded.change, " \
      "is_promised = excluded.is_promised, predicted_ratio = excluded.predicted_ratio, " \
      "predicted_low = excluded.predicted_low, predicted_high = excluded.predicted_high, " \
      "measured_ratio = excluded.measured_ratio, measured_low = excluded.measured_low, " \
      "measured_high = excluded.measured_high") \
    X(DROP_OUTCOMES, "DELETE FROM stored_advice_outcome WHERE compared_ns <= (SELECT compared_ns FROM " \
      "stored_advice_outcome ORDER BY compared_ns DESC LIMIT 1 OFFSET ?1)") \
    X(HAS_OUTCOMES, "SELECT count(*) FROM sqlite_master WHERE type = 'table' " \
      "AND name = 'stored_advice_outcome'") \
    X(OUTCOMES, "SELECT config_before_id, config_after_id, compared_ns, change, is_promised, " \
      "predicted_ratio, predicted_low, predicted_high, measured_ratio, measured_low, measured_high " \
      "FROM stored_advice_outcome ORDER BY change, outcome_id LIMIT ?1") \
    X(ADD_NCU_METRIC, "INSERT INTO stored_ncu_metric VALUES(?, ?, ?, ?, ?, ?, ?)") \
    X(DROP_NCU_METRICS, "DELETE FROM stored_ncu_metric WHERE hour < ?") \
    X(FIND_IMPORT, "SELECT run_id FROM stored_run WHERE source_hash = ? ORDER BY run_id DESC LIMIT 1") \
    X(SET_RUN_LABEL, "UPDATE stored_run SET label = ?2 WHERE run_id = ?1 AND label IS NOT ?2") \
    X(COUNT_UNKNOWN_TIME_BASE, "SELECT count(*) FROM stored_run WHERE time_base = 'unknown'") \
    X(SESSION_LAUNCHES, "SELECT coalesce(sum(launches), 0) FROM stored_run WHERE session_id = ?") \
    X(SET_POSITION, "INSERT INTO stored_ring(uuid, launches_read) VALUES(?, ?) " \
      "ON CONFLICT DO UPDATE SET launches_read = excluded.launches_read") \
    X(POSITION, "SELECT launches_read FROM stored_ring WHERE uuid = ?") \
    X(SET_MEASURED_POSITION, "INSERT INTO stored_ring(uuid, launches_read, measured_read) VALUES(?, 0, ?) " \
      "ON CONFLICT DO UPDATE SET measured_read = excluded.measured_read") \
    X(MEASURED_POSITION, "SELECT measured_read FROM stored_ring WHERE uuid = ?") \
    X(ADD_CHUNK, "INSERT INTO stored_chunk(run_id, device_id, is_full, launches, first_start_ns, " \
      "last_start_ns, last_end_ns, min_correlation_id, max_correlation_id) VALUES(?, ?, ?, ?, ?, ?, " \
      "?, ?, ?)") \
    X(ADD_CHUNK_DATA, "INSERT INTO stored_chunk_data VALUES(?, ?)") \
    X(DROP_CHUNK, "DELETE FROM stored_chunk WHERE chunk_id = ?") \
    X(END_CHUNK_MERGES, "UPDATE stored_chunk SET is_full = 1 WHERE chunk_id = ?") \
    X(COUNT_LEVEL0, "SELECT device_id, count(*), total(launches) FROM stored_chunk WHERE run_id = ? " \
      "AND is_full = 0 GROUP BY device_id") \
    X(LEVEL0_CHUNKS, "SELECT c.chunk_id, d.data FROM stored_chunk c LEFT JOIN stored_chunk_data d " \
      "USING(chunk_id) WHERE c.run_id = ? AND c.device_id = ? AND c.is_full = 0") \
    X(CHUNKS_FROM, "SELECT d.data FROM stored_chunk c JOIN stored_chunk_data d USING(chunk_id) " \
      "WHERE c.run_id = ? AND c.last_start_ns >= ?") \
    X(ADD_MINUTE, OCC_SQL_ADD_TOTALS("stored_minute")) \
    X(ADD_HOUR, OCC_SQL_ADD_TOTALS("stored_hour")) \
    X(OLDEST_CHUNKS, "SELECT c.chunk_id, c.run_id, c.last_start_ns, r.rolled_ns FROM stored_chunk c " \
      "JOIN stored_run r USING(run_id) WHERE c.is_full ORDER BY c.chunk_id LIMIT ?") \
    X(CHUNKS_BEFORE, "SELECT c.chunk_id, c.run_id, c.last_start_ns, r.rolled_ns FROM stored_chunk c " \
      "JOIN stored_run r USING(run_id) WHERE c.last_start_ns < ? AND (c.is_full OR r.end_ns IS NOT NULL) " \
      "AND r.source_hash IS NULL ORDER BY c.last_start_ns LIMIT ?") \
    X(EXPIRE_MINUTES, OCC_SQL_EXPIRE("stored_minute", "minute")) \
    X(EXPIRE_MEASURED_MINUTES, OCC_SQL_EXPIRE("stored_measured_minute", "minute")) \
    X(EXPIRE_HOURS, OCC_SQL_EXPIRE("stored_hour", "hour")) \
    X(EXPIRE_MEASURED_HOURS, OCC_SQL_EXPIRE("stored_measured_hour", "hour")) \
    X(EXPIRE_SECONDS, "DELETE FROM stored_device_second WHERE (second, device_id) IN (SELECT second, device_id " \
      "FROM stored_device_second WHERE second < ? LIMIT ?)") \
    X(EXPIRE_SAMPLES, "DELETE FROM stored_series_chunk WHERE chunk_id IN (SELECT chunk_id FROM " \
      "stored_series_chunk WHERE kind = 'device_sample' AND last_start_ns < ? LIMIT ?)") \
    X(IS_SPENT, "SELECT NOT EXISTS(SELECT 1 FROM stored_run WHERE source_hash IS NOT NULL OR max(start_ns, " \
      "coalesce(end_ns, 0), coalesce(last_start_ns, 0)) >= ?) AND NOT EXISTS(SELECT 1 FROM stored_chunk) AND " \
      "NOT EXISTS(SELECT 1 FROM stored_series_chunk) AND NOT EXISTS(SELECT 1 FROM stored_device_second) AND NOT " \
      "EXISTS(SELECT 1 FROM stored_minute) AND NOT EXISTS(SELECT 1 FROM stored_hour) AND NOT EXISTS(SELECT 1 FROM " \
      "stored_measured_hour) AND NOT EXISTS(SELECT 1 FROM stored_minute_change WHERE minute >= 0) AND NOT EXISTS(SELECT 1 FROM " \
      "stored_removed_run)") \
    X(FREE_PAGES, "PRAGMA freelist_count") \
    X(OPEN_RUNS, "SELECT run_id, pid, start_ns FROM stored_run JOIN stored_node USING(node_id) " \
      "WHERE end_ns IS NULL AND source_hash IS NULL AND hostname = ?1 AND session_id IS coalesce(?2, session_id)") \
    X(END_LOST_RUN, "UPDATE stored_run SET end_ns = max(start_ns, coalesce((SELECT max(last_end_ns) FROM " \
      "stored_chunk c WHERE c.run_id = stored_run.run_id), last_start_ns, 0)) WHERE run_id = ?") \
    X(ADD_UNKNOWN, "INSERT OR REPLACE INTO stored_period SELECT run_id, end_ns, NULL, '" OCC_STORE_UNKNOWN "', '" \
      OCC_STORE_DAEMON_ENDED "' FROM stored_run WHERE run_id = ?") \
    X(DROP_UNKNOWN, "DELETE FROM stored_period WHERE run_id = ? AND level = '" OCC_STORE_UNKNOWN "'") \
    X(EVICT_RUN, "UPDATE stored_run SET evicted_ns = max(evicted_ns, ?) WHERE run_id = ?") \
    X(MINUTE_ENDS, OCC_SQL_ENDS("stored_minute", "minute")) \
    X(DROP_MINUTES, "DELETE FROM stored_minute WHERE minute < ?") \
    X(SET_MINUTES_FROM, "UPDATE stored_retention SET first_minute = max(first_minute, ?)") \
    X(HOUR_ENDS, OCC_SQL_ENDS("stored_hour", "hour")) \
    X(DROP_HOURS, "DELETE FROM stored_hour WHERE hour < ?") \
    X(CONFIG_MODEL, "SELECT theoretical, grid_blocks, wave_blocks, warps_per_block, blocks_per_sm FROM " \
      "stored_launch_config WHERE config_id = ? AND theoretical IS NOT NULL") \
    X(CONFIG_SUMMARY, "SELECT k.short, d.name, d.sm_count * c.max_warps_per_sm, c.theoretical, " \
      "c.expected_elapsed_low, c.expected_elapsed_high" OCC_CAUSES(OCC_COLUMN_CAUSE) \
      ", c.expected_elapsed_low IS NULL, k.demangled FROM stored_launch_config c " \
      "JOIN stored_kernel k USING(kernel_id) JOIN stored_device d USING(device_id) WHERE c.config_id = ?") \
    X(OLDEST_LAUNCH, "SELECT coalesce(min(last_start_ns), 0) FROM stored_chunk") \
    X(DROP_MEASURED_MINUTES, "DELETE FROM stored_measured_minute WHERE minute < ?") \
    X(DROP_MEASURED_HOURS, "DELETE FROM stored_measured_hour WHERE hour < ?") \
    X(ADD_SERIES, "INSERT INTO stored_series_chunk(kind, run_id, device_id, is_full, rows, first_start_ns, " \
      "last_start_ns, data) VALUES(?, ?, ?, ?, ?, ?, ?, ?)") \
    X(DROP_SERIES, "DELETE FROM stored_series_chunk WHERE chunk_id = ?") \
    X(END_SERIES_MERGES, "UPDATE stored_series_chunk SET is_full = 1 WHERE chunk_id = ?") \
    X(OPEN_SERIES, "SELECT chunk_id, data FROM stored_series_chunk WHERE kind = ? AND run_id IS ? " \
      "AND device_id = ? AND is_full = 0 ORDER BY chunk_id LIMIT ?") \
    X(SERIES_MERGE_IS_DUE, "SELECT count(*) >= ?4 OR (count(*) > 1 AND total(rows) >= ?5) " \
      "FROM stored_series_chunk WHERE kind = ?1 AND run_id IS ?2 AND device_id = ?3 AND is_full = 0") \
    X(SERIES_OF_TIME, "SELECT data FROM stored_series_chunk WHERE kind = 'device_sample' AND run_id " \
      "IS NULL " \
      "AND device_id = ? AND last_start_ns >= ? AND first_start_ns < ?") \
    X(DROP_VALUES_WITHOUT_LAUNCHES, "DELETE FROM stored_series_chunk WHERE kind = 'launch_value' " \
      "AND first_start_ns < ?2 AND run_id = ?1 AND NOT EXISTS(" OCC_SQL_LAUNCHES_OF_SERIES ")") \
    X(DROP_LOST_VALUES, "DELETE FROM stored_series_chunk WHERE kind = 'launch_value' " \
      "AND last_start_ns < ? * 60000000000 AND NOT EXISTS(" OCC_SQL_LAUNCHES_OF_SERIES ")") \
    X(DROP_OLDEST_SAMPLES, "DELETE FROM stored_series_chunk WHERE chunk_id IN (SELECT chunk_id " \
      "FROM stored_series_chunk WHERE kind = 'device_sample' AND last_start_ns <= coalesce((SELECT " \
      "last_start_ns " \
      "FROM stored_chunk WHERE is_full ORDER BY last_start_ns LIMIT 1), 9223372036854775807) " \
      "ORDER BY last_start_ns LIMIT ?)") \
    X(SECOND_ENDS, OCC_SQL_ENDS("stored_device_second", "second")) \
    X(DROP_SECONDS, "DELETE FROM stored_device_second WHERE second < ?") \
    X(SET_UNEXPLAINED, "UPDATE stored_device_second SET unexplained_e4 = ?3 WHERE device_id = ?1 " \
      "AND second = ?2") \
    X(PUT_ENERGY, "INSERT INTO stored_device_second(second, device_id, samples, covered_ns, energy_mj, " \
      "energy_ns) VALUES(?, ?, 0, 0, ?, ?) ON CONFLICT DO UPDATE SET energy_mj = excluded.energy_mj, " \
      "energy_ns = excluded.energy_ns") \
    X(ENERGIES, "SELECT device_id, second, energy_ns, energy_mj FROM stored_device_second " \
      "WHERE second >= ?1 AND energy_mj IS NOT NULL AND (second + 1) * 1000000000 - energy_ns < ?2 ORDER BY second, device_id") \
    X(PUT_SECOND, "INSERT INTO stored_device_second(second, device_id, samples, covered_ns" \
      OCC_SQL_SECOND_ALL_NAMES ") VALUES(?, ?, ?, ?" OCC_SQL_SECOND_ALL_PARAMETERS ") ON CONFLICT DO " \
      "UPDATE " \
      "SET samples = excluded.samples, covered_ns = excluded.covered_ns" OCC_SQL_SECOND_ALL_SET \
      " WHERE excluded.samples >= samples") \
    X(ADD_MEASURED_MINUTE, OCC_SQL_ADD_MEASURED("stored_measured_minute")) \
    X(ADD_MEASURED_HOUR, OCC_SQL_ADD_MEASURED("stored_measured_hour")) \
    X(MEASURED_MINUTES, OCC_SQL_MEASURED("stored_measured_minute", "minute")) \
    X(MEASURED_HOURS, OCC_SQL_MEASURED("stored_measured_hour", "hour")) \
    X(FIRST_MINUTE, "SELECT max(first_minute) FROM stored_retention") \
    X(RUNS_OF_FILTER, OCC_SQL_RUNS_OF("")) \
    X(RUN_OF_FILTER, OCC_SQL_RUNS_OF("run_id = :run AND ")) \
    X(KERNELS, "SELECT kernel_id, short, demangled, mangled FROM stored_kernel") \
    X(CONFIGS_OF_DEVICE, "SELECT config_id, kernel_id, expected_achieved_low FROM stored_launch_config " \
      "WHERE (?1 IS NULL OR device_id IN (SELECT device_id FROM stored_device " \
      "WHERE " OCC_FILTER_GPU("?1", "name") "))") \
    X(MINUTES, OCC_SQL_ROLLUP("stored_minute", "minute")) \
    X(HOURS, OCC_SQL_ROLLUP("stored_hour", "hour")) \
    X(MINUTE_OF_RUN, OCC_SQL_ROLLUP_OF_RUN("stored_minute", "minute")) \
    X(HOUR_OF_RUN, OCC_SQL_ROLLUP_OF_RUN("stored_hour", "hour")) \
    X(CHUNKS_OF_TIME, "SELECT c.first_start_ns, c.last_start_ns, d.data FROM stored_chunk c " \
      "LEFT JOIN stored_chunk_data d USING(chunk_id) " \
      "WHERE c.run_id = ? AND c.last_start_ns >= ? AND c.first_start_ns < ?") \
    X(CONFIG_DETAILS, "SELECT c.kernel_id, c.device_id, k.short, k.demangled, k.mangled, d.name, " \
      "d.simulated, " \
      "c.shared_optin, c.local_bytes_per_thread, c.refused, c.model_version, c.theoretical IS NOT NULL" \
      OCC_LAUNCH_COLUMNS(OCC_SQL_OF_CONFIG_2) OCC_DEVICE_COLUMNS(OCC_SQL_OF_DEVICE) \
      OCC_RESULT_REALS(OCC_SQL_OF_CONFIG_2) OCC_RESULT_INTEGERS(OCC_SQL_OF_CONFIG_3) \
      OCC_LIMITS(OCC_COLUMN_LIMIT) OCC_CAUSES(OCC_COLUMN_CAUSE) " FROM stored_launch_config c " \
      "JOIN stored_kernel k USING(kernel_id) JOIN stored_device d USING(device_id) WHERE c.config_id = ?") \
    X(REPORTED, "SELECT r.run_id, r.source, r.missing_fields, coalesce(o.launches, 0), o.mean, " \
      "o.min, o.max " \
      "FROM stored_run_config x CROSS JOIN stored_run r ON r.run_id = x.run_id AND r.source_hash IS " \
      "NOT NULL " \
      "LEFT JOIN stored_reported_occupancy o ON o.run_id = r.run_id AND o.config_id = x.config_id " \
      "WHERE x.config_id = ?") \
    /* CSV has no mangled names, and other spaces in demangled names than ours; Kineto sums shared memory */ \
    X(NCU_METRICS, "WITH same(run_id, config_id) AS (SELECT r.run_id, c.config_id FROM stored_launch_config o " \
      "CROSS JOIN stored_kernel ok ON ok.kernel_id = o.kernel_id " \
      "CROSS JOIN stored_device od ON od.device_id = o.device_id " \
      "CROSS JOIN stored_run r CROSS JOIN stored_run_config x ON x.run_id = r.run_id " \
      "CROSS JOIN stored_launch_config c ON c.config_id = x.config_id " \
      "CROSS JOIN stored_kernel k ON k.kernel_id = c.kernel_id " \
      "CROSS JOIN stored_device d ON d.device_id = c.device_id " \
      "WHERE o.config_id = ?1 AND r.source_hash IS NOT NULL AND r.source = 'ncu' " \
      "AND (c.grid_x, c.grid_y, c.grid_z, c.block_x, c.block_y, c.block_z, c.registers_per_thread, " \
      "c.static_shared_bytes + c.dynamic_shared_bytes, max(c.cluster_x, 1), max(c.cluster_y, 1), " \
      "max(c.cluster_z, 1)) = (o.grid_x, o.grid_y, o.grid_z, o.block_x, o.block_y, o.block_z, " \
      "o.registers_per_thread, o.static_shared_bytes + o.dynamic_shared_bytes, max(o.cluster_x, 1), " \
      "max(o.cluster_y, 1), max(o.cluster_z, 1)) AND (d.cc, d.sm_count) = (od.cc, od.sm_count) " \
      "AND (k.kernel_id = ok.kernel_id OR (k.mangled NOT LIKE '\\_Z%' ESCAPE '\\' AND k.short = ok.short)) " \
      "ORDER BY r.run_id = ?2 DESC, r.run_id DESC LIMIT 1) " \
      "SELECT m.run_id, count(*), m.metric, avg(m.value) FROM same " \
      "JOIN stored_ncu_metric m USING(run_id, config_id) GROUP BY m.metric") \
    X(TOP_CONFIGS, "SELECT " OCC_SQL_TOP(OCC_SQL_TOP_COLUMN) "0" OCC_CAUSES(OCC_SQL_TOP_CAUSE) \
      " FROM stored_launch_config c CROSS JOIN stored_device d USING(device_id) LEFT JOIN stored_kernel k " \
      "ON k.kernel_id = c.kernel_id WHERE c.config_id BETWEEN ?1 AND ?2 ORDER BY c.config_id")
/* clang-format on */

enum occ_sql {
#define X(name, text) OCC_SQL_##name,
    OCC_SQL_STATEMENTS(X)
#undef X
        OCC_SQL_COUNT
};

/* Fails with the connection's last message. `what`: the failed action, such as "cannot add a chunk". */
int occ_sql_fail(struct sqlite3 *db, const char *path, int sqlite_code, struct occ_error *err,
                 const char *what);

/* A column of the statement's row, clamped, because the file is untrusted. */
static inline int64_t occ_column_clamped(sqlite3_stmt *stmt, int column, int64_t low, int64_t high)
{
    int64_t value = sqlite3_column_int64(stmt, column);
    return value < low ? low : value > high ? high : value;
}

/* An array of integers and their number, as two arguments. */
#define OCC_INTS(...)                                                                                        \
    (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Binds values to a statement, in order. */
struct occ_binder {
    sqlite3_stmt *stmt;
    int at;
};

static inline void occ_bind_int(struct occ_binder *b, int64_t v)
{
    (void)sqlite3_bind_int64(b->stmt, ++b->at, v);
}

/* Binds NULL for 0. */
static inline void occ_bind_known(struct occ_binder *b, int64_t v)
{
    if (v != 0)
        (void)sqlite3_bind_int64(b->stmt, ++b->at, v);
    else
        (void)sqlite3_bind_null(b->stmt, ++b->at);
}

static inline void occ_bind_real(struct occ_binder *b, double v)
{
    (void)sqlite3_bind_double(b->stmt, ++b->at, v); /* SQLite stores NaN as NULL */
}

/* The text must live until the statement is reset. A NULL pointer binds NULL. */
static inline void occ_bind_text(struct occ_binder *b, const char *v)
{
    (void)sqlite3_bind_text(b->stmt, ++b->at, v, -1, SQLITE_STATIC);
}

/* The blob must live until the statement is reset. */
static inline void occ_bind_blob(struct occ_binder *b, const void *v, size_t n)
{
    (void)sqlite3_bind_blob64(b->stmt, ++b->at, v, n, SQLITE_STATIC);
}

static inline void occ_bind_copy(struct occ_binder *b, const void *v, size_t n)
{
    (void)sqlite3_bind_blob64(b->stmt, ++b->at, v, n, SQLITE_TRANSIENT);
}
