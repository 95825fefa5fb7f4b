# Achieved occupancy from device-wide samples: error against a truth of its own, and speed.
add_executable(bench_attribution bench_attribution.c attribution_world.c)
target_include_directories(bench_attribution PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(bench_attribution PRIVATE occ_compile_options occ_attribution m)
