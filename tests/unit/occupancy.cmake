# The model: worked examples and words, properties, and NVIDIA's own calculator as the oracle.
occ_add_test(test_occupancy SOURCES test_occupancy.c USES occ_occupancy m)
target_compile_definitions(test_occupancy PRIVATE OCC_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data/occupancy")
occ_add_test(test_occupancy_properties SOURCES test_occupancy_properties.c USES occ_occupancy m HOT)
occ_add_test(test_occupancy_advice SOURCES test_occupancy_advice.c USES occ_occupancy m)
occ_add_test(test_occupancy_predict SOURCES test_occupancy_predict.c USES occ_occupancy m)
# The corpus of published changes that bench_advice reads.
occ_add_test(test_corpus SOURCES test_corpus.c "${PROJECT_SOURCE_DIR}/bench/corpus.c" USES occ_occupancy occ_support m)
target_compile_definitions(test_corpus PRIVATE OCC_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data/occupancy")
occ_add_test(test_occupancy_waterfall SOURCES test_occupancy_waterfall.c USES occ_occupancy m)
# The model against launches that a cycle-level simulator executed.
occ_add_test(test_occupancy_simulated
  SOURCES test_occupancy_simulated.c "${PROJECT_SOURCE_DIR}/bench/simulated_launches.c" USES occ_occupancy m)
target_compile_definitions(test_occupancy_simulated PRIVATE OCC_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data/occupancy")
occ_add_test(test_occupancy_bound SOURCES test_occupancy_bound.c USES occ_occupancy m)
occ_add_test(test_occupancy_latency SOURCES test_occupancy_latency.c USES occ_occupancy m)

if(OCC_HAVE_CUDA_HEADERS AND EXISTS "${OCC_CUDA_INCLUDE_DIR}/cuda_occupancy.h")
  occ_add_test(test_occupancy_oracle
    SOURCES test_occupancy_oracle.c test_occupancy_nvidia.c USES occ_occupancy STEPS HOT)
  target_include_directories(test_occupancy_oracle SYSTEM PRIVATE "${OCC_CUDA_INCLUDE_DIR}")
else()
  occ_add_script_test(test_occupancy_oracle
    COMMAND sh -c "echo SKIP: no cuda_occupancy.h, the model is not compared with NVIDIA\\'s && exit 77")
endif()

# The model may be called from anywhere: it must not allocate, do I/O or end the process. Names with __ are the
# compiler's (sanitizers, coverage).
occ_add_script_test(occupancy_is_pure
  COMMAND sh -c "! nm -u $<TARGET_FILE:occ_occupancy> | grep -Ev ' (occ_|__)' | grep -E 'U .*(alloc|free|open|read|write|print|put|exit|abort)'")

# It is usable without the rest: installed alone, compiled against, run.
set(OCC_CONSUMER_FLAGS "")
if(OCC_SANITIZE)
  list(APPEND OCC_CONSUMER_FLAGS "-fsanitize=${OCC_SANITIZE}")
endif()
if(OCC_COVERAGE)
  list(APPEND OCC_CONSUMER_FLAGS --coverage)
endif()
occ_add_script_test(occupancy_is_usable_alone
  COMMAND "${CMAKE_CURRENT_LIST_DIR}/occupancy_installed.sh" "${CMAKE_COMMAND}" "${PROJECT_BINARY_DIR}"
          "${PROJECT_SOURCE_DIR}/tests/data/occupancy/consumer.c" "${CMAKE_C_COMPILER}" c++ ${OCC_CONSUMER_FLAGS})
