/* The statements of query/gaps.c; see sql.h. X(NAME, "statement") */
#pragma once

/* clang-format off */
#define OCC_SQL_GAP_STATEMENTS(X) \
    X(GPUS_OF_RUN, "SELECT DISTINCT c.run_id, c.device_id, d.name, d.simulated, d.cc FROM stored_chunk c " \
      "JOIN stored_device d USING(device_id) WHERE c.run_id = iif(?1 < 0, (SELECT max(run_id) FROM " \
      "stored_run), ?1) ORDER BY c.device_id") \
    X(LAUNCHES_BY_START, "SELECT start_ns, end_ns, config_id, graph_node_id IS NOT NULL FROM launch " \
      "WHERE run_id = ? AND device_id = ? AND start_ns >= ? AND start_ns < ? ORDER BY start_ns") \
    X(NEWEST_RUN_OF_CONFIG, "SELECT max(run_id) FROM stored_run_config WHERE config_id = ?") \
    X(HOLES, "SELECT from_ns, coalesce(until_ns, 9223372036854775807), level = 'configs' FROM stored_period " \
      "WHERE run_id = ? AND level IN ('configs', 'nothing', 'unknown') ORDER BY 1")
/* clang-format on */
