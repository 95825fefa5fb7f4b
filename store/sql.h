/*
 * The SQL that the store runs again and again, in one table, and the little that is around sqlite3_step(): statements
 * are prepared once, bound in order, and SQLite's result codes become our errors.
 */
#ifndef OCC_STORE_SQL_H
#define OCC_STORE_SQL_H

#include <math.h>
#include <sqlite3.h>
#include <stdint.h>

#include "measured.h"
#include "sql_nouns.h"
#include "store.h"

#define OCC_SQL_PARAMETER_2(name, text) ", ?"
#define OCC_SQL_PARAMETERS(name)        ", ?, ?"
#define OCC_SQL_ADD_2(name, text)       ", " #name " = " #name " + excluded." #name
#define OCC_SQL_ADD_SUMS(name)                                                                               \
    ", " #name "_sum = " #name "_sum + excluded." #name "_sum, " #name "_ns = " #name                        \
    "_ns + excluded." #name "_ns"

#define OCC_SQL_SECOND_NAMES(name, scale, unit, help)                                                        \
    ", " #name "_min_e" #scale ", " #name "_mean_e" #scale ", " #name "_max_e" #scale
#define OCC_SQL_SECOND_PARAMETERS(name, scale, unit, help) ", ?, ?, ?"
#define OCC_SQL_SET(column)                                ", " column " = excluded." column
#define OCC_SQL_SECOND_SET(name, scale, unit, help)                                                          \
    OCC_SQL_SET(#name "_min_e" #scale)                                                                       \
    OCC_SQL_SET(#name "_mean_e" #scale) OCC_SQL_SET(#name "_max_"                                            \
                                                          "e" #scale)

#define OCC_SQL_SECOND_ALL_NAMES      OCC_SQL_COUNTERS(OCC_SQL_SECOND_NAMES)
#define OCC_SQL_SECOND_ALL_PARAMETERS OCC_SQL_COUNTERS(OCC_SQL_SECOND_PARAMETERS)
#define OCC_SQL_SECOND_ALL_SET        OCC_SQL_COUNTERS(OCC_SQL_SECOND_SET)

#define OCC_SQL_TOTALS                                                                                       \
    "launches, total_duration_ns, min_duration_ns, max_duration_ns, first_start_offset_ns, "                 \
    "last_start_offset_ns, histogram"

/* The units of time of a table's oldest row, of the row that is ?1 rows newer, and of the newest row. */
#define OCC_SQL_ENDS(table, unit)                                                                            \
    "SELECT min(" unit "), coalesce((SELECT " unit " FROM " table " ORDER BY " unit                          \
    " LIMIT 1 OFFSET ?1), 9223372036854775807), (SELECT max(" unit ") FROM " table ") FROM " table

/* Launches that a chunk of values can be about. */
#define OCC_SQL_LAUNCHES_OF_SERIES                                                                           \
    "SELECT 1 FROM stored_chunk c WHERE c.run_id = stored_series_chunk.run_id "                              \
    "AND c.device_id = stored_series_chunk.device_id "                                                       \
    "AND c.last_start_ns >= stored_series_chunk.first_start_ns "                                             \
    "AND c.first_start_ns <= stored_series_chunk.last_start_ns"

/* clang-format off */
/* X(NAME, "statement") */
#define OCC_SQL_STATEMENTS(X) \
    X(BEGIN, "BEGIN") \
    X(BEGIN_IMMEDIATE, "BEGIN IMMEDIATE") \
    X(COMMIT, "COMMIT") \
    X(ROLLBACK, "ROLLBACK") \
    X(FIND_NODE, "SELECT node_id FROM stored_node WHERE hostname = ?") \
    X(ADD_NODE, "INSERT OR IGNORE INTO stored_node(hostname) VALUES(?)") \
    X(FIND_KERNEL, "SELECT kernel_id FROM stored_kernel WHERE hash = ? AND mangled = ?") \
    X(FIND_DEVICE, "SELECT device_id FROM stored_device WHERE key = ?") \
    X(TOUCH_DEVICE, "UPDATE stored_device SET driver_version = ?2 WHERE device_id = ?1 " \
      "AND driver_version IS NOT ?2") \
    X(FIND_CONFIG, "SELECT config_id, model_version FROM stored_launch_config WHERE key = ?") \
    X(RUN_USER, "SELECT uid FROM stored_run WHERE uuid = ?") \
    X(RUN_STATE, "SELECT launches, gpu_time_ns, coalesce(first_start_ns, 9223372036854775807), " \
      "coalesce(last_start_ns, -1), rolled_minute_ns, rolled_hour_ns, evicted_ns FROM stored_run " \
      "WHERE run_id = ?") \
    X(SET_RUN_STATE, "UPDATE stored_run SET launches = ?, gpu_time_ns = ?, first_start_ns = ?, " \
      "last_start_ns = ?, rolled_minute_ns = ?, rolled_hour_ns = ? WHERE run_id = ?") \
    X(RUN_CONFIGS, "SELECT config_id FROM stored_run_config WHERE run_id = ?") \
    X(ADD_RUN_CONFIG, "INSERT OR IGNORE INTO stored_run_config VALUES(?, ?)") \
    X(SET_LOSS, "INSERT OR REPLACE INTO stored_loss VALUES(?, ?, ?)") \
    X(SET_OVERHEAD, "INSERT OR REPLACE INTO stored_overhead VALUES(?, ?, ?)") \
    X(ADD_REPORTED, "INSERT OR REPLACE INTO stored_reported_occupancy VALUES(?, ?, ?, ?, ?, ?)") \
    X(FIND_IMPORT, "SELECT run_id FROM stored_run WHERE source_hash = ? ORDER BY run_id DESC LIMIT 1") \
    X(COUNT_TIMELESS, "SELECT count(*) FROM stored_run WHERE time_base = 'unknown'") \
    X(SESSION_LAUNCHES, "SELECT coalesce(sum(launches), 0) FROM stored_run WHERE session_id = ?") \
    X(SET_POSITION, "INSERT INTO stored_ring(uuid, launches_read) VALUES(?, ?) " \
      "ON CONFLICT DO UPDATE SET launches_read = excluded.launches_read") \
    X(POSITION, "SELECT launches_read FROM stored_ring WHERE uuid = ?") \
    X(SET_MEASURED_POSITION, "INSERT INTO stored_ring(uuid, launches_read, measured_read) VALUES(?, 0, ?) " \
      "ON CONFLICT DO UPDATE SET measured_read = excluded.measured_read") \
    X(MEASURED_POSITION, "SELECT measured_read FROM stored_ring WHERE uuid = ?") \
    X(ADD_CHUNK, "INSERT INTO stored_chunk(run_id, device_id, is_full, launches, first_start_ns, " \
      "last_start_ns, last_end_ns, min_correlation_id, max_correlation_id) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)") \
    X(ADD_CHUNK_DATA, "INSERT INTO stored_chunk_data VALUES(?, ?)") \
    X(ADD_CHUNK_TOTALS, "INSERT INTO stored_chunk_totals VALUES(?, ?)") \
    X(DROP_CHUNK, "DELETE FROM stored_chunk WHERE chunk_id = ?") \
    X(SMALL_CHUNKS, "SELECT chunk_id, device_id, launches FROM stored_chunk WHERE run_id = ? AND NOT is_full " \
      "ORDER BY chunk_id") \
    X(CHUNK_DATA, "SELECT data FROM stored_chunk_data WHERE chunk_id = ?") \
    X(CHUNKS_FROM, "SELECT c.chunk_id, d.data FROM stored_chunk c JOIN stored_chunk_data d USING(chunk_id) " \
      "WHERE c.run_id = ? AND c.last_start_ns >= ?") \
    X(ADD_MINUTE, "INSERT INTO stored_minute VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
    X(PUT_MINUTE, "INSERT OR REPLACE INTO stored_minute VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
    X(GET_MINUTE, "SELECT " OCC_SQL_TOTALS " FROM stored_minute WHERE minute = ? AND run_id = ? " \
      "AND config_id = ?") \
    X(ADD_HOUR, "INSERT INTO stored_hour VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
    X(PUT_HOUR, "INSERT OR REPLACE INTO stored_hour VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
    X(GET_HOUR, "SELECT " OCC_SQL_TOTALS " FROM stored_hour WHERE hour = ? AND run_id = ? AND config_id = ?") \
    X(RUN_MINUTES, "SELECT minute, config_id, " OCC_SQL_TOTALS " FROM stored_minute " \
      "WHERE minute >= ?1 AND minute < ?2 AND run_id = ?3") \
    X(OLDEST_CHUNKS, "SELECT c.chunk_id, c.run_id, c.last_start_ns, r.rolled_minute_ns FROM stored_chunk c " \
      "JOIN stored_run r USING(run_id) WHERE c.is_full ORDER BY c.last_start_ns LIMIT ?") \
    X(EVICT_RUN, "UPDATE stored_run SET evicted_ns = max(evicted_ns, ?) WHERE run_id = ?") \
    X(MINUTE_ENDS, OCC_SQL_ENDS("stored_minute", "minute")) \
    X(DROP_MINUTES, "DELETE FROM stored_minute WHERE minute < ?") \
    X(SET_MINUTES_FROM, "UPDATE stored_retention SET first_minute = max(first_minute, ?)") \
    X(HOUR_ENDS, OCC_SQL_ENDS("stored_hour", "hour")) \
    X(DROP_HOURS, "DELETE FROM stored_hour WHERE hour < ?") \
    X(CONFIG_MODEL, "SELECT theoretical, grid_blocks, wave_blocks, warps_per_block, blocks_per_sm FROM " \
      "stored_launch_config WHERE config_id = ? AND theoretical IS NOT NULL") \
    X(DROP_MEASURED, "DELETE FROM stored_measured_minute WHERE minute < ?") \
    X(ADD_SERIES, "INSERT INTO stored_series_chunk(kind, run_id, device_id, merge_level, rows, first_start_ns, " \
      "last_start_ns, data) VALUES(?, ?, ?, ?, ?, ?, ?, ?)") \
    X(DROP_SERIES, "DELETE FROM stored_series_chunk WHERE chunk_id = ?") \
    X(END_SERIES_MERGES, "UPDATE stored_series_chunk SET merge_level = NULL WHERE chunk_id = ?") \
    X(SERIES_OF_LEVEL, "SELECT chunk_id, data FROM stored_series_chunk WHERE kind = ? AND run_id IS ? " \
      "AND device_id = ? AND merge_level = ? ORDER BY chunk_id LIMIT ?") \
    X(COUNT_SERIES, "SELECT count(*) FROM stored_series_chunk WHERE kind = ? AND run_id IS ? " \
      "AND device_id = ? AND merge_level = ?") \
    X(SERIES_OF_TIME, "SELECT data FROM stored_series_chunk WHERE kind = 'device_sample' AND run_id IS NULL " \
      "AND device_id = ? AND last_start_ns >= ? AND first_start_ns < ?") \
    X(DROP_VALUES_WITHOUT_LAUNCHES, "DELETE FROM stored_series_chunk WHERE kind = 'launch_value' " \
      "AND first_start_ns < ?2 AND run_id = ?1 AND NOT EXISTS(" OCC_SQL_LAUNCHES_OF_SERIES ")") \
    X(DROP_LOST_VALUES, "DELETE FROM stored_series_chunk WHERE kind = 'launch_value' " \
      "AND last_start_ns < ? * 60000000000 AND NOT EXISTS(" OCC_SQL_LAUNCHES_OF_SERIES ")") \
    X(DROP_OLDEST_SAMPLES, "DELETE FROM stored_series_chunk WHERE chunk_id IN (SELECT chunk_id " \
      "FROM stored_series_chunk WHERE kind = 'device_sample' AND last_start_ns <= coalesce((SELECT last_start_ns " \
      "FROM stored_chunk WHERE is_full ORDER BY last_start_ns LIMIT 1), 9223372036854775807) " \
      "ORDER BY last_start_ns LIMIT ?)") \
    X(SECOND_ENDS, OCC_SQL_ENDS("stored_device_second", "second")) \
    X(DROP_SECONDS, "DELETE FROM stored_device_second WHERE second < ?") \
    X(SET_UNEXPLAINED, "UPDATE stored_device_second SET unexplained_e4 = ?3 WHERE device_id = ?1 " \
      "AND second = ?2") \
    X(PUT_SECOND, "INSERT INTO stored_device_second(second, device_id, samples, covered_ns" \
      OCC_SQL_SECOND_ALL_NAMES ") VALUES(?, ?, ?, ?" OCC_SQL_SECOND_ALL_PARAMETERS ") ON CONFLICT DO UPDATE " \
      "SET samples = excluded.samples, covered_ns = excluded.covered_ns" OCC_SQL_SECOND_ALL_SET \
      " WHERE excluded.samples >= samples") \
    X(ADD_MEASURED, "INSERT INTO stored_measured_minute VALUES(?, ?, ?" \
      OCC_MEASURED_SOURCES(OCC_SQL_PARAMETER_2) ", ?" OCC_MEASURED_VALUES(OCC_SQL_PARAMETERS) \
      ") ON CONFLICT DO UPDATE SET overlapped = overlapped + excluded.overlapped" \
      OCC_MEASURED_SOURCES(OCC_SQL_ADD_2) OCC_MEASURED_VALUES(OCC_SQL_ADD_SUMS))
/* clang-format on */

enum occ_sql {
#define X(name, text) OCC_SQL_##name,
    OCC_SQL_STATEMENTS(X)
#undef X
        OCC_SQL_COUNT
};

/* What SQLite said, as one of our codes. */
int occ_sql_code(int sqlite_code);
/* Fails with the connection's last message. `what` is what we were about to do: "cannot add a chunk". */
int occ_sql_fail(struct sqlite3 *db, const char *path, int sqlite_code, struct occ_error *err,
                 const char *what);

/* A column of the statement's row, clamped: nothing in a file is to be trusted. */
static inline int64_t occ_column_clamped(sqlite3_stmt *stmt, int column, int64_t low, int64_t high)
{
    int64_t value = sqlite3_column_int64(stmt, column);
    return value < low ? low : value > high ? high : value;
}

/* Values for a statement, in order. */
struct occ_binder {
    sqlite3_stmt *stmt;
    int at;
};

static inline void occ_bind_int(struct occ_binder *b, int64_t v)
{
    (void)sqlite3_bind_int64(b->stmt, ++b->at, v);
}

/* NULL when 0. */
static inline void occ_bind_known(struct occ_binder *b, int64_t v)
{
    if (v != 0)
        (void)sqlite3_bind_int64(b->stmt, ++b->at, v);
    else
        (void)sqlite3_bind_null(b->stmt, ++b->at);
}

static inline void occ_bind_real(struct occ_binder *b, double v)
{
    (void)sqlite3_bind_double(b->stmt, ++b->at, v); /* SQLite makes NaN NULL */
}

/* The text must live until the statement is reset. NULL is NULL. */
static inline void occ_bind_text(struct occ_binder *b, const char *v)
{
    (void)sqlite3_bind_text(b->stmt, ++b->at, v, -1, SQLITE_STATIC);
}

static inline void occ_bind_blob(struct occ_binder *b, const void *v, size_t n)
{
    (void)sqlite3_bind_blob64(b->stmt, ++b->at, v, n, SQLITE_STATIC);
}

#endif
