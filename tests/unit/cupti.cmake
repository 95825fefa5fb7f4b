occ_add_test(test_cupti_library SOURCES test_cupti_library.c USES occ_cupti)
target_compile_definitions(test_cupti_library PRIVATE OCC_FAKE_CUPTI="$<TARGET_FILE:occ_fake_cupti>")
add_dependencies(test_cupti_library occ_fake_cupti)
if(OCC_HAVE_CUPTI_HEADERS)
  occ_add_test(test_cupti_abi SOURCES test_cupti_abi.c)
  target_include_directories(test_cupti_abi PRIVATE "${PROJECT_SOURCE_DIR}")
  # cupti_profiler_host.h of 13.0 includes C++'s <string>; tests/shim has an empty one
  target_include_directories(test_cupti_abi SYSTEM PRIVATE
    "${PROJECT_SOURCE_DIR}/tests/shim" "${OCC_CUDA_INCLUDE_DIR}" "${OCC_CUPTI_INCLUDE_DIR}")
  target_compile_options(test_cupti_abi PRIVATE -w)
endif()
