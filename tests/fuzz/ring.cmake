add_executable(fuzz_ring fuzz_ring.c)
target_link_libraries(fuzz_ring PRIVATE occ_compile_options occ_ring)
target_compile_options(fuzz_ring PRIVATE -fsanitize=fuzzer)
target_link_options(fuzz_ring PRIVATE -fsanitize=fuzzer)
