if(NOT OCC_SANITIZE) # NVIDIA's library opens another in a way that sanitizers refuse
  occ_add_test(test_sampler_sets SOURCES test_sampler_sets.c USES occ_counters)
endif()
occ_add_test(test_attribution SOURCES test_attribution.c USES occ_attribution occ_counters m HOT)
set(worlds "${PROJECT_SOURCE_DIR}/bench")
occ_add_test(test_attribution_worlds
  SOURCES test_attribution_worlds.c ${worlds}/attribution_counters.c ${worlds}/attribution_physics.c
          ${worlds}/attribution_timeline.c ${worlds}/attribution_world.c
  USES m HOT)
target_include_directories(test_attribution_worlds PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(test_attribution_worlds PRIVATE
  OCC_ATTRIBUTION_RECORDINGS="${PROJECT_SOURCE_DIR}/tests/data/attribution")
occ_add_test(test_attribution_judge SOURCES test_attribution_judge.c ${worlds}/attribution_judge.c
             ${PROJECT_SOURCE_DIR}/daemon/sampling/counters/ratios.c ${PROJECT_SOURCE_DIR}/daemon/sampling/gpu_queues.c
             ${PROJECT_SOURCE_DIR}/daemon/sampling/known_totals.c USES occ_store m HOT)
target_include_directories(test_attribution_judge PRIVATE "${PROJECT_SOURCE_DIR}")
if(OCC_BUILD_BENCH)
  set(figures_label quick)
  if(OCC_SANITIZE) # minutes of arithmetic, which test_attribution and attribution_numpy run there too
    set(figures_label slow)
  endif()
  occ_add_script_test(attribution_figures COMMAND bench_attribution --quick LABELS ${figures_label})
  occ_add_script_test(attribution_numpy
    COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/attribution_numpy.py" "$<TARGET_FILE:bench_attribution>" --worlds graph-12)
endif()
occ_add_test(test_sampler_seconds SOURCES test_sampler_seconds.c USES occ_attribution occ_counters m)
occ_add_test(test_sampler_competing SOURCES test_sampler_competing.c USES occ_counters)
occ_add_test(test_sampler_library SOURCES test_sampler_library.c USES occ_counters)
target_compile_definitions(test_sampler_library PRIVATE OCC_FAKE_CUPTI="$<TARGET_FILE:occ_fake_cupti>")
add_dependencies(test_sampler_library occ_fake_cupti)
add_library(occ_fake_pm_cupti MODULE sampler_fake_cupti.c)
target_link_libraries(occ_fake_pm_cupti PRIVATE occ_compile_options)
target_include_directories(occ_fake_pm_cupti PRIVATE "${PROJECT_SOURCE_DIR}")
set_target_properties(occ_fake_pm_cupti PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/unit")
occ_add_test(test_sampler_pm SOURCES test_sampler_pm.c USES occ_counters ${CMAKE_DL_LIBS})
target_compile_definitions(test_sampler_pm PRIVATE OCC_FAKE_PM_CUPTI="$<TARGET_FILE:occ_fake_pm_cupti>")
add_dependencies(test_sampler_pm occ_fake_pm_cupti)
