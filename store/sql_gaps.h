/* The statements of query/gaps.c; see sql.h. X(NAME, "statement") */
#pragma once

/* clang-format off */
#define OCC_SQL_GAP_STATEMENTS(X) \
    X(GPUS_OF_RUN, "SELECT DISTINCT c.run_id, c.device_id, d.name, d.simulated, d.cc FROM stored_chunk c " \
      "JOIN stored_device d USING(device_id) WHERE c.run_id = iif(?1 < 0, " \
      OCC_FILTER_RUN_LAST ", ?1) ORDER BY c.device_id") \
    X(LAUNCHES_BY_START, "SELECT start_ns, end_ns, config_id, graph_node_id IS NOT NULL FROM launch " \
      "WHERE run_id = ? AND device_id = ? AND start_ns >= ? AND start_ns < ? ORDER BY start_ns") \
    X(NEWEST_RUN_OF_CONFIG, "SELECT max(run_id) FROM stored_run_config WHERE config_id = ?") \
    X(CHUNKS_OF_FILTER, "SELECT chunk_id, run_id, device_id, launches, first_start_ns, last_end_ns " \
      "FROM stored_chunk WHERE (last_start_ns >= ?1 OR last_end_ns > ?1) AND first_start_ns < ?2 " \
      "ORDER BY run_id, device_id, first_start_ns, chunk_id") \
    X(CHUNKS_OF_RUN, "SELECT chunk_id, run_id, device_id, launches, first_start_ns, last_end_ns " \
      "FROM stored_chunk WHERE (last_start_ns >= ?1 OR last_end_ns > ?1) AND first_start_ns < ?2 AND " \
      "run_id = ?3 " \
      "ORDER BY device_id, first_start_ns, chunk_id") \
    X(CHUNK_DATA, "SELECT data FROM stored_chunk_data WHERE chunk_id = ?") \
    X(DEVICES_OF_RUN, "SELECT DISTINCT c.device_id FROM stored_run_config x JOIN stored_launch_config c " \
      "USING(config_id) WHERE x.run_id = ? ORDER BY 1") \
    X(CONFIGS_OF_KERNEL, "SELECT config_id FROM stored_launch_config WHERE kernel_id = ?") \
    X(SOURCE_OF_RUN, "SELECT r.source = 'ncu', (SELECT CAST(min(total(l.launches), 4e18) AS INTEGER) FROM " \
      "stored_loss l WHERE l.run_id = r.run_id), r.launches FROM stored_run r WHERE r.run_id = ?") \
    X(DEVICE_UUID, "SELECT uuid FROM stored_device WHERE device_id = ?") \
    X(HOLES, "SELECT from_ns, coalesce(until_ns, 9223372036854775807), level = 'configs' FROM stored_period " \
      "WHERE run_id = ? AND level IN ('configs', 'nothing', 'unknown') ORDER BY 1")
/* clang-format on */
