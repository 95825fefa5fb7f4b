# The samples under occtrace on each simulated GPU. A sanitizer's runtime would have to come first in them.
if(NOT OCC_SANITIZE)
  foreach(gpu t4 a100 h200)
    occ_add_script_test(samples_${gpu}
      COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/test_samples.sh" "${PROJECT_BINARY_DIR}" ${gpu})
  endforeach()
endif()
