set(_here "${CMAKE_CURRENT_SOURCE_DIR}")
if(NOT OCC_SANITIZE) # sources and symbols are the same in each build
  occ_add_script_test(check_dependencies COMMAND sh "${_here}/check_dependencies.sh" "${PROJECT_SOURCE_DIR}")
  occ_add_script_test(check_prose COMMAND sh "${_here}/check_prose.sh" "${PROJECT_SOURCE_DIR}")
  occ_add_script_test(check_shape COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/shape")
  occ_add_script_test(check_documents COMMAND python3 "${_here}/check_documents.py" "${PROJECT_SOURCE_DIR}")
  occ_add_script_test(upgrade_tables COMMAND python3 "${_here}/upgrade_tables.py" "${PROJECT_SOURCE_DIR}")
  occ_add_script_test(check_close_on_exec COMMAND sh "${_here}/check_close_on_exec.sh" "${PROJECT_SOURCE_DIR}")

  get_property(libraries GLOBAL PROPERTY OCC_LIBRARIES)
  list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/objects" CONTENT "$<JOIN:${objects},\n>\n")
  occ_add_script_test(check_circles
    COMMAND sh "${_here}/check_circles.sh" "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}/objects" "${PROJECT_BINARY_DIR}")
endif()

if(OCC_SANITIZE) # no program is observed: see below
  set(no_recording --no-recording)
endif()
if(NOT OCC_SANITIZE STREQUAL thread) # programs with one thread
  occ_add_script_test(two_gpus COMMAND python3 "${_here}/two_gpus.py" "${PROJECT_BINARY_DIR}" ${no_recording} TEXTS)
  occ_add_script_test(preload COMMAND bash "${_here}/preload.sh" $<TARGET_FILE:occtrace_preload> "${CMAKE_C_COMPILER}")
endif()
occ_add_script_test(metrics COMMAND bash "${_here}/metrics.sh" "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
occ_add_script_test(metrics_engines COMMAND bash "${_here}/metrics.sh" "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}" engines LABELS slow)
if(TARGET sim_cuda)
  add_executable(daemon_rings daemon_rings.c)
  target_include_directories(daemon_rings PRIVATE ../unit)
  target_link_libraries(daemon_rings PRIVATE occ_compile_options PkgConfig::CMOCKA occ_daemon)
  occ_add_script_test(daemon_rings COMMAND "${PROJECT_SOURCE_DIR}/scripts/simgpu" --build "${PROJECT_BINARY_DIR}"
                      $<TARGET_FILE:daemon_rings>)
endif()
if(NOT OCC_SANITIZE) # the sanitizers' runtime would have to come first in other people's processes
  occ_add_script_test(exported_symbols COMMAND sh "${_here}/exported_symbols.sh"
                      $<TARGET_FILE:occtrace_injector> $<TARGET_FILE:occtrace_exact> $<TARGET_FILE:occtrace_nvtx>
                      $<TARGET_FILE:occtrace_preload>
                      $<TARGET_FILE:occtrace> $<TARGET_FILE:occq> $<TARGET_FILE:occtraced> $<TARGET_FILE:occtrace-ship>)
  occ_add_script_test(old_glibc COMMAND bash "${_here}/old_glibc.sh" "${PROJECT_BINARY_DIR}" LABELS long)
  add_executable(exit_order exit_order.c)
  target_link_libraries(exit_order PRIVATE occ_compile_options ${CMAKE_DL_LIBS})
  set_target_properties(exit_order PROPERTIES ENABLE_EXPORTS ON)
  occ_add_script_test(exit_order COMMAND exit_order $<TARGET_FILE:occtrace_injector>)
  occ_add_script_test(completion COMMAND bash "${_here}/completion.sh" "${PROJECT_BINARY_DIR}")
  occ_add_script_test(guest COMMAND bash "${_here}/guest.sh" "${PROJECT_BINARY_DIR}")
  file(GLOB guests CONFIGURE_DEPENDS "${_here}/guests/*.c")
  add_executable(guests ${guests})
  target_link_libraries(guests PRIVATE occ_compile_options Threads::Threads ${CMAKE_DL_LIBS})
  occ_add_script_test(guests COMMAND bash "${_here}/guests.sh" "${PROJECT_BINARY_DIR}")
  occ_add_script_test(guests_all COMMAND bash "${_here}/guests.sh" "${PROJECT_BINARY_DIR}" --all LABELS slow)
  occ_add_script_test(faults COMMAND bash "${_here}/faults.sh" "${PROJECT_BINARY_DIR}")
  occ_add_script_test(packages COMMAND bash "${_here}/packages.sh" "${PROJECT_BINARY_DIR}")
  occ_add_script_test(sessions COMMAND bash "${_here}/sessions.sh" "${PROJECT_BINARY_DIR}" LABELS long)
  add_library(clock_step SHARED clock_step.c)
  target_link_libraries(clock_step PRIVATE occ_compile_options)
  occ_add_script_test(clock_step COMMAND bash "${_here}/clock_step.sh" "${PROJECT_BINARY_DIR}" "$<TARGET_FILE:clock_step>" LABELS slow)
  occ_add_script_test(disk_full COMMAND bash "${_here}/disk_full.sh" "${PROJECT_BINARY_DIR}" "$<TARGET_FILE:cli_history>")
  occ_add_script_test(hostile_limits COMMAND bash "${_here}/hostile_limits.sh" "${PROJECT_BINARY_DIR}" "$<TARGET_FILE:cli_history>" LABELS slow)
  occ_add_script_test(database_path
                      COMMAND bash "${_here}/database_path.sh" "${PROJECT_BINARY_DIR}" "$<TARGET_FILE:cli_history>")
  occ_add_script_test(foreign_daemon
                      COMMAND bash "${_here}/foreign_daemon.sh" "${PROJECT_BINARY_DIR}" "$<TARGET_FILE:cli_fake_daemon>"
                              "$<TARGET_FILE:cli_history>")
  occ_add_script_test(coverage COMMAND bash "${_here}/coverage.sh" "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
  occ_add_script_test(coverage_time COMMAND bash "${_here}/coverage.sh" "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}" time LABELS slow)
  occ_add_script_test(coexistence COMMAND bash "${_here}/coexistence.sh" "${PROJECT_BINARY_DIR}")
  occ_add_script_test(exact COMMAND bash "${_here}/exact.sh" "${PROJECT_BINARY_DIR}")
  occ_add_script_test(nvtx COMMAND bash "${_here}/nvtx.sh" "${PROJECT_BINARY_DIR}")
  occ_add_script_test(measured COMMAND bash "${_here}/measured.sh" "${PROJECT_BINARY_DIR}")
  # The simulated device runs in real time: a launch that waits for a processor is late for its samples.
  set_tests_properties(measured PROPERTIES RUN_SERIAL TRUE)
  if(TARGET replay)
    occ_add_script_test(replay COMMAND bash "${_here}/replay.sh" "${PROJECT_BINARY_DIR}")
  endif()
  occ_add_script_test(kill_loop_short COMMAND bash "${_here}/kill_loop.sh" "${PROJECT_BINARY_DIR}" 8)
  occ_add_script_test(exit_runs COMMAND bash "${_here}/exit_runs.sh" "${PROJECT_BINARY_DIR}" 200
                      LABELS slow)
  occ_add_script_test(kill_loop COMMAND bash "${_here}/kill_loop.sh" "${PROJECT_BINARY_DIR}" 200
                      LABELS slow)
endif()
