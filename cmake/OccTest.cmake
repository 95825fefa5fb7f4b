# occ_add_test(NAME SOURCES... USES targets... [LABELS ...] [THREADS [CASES pattern]] [STEPS] [HOT])
#     a cmocka program NAME and a ctest of the same name; label quick unless told. THREADS: the test starts threads. The thread
#     sanitizer has these tests only; it neither builds nor runs the others. CASES: there it runs the cases whose names match, as
#     cmocka_set_test_filter() wants them, and NAME_all, which is slow, runs all. A test's own sources are compiled without
#     optimisation, in a quarter of the time; HOT: not these, which compute for seconds. STEPS: under a sanitizer the test takes
#     some of its inputs (sanitized.h); NAME_all, which is slow, takes all.
# occ_add_script_test(NAME COMMAND ... [LABELS ...] [TEXTS])
#     a ctest that runs a command; exit 77 counts as skipped. One of label long runs only with `ctest -C long`. TEXTS: the test
#     compares what commands print; under a sanitizer it is slow, since cli_expected and cli_sanitized run the same code there.
# OCC_TEST_TIMEOUT_S, OCC_SLOW_TEST_TIMEOUT_S, OCC_LONG_TEST_TIMEOUT_S: see tests/CMakeLists.txt.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

# Seconds of the longest tests on two cores. On a fresh tree ctest knows no times, and a long test that starts last would run alone.
set(OCC_LONG_TESTS
  test_daemon_hostile 90  test_daemon_users 80  test_simgpu_cupti 40  test_injector 40  coexistence 35  test_daemon_process 30
  test_daemon_attacks 25  test_daemon_metrics 25  test_daemon_clients 20  faults 20  kill_loop_short 20  test_simgpu_sampling 15
  guests 15  test_store_memory 15  attribution_figures 15  exact 12  query_library 12  coverage 10  test_attribution 10
  cluster_faults_26 90  cluster_chaos_26_2 60  cluster_hostile_26 50  cluster_ask_26 45  cluster_rows_26 35
  cluster_left_out_26 30  cluster_schema_26 25  cluster_rules 22  cluster_opt_in 16  browser_report 15)
# Tests that wait for a server or for a rest more than they compute: one of a column at a time, so that others use the processors.
set(OCC_WAITING_TESTS_a test_daemon_hostile test_daemon_clients)
set(OCC_WAITING_TESTS_b test_daemon_users test_daemon_attacks)
set(OCC_WAITING_TESTS_c cluster_faults_26 cluster_ask_26 cluster_schema_26 cluster_accounts_26)
set(OCC_WAITING_TESTS_d cluster_chaos_26_2 cluster_rows_26 cluster_rules cluster_dashboards_26 cluster_transport_26)
set(OCC_WAITING_TESTS_e cluster_hostile_26 cluster_left_out_26 cluster_opt_in cluster_chart)

function(_occ_test_order name)
  list(FIND OCC_LONG_TESTS ${name} at)
  if(at GREATER -1)
    math(EXPR at "${at} + 1")
    list(GET OCC_LONG_TESTS ${at} seconds)
    set_tests_properties(${name} PROPERTIES COST ${seconds})
  endif()
  foreach(column a b c d e)
    if("${name}" IN_LIST OCC_WAITING_TESTS_${column})
      set_tests_properties(${name} PROPERTIES RESOURCE_LOCK waiting_${column})
    endif()
  endforeach()
endfunction()

function(_occ_test_properties name labels)
  _occ_test_order(${name})
  set(timeout ${OCC_TEST_TIMEOUT_S})
  if(NOT labels)
    set(labels quick)
  elseif("slow" IN_LIST labels)
    set(timeout ${OCC_SLOW_TEST_TIMEOUT_S})
  elseif("long" IN_LIST labels)
    set(timeout ${OCC_LONG_TEST_TIMEOUT_S})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

function(occ_add_test name)
  cmake_parse_arguments(ARG "THREADS;STEPS;HOT" "CASES" "SOURCES;USES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE occ_compile_options PkgConfig::CMOCKA ${ARG_USES})
  if(NOT ARG_HOT)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(OCC_SANITIZE STREQUAL thread AND NOT ARG_THREADS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
  if(ARG_CASES AND OCC_SANITIZE STREQUAL thread)
    add_test(NAME ${name}_all COMMAND ${name})
    _occ_test_properties(${name}_all slow)
  else()
    set(ARG_CASES "")
  endif()
  if(ARG_STEPS AND OCC_SANITIZE)
    add_test(NAME ${name}_all COMMAND ${name} all)
    _occ_test_properties(${name}_all slow)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_CASES})
  _occ_test_properties(${name} "${ARG_LABELS}")
endfunction()

function(occ_add_script_test name)
  cmake_parse_arguments(ARG "TEXTS" "" "COMMAND;LABELS" ${ARGN})
  if(ARG_TEXTS AND OCC_SANITIZE)
    list(APPEND ARG_LABELS slow)
  endif()
  if("long" IN_LIST ARG_LABELS)
    add_test(NAME ${name} COMMAND ${ARG_COMMAND} CONFIGURATIONS long)
  else()
    add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  endif()
  _occ_test_properties(${name} "${ARG_LABELS}")
endfunction()
