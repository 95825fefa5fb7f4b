# The producer's cost, beside LTTng-UST's where its development files are.
add_executable(bench_ring bench_ring.c)
target_link_libraries(bench_ring PRIVATE occ_compile_options occ_ring)
pkg_check_modules(LTTNG_UST QUIET IMPORTED_TARGET lttng-ust>=2.13)
if(LTTNG_UST_FOUND)
  add_executable(bench_ring_lttng bench_ring_lttng.c)
  # its macros are not ours to keep clean of warnings
  target_compile_definitions(bench_ring_lttng PRIVATE _GNU_SOURCE)
  target_include_directories(bench_ring_lttng PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(bench_ring_lttng PRIVATE PkgConfig::LTTNG_UST ${CMAKE_DL_LIBS})
  target_compile_definitions(bench_ring PRIVATE
    OCC_BENCH_LTTNG="'${CMAKE_CURRENT_SOURCE_DIR}/bench_ring_lttng.sh' '$<TARGET_FILE:bench_ring_lttng>'")
  add_dependencies(bench_ring bench_ring_lttng)
else()
  message(STATUS "liblttng-ust not found: bench_ring compares with nothing")
endif()
