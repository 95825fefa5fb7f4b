# The collector on a store in memory; the program with its real store.
occ_add_test(test_daemon_collector SOURCES test_daemon_collector.c daemon_fake_store.c USES occ_daemon)
occ_add_test(test_daemon_control SOURCES test_daemon_control.c USES occ_daemon)
occ_add_test(test_daemon_identity SOURCES test_daemon_identity.c USES occ_daemon)
occ_add_test(test_daemon_gpu SOURCES test_daemon_gpu.c USES occ_daemon)
occ_add_test(test_daemon_users SOURCES test_daemon_users.c USES occ_daemon PkgConfig::SQLITE)
occ_add_test(test_daemon_clients SOURCES test_daemon_clients.c USES occ_daemon)
add_test(NAME test_daemon_clients_long COMMAND test_daemon_clients long)
_occ_test_properties(test_daemon_clients_long slow)
occ_add_test(test_daemon_process SOURCES test_daemon_process.c USES occ_ring occ_store occ_support PkgConfig::SQLITE)
target_compile_definitions(test_daemon_process PRIVATE OCC_DAEMON="$<TARGET_FILE:occtraced>"
  OCC_MAN_PAGE="${PROJECT_SOURCE_DIR}/docs/man/occtraced.8")
add_dependencies(test_daemon_process occtraced)
