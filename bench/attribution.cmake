# Achieved occupancy from device-wide samples: error against a truth of its own, and speed.
add_executable(bench_attribution
  bench_attribution.c attribution_counters.c attribution_dump.c attribution_judge.c attribution_physics.c attribution_timeline.c
  attribution_world.c attribution_worlds.c heap_peak.c
  ${PROJECT_SOURCE_DIR}/daemon/sampling/gpu_queues.c ${PROJECT_SOURCE_DIR}/daemon/sampling/known_totals.c)
target_include_directories(bench_attribution PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(bench_attribution PRIVATE
  OCC_ATTRIBUTION_RECORDINGS="${PROJECT_SOURCE_DIR}/tests/data/attribution")
target_link_options(bench_attribution PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free)
target_link_libraries(bench_attribution PRIVATE occ_compile_options occ_attribution occ_counters occ_store
  occ_occupancy m)
