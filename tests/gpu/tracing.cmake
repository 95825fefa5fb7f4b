# What the tracing experiments need beside the samples: a null kernel under CUPTI's own records, and a program of the static
# CUDA runtime.
if(NOT TARGET sample_hello OR NOT OCC_HAVE_CUPTI_HEADERS)
  return()
endif()
get_directory_property(gencode DIRECTORY "${PROJECT_SOURCE_DIR}/tests/samples" DEFINITION gencode)
get_directory_property(ptx DIRECTORY "${PROJECT_SOURCE_DIR}/tests/samples" DEFINITION ptx)
set(name cost)
set(image "${CMAKE_CURRENT_BINARY_DIR}/cost.fatbin")
occ_nvcc("${image}" SOURCES "${CMAKE_CURRENT_SOURCE_DIR}/cost.cu"
         ARGUMENTS -fatbin -t 2 -O3 -Werror all-warnings ${gencode} ${ptx})
configure_file("${PROJECT_SOURCE_DIR}/tests/samples/embed.c.in" cost_image.c @ONLY)
set_source_files_properties("${CMAKE_CURRENT_BINARY_DIR}/cost_image.c" PROPERTIES OBJECT_DEPENDS "${image}")
add_executable(launch_cost launch_cost.c "${PROJECT_SOURCE_DIR}/tests/samples/common.c"
  "${CMAKE_CURRENT_BINARY_DIR}/cost_image.c" "${image}")
set_target_properties(launch_cost PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${kit}")
target_include_directories(launch_cost PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_include_directories(launch_cost SYSTEM PRIVATE "${OCC_CUDA_INCLUDE_DIR}" "${OCC_CUPTI_INCLUDE_DIR}")
target_link_libraries(launch_cost PRIVATE occ_compile_options occ_cupti Threads::Threads ${CMAKE_DL_LIBS} m)

# Programs that behave as some programs do; the kernels are the load's (counters.cmake).
add_executable(behave behave.c "${PROJECT_SOURCE_DIR}/tests/samples/common.c" "${CMAKE_CURRENT_BINARY_DIR}/load_image.c"
  "${CMAKE_CURRENT_BINARY_DIR}/load.fatbin")
set_target_properties(behave PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${kit}")
target_include_directories(behave PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_include_directories(behave SYSTEM PRIVATE "${OCC_CUDA_INCLUDE_DIR}" "${OCC_CUPTI_INCLUDE_DIR}")
target_link_libraries(behave PRIVATE occ_compile_options occ_cupti Threads::Threads ${CMAKE_DL_LIBS} m)

# The arithmetic of the comparison of costs (E23).
add_executable(gpu_abba abba_main.c abba.c)
set_target_properties(gpu_abba PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${kit}")
target_link_libraries(gpu_abba PRIVATE occ_compile_options occ_compare m)

if(OCC_PORTABLE)
  install(TARGETS behave gpu_abba launch_cost RUNTIME DESTINATION "${OCC_KIT_DESTINATION}")
endif()
# The toolkit has the CUDA runtime for the building machine only; without the program, experiments report it as not built.
if(NOT CMAKE_CROSSCOMPILING)
  # Without symbols: one has the name of a temporary file of nvcc, which changes with each build.
  occ_nvcc("${kit}/runtime" SOURCES "${CMAKE_CURRENT_SOURCE_DIR}/runtime.cu"
           ARGUMENTS -O2 ${gencode} ${ptx} -Xcompiler -static-libstdc++,-static-libgcc -Xlinker -s)
  add_custom_target(gpu_runtime ALL DEPENDS "${kit}/runtime")
  if(OCC_PORTABLE)
    install(PROGRAMS "${kit}/runtime" DESTINATION "${OCC_KIT_DESTINATION}")
  endif()
endif()
