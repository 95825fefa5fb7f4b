# The calculator: rows a second of `occq calc --batch`, the whole process.
add_executable(bench_calc bench_calc.c)
target_link_libraries(bench_calc PRIVATE occ_compile_options)
target_compile_definitions(bench_calc PRIVATE BENCH_OCCQ="$<TARGET_FILE:occq>")
add_dependencies(bench_calc occq)
