/* Statements about ranges, in the form of sql.h. */
#pragma once

/* ADD_RANGE: at most ?4 ranges of a run, and a range that stands for all others. RANGES: equal paths follow
 * each other, within a path equal phases. */
/* clang-format off: SQL is laid out by hand */
#define OCC_SQL_RANGE_STATEMENTS(X) \
    X(FIND_RANGE, "SELECT range_id FROM stored_range WHERE run_id = ? AND path = ? AND phase = ?") \
    X(ADD_RANGE, "INSERT INTO stored_range(run_id, range_id, path, phase) " \
      "SELECT ?1, 1 + coalesce(max(range_id), 0), iif(count(*) < ?4, ?2, '(other ranges)'), " \
      "iif(count(*) < ?4, ?3, '') FROM stored_range WHERE run_id = ?1 " \
      "ON CONFLICT(run_id, path, phase) DO UPDATE SET path = excluded.path RETURNING range_id") \
    X(RANGES, "SELECT run_id, range_id, path, phase = 'backward' FROM stored_range ORDER BY path, 4") \
    X(RANGES_OF_RUN, "SELECT run_id, range_id, path, phase = 'backward' FROM stored_range WHERE run_id = ? " \
      "ORDER BY path, 4")
/* clang-format on */
