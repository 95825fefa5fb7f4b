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
#include "store/codec/series_codec.h"
#include "store.h"

#define OCC_SQL_PARAMETER_2(name, text) ", ?"
#define OCC_SQL_PARAMETERS(name)        ", ?, ?"
#define OCC_SQL_ADD_2(name, text)       ", " #name " = " #name " + excluded." #name
#define OCC_SQL_ADD_SUMS(name)                                                                               \
    ", " #name "_sum = " #name "_sum + excluded." #name "_sum, " #name "_ns = " #name                        \
    "_ns + excluded." #name "_ns"

#define OCC_SQL_SECOND_NAMES(name, sql, unit)      ", " #name "_min, " #name "_mean, " #name "_max"
#define OCC_SQL_SECOND_PARAMETERS(name, sql, unit) ", ?, ?, ?"
#define OCC_SQL_SECOND_SET(name, sql, unit)                                                                  \
    ", " #name "_min = excluded." #name "_min, " #name "_mean = excluded." #name "_mean, " #name             \
    "_max = excluded." #name "_max"

#define OCC_SQL_SECOND_ALL_NAMES      OCC_SAMPLE_NUMBERS(OCC_SQL_SECOND_NAMES)
#define OCC_SQL_SECOND_ALL_PARAMETERS OCC_SAMPLE_NUMBERS(OCC_SQL_SECOND_PARAMETERS)
#define OCC_SQL_SECOND_ALL_SET        OCC_SAMPLE_NUMBERS(OCC_SQL_SECOND_SET)

/* X(NAME, "statement") */
#define OCC_SQL_STATEMENTS(X)                                                                                \
    X(BEGIN, "BEGIN")                                                                                        \
    X(BEGIN_IMMEDIATE, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                                      \
    X(ROLLBACK, "ROLLBACK")                                                                                  \
    X(FIND_NODE, "SELECT id FROM node WHERE hostname = ?")                                                   \
    X(ADD_NODE, "INSERT OR IGNORE INTO node(hostname) VALUES(?)")                                            \
    X(FIND_KERNEL, "SELECT id FROM kernel WHERE hash = ? AND mangled = ?")                                   \
    X(FIND_DEVICE, "SELECT id FROM device WHERE key = ?")                                                    \
    X(TOUCH_DEVICE, "UPDATE device SET driver_version = ?2 WHERE id = ?1 AND driver_version IS NOT ?2")      \
    X(FIND_SHAPE, "SELECT id, model_version FROM shape WHERE key = ?")                                       \
    X(RUN_USER, "SELECT uid FROM run WHERE uuid = ?")                                                        \
    X(RUN_STATE,                                                                                             \
      "SELECT launches, gpu_ns, coalesce(first_ns, 9223372036854775807), "                                   \
      "coalesce(last_ns, -1), rolled_minute_ns, rolled_hour_ns, retired_ns FROM run WHERE id = ?")           \
    X(SET_RUN_STATE, "UPDATE run SET launches = ?, gpu_ns = ?, first_ns = ?, last_ns = ?, "                  \
                     "rolled_minute_ns = ?, rolled_hour_ns = ? WHERE id = ?")                                \
    X(RUN_SHAPES, "SELECT shape FROM run_shape WHERE run = ?")                                               \
    X(ADD_RUN_SHAPE, "INSERT OR IGNORE INTO run_shape VALUES(?, ?)")                                         \
    X(SET_LOSS, "INSERT OR REPLACE INTO loss VALUES(?, ?, ?)")                                               \
    X(ADD_CLAIM, "INSERT OR REPLACE INTO source_claim VALUES(?, ?, ?, ?, ?, ?)")                             \
    X(FIND_IMPORT, "SELECT id FROM run WHERE source_hash = ? ORDER BY id DESC LIMIT 1")                      \
    X(COUNT_TIMELESS, "SELECT count(*) FROM run WHERE time_base = 'unknown'")                                \
    X(SET_COST, "INSERT OR REPLACE INTO cost VALUES(?, ?, ?)")                                               \
    X(SET_POSITION, "INSERT INTO ring_position(uuid, next) VALUES(?, ?) "                                    \
                    "ON CONFLICT DO UPDATE SET next = excluded.next")                                        \
    X(POSITION, "SELECT next FROM ring_position WHERE uuid = ?")                                             \
    X(SET_MEASURED_POSITION, "INSERT INTO ring_position(uuid, next, measured) VALUES(?, 0, ?) "              \
                             "ON CONFLICT DO UPDATE SET measured = excluded.measured")                       \
    X(MEASURED_POSITION, "SELECT measured FROM ring_position WHERE uuid = ?")                                \
    X(ADD_CHUNK, "INSERT INTO chunk(run, device, level, n, first_ns, last_ns, end_ns, min_correlation, "     \
                 "max_correlation) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)")                                       \
    X(ADD_CHUNK_DATA, "INSERT INTO chunk_data VALUES(?, ?)")                                                 \
    X(ADD_CHUNK_AGG, "INSERT INTO chunk_agg VALUES(?, ?)")                                                   \
    X(DROP_CHUNK, "DELETE FROM chunk WHERE id = ?")                                                          \
    X(DROP_CHUNK_DATA, "DELETE FROM chunk_data WHERE id = ?")                                                \
    X(DROP_CHUNK_AGG, "DELETE FROM chunk_agg WHERE id = ?")                                                  \
    X(SMALL_CHUNKS, "SELECT id, device, n FROM chunk WHERE run = ? AND level = 0 ORDER BY id")               \
    X(CHUNK_DATA, "SELECT data FROM chunk_data WHERE id = ?")                                                \
    X(CHUNKS_FROM, "SELECT c.id, d.data FROM chunk c JOIN chunk_data d USING(id) "                           \
                   "WHERE c.run = ? AND c.last_ns >= ?")                                                     \
    X(ADD_MINUTE, "INSERT INTO rollup_minute VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                          \
    X(PUT_MINUTE, "INSERT OR REPLACE INTO rollup_minute VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")               \
    X(GET_MINUTE, "SELECT launches, total_ns, min_ns, max_ns, first_offset_ns, last_offset_ns, histogram "   \
                  "FROM rollup_minute WHERE bucket = ? AND run = ? AND shape = ?")                           \
    X(ADD_HOUR, "INSERT INTO rollup_hour VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                              \
    X(PUT_HOUR, "INSERT OR REPLACE INTO rollup_hour VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                   \
    X(GET_HOUR, "SELECT launches, total_ns, min_ns, max_ns, first_offset_ns, last_offset_ns, histogram "     \
                "FROM rollup_hour WHERE bucket = ? AND run = ? AND shape = ?")                               \
    X(RUN_MINUTES, "SELECT bucket, shape, launches, total_ns, min_ns, max_ns, first_offset_ns, "             \
                   "last_offset_ns, histogram FROM rollup_minute WHERE bucket >= ?1 AND bucket < ?2 "        \
                   "AND run = ?3")                                                                           \
    X(OLDEST_CHUNKS, "SELECT c.id, c.run, c.last_ns, r.rolled_minute_ns FROM chunk c JOIN run r "            \
                     "ON r.id = c.run WHERE c.level = 1 ORDER BY c.last_ns LIMIT ?")                         \
    X(RETIRE_RUN, "UPDATE run SET retired_ns = max(retired_ns, ?) WHERE id = ?")                             \
    X(MINUTE_ENDS, "SELECT min(bucket), (SELECT max(bucket) FROM rollup_minute) FROM rollup_minute")         \
    X(DROP_MINUTES, "DELETE FROM rollup_minute WHERE bucket < ?")                                            \
    X(SET_MINUTES_FROM, "UPDATE retention SET minutes_from = max(minutes_from, ?)")                          \
    X(HOUR_ENDS, "SELECT min(bucket), (SELECT max(bucket) FROM rollup_hour) FROM rollup_hour")               \
    X(DROP_HOURS, "DELETE FROM rollup_hour WHERE bucket < ?")                                                \
    X(SHAPE_MODEL, "SELECT theoretical, grid_blocks, wave_blocks, warps_per_block, blocks_per_sm FROM "      \
                   "shape WHERE id = ? AND theoretical IS NOT NULL")                                         \
    X(DROP_MEASURED, "DELETE FROM measured WHERE bucket < ?")                                                \
    X(ADD_SERIES, "INSERT INTO series_chunk(kind, run, device, level, n, first_ns, last_ns, data) "          \
                  "VALUES(?, ?, ?, ?, ?, ?, ?, ?)")                                                          \
    X(DROP_SERIES, "DELETE FROM series_chunk WHERE id = ?")                                                  \
    X(SET_SERIES_LEVEL, "UPDATE series_chunk SET level = ?2 WHERE id = ?1")                                  \
    X(SERIES_OF_LEVEL, "SELECT id, data FROM series_chunk WHERE kind = ? AND run = ? AND device = ? "        \
                       "AND level = ? ORDER BY id LIMIT ?")                                                  \
    X(COUNT_SERIES, "SELECT count(*) FROM series_chunk WHERE kind = ? AND run = ? AND device = ? "           \
                    "AND level = ?")                                                                         \
    X(SERIES_OF_TIME, "SELECT data FROM series_chunk WHERE kind = 2 AND run = 0 AND device = ? "             \
                      "AND last_ns >= ? AND first_ns < ?")                                                   \
    X(DROP_VALUES_WITHOUT_LAUNCHES,                                                                          \
      "DELETE FROM series_chunk WHERE kind = 1 AND first_ns < ?2 AND run = ?1 AND NOT EXISTS("               \
      "SELECT 1 FROM chunk c WHERE c.run = series_chunk.run AND c.device = series_chunk.device "             \
      "AND c.last_ns >= series_chunk.first_ns AND c.first_ns <= series_chunk.last_ns)")                      \
    X(DROP_LOST_VALUES,                                                                                      \
      "DELETE FROM series_chunk WHERE kind = 1 AND last_ns < ? AND NOT EXISTS("                              \
      "SELECT 1 FROM chunk c WHERE c.run = series_chunk.run AND c.device = series_chunk.device "             \
      "AND c.last_ns >= series_chunk.first_ns AND c.first_ns <= series_chunk.last_ns)")                      \
    X(DROP_OLDEST_SAMPLES,                                                                                   \
      "DELETE FROM series_chunk WHERE id IN (SELECT id FROM series_chunk WHERE kind = 2 AND last_ns <= "     \
      "coalesce((SELECT last_ns FROM chunk WHERE level = 1 ORDER BY last_ns LIMIT 1), "                      \
      "9223372036854775807) "                                                                                \
      "ORDER BY last_ns LIMIT ?)")                                                                           \
    X(SECOND_ENDS, "SELECT min(second), (SELECT max(second) FROM device_second) FROM device_second")         \
    X(DROP_SECONDS, "DELETE FROM device_second WHERE second < ?")                                            \
    X(SET_UNEXPLAINED, "UPDATE device_second SET unexplained = ?3 WHERE device = ?1 AND second = ?2")        \
    X(PUT_SECOND,                                                                                            \
      "INSERT INTO device_second(second, device, samples, covered_ns" OCC_SQL_SECOND_ALL_NAMES               \
      ") VALUES(?, ?, ?, ?" OCC_SQL_SECOND_ALL_PARAMETERS                                                    \
      ") ON CONFLICT DO UPDATE SET samples = excluded.samples, "                                             \
      "covered_ns = excluded.covered_ns" OCC_SQL_SECOND_ALL_SET " WHERE excluded.samples >= samples")        \
    X(ADD_MEASURED,                                                                                          \
      "INSERT INTO measured VALUES(?, ?, ?" OCC_MEASURED_SOURCES(                                            \
          OCC_SQL_PARAMETER_2) ", ?" OCC_MEASURED_VALUES(OCC_SQL_PARAMETERS) ") ON CONFLICT DO UPDATE SET "  \
                                                                             "overlapped = overlapped + "    \
                                                                             "excluded."                     \
                                                                             "overlappe"                     \
                                                                             "d" OCC_MEASURED_SOURCES(       \
                                                                                 OCC_SQL_ADD_2)              \
                                                                                 OCC_MEASURED_VALUES(        \
                                                                                     OCC_SQL_ADD_SUMS))

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
