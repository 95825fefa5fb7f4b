# On the store in memory of the unit tests: the input is the daemon's, not SQLite's.
add_executable(fuzz_handshake fuzz_handshake.c ../unit/daemon_fake_store.c)
target_include_directories(fuzz_handshake PRIVATE ../unit)
target_link_libraries(fuzz_handshake PRIVATE occ_compile_options occ_daemon occ_ring occ_support)
target_compile_options(fuzz_handshake PRIVATE -fsanitize=fuzzer)
target_link_options(fuzz_handshake PRIVATE -fsanitize=fuzzer)
