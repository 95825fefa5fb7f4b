# The collector on a store in memory; reordering; packets, options and other small parts.
occ_add_test(test_daemon_collector SOURCES test_daemon_collector.c daemon_fake_store.c USES occ_daemon)
occ_add_test(test_daemon_reorder SOURCES test_daemon_reorder.c USES occ_daemon)
