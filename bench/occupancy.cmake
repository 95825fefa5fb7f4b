# The model: evaluations a second on one core.
add_executable(bench_occupancy bench_occupancy.c)
target_link_libraries(bench_occupancy PRIVATE occ_compile_options occ_occupancy)
