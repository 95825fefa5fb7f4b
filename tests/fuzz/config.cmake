add_executable(fuzz_config fuzz_config.c)
target_link_libraries(fuzz_config PRIVATE occ_compile_options occ_config occ_support)
target_compile_options(fuzz_config PRIVATE -fsanitize=fuzzer)
target_link_options(fuzz_config PRIVATE -fsanitize=fuzzer)
