# occ_add_test(NAME SOURCES... USES targets... [LABELS ...])
#     a cmocka program NAME and a ctest of the same name; label quick unless told.
# occ_add_script_test(NAME COMMAND ... [LABELS ...])
#     a ctest that runs a command; exit 77 counts as skipped.
# OCC_TEST_TIMEOUT_S, OCC_SLOW_TEST_TIMEOUT_S: see tests/CMakeLists.txt.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

function(_occ_test_properties name labels)
  set(timeout ${OCC_TEST_TIMEOUT_S})
  if(NOT labels)
    set(labels quick)
  elseif("slow" IN_LIST labels)
    set(timeout ${OCC_SLOW_TEST_TIMEOUT_S})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

function(occ_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE occ_compile_options PkgConfig::CMOCKA ${ARG_USES})
  add_test(NAME ${name} COMMAND ${name})
  _occ_test_properties(${name} "${ARG_LABELS}")
endfunction()

function(occ_add_script_test name)
  cmake_parse_arguments(ARG "" "" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  _occ_test_properties(${name} "${ARG_LABELS}")
endfunction()
