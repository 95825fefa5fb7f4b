occ_add_test(test_cupti_library SOURCES test_cupti_library.c USES occ_cupti)
target_compile_definitions(test_cupti_library PRIVATE OCC_FAKE_CUPTI="$<TARGET_FILE:occ_fake_cupti>")
add_dependencies(test_cupti_library occ_fake_cupti)
# A library with an RPATH of its own, which the test names libtorch.
add_library(occ_fake_torch MODULE cupti_fake_torch.c)
set_target_properties(occ_fake_torch PROPERTIES PREFIX "" BUILD_RPATH "\$ORIGIN/../../on_rpath"
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/unit")
target_compile_definitions(test_cupti_library PRIVATE OCC_FAKE_TORCH="$<TARGET_FILE:occ_fake_torch>")
add_dependencies(test_cupti_library occ_fake_torch)
if(OCC_HAVE_CUPTI_HEADERS)
  occ_add_test(test_cupti_abi SOURCES test_cupti_abi.c)
  target_include_directories(test_cupti_abi PRIVATE "${PROJECT_SOURCE_DIR}")
  # cupti_profiler_host.h of 13.0 includes C++'s <string>; tests/shim has an empty one
  target_include_directories(test_cupti_abi SYSTEM PRIVATE
    "${PROJECT_SOURCE_DIR}/tests/shim" "${OCC_CUDA_INCLUDE_DIR}" "${OCC_CUPTI_INCLUDE_DIR}")
  target_compile_options(test_cupti_abi PRIVATE -w)
endif()
