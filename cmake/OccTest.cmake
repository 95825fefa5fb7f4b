# occ_add_test(NAME SOURCES... USES targets... [LABELS ...] [TIMEOUT s])
#     a cmocka program NAME and a ctest of the same name; label quick unless told.
# occ_add_script_test(NAME COMMAND ... [LABELS ...] [TIMEOUT s])
#     a ctest that runs a command; exit 77 counts as skipped.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

function(_occ_test_properties name labels timeout)
  if(NOT labels)
    set(labels quick)
  endif()
  if(NOT timeout)
    set(timeout 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

function(occ_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;USES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE occ_compile_options PkgConfig::CMOCKA ${ARG_USES})
  add_test(NAME ${name} COMMAND ${name})
  _occ_test_properties(${name} "${ARG_LABELS}" "${ARG_TIMEOUT}")
endfunction()

function(occ_add_script_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  _occ_test_properties(${name} "${ARG_LABELS}" "${ARG_TIMEOUT}")
endfunction()
