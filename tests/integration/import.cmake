set(oracle "")
if(TARGET import_oracle)
  set(oracle $<TARGET_FILE:import_oracle>)
endif()
occ_add_script_test(import_recordings
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/import_recordings.sh" "${PROJECT_BINARY_DIR}" ${oracle})
