occ_add_test(test_cli SOURCES test_cli.c USES occ_occq occ_occtrace)
occ_add_test(test_marks SOURCES test_marks.c USES occ_cli_history PkgConfig::SQLITE)

# A small history with known content, and what occq says about it.
add_executable(cli_history cli_history.c)
target_link_libraries(cli_history PRIVATE occ_compile_options occ_store occ_occupancy occ_support)
set(_expected bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_expected.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>"
              "${PROJECT_SOURCE_DIR}/tests/data/cli")
if(OCC_SANITIZE)
  occ_add_script_test(cli_expected COMMAND ${_expected} some)
  occ_add_script_test(cli_expected_all COMMAND ${_expected} LABELS slow)
else()
  occ_add_script_test(cli_expected COMMAND ${_expected})
endif()

occ_add_script_test(cli_habits
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_habits.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>" TEXTS)
occ_add_script_test(cli_all_users
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_all_users.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>" LABELS slow)

if(OCC_SANITIZE) # in place of the tests with TEXTS
  occ_add_script_test(cli_sanitized
    COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_sanitized.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>" "${PROJECT_SOURCE_DIR}")
endif()

# The committed man pages and completion are what the tables give, and list what --help lists.
occ_add_script_test(cli_documents
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_documents.sh" "$<TARGET_FILE:occtrace>"
          "$<TARGET_FILE:occq>" "${PROJECT_SOURCE_DIR}" TEXTS)

# occtrace with programs that know nothing of CUDA.
occ_add_test(test_summary SOURCES test_summary.c USES occ_occtrace m)
occ_add_script_test(cli_occtrace
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_occtrace.sh" "$<TARGET_FILE:occtrace>" "$<TARGET_FILE:occq>"
          "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")

# The calculator: its batch, curves and plots; and files that nvcc made (image.cmake), against what ptxas said.
occ_add_test(test_calc SOURCES test_calc.c USES occ_occq_calc m)
target_link_options(test_calc PRIVATE LINKER:--wrap=strcmp)
occ_add_script_test(cli_calc_files
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_calc_files.sh" "$<TARGET_FILE:occq>" "${CMAKE_CURRENT_BINARY_DIR}/images")

# occq sampler: with a real daemon without a GPU, and with made-up answers.
add_executable(cli_fake_daemon cli_fake_daemon.c)
target_link_libraries(cli_fake_daemon PRIVATE occ_compile_options occ_support)
occ_add_script_test(cli_sampler
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_sampler.sh" "$<TARGET_FILE:occtraced>" "$<TARGET_FILE:occq>"
          "$<TARGET_FILE:cli_fake_daemon>")
occ_add_script_test(cli_refusals
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_refusals.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>"
          "$<TARGET_FILE:cli_fake_daemon>")

# occq doctor: its checks on machines that the test makes up, and its page.
occ_add_test(test_doctor SOURCES test_doctor.c USES occ_occq_doctor)
target_link_options(test_doctor PRIVATE LINKER:--wrap=statfs,--wrap=statvfs)
occ_add_script_test(cli_doctor
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_doctor.sh" "$<TARGET_FILE:occq>" "$<TARGET_FILE:occ_fake_cupti>")

# occq diff: the arithmetic without a history.
occ_add_test(test_diff SOURCES test_diff.c USES occ_occq_diff occ_cli_sides occ_compare m)
occ_add_test(test_diff_levels SOURCES test_diff_levels.c USES occ_cli_sides occ_compare m)
occ_add_script_test(cli_diff_screens
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_diff_screens.py" "$<TARGET_FILE:occq>" TEXTS)
occ_add_test(test_gpu_time SOURCES test_gpu_time.c USES occ_compare m)
occ_add_script_test(cli_gpu_time
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_gpu_time.py" "$<TARGET_FILE:occq>" TEXTS)
occ_add_script_test(cli_export
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_export.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>" "${PROJECT_SOURCE_DIR}" TEXTS)
occ_add_script_test(cli_import_directory
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_import_directory.sh" "$<TARGET_FILE:occq>" "${PROJECT_SOURCE_DIR}")
occ_add_script_test(cli_cluster_password
  COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/cli_cluster_password.py" "$<TARGET_FILE:occq>")
occ_add_script_test(cli_parquet
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_parquet.py" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>")
occ_add_script_test(cli_damaged
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_damaged.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>")
occ_add_script_test(cli_waiting_reader
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_waiting_reader.py" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>")
occ_add_script_test(cli_remove
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_remove.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>")
occ_add_script_test(cli_trend COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_trend.sh" "$<TARGET_FILE:occq>" TEXTS)
occ_add_script_test(cli_csv
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_csv.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>" TEXTS)
occ_add_script_test(cli_days COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_days.sh" "$<TARGET_FILE:occq>" TEXTS)
occ_add_script_test(cli_labels COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_labels.sh" "$<TARGET_FILE:occq>" TEXTS)
occ_add_script_test(cli_pasted_names
  COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/cli_pasted_names.py" "$<TARGET_FILE:occq>"
          "${PROJECT_SOURCE_DIR}/tests/data/names/pytorch.txt" TEXTS)
occ_add_script_test(cli_advice
  COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/cli_advice.py" "$<TARGET_FILE:occq>" "${PROJECT_SOURCE_DIR}/tests/data" TEXTS)
occ_add_script_test(cli_show
  COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/cli_show.py" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>" TEXTS)
occ_add_script_test(cli_check
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_check.sh" "$<TARGET_FILE:occq>" "${PROJECT_SOURCE_DIR}" TEXTS)
occ_add_script_test(cli_hit_rate
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_hit_rate.py" "$<TARGET_FILE:occq>")
# The build gate: its lock file, and the gate on builds that the test makes.
occ_add_test(test_pins SOURCES test_pins.c USES occ_compare)
occ_add_script_test(cli_gate
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_gate.py" "$<TARGET_FILE:occq>" "${CMAKE_CURRENT_BINARY_DIR}/images")
add_executable(test_diff_traces test_diff_traces.c)
target_link_libraries(test_diff_traces PRIVATE occ_compile_options occ_cli_sides m)
file(GLOB recorded "${PROJECT_SOURCE_DIR}/tests/data/diff/*.csv")
occ_add_script_test(diff_traces COMMAND "$<TARGET_FILE:test_diff_traces>" ${recorded})

# What is printed on screens of several widths, with a pager, with colours.
occ_add_test(test_digits SOURCES test_digits.c USES occ_support m)
occ_add_test(test_cli_fit SOURCES test_cli_fit.c USES occ_cli)
occ_add_script_test(cli_screen
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_screen.sh" "$<TARGET_FILE:occq>" "${PROJECT_SOURCE_DIR}/tests/data/names/pytorch.txt" TEXTS)

# Two GPUs of one model: a history of them for tests/integration/two_gpus.py.
add_executable(two_gpus_history two_gpus_history.c)
target_link_libraries(two_gpus_history PRIVATE occ_compile_options occ_store)

# The bill of three recordings.
occ_add_script_test(cli_opt_in COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_opt_in.sh" "${PROJECT_SOURCE_DIR}/packaging/opt-in")
occ_add_script_test(cli_slurm_epilog
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_slurm_epilog.sh" "$<TARGET_FILE:occq>" "$<TARGET_FILE:cli_history>"
          "${PROJECT_SOURCE_DIR}/packaging/opt-in/slurm-epilog.in")
occ_add_script_test(cli_cost
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_cost.py" "$<TARGET_FILE:occq>" "$<TARGET_FILE:cli_history>"
          "$<TARGET_FILE:two_gpus_history>" "${PROJECT_SOURCE_DIR}/tests/data/import" TEXTS)

occ_add_script_test(cli_cost_owners
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_cost_owners.py" "$<TARGET_FILE:occq>" "$<TARGET_FILE:two_gpus_history>")

occ_add_script_test(cli_focus
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_focus.py" "$<TARGET_FILE:occq>" "$<TARGET_FILE:cli_history>"
          "$<TARGET_FILE:two_gpus_history>" "${PROJECT_SOURCE_DIR}/tests/data/import" TEXTS)

occ_add_script_test(cli_energy
  COMMAND python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/cli_energy.py" "$<TARGET_FILE:occq>" "$<TARGET_FILE:cli_history>"
          "$<TARGET_FILE:two_gpus_history>")

# The examples in --help, as people paste them.
occ_add_script_test(cli_examples
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_examples.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>"
          "${PROJECT_SOURCE_DIR}/tests/data/import" TEXTS)

# occq report as a file; tests/browser looks at it.
occ_add_script_test(cli_report
  COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/cli_report.py" "$<TARGET_FILE:occq>" "$<TARGET_FILE:cli_history>" TEXTS)

# occq live: its rows and texts; and its screen in tmux, over a history of the last seconds.
occ_add_script_test(cli_live_missing
  COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/cli_live_missing.sh" "$<TARGET_FILE:cli_history>" "$<TARGET_FILE:occq>")
occ_add_test(test_top_lines SOURCES test_top_lines.c USES occ_cli_kernels m)
occ_add_test(test_live SOURCES test_live.c USES occ_occq_live m)
add_executable(live_history live_history.c)
target_link_libraries(live_history PRIVATE occ_compile_options occ_store)
occ_add_script_test(cli_live
  COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/cli_live.py" "$<TARGET_FILE:occq>" "$<TARGET_FILE:live_history>" LABELS slow)
