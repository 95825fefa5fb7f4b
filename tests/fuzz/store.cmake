add_executable(fuzz_chunk fuzz_chunk.c)
target_link_libraries(fuzz_chunk PRIVATE occ_compile_options occ_store)
target_compile_options(fuzz_chunk PRIVATE -fsanitize=fuzzer)
target_link_options(fuzz_chunk PRIVATE -fsanitize=fuzzer)
