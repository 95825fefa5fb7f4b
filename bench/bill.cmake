# The bill of a history with many runs.
add_executable(bench_bill bench_bill.c)
target_link_libraries(bench_bill PRIVATE occ_compile_options occ_answer occ_store m)
