# libocctrace-query: the same documents as occq, Arrow streams, hostile histories; and python/occtrace on it.
find_program(OCC_PYTHON3 python3)
find_program(OCC_SYSTEM_PYTHON3 python3 PATHS /usr/bin NO_DEFAULT_PATH) # has the distribution's packages
mark_as_advanced(OCC_SYSTEM_PYTHON3)
add_executable(query_client query_client.c)
target_link_libraries(query_client PRIVATE occ_compile_options occtrace_query Threads::Threads)
occ_add_script_test(query_symbols
  COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/query_symbols.sh" $<TARGET_FILE:occtrace_query> "${PROJECT_SOURCE_DIR}/query")
set(_query_part "")
if(OCC_SANITIZE)
  set(_query_part some) # all: query_hostile
endif()
if(OCC_PYTHON3)
  occ_add_script_test(query_library
    COMMAND "${OCC_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/query_library.py" $<TARGET_FILE:occq> $<TARGET_FILE:cli_history>
            $<TARGET_FILE:query_client> "${PROJECT_SOURCE_DIR}" ${_query_part})
  occ_add_script_test(query_hostile
    COMMAND "${OCC_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/query_library.py" $<TARGET_FILE:occq> $<TARGET_FILE:cli_history>
            $<TARGET_FILE:query_client> "${PROJECT_SOURCE_DIR}" more LABELS slow)
endif()
if(OCC_SYSTEM_PYTHON3)
  occ_add_script_test(query_schemas
    COMMAND "${OCC_SYSTEM_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/query_schemas.py" $<TARGET_FILE:occq> $<TARGET_FILE:cli_history>
            $<TARGET_FILE:query_client> "${PROJECT_SOURCE_DIR}" TEXTS)
endif()
add_library(nvtx_tool SHARED nvtx_tool.c)
target_link_libraries(nvtx_tool PRIVATE occ_compile_options)
target_include_directories(nvtx_tool PRIVATE "${PROJECT_SOURCE_DIR}")
if(OCC_SYSTEM_PYTHON3 AND NOT OCC_SANITIZE) # a sanitizer's library needs its runtime in the program
  occ_add_script_test(query_manual
    COMMAND "${OCC_SYSTEM_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/query_manual.py" "${CMAKE_C_COMPILER}" $<TARGET_FILE:occtrace_query>
            $<TARGET_FILE:cli_history> "${PROJECT_SOURCE_DIR}")
  occ_add_script_test(python_package
    COMMAND "${OCC_SYSTEM_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/python_package.py" $<TARGET_FILE:occtrace_query> $<TARGET_FILE:occq>
            $<TARGET_FILE:cli_history> $<TARGET_FILE:nvtx_tool> "${PROJECT_SOURCE_DIR}")
  occ_add_script_test(python_million
    COMMAND "${OCC_SYSTEM_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/python_package.py" $<TARGET_FILE:occtrace_query> $<TARGET_FILE:occq>
            $<TARGET_FILE:cli_history> $<TARGET_FILE:nvtx_tool> "${PROJECT_SOURCE_DIR}" more LABELS slow)
  occ_add_script_test(python_wheel
    COMMAND "${OCC_SYSTEM_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/python_wheel.py" "${PROJECT_SOURCE_DIR}" $<TARGET_FILE:occtrace_query>
            $<TARGET_FILE:cli_history>)
  occ_add_script_test(python_ranges
    COMMAND "${OCC_SYSTEM_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/python_ranges.py" "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
endif()
