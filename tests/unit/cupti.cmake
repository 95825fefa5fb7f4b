if(OCC_HAVE_CUPTI_HEADERS)
  occ_add_test(test_cupti_abi SOURCES test_cupti_abi.c)
  target_include_directories(test_cupti_abi PRIVATE "${PROJECT_SOURCE_DIR}")
  # cupti_profiler_host.h of 13.0 includes C++'s <string>; tests/shim has an empty one
  target_include_directories(test_cupti_abi SYSTEM PRIVATE
    "${PROJECT_SOURCE_DIR}/tests/shim" "${OCC_CUDA_INCLUDE_DIR}" "${OCC_CUPTI_INCLUDE_DIR}")
  target_compile_options(test_cupti_abi PRIVATE -w)
endif()
