# The model: evaluations a second on one core.
add_executable(bench_occupancy bench_occupancy.c)
target_link_libraries(bench_occupancy PRIVATE occ_compile_options occ_occupancy)

# The expected range and the waterfall against launches that a cycle-level simulator executed.
add_executable(bench_expected bench_expected.c simulated_launches.c)
target_include_directories(bench_expected PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(bench_expected PRIVATE
  OCC_SIMULATED_LAUNCHES="${PROJECT_SOURCE_DIR}/tests/data/occupancy/cycle_sim.csv")
target_link_libraries(bench_expected PRIVATE occ_compile_options occ_occupancy m)

# Predictions and advice against a corpus of published changes, whose path is an argument.
add_executable(bench_advice bench_advice.c advice_fit.c corpus.c)
target_include_directories(bench_advice PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(bench_advice PRIVATE occ_compile_options occ_occupancy occ_support m)
