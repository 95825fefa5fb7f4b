# occq mcp: the rules of the protocol, and questions with verified answers, without a model.
find_program(OCC_PYTHON3 python3)
if(OCC_PYTHON3)
  occ_add_script_test(mcp_protocol
    COMMAND "${OCC_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/mcp_protocol.py" $<TARGET_FILE:occq> $<TARGET_FILE:cli_history>)
  occ_add_script_test(mcp_exam
    COMMAND "${OCC_PYTHON3}" -B "${CMAKE_CURRENT_SOURCE_DIR}/mcp_exam.py" $<TARGET_FILE:occq> $<TARGET_FILE:cli_history>
            "${PROJECT_SOURCE_DIR}")
endif()
