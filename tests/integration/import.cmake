set(oracle "")
if(TARGET import_oracle)
  set(oracle $<TARGET_FILE:import_oracle>)
endif()
find_program(OCC_PYTHON3 python3)
if(OCC_PYTHON3)
  occ_add_script_test(import_ncu COMMAND "${OCC_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/import_ncu.py" $<TARGET_FILE:occq>
    LABELS quick)
  # one step of the trace v100.csv of tests/data/diff is of, with what ranges and launches need
  occ_add_script_test(import_ranges COMMAND "${OCC_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/import_ranges.py"
    $<TARGET_FILE:occq> "${PROJECT_SOURCE_DIR}/tests/data/import/v100_step.json.gz"
    "${PROJECT_SOURCE_DIR}/tests/data/import/kineto_ranges.json" LABELS quick)
  occ_add_script_test(ncu_truth COMMAND "${OCC_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/ncu_truth.py" $<TARGET_FILE:occq>
    "${PROJECT_SOURCE_DIR}/tests/data/ncu/launches.csv" LABELS quick)
endif()
occ_add_script_test(import_recordings
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/import_recordings.sh" "${PROJECT_BINARY_DIR}" ${oracle})

# Gaps between kernels of recordings, against a count by other means.
occ_add_script_test(gaps_recordings
  COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/gaps.py" "$<TARGET_FILE:occq>")
